"""compare.py RUNNER POLDER_ICD PEER_ICD [--rounds N] DIRECTORY…: the ratios that tools/bench --kernels prints.

A kernel is a pair of files, NAME.cl and NAME.launch (runner.cpp describes the latter). Each measurement is a process of its
own with an empty kernel cache; the two implementations take turns, and the best of each counts. Results are compared.
"""
import argparse
import math
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from implementation import Implementation, geometric_mean


class Runner(Implementation):
    """An implementation without a kernel cache. `settings` are further environment variables. `processor_time`: of rounds, in place of
    the time that they take, which other programs make longer."""

    def __init__(self, icd, scratch, name, settings=None, processor_time=False):
        super().__init__(icd, pathlib.Path(scratch, name), {"POCL_KERNEL_CACHE": "0"} | (settings or {}))
        self.processor_time = processor_time
        self.results = str(self.directory / "results")

    def run(self, runner, description):
        """Seconds of build with first round, and of the best round; nothing when the runner fails."""
        done = subprocess.run([runner, str(description), self.results], env=self.environment, stdout=subprocess.PIPE,
                              text=True, check=False)
        if done.returncode != 0:
            return None
        build, first, best, processor = map(float, done.stdout.split())
        return build + first, processor if self.processor_time else best


def read_results(path):
    """The values of each result with its tolerance."""
    results = []
    for line in pathlib.Path(path).read_text().splitlines():
        if line.startswith("result "):
            results.append((float(line.split()[2]), []))
        else:
            results[-1][1].append(float(line))
    return results


def agree(left, right):
    """Whether two files of results are the same within their tolerances."""
    for (tolerance, ours), (_, theirs) in zip(read_results(left), read_results(right), strict=True):
        for a, b in zip(ours, theirs, strict=True):
            if not (abs(a - b) <= tolerance * max(1.0, abs(a)) or a == b or (math.isnan(a) and math.isnan(b))):
                return False
    return True


def descriptions(directories):
    """The launch files below directories."""
    return sorted(found for where in directories for found in pathlib.Path(where).glob("**/*.launch"))


def main():
    parser = argparse.ArgumentParser(prog="tools/bench --kernels")
    parser.add_argument("runner")
    parser.add_argument("polder_icd")
    parser.add_argument("peer_icd")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("directories", nargs="+")
    arguments = parser.parse_intermixed_args()
    rows = []
    print(f"{'ms':32} {'polder':>9} {'peer':>9} {'ratio':>7} {'build + first':>20} {'ratio':>7}")
    with tempfile.TemporaryDirectory() as scratch:
        both = [Runner(arguments.polder_icd, scratch, "polder"), Runner(arguments.peer_icd, scratch, "peer")]
        for description in descriptions(arguments.directories):
            turns = [[one.run(arguments.runner, description) for one in both] for _ in range(arguments.rounds)]
            if any(None in turn for turn in turns):
                print(f"{description.stem:32} failed")
                continue
            (first, best), (peer_first, peer_best) = [[min(column) for column in zip(*one)] for one in zip(*turns)]
            rows.append((best / peer_best, first / peer_first, description.stem))
            print(f"{description.stem:32} {best * 1e3:9.3f} {peer_best * 1e3:9.3f} {best / peer_best:7.2f} {first * 1e3:9.1f} "
                  f"{peer_first * 1e3:10.1f} {first / peer_first:7.2f}"
                  f"{'' if agree(both[0].results, both[1].results) else '  results differ'}", flush=True)
    if rows:
        print(f"{'geometric mean':32} {'':9} {'':9} {geometric_mean([row[0] for row in rows]):7.2f} {'':20} "
              f"{geometric_mean([row[1] for row in rows]):7.2f}")
        print(f"slowest: {max(rows)[2]} {max(rows)[0]:.2f}")


if __name__ == "__main__":
    main()
