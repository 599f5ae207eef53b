"""math_functions.py POLDER_ICD [PEER_ICD] [options]: nanoseconds per call of the math functions of OpenCL C on one core.

Each function is called in five forms of kernel: in straight code, in a loop that is not unrolled, under a guard that seven of
eight work-items pass, in a function that is not inlined, and after a divergent branch. The table has a line for each type: the
time in straight code, the other forms' times as ratios to it (goal: at most 1.3), and, with a peer, the ratio to the peer's
straight code (goal: a geometric mean of 1, none above 1.5). Each measurement is a process of its own with an empty kernel
cache, pinned to one core; the best of many short launches counts. Needs PyOpenCL and NumPy.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from implementation import Implementation, geometric_mean

ITEMS = 32768
LEAST_ITEMS = 2048
LAUNCH_MAX_NS = 400_000
STRAIGHT_CALLS = 4
LOOP_CALLS = 8
FORMS = ("straight", "loop", "guard", "apart", "diverged")

# Name: the call and the range of x. y lies in the range of x, unless it is given; m is a small whole number.
UNARY = {
    "acos": (-0.9, 0.9), "acosh": (1.1, 50), "acospi": (-0.9, 0.9), "asin": (-0.9, 0.9), "asinh": (-20, 20), "asinpi": (-0.9, 0.9),
    "atan": (-10, 10), "atanh": (-0.8, 0.8), "atanpi": (-10, 10), "cbrt": (-100, 100), "ceil": (-100, 100), "cos": (-20, 20),
    "cosh": (-9, 9), "cospi": (-9, 9), "erf": (-3, 3), "erfc": (-3, 3), "exp": (-20, 20), "exp10": (-9, 9), "exp2": (-30, 30),
    "expm1": (-9, 9), "fabs": (-9, 9), "floor": (-100, 100), "lgamma": (0.1, 20), "log": (0.01, 100), "log10": (0.01, 100),
    "log1p": (-0.5, 20), "log2": (0.01, 100), "logb": (0.01, 100), "rint": (-100, 100), "round": (-100, 100), "rsqrt": (0.01, 100),
    "sin": (-20, 20), "sinh": (-9, 9), "sinpi": (-9, 9), "sqrt": (0.01, 100), "tan": (-20, 20), "tanh": (-5, 5), "tanpi": (-9, 9),
    "tgamma": (0.1, 9), "trunc": (-100, 100),
}
NATIVE = {
    "half_cos": (-20, 20), "half_exp": (-20, 20), "half_log": (0.01, 100), "half_sin": (-20, 20), "half_tan": (-20, 20),
    "native_cos": (-20, 20), "native_exp": (-20, 20), "native_exp10": (-9, 9), "native_exp2": (-30, 30), "native_log": (0.01, 100),
    "native_log10": (0.01, 100), "native_log2": (0.01, 100), "native_recip": (0.01, 100), "native_rsqrt": (0.01, 100),
    "native_sin": (-20, 20), "native_sqrt": (0.01, 100), "native_tan": (-20, 20),
}
OTHERS = {
    "atan2": ("atan2(X, y)", (-10, 10)), "atan2pi": ("atan2pi(X, y)", (-10, 10)), "copysign": ("copysign(X, y)", (-10, 10)),
    "fdim": ("fdim(X, y)", (-10, 10)), "fma": ("fma(X, y, y)", (-10, 10)), "fmax": ("fmax(X, y)", (-10, 10)),
    "fmin": ("fmin(X, y)", (-10, 10)), "fmod": ("fmod(X, y)", (0.5, 100)), "hypot": ("hypot(X, y)", (-10, 10)),
    "maxmag": ("maxmag(X, y)", (-10, 10)), "minmag": ("minmag(X, y)", (-10, 10)), "nextafter": ("nextafter(X, y)", (-10, 10)),
    "pow": ("pow(X, y)", (0.1, 9)), "powr": ("powr(X, y)", (0.1, 9)), "remainder": ("remainder(X, y)", (0.5, 100)),
    "pown": ("pown(X, m)", (0.1, 9)), "rootn": ("rootn(X, m)", (0.1, 9)), "ldexp": ("ldexp(X, m)", (0.1, 9)),
    "fract": ("fract(X, &second) + second", (-100, 100)), "modf": ("modf(X, &second) + second", (-100, 100)),
    "sincos": ("sincos(X, &second) + second", (-20, 20)), "frexp": ("frexp(X, &number) + REAL(number)", (0.01, 100)),
    "ilogb": ("REAL(ilogb(X))", (0.01, 100)), "lgamma_r": ("lgamma_r(X, &number) + REAL(number)", (0.1, 20)),
    "remquo": ("remquo(X, y, &number) + REAL(number)", (0.5, 100)),
}
FLOAT_ONLY = {name: (f"{name}(X)", range_) for name, range_ in NATIVE.items()} | {
    "half_powr": ("half_powr(X, y)", (0.1, 9)), "native_divide": ("native_divide(X, y)", (0.1, 9)),
    "native_powr": ("native_powr(X, y)", (0.1, 9)),
}
FUNCTIONS = {name: (f"{name}(X)", range_) for name, range_ in UNARY.items()} | OTHERS | FLOAT_ONLY


def source(call, scalar, width):
    """The kernels of one function, named by their form."""
    w = "" if width == 1 else str(width)
    real, ints = scalar + w, "int" + w
    called = lambda x: "(" + call.replace("X", x).replace("REAL", "convert_" + real) + ")"
    four = " + ".join(called(f"x * c[{k}]") for k in range(STRAIGHT_CALLS))
    variables = f"{real} second = 0; {ints} number = 0;"
    head = f"""global {scalar}* out, global const {scalar}* xs, global const {scalar}* ys, global const int* whole,
        constant {scalar}* c, int n) {{
    size_t i = get_global_id(0); {variables}
    {real} x = {f'vload{w}(i, xs)' if w else 'xs[i]'}, y = {f'vload{w}(i, ys)' if w else 'ys[i]'};
    {ints} m = {f'vload{w}(i, whole)' if w else 'whole[i]'};"""
    store = f"vstore{w}(sum, i, out)" if w else "out[i] = sum"
    return f"""#pragma OPENCL EXTENSION cl_khr_fp64 : enable
{'#pragma OPENCL EXTENSION cl_khr_fp16 : enable' if scalar == 'half' else ''}
{real} __attribute__((noinline)) apart({real} x, {real} y, {ints} m, constant {scalar}* c) {{ {variables} return {four}; }}
kernel void straight({head} {real} sum = {four}; {store}; }}
kernel void loop({head} {real} sum = 0; for (int k = 0; k < n; ++k) sum += {called('x * c[k]')}; {store}; }}
kernel void guard({head} {real} sum = x; if ((whole[i] & 7) != 0) sum = {four}; {store}; }}
kernel void apart_({head} {real} sum = apart(x, y, m, c); {store}; }}
kernel void diverged({head} if (ys[i] > 3) x *= ({scalar})1.0625f; else if (ys[i] < 2) x *= ({scalar})0.9375f;
    {real} sum = {four}; {store}; }}
"""


class Device:
    """The first device of the one platform, and the arguments of all kernels."""

    def __init__(self):
        import numpy
        import pyopencl
        self.cl, self.np = pyopencl, numpy
        self.device = pyopencl.get_platforms()[0].get_devices()[0]
        self.context = pyopencl.Context([self.device])
        self.queue = pyopencl.CommandQueue(self.context)

    def buffer(self, values):
        flags = self.cl.mem_flags
        return self.cl.Buffer(self.context, flags.READ_WRITE | flags.COPY_HOST_PTR, hostbuf=values)

    def measure(self, name, scalar, width, forms, seconds):
        """Nanoseconds per call and element, by form; nothing for what the implementation lacks."""
        call, (low, high) = FUNCTIONS[name]
        np = self.np
        generator = np.random.default_rng(7)
        dtype = {"float": np.float32, "double": np.float64, "half": np.float16}[scalar]
        count = ITEMS * width
        xs = generator.uniform(low, high, count).astype(dtype)
        ys = generator.uniform(low, high, count).astype(dtype)
        whole = generator.integers(2, 8, count).astype(np.int32)
        whole[generator.integers(0, 8, count) == 0] = 8
        c = (1 + np.arange(LOOP_CALLS) / 128).astype(dtype)
        buffers = [self.buffer(np.zeros(count, dtype)), self.buffer(xs), self.buffer(ys), self.buffer(whole), self.buffer(c)]
        try:
            program = self.cl.Program(self.context, source(call, scalar, width)).build("-cl-std=CL3.0")
        except self.cl.RuntimeError:
            return {}
        return {form: self.time(program, form, buffers, seconds) / width for form in forms}

    def time(self, program, form, buffers, seconds):
        """Nanoseconds of one call by one work-item. Launches stay short, so that some are not interrupted on a busy machine."""
        kernel = self.cl.Kernel(program, "apart_" if form == "apart" else form)
        calls = LOOP_CALLS if form == "loop" else STRAIGHT_CALLS
        kernel.set_args(*buffers, self.np.int32(LOOP_CALLS))
        items, best, spent, rounds = ITEMS, float("inf"), 0, 0
        while rounds < 5 or (spent < seconds and rounds < 2000):
            begin = time.perf_counter_ns()
            self.cl.enqueue_nd_range_kernel(self.queue, kernel, (items,), (256,))
            self.queue.finish()
            took = time.perf_counter_ns() - begin
            best, spent, rounds = min(best, took / items), spent + took / 1e9, rounds + 1
            if took > LAUNCH_MAX_NS and items > LEAST_ITEMS:
                items //= 2
        return best / calls


def child(arguments):
    os.sched_setaffinity(0, {arguments.core})
    device = Device()
    for line in sys.stdin:
        name, scalar, width = line.split()
        print(json.dumps(device.measure(name, scalar, int(width), arguments.forms, arguments.seconds)), flush=True)


class Measured(Implementation):
    """An implementation in a process that measures what it reads on its standard input."""

    def __init__(self, icd, scratch, name, arguments):
        super().__init__(icd, pathlib.Path(scratch, name), {"POCL_KERNEL_CACHE": "0", "POCL_DEVICES": "cpu"})
        forms = ",".join(arguments.forms) if name == "polder" else "straight"
        self.command = [sys.executable, __file__, "child", "--core", str(arguments.core), "--seconds", str(arguments.seconds),
                        "--forms", forms]
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.command, env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)

    def measure(self, name, scalar, width):
        self.process.stdin.write(f"{name} {scalar} {width}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if line:
            return json.loads(line)
        self.start()
        return {}

    def stop(self):
        self.process.stdin.close()
        self.process.wait()


def summarize(rows):
    """What the goals ask for, over all lines: (ratio to the peer or nothing, worst ratio of a form, line's name)."""
    peers = [(ratio, name) for ratio, _, name in rows if ratio]
    if peers:
        print(f"geometric mean to the peer: {geometric_mean([ratio for ratio, _ in peers]):.2f}, "
              f"above 1.5: {', '.join(f'{name} {ratio:.2f}' for ratio, name in sorted(peers, reverse=True) if ratio > 1.5)}")
    print("forms above 1.3: " +
          ", ".join(f"{name} {worst:.2f}" for _, worst, name in sorted(rows, key=lambda r: -r[1]) if worst > 1.3))


def main():
    parser = argparse.ArgumentParser(prog="math_functions.py")
    parser.add_argument("icds", nargs="+", help="POLDER_ICD and maybe PEER_ICD")
    parser.add_argument("--functions", type=lambda text: text.split(","), default=sorted(FUNCTIONS))
    parser.add_argument("--types", type=lambda text: text.split(","), default=["float", "double"])
    parser.add_argument("--widths", type=lambda text: [int(one) for one in text.split(",")], default=[1])
    parser.add_argument("--forms", type=lambda text: text.split(","), default=list(FORMS))
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=0.03, help="for each form")
    arguments = parser.parse_args()
    if arguments.icds == ["child"]:
        child(arguments)
        return
    others = [form for form in arguments.forms if form != "straight"]
    print(f"{'ns per call':22} {'straight':>9}" + "".join(f"{form:>9}" for form in others) + f" {'peer':>9} {'ratio':>6}")
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        named = zip(("polder", "peer"), arguments.icds)
        all_ = [Measured(icd, scratch, name, arguments) for name, icd in named]
        for name in arguments.functions:
            for scalar in arguments.types:
                if name in FLOAT_ONLY and scalar != "float":
                    continue
                for width in arguments.widths:
                    ours, *peer = [one.measure(name, scalar, width) for one in all_]
                    label = f"{name} {scalar}{'' if width == 1 else width}"
                    if not ours:
                        print(f"{label:22} failed")
                        continue
                    ratios = [ours[form] / ours["straight"] for form in others]
                    theirs = peer[0].get("straight") if peer else None
                    rows.append((ours["straight"] / theirs if theirs else None, max(ratios, default=1), label))
                    print(f"{label:22} {ours['straight']:9.3f}" + "".join(f"{ratio:9.2f}" for ratio in ratios) +
                          (f" {theirs:9.3f} {rows[-1][0]:6.2f}" if theirs else ""), flush=True)
        for one in all_:
            one.stop()
    summarize(rows)


if __name__ == "__main__":
    main()
