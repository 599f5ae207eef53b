"""What POLDER_TRACE costs a launch of one work-group of 64 work-items.

recording.py RECORDING_BENCH [PAIRS [SLICES [CASES]]] [--library=FILE]...

Two processes, with a trace and without, measure slices of 10 ms in turns. PAIRS (5) such pairs, each with SLICES (30) slices for each case,
because the places of a process's memory change its times. CASES: numbers, separated by commas. Prints nanoseconds per launch, with its
share of clFinish: medians over the pairs of the least slice of each process; the median of the pairs' ratios, and the lowest and highest.
With --library (an ICD's file, twice or more) each pair has a traced and an untraced process of every library.
"""
import os
import statistics
import subprocess
import sys
import tempfile

words = [word for word in sys.argv[1:] if not word.startswith("--library=")]
libraries = [word.split("=", 1)[1] for word in sys.argv[1:] if word.startswith("--library=")] or [None]
program = words[0]
pairs = int(words[1]) if len(words) > 1 else 5
slices = int(words[2]) if len(words) > 2 else 30
names = subprocess.run([program, "--cases"], capture_output=True, text=True, check=True).stdout.splitlines()
cases = [int(word) for word in words[3].split(",")] if len(words) > 3 else list(range(len(names)))


class Process:
    def __init__(self, library, trace):
        environment = {**os.environ, "POCL_CPU_MAX_CU_COUNT": "1"}
        if library:
            environment["OCL_ICD_VENDORS"] = library
        if trace:
            environment["POLDER_TRACE"] = trace
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=environment)
        self.least = {case: float("inf") for case in cases}

    def measure(self, case, milliseconds=10):
        self.process.stdin.write(f"{case} {milliseconds}\n")
        self.process.stdin.flush()
        self.least[case] = min(self.least[case], float(self.process.stdout.readline()))

    def end(self):
        self.process.stdin.close()
        assert self.process.wait(timeout=60) == 0


found = {(library, case): [] for library in libraries for case in cases}
with tempfile.TemporaryDirectory() as folder:
    for pair in range(pairs):
        processes = {(library, traced): Process(library, os.path.join(folder, "trace%d" % number) if traced else None)
                     for number, library in enumerate(libraries) for traced in (False, True)}
        order = list(processes.values())
        for turn in range(slices):
            for case in cases:
                for process in order if turn % 2 else reversed(order):
                    process.measure(case)
        for process in order:
            process.end()
        for library in libraries:
            for case in cases:
                found[library, case].append((processes[library, False].least[case], processes[library, True].least[case]))
for library in libraries:
    if library:
        print(library)
    for case in cases:
        rows = found[library, case]
        ratios = sorted(traced / without for without, traced in rows)
        without, traced = (statistics.median(row[i] for row in rows) for i in (0, 1))
        print(f"{names[case]:28} without {without:8.1f} ns, recorded {traced:8.1f} ns, {traced - without:+6.1f} ns, "
              f"ratio {statistics.median(ratios):.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f})")
