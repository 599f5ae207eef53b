#!/usr/bin/env python3
"""tools/why_tests_failed.py BUILD: after a run of CTest in BUILD, prints of each test that failed the lines that say why.
The log has them somewhere among thousands; the end of a log is what one sees first."""

import pathlib
import re
import sys

REASON = re.compile(r": Failure$|\[  FAILED  \]|ERROR: |SUMMARY: |runtime error: |^Traceback|Error: |terminate called|"
                    r"Segmentation fault|Assertion .* failed")
LINES_AFTER, LINES_MAX, LAST_LINES = 6, 60, 15


def reasons(output):
    """The lines that look like a reason with those that follow, or the last ones."""
    kept, left = [], 0
    for line in output:
        left = LINES_AFTER if REASON.search(line) else left - 1
        if left >= 0:
            kept.append(line)
    return kept[:LINES_MAX] or output[-LAST_LINES:]


def failed_tests(log):
    """(name, lines of output) of each test whose last run in the text failed."""
    results = {}
    for part in re.split(r"^\d+/\d+ Testing: ", log, flags=re.MULTILINE)[1:]:
        name, _, rest = part.partition("\n")
        output = rest.partition("Output:\n")[2].partition("<end of output>")[0].splitlines()
        results[name] = None if re.search(r"^Test (Passed|Skipped)\.$", rest, re.MULTILINE) else output[1:]
    return [(name, output) for name, output in results.items() if output is not None]


def main():
    log = pathlib.Path(sys.argv[1], "Testing/Temporary/LastTest.log")
    if not log.exists():
        return
    for name, output in failed_tests(log.read_text(errors="replace")):
        print(f"why '{name}' failed:")
        for line in reasons(output):
            print("  " + line)


if __name__ == "__main__":
    main()
