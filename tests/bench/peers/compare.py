"""compare.py PROGRAM POLDER_ICD PEER_ICD [--rounds N] [ROW…]: the ratios that tools/bench prints.

Each measurement is a process of its own; the two implementations take turns, and the best of each counts.
"""
import argparse
import math
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from implementation import Implementation, geometric_mean


class Program(Implementation):
    """An implementation with an empty kernel cache."""

    def __init__(self, icd, scratch):
        directory = pathlib.Path(scratch, pathlib.Path(icd).stem)
        super().__init__(icd, directory, {"POCL_CACHE_DIR": str(directory)})

    def seconds(self, program, row):
        """One measurement, or NaN with the program's message on stderr."""
        done = subprocess.run([program, row], env=self.environment, stdout=subprocess.PIPE, text=True, check=False)
        return float(done.stdout) if done.returncode == 0 else math.nan


def shown(seconds):
    for limit, factor, unit in ((1e-6, 1e9, "ns"), (1e-3, 1e6, "us"), (math.inf, 1e3, "ms")):
        if seconds < limit:
            return f"{seconds * factor:.4g} {unit}"
    return "failed"


def measure(program, row, implementations, rounds):
    """The best of each implementation, taken in turns."""
    times = [[implementation.seconds(program, row) for implementation in implementations] for _ in range(rounds)]
    return [min(column) for column in zip(*times)]


def main():
    parser = argparse.ArgumentParser(prog="tools/bench")
    parser.add_argument("program")
    parser.add_argument("polder_icd")
    parser.add_argument("peer_icd")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("rows", nargs="*")
    arguments = parser.parse_intermixed_args()
    listed = subprocess.run([arguments.program], check=True, capture_output=True, text=True).stdout.splitlines()
    peer_name = pathlib.Path(arguments.peer_icd).stem
    ratios = []
    print(f"{'':42} {'polder':>10} {peer_name:>10} {'ratio':>7} {'goal':>6}")
    with tempfile.TemporaryDirectory() as scratch:
        implementations = [Program(icd, scratch) for icd in (arguments.polder_icd, arguments.peer_icd)]
        for row, goal in (line.split("\t") for line in listed):
            if arguments.rows and not any(part in row for part in arguments.rows):
                continue
            polder, peer = measure(arguments.program, row, implementations, arguments.rounds)
            ratio, goal = polder / peer, float(goal)
            ratios.append(ratio)
            print(f"{row:42} {shown(polder):>10} {shown(peer):>10} {ratio:7.3f} {goal:6.2f} "
                  f"{'reached' if ratio <= goal else ''}", flush=True)
    finite = [ratio for ratio in ratios if not math.isnan(ratio)]
    if finite:
        print(f"{'geometric mean':42} {'':10} {'':10} {geometric_mean(finite):7.3f}")


if __name__ == "__main__":
    main()
