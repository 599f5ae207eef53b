#!/usr/bin/python3
"""piglit's `cl` profile on Polder, image tests aside.

Every test passes, or is listed with its reason in piglit_expected.txt; a listed test that passes is named, so that it
leaves the list.
"""
import bz2
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
GOOD = ("pass", "skip")


def expected_failures():
    """Name -> reason, from lines "name: reason"."""
    lines = pathlib.Path(__file__).with_name("piglit_expected.txt").read_text().splitlines()
    entries = (line.split(": ", 1) for line in lines if line and not line.startswith("#"))
    return {name: reason for name, reason in entries}


def run_profile():
    """Name -> result of every test."""
    with tempfile.TemporaryDirectory() as scratch:
        results = pathlib.Path(scratch, "results")
        subprocess.run(["piglit", "run", "--process-isolation", "true", "--all-concurrent", "--jobs", "2", "--timeout",
                        "60", "--exclude-tests", "image", "--log-level", "quiet", "cl", str(results)],
                       check=True, env=os.environ | {"HOME": scratch}, stdin=subprocess.DEVNULL)
        with bz2.open(results / "results.json.bz2") as file:
            tests = json.load(file)["tests"]
    return {name: test["result"] for name, test in tests.items()}


def main():
    if not shutil.which("piglit"):
        print("skipped: piglit is not installed (package piglit)")
        return 1 if os.environ.get("CI") == "true" else SKIPPED
    results, expected = run_profile(), expected_failures()
    failed = {name: result for name, result in results.items() if result not in GOOD}
    for name, result in sorted(failed.items()):
        print(f"{result}: {name}" + (f" (expected: {expected[name]})" if name in expected else ""))
    mended = [name for name in expected if results.get(name) == "pass"]
    for name in mended:
        print(f"passes now, take it from piglit_expected.txt: {name}")
    passed = sum(result == "pass" for result in results.values())
    print(json.dumps({"run": len(results), "passed": passed, "failed": len(failed)}))
    unexpected = set(failed) - set(expected)
    return 1 if unexpected or passed < 500 else 0


if __name__ == "__main__":
    sys.exit(main())
