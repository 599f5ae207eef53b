"""targets.py RUNNER POLDER_ICD [--rounds N] [--targets NAME,...] DIRECTORY…: what tools/bench --targets prints.

For each kernel and each target (vectors of 512, 256 and 128 bits, as far as this machine has them), on one core, in turns: the
processor time of one work-item after the other, with lanes where the estimate is for them, and with lanes wherever they are possible, and the
ratios of the second and the third to the first. No kernel should be slower with lanes than without by more than 5%: such kernels are
measured again, with more rounds, and listed at the end, as are those that the estimate keeps from lanes that would be faster.
tools/bench --prices fits the estimate's prices.
"""
import argparse
import pathlib
import tempfile

from compare import Runner, agree, descriptions
from implementation import geometric_mean

RATIO_MAX = 1.05
ROUNDS_AGAIN = 4  # times as many for kernels above it
METHODS = ("loops", "auto", "lanes")
# The processor's name for LLVM, and a flag of /proc/cpuinfo that such a processor has.
TARGETS = {"avx512": ("x86-64-v4", "avx512vl"), "avx2": ("x86-64-v3", "avx2"), "sse": ("x86-64-v2", "sse4_2")}


def targets_here():
    flags = pathlib.Path("/proc/cpuinfo").read_text().split()
    return [name for name, (_, flag) in TARGETS.items() if flag in flags]


def best_of_turns(runners, runner, description, rounds):
    """Seconds of the best round with each method; nothing when a run fails."""
    best = [float("inf")] * len(METHODS)
    for turn in range(rounds * ROUNDS_AGAIN):
        loops, auto, lanes = best
        if turn >= rounds and auto <= RATIO_MAX * min(loops, lanes):
            break
        times = [one.run(runner, description) for one in runners]
        if None in times:
            return None
        best = [min(before, now) for before, (_, now) in zip(best, times)]
    return best


def parser_for(program, rounds):
    """The arguments that the programs for several targets share."""
    parser = argparse.ArgumentParser(prog=program)
    parser.add_argument("runner")
    parser.add_argument("polder_icd")
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--targets", type=lambda text: text.split(","), default=targets_here(), help="of " + ", ".join(TARGETS))
    return parser


def runners_of(target, methods, polder_icd, scratch):
    """Polder with code for a target, for each way to run work-items, on one core."""
    return [Runner(polder_icd, scratch, f"{target}-{method}",
                   {"POLDER_CPU_TARGET": TARGETS[target][0], "POCL_WORK_GROUP_METHOD": method, "POCL_CPU_MAX_CU_COUNT": "1"},
                   processor_time=True)
            for method in methods]


def main():
    parser = parser_for("tools/bench --targets", 3)
    parser.add_argument("directories", nargs="+")
    arguments = parser.parse_intermixed_args()
    ratios = {target: [] for target in arguments.targets}
    print(f"{'ms':28}" + "".join(f" {target + ' loops':>13} {'auto':>9} {'lanes':>9} {'ratios':>13}" for target in arguments.targets))
    with tempfile.TemporaryDirectory() as scratch:
        runners = {target: runners_of(target, METHODS, arguments.polder_icd, scratch) for target in arguments.targets}
        for description in descriptions(arguments.directories):
            line = f"{description.stem:28}"
            for target, three in runners.items():
                best = best_of_turns(three, arguments.runner, description, arguments.rounds)
                if best is None:
                    line += f" {'failed':>46}"
                    continue
                loops, auto, lanes = best
                ratios[target].append((auto / loops, auto / lanes, description.stem))
                line += f" {loops * 1e3:13.3f} {auto * 1e3:9.3f} {lanes * 1e3:9.3f} {auto / loops:6.2f} {lanes / loops:6.2f}"
                line += "" if all(agree(three[0].results, one.results) for one in three[1:]) else " results differ"
            print(line, flush=True)
    for target, found in ratios.items():
        slower = [f"{name} {ratio:.2f}" for ratio, _, name in sorted(found, reverse=True) if ratio > RATIO_MAX]
        kept = [f"{name} {ratio:.2f}" for _, ratio, name in found if ratio > RATIO_MAX]
        if found:
            print(f"{target}: geometric mean {geometric_mean([one[0] for one in found]):.2f}, "
                  f"slower with lanes: {', '.join(slower) or 'none'}; with more lanes faster, time now by that: {', '.join(kept) or 'none'}")


if __name__ == "__main__":
    main()
