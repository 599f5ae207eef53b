"""What POLDER_TRACE costs the smallest launch: runs a program with and without it in turns.

recording.py SMALL_LAUNCHES_BENCH [ROUNDS [MILLISECONDS]]

Prints the medians of launch + clFinish for one work-group, in microseconds, and the median of the rounds' ratios.
"""
import os
import statistics
import subprocess
import sys
import tempfile

program = sys.argv[1]
rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 15
milliseconds = sys.argv[3] if len(sys.argv) > 3 else "200"


def microseconds(**environment):
    done = subprocess.run([program, "measure", milliseconds], capture_output=True, text=True, check=True,
                          env={**os.environ, "POCL_CPU_MAX_CU_COUNT": "1", **environment})
    return float(done.stdout.split()[0])


with tempfile.TemporaryDirectory() as folder:
    without, recorded = [], []
    for turn in range(rounds):
        for traced in (turn % 2 == 0, turn % 2 == 1):
            if traced:
                recorded.append(microseconds(POLDER_TRACE=os.path.join(folder, "trace")))
            else:
                without.append(microseconds())
ratios = sorted(after / before for before, after in zip(without, recorded))
print(f"without {statistics.median(without):.3f} us, recorded {statistics.median(recorded):.3f} us, "
      f"ratio {statistics.median(ratios):.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f})")
