"""targets.py RUNNER POLDER_ICD [--rounds N] [--targets NAME,...] DIRECTORY…: what tools/bench --targets prints.

For each kernel and each target (vectors of 512, 256 and 128 bits, as far as this machine has them), the time with lanes
and the time of one work-item after the other, on one core, in turns, and the ratio of the two. No kernel should be slower with
lanes than without by more than 5%: such kernels are measured again, with more rounds, and listed at the end. The prices of
lane_cost are fitted to this table.
"""
import argparse
import pathlib
import tempfile

from compare import Runner, agree, descriptions
from implementation import geometric_mean

RATIO_MAX = 1.05
ROUNDS_AGAIN = 4  # times as many for kernels above it
# The processor's name for LLVM, and a flag of /proc/cpuinfo that such a processor has.
TARGETS = {"avx512": ("x86-64-v4", "avx512vl"), "avx2": ("x86-64-v3", "avx2"), "sse": ("x86-64-v2", "sse4_2")}


def targets_here():
    flags = pathlib.Path("/proc/cpuinfo").read_text().split()
    return [name for name, (_, flag) in TARGETS.items() if flag in flags]


def best_of_turns(runners, runner, description, rounds):
    """Seconds of the best round without and with lanes; nothing when a run fails."""
    loops = lanes = float("inf")
    for turn in range(rounds * ROUNDS_AGAIN):
        if turn >= rounds and lanes <= RATIO_MAX * loops:
            break
        both = [one.run(runner, description) for one in runners]
        if None in both:
            return None
        (_, loops_now), (_, lanes_now) = both
        loops, lanes = min(loops, loops_now), min(lanes, lanes_now)
    return loops, lanes


def main():
    parser = argparse.ArgumentParser(prog="tools/bench --targets")
    parser.add_argument("runner")
    parser.add_argument("polder_icd")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--targets", type=lambda text: text.split(","), default=targets_here(), help="of " + ", ".join(TARGETS))
    parser.add_argument("directories", nargs="+")
    arguments = parser.parse_intermixed_args()
    ratios = {target: [] for target in arguments.targets}
    print(f"{'ms':28}" + "".join(f" {target + ' loops':>13} {'lanes':>9} {'ratio':>6}" for target in arguments.targets))
    with tempfile.TemporaryDirectory() as scratch:
        runners = {target: [Runner(arguments.polder_icd, scratch, f"{target}-{method}",
                                   {"POLDER_CPU_TARGET": TARGETS[target][0], "POCL_WORK_GROUP_METHOD": method,
                                    "POCL_CPU_MAX_CU_COUNT": "1"})
                            for method in ("loops", "auto")] for target in arguments.targets}
        for description in descriptions(arguments.directories):
            line = f"{description.stem:28}"
            for target, pair in runners.items():
                best = best_of_turns(pair, arguments.runner, description, arguments.rounds)
                if best is None:
                    line += f" {'failed':>30}"
                    continue
                loops, lanes = best
                ratios[target].append((lanes / loops, description.stem))
                line += f" {loops * 1e3:13.3f} {lanes * 1e3:9.3f} {lanes / loops:6.2f}"
                line += "" if agree(pair[0].results, pair[1].results) else " results differ"
            print(line, flush=True)
    for target, found in ratios.items():
        slower = [f"{name} {ratio:.2f}" for ratio, name in sorted(found, reverse=True) if ratio > RATIO_MAX]
        if found:
            print(f"{target}: geometric mean {geometric_mean([ratio for ratio, _ in found]):.2f}, "
                  f"slower with lanes: {', '.join(slower) or 'none'}")


if __name__ == "__main__":
    main()
