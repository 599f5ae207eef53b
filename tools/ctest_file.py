"""ctest_file.py BUILD_DIRECTORY [FACTOR]: writes its CTestTestfile.cmake from Meson's list of tests.

Suites become labels; exit status 77 is "skipped" in both; environments are kept,
and so are time limits, times FACTOR (sanitizers are slow).
"""
import json
import pathlib
import subprocess
import sys


def quoted(text):
    """A CMake bracket argument: nothing in it is interpreted."""
    return f"[==[{text}]==]"


def lines_of_test(test, factor):
    name = quoted(test["name"])
    properties = {
        "LABELS": ";".join(suite.split(":")[-1] for suite in test["suite"]),
        "TIMEOUT": test["timeout"] * factor,
        "SKIP_RETURN_CODE": 77,
        "ENVIRONMENT": ";".join(f"{key}={value}" for key, value in test["env"].items()),
    }
    if not test["is_parallel"]:
        properties["RUN_SERIAL"] = "TRUE"
    if test["workdir"]:
        properties["WORKING_DIRECTORY"] = test["workdir"]
    yield f"add_test({name} {' '.join(quoted(word) for word in test['cmd'])})"
    words = " ".join(f"{key} {quoted(value)}" for key, value in properties.items() if value != "")
    yield f"set_tests_properties({name} PROPERTIES {words})"


def main():
    build = pathlib.Path(sys.argv[1])
    factor = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    answer = subprocess.run(["meson", "introspect", "--tests", str(build)], check=True, capture_output=True)
    lines = ["# Written by tools/ctest_file.py."]
    for test in json.loads(answer.stdout):
        lines += lines_of_test(test, factor)
    (build / "CTestTestfile.cmake").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
