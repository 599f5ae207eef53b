#!/usr/bin/python3
"""piglit's `cl` profile on Polder: piglit.py [PATTERN [LIST]], where PATTERN selects tests by a regular expression.

Every test passes, or is listed with its reason in piglit_expected.txt or in LIST; a listed test that passes is named, so
that it leaves the list.
"""
import bz2
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

SKIPPED = 77
GOOD = ("pass", "skip")
SECONDS_MAX = int(os.environ.get("PIGLIT_SECONDS", "400"))
# The fewest that must pass: of the whole profile, and of what a busy machine has done in the time.
PASSED_MIN, PASSED_MIN_OF_PART = 500, 20
WHOLE = 600


def expected_failures():
    """Name -> reason, from lines "name: reason"."""
    lines = []
    for name in ["piglit_expected.txt", *sys.argv[2:]]:
        lines += pathlib.Path(__file__).with_name(name).read_text().splitlines()
    entries = (line.split(": ", 1) for line in lines if line and not line.startswith("#"))
    return {name: reason for name, reason in entries}


def run_profile(scratch):
    """Name -> result of every test that was done within the time: all of them, unless the machine is busy."""
    results = pathlib.Path(scratch, "results")
    command = ["piglit", "run", "--all-concurrent", "--jobs", "2", "--timeout", "60", "--log-level", "quiet"]
    for pattern in sys.argv[1:2]:
        command += ["--include-tests", pattern]
    command += ["cl", str(results)]
    with subprocess.Popen(command, env=os.environ | {"HOME": scratch}, stdin=subprocess.DEVNULL,
                          start_new_session=True) as process:
        try:
            process.wait(timeout=SECONDS_MAX)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
    whole = results / "results.json.bz2"
    if whole.exists():
        return {name: test["result"] for name, test in json.loads(bz2.open(whole).read())["tests"].items()}
    done = {}
    for file in (results / "tests").glob("*.json"):
        try:
            done |= {name: test["result"] for name, test in json.loads(file.read_text()).items()}
        except json.JSONDecodeError:
            continue  # was being written
    return {name: result for name, result in done.items() if result != "incomplete"}


def main():
    if not shutil.which("piglit"):
        print("skipped: piglit is not installed (package piglit)")
        return 1 if os.environ.get("CI") == "true" else SKIPPED
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        results = run_profile(scratch)
    expected = expected_failures()
    failed = {name: result for name, result in results.items() if result not in GOOD}
    for name, result in sorted(failed.items()):
        print(f"{result}: {name}" + (f" (expected: {expected[name]})" if name in expected else ""))
    mended = [name for name in expected if results.get(name) == "pass"]
    for name in mended:
        print(f"passes now, take it from piglit_expected.txt: {name}")
    passed = sum(result == "pass" for result in results.values())
    print(json.dumps({"run": len(results), "passed": passed, "failed": len(failed)}))
    unexpected = set(failed) - set(expected)
    passed_min = PASSED_MIN if len(results) >= WHOLE else PASSED_MIN_OF_PART
    return 1 if unexpected or passed < passed_min else 0


if __name__ == "__main__":
    sys.exit(main())
