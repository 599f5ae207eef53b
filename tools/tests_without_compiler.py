"""tests_without_compiler.py BUILD_DIRECTORY: the tests of the unit and driver suites whose programs do not contain lib/compiler.

Prints two lines: their programs, as targets for ninja, and a regular expression of their names for ctest. They are a tenth of what all tests
cost to build, and hold what is worth a sanitizer's round most: memory, drivers, threads.
"""
import json
import pathlib
import re
import subprocess
import sys


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    targets, names = set(), []
    for test in json.loads(output_of("meson", "introspect", "--tests", str(build))):
        program = pathlib.Path(test["cmd"][0])
        if not {suite.split(":")[-1] for suite in test["suite"]} & {"unit", "driver"} or not program.is_relative_to(build):
            continue
        target = str(program.relative_to(build))
        if "libcompiler" in output_of("ninja", "-C", str(build), "-t", "query", target) or "libpolder_compiler" in output_of(
                "ninja", "-C", str(build), "-t", "query", target):
            continue
        targets.add(target)
        names.append(re.escape(test["name"]).replace(r"\ ", " "))
    print(" ".join(sorted(targets)))
    print("^(" + "|".join(names) + ")$")


if __name__ == "__main__":
    main()
