"""How much of the reserved memory programs use, by policy: records each program on a discrete device with POLDER_TRACE, replays
the trace with every policy, and prints the table of doc/memory.md.

utilisation.py POLDER_MEMORY [PROGRAM...]      (in the environment of `meson devenv`, or with OCL_ICD_VENDORS set)

Programs that are not installed are left out. A program that runs longer than its seconds is ended; its trace up to then counts.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
LOOPS = HERE / "training_loops.py"
APPS = HERE.parent / "apps"
PYTHON = "/usr/bin/python3" if pathlib.Path("/usr/lib/python3/dist-packages/pyopencl").exists() else sys.executable
PLACE = ["-platform", "0", "-device", "0"]
PROGRAMS = {
    "CLBlast: matrix products": (["clblast_test_xgemm", *PLACE], 60),
    "CLBlast: triangular solver": (["clblast_test_xtrsm", *PLACE], 60),
    "CLBlast: vectors": (["clblast_test_xaxpy", *PLACE], 30),
    "CLBlast: tuner of transposes": (["clblast_tuner_transpose_fast", *PLACE], 25),
    "CLBlast: tuner of vectors": (["clblast_tuner_xaxpy", *PLACE], 25),
    "hashcat: cracking": ([str(APPS / "hashcat_crack.sh")], 120),
    "clpeak": (["clpeak", "--global-bandwidth", "--compute-sp"], 60),
    "ffmpeg: noise of pictures": ([
        "ffmpeg", "-loglevel", "error", "-init_hw_device", "opencl=device:0.0", "-filter_hw_device", "device", "-f", "lavfi",
        "-i", "testsrc2=size=1920x1080:rate=10:duration=2", "-filter_complex",
        "[0]format=yuv420p,hwupload,nlmeans_opencl=4,hwdownload,format=yuv420p", "-f", "null", "-"], 30),
    "PyOpenCL: scans": ([PYTHON, str(APPS / "pyopencl_test.py"), "scans"], 120),
    "PyOpenCL: memory pool": ([PYTHON, str(APPS / "pyopencl_test.py"), "memory_pool"], 60),
    "gpyfft: transforms": ([str(APPS / "gpyfft.sh")], 100),
    "training: perceptron": ([PYTHON, str(LOOPS), "perceptron", "4"], 200),
    "training: convolution": ([PYTHON, str(LOOPS), "convolution", "4"], 200),
    "training: attention": ([PYTHON, str(LOOPS), "attention", "4"], 200),
}
POLICIES = ["bufalloc", "caching", "caching,expandable_segments:True", "bucket"]


def record(command, seconds, trace):
    environment = {**os.environ, "POLDER_TRACE": trace, "POCL_DEVICES": "discrete"}
    environment.setdefault("POCL_DISCRETE0_PARAMETERS", "memory=512M")
    try:
        subprocess.run(command, env=environment, timeout=seconds, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       check=False)
    except subprocess.TimeoutExpired:
        pass
    except OSError:
        return False
    return os.path.exists(trace)


def replayed(tool, trace):
    """The row of each policy for the device's memory: (asked MiB, leases, used percent)."""
    words = [f"--policy={policy}" for policy in POLICIES]
    text = subprocess.run([tool, "replay", trace, *words], capture_output=True, text=True, check=True).stdout
    row = re.compile(r"^1 +(\S+) +([\d.]+) MiB +[\d.]+ MiB +[\d.]+ MiB +([\d.]+)% +[\d.]+ +(\d+)", re.MULTILINE)
    return {name: (float(asked), int(leases), float(used)) for name, asked, used, leases in row.findall(text)}


def main():
    tool, chosen = sys.argv[1], sys.argv[2:]
    print("| program | blocks | peak in use |", *[f" `{policy}` |" for policy in POLICIES], sep="")
    print("|---|---|---|" + "---|" * len(POLICIES))
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, (command, seconds)) in enumerate(PROGRAMS.items()):
            trace = os.path.join(folder, f"{number}.polder")
            if (chosen and name not in chosen) or not record(command, seconds, trace):
                continue
            rows = replayed(tool, trace)
            if len(rows) != len(POLICIES):
                continue  # it used no memory of the device
            asked, leases, _ = rows[POLICIES[0]]
            used = "".join(f" {rows[policy][2]:.1f}% |" for policy in POLICIES)
            print(f"| {name} | {leases:,} | {asked:.1f} MiB |{used}", flush=True)


if __name__ == "__main__":
    main()
