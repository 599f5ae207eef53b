"""builtin_functions.py POLDER_ICD [PEER_ICD...] [options]: nanoseconds per call of the built-in functions of OpenCL C, by kind of arguments.

math_functions.py measures tame arguments, with which a rare path costs nothing. Here each function (math, common, geometric, relational,
integer, conversions of all roundings, loads and stores of halves, atomics, shuffles, copies, work-groups and sub-groups) has five kinds of them:
  usual    the function's own range; integers: any bits
  tiny     subnormal numbers; integers: 1 to 16
  huge     numbers next to the largest; integers next to the largest
  special  zeros, infinities and NaN; integers: 0, 1, -1, the smallest and the largest (no 0 and -1 where they would divide)
  mixed    usual, but one in sixteen, at random places, from the three kinds above; integers: one large among tiny ones
A line has the nanoseconds of one element and the ratio to the quickest peer for each kind; `*` marks ratios above --limit, which were measured
again. `differs` marks kinds whose results differ from a peer's in a function that has one right result (NaN and undefined ones aside). Each
implementation is a process of its own, without a cache of kernels, pinned to one core. Needs PyOpenCL and NumPy.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from implementation import Implementation, geometric_mean
import math_functions

KINDS = ("usual", "tiny", "huge", "special", "mixed")
ITEMS = 2048
SECTIONS = 16  # The arguments of one item's calls lie in so many contiguous sections of the buffers, one after the other.
GAP = 16  # Items between sections, so that they are not a power of two apart, which would evict them from the first cache.
CALLS_MAX = 256
LAUNCH_MAX_NS = 400_000
SIGNED = ("char", "short", "int", "long")
INTEGERS = tuple(sign + name for name in SIGNED for sign in ("", "u"))
REALS = ("float", "double", "half")
BITS = {"char": 8, "uchar": 8, "short": 16, "ushort": 16, "int": 32, "uint": 32, "long": 64, "ulong": 64, "half": 16, "float": 32, "double": 64}


def of_bits(bits, signed):
    return ("" if signed else "u") + SIGNED[{8: 0, 16: 1, 32: 2, 64: 3}[bits]]


class Function:
    """How one built-in function is called.

    In `call`, A, B and C are arguments of the row's type, M is a vector of ints, N is the width, T the row's type, I and U the integer types of its
    size; T@, I@ and U@ carry the width. `at` is the element's index; `scratch` is a global buffer of its own. `result` is a type in that notation.
    """

    def __init__(self, name, call, types, result="T@", widths=(1, 2, 3, 4, 8, 16), range_=(-20, 20), divides=False, exact=True):
        self.name, self.call, self.types, self.result = name, call, types, result
        self.widths, self.range, self.divides, self.exact = widths, range_, divides, exact

    def source(self, scalar, width):
        bits, w = BITS[scalar], "" if width == 1 else str(width)
        names = {"T": scalar, "I": of_bits(bits, True), "U": of_bits(bits, False), "V": of_bits(min(2 * bits, 64), scalar in SIGNED)}

        def typed(text):
            text = re.sub(r"\b((?:\w*_)?)([TIUV])(@?)(?=\b|_|\W)",
                          lambda m: m[1] + names[m[2]] + (w if m[3] else ""), text)
            return text.replace("@", w)
        load = lambda name: f"vload{w}(at, {name})" if w else f"{name}[at]"
        result, head = typed(self.result), ""
        for name, type_, buffer in (("A", "T@", "a"), ("B", "T@", "b"), ("C", "T@", "c"), ("M", "int@", "m")):
            if re.search(rf"\b{name}\b", self.call):
                head += f"{typed(type_)} {name} = {load(buffer)}; "
        scalar_result = re.sub(r"\d+$", "", result)
        result_width = result[len(scalar_result):]
        element = of_bits(BITS[scalar_result], False)
        unsigned = element + result_width
        is_real = scalar_result in ("half", *REALS)
        store = f"vstore{result_width}(sum, i, (global {element}*)out)" if result_width else f"((global {element}*)out)[i] = sum"
        fp16 = "#pragma OPENCL EXTENSION cl_khr_fp16 : enable\n" if "half" in (scalar, scalar_result) else ""
        return f"""{fp16}#pragma OPENCL EXTENSION cl_khr_fp64 : enable
kernel void f(global long* out, global const {scalar}* a, global const {scalar}* b, global const {scalar}* c, global const int* m,
              global long* scratch, int n, local {scalar}* tile) {{
    const int i = get_global_id(0), items = get_global_size(0);
    {unsigned} sum = 0;
    for (int k = 0; k < n; ++k) {{
        const int first = k % {SECTIONS} * (items + {GAP}), at = first + i;
        {typed('T@')} second = 0; int{w} number = 0;
        {head}
        {result} one = {typed(self.call)};
        sum ^= {f'one != one ? ({unsigned})0 : as_{unsigned}(one)' if is_real else f'as_{unsigned}(one)'};
    }}
    {store};
}}
"""


def math_list():
    for name, (call, range_) in math_functions.FUNCTIONS.items():
        call = re.sub(r"\bX\b", "A", re.sub(r"\by\b", "B", re.sub(r"\bm\b", "M", call))).replace("REAL", "convert_T@")
        types = ("float",) if name in math_functions.FLOAT_ONLY else REALS
        yield Function(name, call, types, range_=range_, exact=name in (
            "ceil", "fabs", "floor", "rint", "round", "trunc", "copysign", "fma", "fmod", "remainder", "ldexp", "modf", "frexp", "ilogb", "logb",
            "nextafter", "remquo"))
    yield Function("add", "A + B", REALS)
    yield Function("multiply", "A * B", REALS)
    yield Function("divide", "A / B", REALS, exact=False)
    yield Function("mad", "mad(A, B, C)", REALS, exact=False)


def common_list():
    for name, count in (("degrees", 1), ("radians", 1), ("sign", 1), ("max", 2), ("min", 2), ("step", 2), ("mix", 3), ("clamp", 3), ("smoothstep", 3)):
        call = {1: "(A)", 2: "(A, B)", 3: "(A, B, C)"}[count]
        if name == "clamp":
            call = "(A, min(B, C), max(B, C))"
        yield Function(name, name + call, REALS, exact=name == "sign")
    for name in ("dot(A, B)", "length(A)", "distance(A, B)", "fast_length(A)", "fast_distance(A, B)"):
        yield Function(name.split("(")[0], name, ("float",) if name.startswith("fast") else REALS, "T", (1, 2, 3, 4), exact=False)
    for name in ("normalize(A)", "fast_normalize(A)"):
        yield Function(name.split("(")[0], name, ("float",) if name.startswith("fast") else REALS, "T@", (1, 2, 3, 4), exact=False)
    yield Function("cross", "cross(A, B)", REALS, "T@", (3, 4), exact=False)


def relational_list():
    for name in ("isequal", "isnotequal", "isgreater", "isgreaterequal", "isless", "islessequal", "islessgreater", "isordered", "isunordered"):
        yield Function(name, f"convert_I@({name}(A, B))", REALS, "I@")
    for name in ("isfinite", "isinf", "isnan", "isnormal", "signbit"):
        yield Function(name, f"convert_I@({name}(A))", REALS, "I@")
    yield Function("any", "any(A)", SIGNED, "int")
    yield Function("all", "all(A)", SIGNED, "int")
    yield Function("bitselect", "bitselect(A, B, C)", INTEGERS + REALS, exact=False)
    yield Function("select", "select(A, B, as_U@(C))", INTEGERS + REALS, exact=False)


def integer_list():
    for name in ("abs_diff", "add_sat", "sub_sat", "hadd", "rhadd", "max", "min", "mul_hi", "rotate"):
        yield Function(name, f"{name}(A, B)", INTEGERS, "U@" if name == "abs_diff" else "T@")
    for name in ("abs", "clz", "ctz", "popcount", "bit_reverse"):
        yield Function(name, f"{name}(A)", INTEGERS, "U@" if name == "abs" else "T@")
    for name in ("mad_hi", "mad_sat"):
        yield Function(name, f"{name}(A, B, C)", INTEGERS)
    yield Function("clamp", "clamp(A, min(B, C), max(B, C))", INTEGERS)
    for name, call in (("mad24", "mad24(A, B, C)"), ("mul24", "mul24(A, B)")):
        yield Function(name, call, ("int", "uint"), exact=False)
    yield Function("upsample", "upsample(A, as_U@(B))", INTEGERS[:6], "V@")
    for name, sign in (("times", "*"), ("left", "<<"), ("right", ">>")):
        yield Function(name, f"(T@)(A {sign} B)", INTEGERS)
    for name, sign in (("quotient", "/"), ("rest", "%")):
        yield Function(name, f"(T@)(A {sign} B)", INTEGERS, divides=True)
        yield Function(name + "_uniform", f"(T@)(A {sign} b[k])", INTEGERS, divides=True)
    yield Function("bitfield_insert", "bitfield_insert(A, B, 3u, 4u)", INTEGERS)
    yield Function("bitfield_extract", "bitfield_extract_signed(A, 3u, 4u)", INTEGERS, "I@")
    for one, other in (("char", "char"), ("uchar", "uchar"), ("char", "uchar"), ("uchar", "char")):
        result = "uint" if one == other == "uchar" else "int"
        name = {"char": "s", "uchar": "u"}
        packed = f"{name[one]}{name[other]}" if one != other else name[one] * 2
        yield Function(f"dot_{packed}", f"dot(as_{one}4(A), as_{other}4(B))", ("uint",), result, (1,))
        yield Function(f"dot_acc_sat_{packed}", f"dot_acc_sat(as_{one}4(A), as_{other}4(B), as_{result}(C))", ("uint",), result, (1,))
        yield Function(f"dot_packed_{packed}", f"dot_4x8packed_{packed}_{result}(A, B)", ("uint",), result, (1,))


def conversion_list():
    for to in INTEGERS + REALS:
        for sat in ("", "_sat") if to in INTEGERS else ("",):
            for rounding in ("", "_rte", "_rtz", "_rtp", "_rtn"):
                types = tuple(one for one in INTEGERS + REALS if one != to and (not rounding or to in REALS or one in REALS))
                yield Function(f"convert_{to}{sat}{rounding}", f"convert_{to}@{sat}{rounding}(A)", types, to + "@",
                               exact=sat != "" or to in REALS)
    yield Function("as_type", "as_T@(as_uchar@(as_uchar@(A)))", ("char",), "T@")


def memory_list():
    half = "(global half*)scratch"
    for a in ("", "a"):
        yield Function(f"vload{a}_half", f"vload{a}_half@(at, (global const half*)a)", ("float",), "T@", (2, 3, 4, 8, 16) if a else (1, 2, 3, 4, 8, 16))
    for name in ("vstore_half", "vstorea_half"):
        for rounding in ("", "_rte", "_rtz", "_rtp", "_rtn"):
            yield Function(name + rounding, f"(T)0; {name}@{rounding}(A, at, {half})", REALS, "T",
                               (2, 3, 4, 8, 16) if name == "vstorea_half" else (1, 2, 3, 4, 8, 16))
    for name in ("add", "sub", "xchg", "min", "max", "and", "or", "xor"):
        yield Function("atomic_" + name, f"atomic_{name}((global int*)scratch + at, A)", ("int",), "int", (1,), exact=False)
    yield Function("atomic_cmpxchg", "atomic_cmpxchg((global int*)scratch + at, A, B)", ("int",), "int", (1,), exact=False)
    yield Function("atomic_inc", "atomic_inc((global int*)scratch + at)", ("int",), "int", (1,), exact=False)
    yield Function("atomic_add_one", "atomic_add((global int*)scratch, A)", ("int",), "int", (1,), exact=False)
    yield Function("atomic_max_one", "atomic_max((global int*)scratch, A)", ("int",), "int", (1,), exact=False)
    yield Function("atomic_add_spread", "atomic_add((global int*)scratch + (A & 255), B)", ("int",), "int", (1,), exact=False)
    yield Function("load", "A", INTEGERS + REALS, "T@")
    yield Function("vload_odd", "vload@(at, a + 1)", INTEGERS + REALS, "T@", (2, 3, 4, 8, 16))
    yield Function("vstore", "(T)0; vstore@(A, at, (global T*)scratch)", INTEGERS + REALS, "T", (2, 3, 4, 8, 16))
    yield Function("shuffle", "shuffle(A, as_U@(B))", INTEGERS + REALS, "T@", (2, 4, 8, 16))
    yield Function("shuffle2", "shuffle2(A, B, as_U@(C))", INTEGERS + REALS, "T@", (2, 4, 8, 16))
    yield Function("async_copy", "(T)0; event_t e = async_work_group_copy(tile, a + first, 256, 0); wait_group_events(1, &e);"
                   " one = tile[get_local_id(0)]; barrier(CLK_LOCAL_MEM_FENCE)", INTEGERS + REALS, "T", (1,))
    yield Function("async_strided", "(T)0; event_t e = async_work_group_strided_copy(tile, a + first, 256, 2, 0); wait_group_events(1, &e);"
                   " one = tile[get_local_id(0)]; barrier(CLK_LOCAL_MEM_FENCE)", INTEGERS + REALS, "T", (1,))


def group_list():
    types = ("int", "uint", "long", "ulong", "float", "double")
    for scope, item in (("work_group", "(k & 255)"), ("sub_group", "(k & 3)")):
        for name in ("all", "any"):
            yield Function(f"{scope}_{name}", f"{scope}_{name}(A & 7)", ("int",), "int", (1,))
        yield Function(f"{scope}_broadcast", f"{scope}_broadcast(A, {item})", types, widths=(1,), exact=False)
        for kind in ("reduce", "scan_exclusive", "scan_inclusive"):
            for operation in ("add", "min", "max"):
                yield Function(f"{scope}_{kind}_{operation}", f"{scope}_{kind}_{operation}(A)", types, widths=(1,), exact=False)
    for name, other in (("", "get_sub_group_local_id() ^ 3"), ("_xor", "1"), ("_down", "1"), ("_up", "1")):
        yield Function(f"sub_group_shuffle{name}", f"sub_group_shuffle{name}(A, {other})", types, widths=(1,), exact=False)
    yield Function("sub_group_ballot", "sub_group_ballot(A & 1).x", ("int",), "uint", (1,), exact=False)
    yield Function("barrier", "A; barrier(CLK_LOCAL_MEM_FENCE)", ("int",), "int", (1,))
    for name in ("add", "xchg", "max", "or"):
        yield Function(f"local_atomic_{name}", f"atomic_{name}((local int*)tile + get_local_id(0), A)", ("int",), "int", (1,), exact=False)
        yield Function(f"local_atomic_{name}_one", f"atomic_{name}((local int*)tile, A)", ("int",), "int", (1,), exact=False)
    yield Function("local_atomic_inc_spread", "atomic_inc((local int*)tile + (A & 255))", ("int",), "int", (1,), exact=False)
    for space in ("global", "local"):
        memory = "scratch + at" if space == "global" else "tile + get_local_id(0)"
        for name in ("add", "min", "max"):
            call = f"atomic_fetch_{name}_explicit((volatile {space} atomic_T*)({memory}), A, memory_order_relaxed, memory_scope_device)"
            yield Function(f"{space}_atomic_fetch_{name}", call, ("int", "float"), "T", (1,), exact=False)


GROUPS = {"math": math_list, "common": common_list, "relational": relational_list, "integer": integer_list, "conversion": conversion_list,
          "memory": memory_list, "group": group_list}


def functions(group):
    return list(GROUPS[group]())


def arguments_of(np, kind, scalar, count, function, generator):
    """`count` elements of one kind."""
    if kind == "mixed":
        if scalar in INTEGERS:
            odd = arguments_of(np, "usual", scalar, count, function, generator)
            usual = arguments_of(np, "tiny", scalar, count, function, generator)
        else:
            usual = arguments_of(np, "usual", scalar, count, function, generator)
            odds = [arguments_of(np, one, scalar, count, function, generator) for one in ("tiny", "huge", "special")]
            odd = np.choose(generator.integers(0, 3, count), odds)
        return np.where(generator.integers(0, 16, count) == 0, odd, usual).astype(usual.dtype)
    bits = BITS[scalar]
    unsigned = np.dtype(f"u{bits // 8}")
    if scalar in INTEGERS:
        signed = scalar in SIGNED
        dtype = np.dtype(f"{'i' if signed else 'u'}{bits // 8}")
        limits = np.iinfo(dtype)
        if kind == "tiny":
            return generator.integers(1, 17, count).astype(dtype)
        if kind == "huge":
            return (limits.max - generator.integers(0, 17, count).astype(dtype)).astype(dtype)
        if kind == "special":
            some = [1, limits.min if signed else 3, limits.max] if function.divides else [0, 1, limits.max, limits.min, -1 if signed else 2]
            return generator.choice(np.array(some, dtype), count)
        any_ = generator.integers(limits.min, limits.max, count, dtype=dtype, endpoint=True)
        return np.where((any_ == 0) | (any_ == dtype.type(-1 if signed else 0)), dtype.type(7), any_) if function.divides else any_
    dtype = {16: np.float16, 32: np.float32, 64: np.float64}[bits]
    low, high = function.range
    sign = generator.choice(np.array([1, -1 if low < 0 else 1], dtype), count)
    if kind == "tiny":
        mantissa = {16: 10, 32: 23, 64: 52}[bits]
        return generator.integers(1, 2 ** mantissa, count).astype(unsigned).view(dtype) * sign
    if kind == "huge":
        return np.ldexp(generator.uniform(0.5, 1, count), generator.integers(-20, 1, count) + np.finfo(dtype).maxexp).astype(dtype) * sign
    if kind == "special":
        return generator.choice(np.array([0.0, -0.0, np.inf, -np.inf, np.nan], dtype), count)
    return generator.uniform(low, high, count).astype(dtype)


class Device(math_functions.Device):
    def measure(self, group, index, scalar, width, seconds):
        """{kind: (nanoseconds per element, checksum of the results)}, or nothing where the program is refused."""
        np, function = self.np, functions(group)[index]
        try:
            program = self.cl.Program(self.context, function.source(scalar, width)).build("-cl-std=CL3.0")
            kernel = self.cl.Kernel(program, "f")
        except self.cl.Error as error:
            return {"error": str(error)[-300:]}
        items = max(256, ITEMS // width // 256 * 256)
        measured, count = {}, (items + GAP) * SECTIONS * width + 32
        for kind in KINDS:
            if function.name.startswith("vload") and "half" in function.name:
                data = [arguments_of(np, kind, "half", 2 * count, function, np.random.default_rng(7))] * 3
            else:
                generator = np.random.default_rng(7)
                data = [arguments_of(np, kind, scalar, count, function, generator) for _ in range(3)]
            whole = np.random.default_rng(8).integers(2, 9, count).astype(np.int32)
            if kind == "huge":
                whole = np.random.default_rng(8).integers(-2**31, 2**31, count).astype(np.int32)
            out = np.zeros(items * width, np.int64)
            buffers = [self.buffer(one) for one in [out, *data, whole, np.zeros(count, np.int64)]]
            kernel.set_args(*buffers, np.int32(SECTIONS), self.cl.LocalMemory(256 * 8))
            self.cl.enqueue_nd_range_kernel(self.queue, kernel, (items,), (256,))
            self.cl.enqueue_copy(self.queue, out, buffers[0])
            measured[kind] = (self.time(kernel, items, seconds) / width, zlib.crc32(out.tobytes()))
        return measured

    def time(self, kernel, items, seconds):
        calls, best, spent, rounds = CALLS_MAX, float("inf"), 0, 0
        kernel.set_arg(6, self.np.int32(calls))
        while rounds < 4 or (spent < seconds and rounds < 1000):
            begin = time.perf_counter_ns()
            self.cl.enqueue_nd_range_kernel(self.queue, kernel, (items,), (256,))
            self.queue.finish()
            took = time.perf_counter_ns() - begin
            best, spent, rounds = min(best, took / items / calls), spent + took / 1e9, rounds + 1
            if took > LAUNCH_MAX_NS and calls > SECTIONS:
                calls = max(SECTIONS, int(calls * LAUNCH_MAX_NS / took))
                kernel.set_arg(6, self.np.int32(calls))
        return best


def child(arguments):
    os.sched_setaffinity(0, {arguments.core})
    device = Device()
    for line in sys.stdin:
        group, index, scalar, width = line.split()
        print(json.dumps(device.measure(group, int(index), scalar, int(width), arguments.seconds)), flush=True)


class Measured(Implementation):
    """An implementation in a process that measures what it reads on its standard input."""

    def __init__(self, icd, scratch, name, arguments):
        super().__init__(icd, pathlib.Path(scratch, name), {
            "POCL_KERNEL_CACHE": "0", "POLDER_QUICK_CODE": "0", "POCL_DEVICES": "cpu", "PYOPENCL_NO_CACHE": "1", "PYOPENCL_COMPILER_OUTPUT": "0"})
        self.command = [sys.executable, "-W", "ignore", __file__, "child", "--core", str(arguments.core), "--seconds", str(arguments.seconds)]
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.command, env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def measure(self, *row):
        try:
            self.process.stdin.write(" ".join(map(str, row)) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if line:
            return json.loads(line)
        self.process.wait()
        self.start()
        return {"error": "the process ended"}

    def stop(self):
        self.process.stdin.close()
        self.process.wait()


def measure_row(all_, row, limit):
    """The implementations' times and checksums; a row with a ratio above the limit is measured three times in turns."""
    measured = [one.measure(*row) for one in all_]
    for _ in range(2):
        peers = [one for one in measured[1:] if "error" not in one]
        if "error" in measured[0] or not any(measured[0][kind][0] > limit * one[kind][0] for one in peers for kind in KINDS):
            break
        for one, best in zip(all_, measured):
            for kind, (took, _) in one.measure(*row).items() if "error" not in best else ():
                best[kind][0] = min(best[kind][0], took)
    return measured


def main():
    parser = argparse.ArgumentParser(prog="builtin_functions.py")
    parser.add_argument("icds", nargs="+", help="POLDER_ICD and maybe those of peers")
    parser.add_argument("--groups", type=lambda text: text.split(","), default=list(GROUPS))
    parser.add_argument("--functions", type=lambda text: text.split(","), default=[])
    parser.add_argument("--types", type=lambda text: text.split(","), default=[])
    parser.add_argument("--widths", type=lambda text: [int(one) for one in text.split(",")], default=[1, 2, 3, 4, 8, 16])
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=0.005, help="for each kind of arguments")
    parser.add_argument("--limit", type=float, default=1.3)
    arguments = parser.parse_args()
    if arguments.icds == ["child"]:
        child(arguments)
        return
    print(f"{'ns per element, ratio':34}" + "".join(f"{kind:>16}" for kind in KINDS))
    ratios, above = [], []
    with tempfile.TemporaryDirectory() as scratch:
        all_ = [Measured(icd, scratch, f"{index}", arguments) for index, icd in enumerate(arguments.icds)]
        for group in arguments.groups:
            for index, function in enumerate(functions(group)):
                if arguments.functions and function.name not in arguments.functions:
                    continue
                for scalar in function.types:
                    if arguments.types and scalar not in arguments.types:
                        continue
                    for width in function.widths:
                        if width not in arguments.widths:
                            continue
                        label = f"{function.name} {scalar}{'' if width == 1 else width}"
                        ours, *peers = measure_row(all_, (group, index, scalar, width), arguments.limit)
                        if "error" in ours:
                            print(f"{label:34} failed: {ours['error']}", flush=True)
                            continue
                        peers = [one for one in peers if "error" not in one]
                        line, differs = f"{label:34}", []
                        for kind in KINDS:
                            best = min((one[kind][0] for one in peers), default=None)
                            ratio = ours[kind][0] / best if best else 0
                            line += f"{ours[kind][0]:9.3f}{ratio:6.2f}{'*' if ratio > arguments.limit else ' '}"
                            if best:
                                ratios.append(ratio)
                                above += [(ratio, f"{label} {kind}")] if ratio > arguments.limit else []
                            if function.exact and any(one[kind][1] != ours[kind][1] for one in peers):
                                differs.append(kind)
                        print(line + (f" differs: {', '.join(differs)}" if differs else ""), flush=True)
        for one in all_:
            one.stop()
    if ratios:
        print(f"geometric mean of {len(ratios)}: {geometric_mean(ratios):.3f}")
        print(f"above {arguments.limit}: {len(above)}: " + ", ".join(f"{name} {ratio:.2f}" for ratio, name in sorted(above, reverse=True)[:60]))


if __name__ == "__main__":
    main()
