"""tests_to_sanitize.py BUILD_DIRECTORY: the tests of the unit, api, flow and driver suites, except the compiler's own.

Prints two lines: the targets for ninja that these tests need, and a regular expression of their names for ctest. The compiler's tests
take most of the time to build and run with a sanitizer, but a compilation runs in one thread. Sanitizers find most in the code around it:
memory, drivers and threads.
"""
import functools
import json
import pathlib
import re
import subprocess
import sys


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    output_of("ninja", "-C", str(build), "build.ninja")  # what meson knows of the build follows changed meson.build files

    def introspect(what):
        return json.loads(output_of("meson", "introspect", "--" + what, str(build)))

    files = {target["id"]: [str(pathlib.Path(file).relative_to(build)) for file in target["filename"]] for target in introspect("targets")}

    @functools.cache
    def contains_compiler(file):
        return re.search("lib(polder_)?compiler", output_of("ninja", "-C", str(build), "-t", "query", file)) is not None

    # The built-in functions that the library loads when it compiles a kernel.
    targets = {file for id, built in files.items() if "polder-builtins" in id for file in built if file.endswith(".bca")}
    names = []
    for test in introspect("tests"):
        suites = {suite.split(":")[-1] for suite in test["suite"]}
        if not suites & {"unit", "api", "flow", "driver"}:
            continue
        # Its program, and what that runs or loads.
        needed = [file for target in test["depends"] for file in files[target]]
        if "unit" in suites and (not needed or any(map(contains_compiler, needed))):
            continue
        targets.update(needed)
        names.append(re.escape(test["name"]).replace(r"\ ", " "))
    print(" ".join(sorted(targets)))
    print("^(" + "|".join(names) + ")$")


if __name__ == "__main__":
    main()
