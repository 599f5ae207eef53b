"""prices.py RUNNER POLDER_ICD [--rounds N] [--targets NAME,...] [KIND…]: what tools/bench --prices prints.

lane_cost estimates the time of a loop over work-items with lanes as a part of the time without. Plain instructions cost 1 for all lanes;
accesses of lanes that are not side by side have prices in instructions for each lane. Here each kind of access is alone in kernels with
few and many accesses and plain instructions. Each kernel is timed one work-item after the other and in lanes, on one core, in turns.

The fitted price is the one with which the estimate is nearest to the measured ratios (least squares of their logarithms). The price of
now follows from the estimates that the compiler prints. A decision is wrong when lanes that are made are slower by more than 5%, or lanes
that are not made would be faster by more than 5%.
"""
import dataclasses
import math
import pathlib
import re
import subprocess
import tempfile

from targets import RATIO_MAX, parser_for, runners_of

WORK_ITEMS = 16384
TABLE = 4096  # elements
MIXES = [(accesses, plain) for accesses in (1, 4) for plain in (4, 32)]
FIXED = 2  # the load and the store of all kernels
PRICES = [step / 4 for step in range(1, 161)]


@dataclasses.dataclass(frozen=True)
class Kind:
    access: str  # OpenCL C; K is the number of the access, PLACE a place in the table that only the data decides
    plain: int = 2  # instructions of an access beside it
    table: str = "uint"
    count: int = TABLE
    top: str = ""  # before the accesses


# The names are those of the prices in lane_cost.cpp and apart_costs.cpp. The masks do not follow from what was loaded, because lane_cost takes branches that do
# for badly predicted ones, which are another price.
KINDS = {
    "gather": Kind("x ^= table[PLACE];"),
    "masked gather": Kind("if ((i ^ 5) != never + K) x ^= table[PLACE];", 3),
    "gather of bytes": Kind("x ^= table[PLACE];", table="uchar"),
    "masked gather of bytes": Kind("if ((i ^ 5) != never + K) x ^= table[PLACE];", 3, table="uchar"),
    "row of its own": Kind("x ^= table[(i + K * n) * pitch];", 1, count=4 * 1024 * 1024),
    "scatter": Kind("table[PLACE] = x;"),
    "masked scatter": Kind("if ((i ^ 5) != never + K) table[PLACE] = x;", 3),
    "store with gaps": Kind("table[2 * i + K * 32768] = x;", 1, count=8 * WORK_ITEMS),
    "masked store with gaps": Kind("if ((i ^ 5) != never + K) table[2 * i + K * 32768] = x;", 3, count=8 * WORK_ITEMS),
    "vectors apart": Kind("{ uint4 v = ((global uint4*)table)[PLACE / 4]; x ^= v.x + v.y + v.z + v.w; }", 6),
    "structure of two": Kind("{ global uint* s = table + PLACE / 2 * 2; x ^= s[0] + s[1]; }", 4),
    "structure of three": Kind("{ global uint* s = table + PLACE / 4 * 3; x ^= s[0] + s[1] + s[2]; }", 6),
    "structure of four": Kind("{ global uint* s = table + PLACE / 4 * 4; x ^= s[0] + s[1] + s[2] + s[3]; }", 7),
    "local atomic": Kind("atomic_add(&counts[PLACE & 255], 1);", 2, top="local uint counts[256];"),
    "partial row": Kind("if (data[i] >> K & 1) table[i & 4095] = x + K;", 4),
}


def source(kind, accesses, plain):
    """A kernel with so many accesses and plain instructions."""
    # Odd multipliers, so that places differ between accesses. The upper 12 bits choose one of 4096 elements.
    lines = [kind.access.replace("PLACE", f"(y * {2654435761 + 2 * 40503 * k}u >> 20)").replace("K", str(k))
             for k in range(accesses)]
    lines += [f"x = (x ^ {977 * step + 13}u) + y;" for step in range(plain // 2)]
    body = "\n    ".join(lines)
    return f"""kernel void k(global uint* data, global {kind.table}* table, global uint* out, int never, int n, int pitch) {{
    {kind.top}
    int i = get_global_id(0);
    uint x = data[i], y = x;
    {body}
    out[i] = x;
}}
"""


def describe(directory, name, kind, accesses, plain):
    """Writes the kernel and its launch; returns the path of the latter."""
    rows_apart = "pitch" in kind.access
    work_items, pitch = (1024, 1024) if rows_apart else (WORK_ITEMS, 1)
    stem = pathlib.Path(directory, f"{name.replace(' ', '_')}_{accesses}_{plain}")
    stem.with_suffix(".cl").write_text(source(kind, accesses, plain))
    launch = stem.with_suffix(".launch")
    launch.write_text(f"buffer data uint {work_items} random 0 4294967295\n"
                      f"buffer table {kind.table} {kind.count} random 0 255\n"
                      f"buffer out uint {work_items} zero\n"
                      f"launch k {work_items} 64 8 data table out int:-1000 int:{work_items} int:{pitch}\n"
                      "result out 0\n")
    return launch


def estimate_of(forced, runner, launch):
    """The compiler's estimate; nothing when the kernel has no lanes."""
    done = subprocess.run([runner, str(launch), forced.results], env=forced.environment | {"POCL_DEBUG": "compiler"},
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=True)
    lines = [line for line in done.stderr.splitlines() if "bytes of object code" in line]
    found = [re.search(r"(\d+) lanes of dimension.*estimated time with lanes by that without ([0-9.]+)", line) for line in lines]
    found = [one for one in found if one is not None]
    return (int(found[-1][1]), float(found[-1][2])) if found else None


def expected(price, width, accesses, plain, kind):
    """What lane_cost estimates with a price for each access and lane."""
    others = accesses * kind.plain + plain + FIXED
    return (accesses * price * width + others) / (width * (accesses + others))


def nearest_price(ratios, width, kind):
    def error(price):
        return sum(math.log(expected(price, width, *mix, kind) / ratio) ** 2 for mix, ratio in ratios.items())
    return min(PRICES, key=error)


def wrong(estimates, ratios):
    return sum((estimates[mix] < 1 and ratio > RATIO_MAX) or (estimates[mix] > 1 and ratio < 1 / RATIO_MAX)
               for mix, ratio in ratios.items())


def measure(loops, forced, runner, launch, rounds):
    """The time with lanes by that without, each the best of the rounds."""
    turns = [(loops.run(runner, launch), forced.run(runner, launch)) for _ in range(rounds)]
    return min(turn[1][1] for turn in turns) / min(turn[0][1] for turn in turns)


def main():
    parser = parser_for("tools/bench --prices", 2)
    parser.add_argument("kinds", nargs="*", help="of " + ", ".join(KINDS))
    arguments = parser.parse_intermixed_args()
    mixes = ", ".join(f"{accesses} + {plain}" for accesses, plain in MIXES)
    print(f"time with lanes by time without, for accesses + plain instructions of {mixes}")
    print(f"{'kind':24} {'target':7} {'lanes':>5} {'measured':>27} {'estimated':>27} {'price':>6} {'fitted':>6} {'wrong':>5} {'then':>4}")
    with tempfile.TemporaryDirectory() as scratch:
        for target in arguments.targets:
            loops, forced = runners_of(target, ("loops", "lanes"), arguments.polder_icd, scratch)
            for name in arguments.kinds or KINDS:
                kind = KINDS[name]
                launches = {mix: describe(scratch, name, kind, *mix) for mix in MIXES}
                known = {mix: estimate_of(forced, arguments.runner, launch) for mix, launch in launches.items()}
                if None in known.values():
                    print(f"{name:24} {target:7} has no lanes")
                    continue
                width = known[MIXES[0]][0]
                estimates = {mix: one[1] for mix, one in known.items()}
                ratios = {mix: measure(loops, forced, arguments.runner, launch, arguments.rounds)
                          for mix, launch in launches.items()}
                price = nearest_price(ratios, width, kind)
                fitted = {mix: expected(price, width, *mix, kind) for mix in MIXES}
                print(f"{name:24} {target:7} {width:5} " + " ".join(f"{ratios[mix]:6.2f}" for mix in MIXES) + " " +
                      " ".join(f"{estimates[mix]:6.2f}" for mix in MIXES) +
                      f" {nearest_price(estimates, width, kind):6.2f} {price:6.2f} {wrong(estimates, ratios):5} {wrong(fitted, ratios):4}",
                      flush=True)


if __name__ == "__main__":
    main()
