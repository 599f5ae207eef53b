"""What a machine can see of style beyond formatting.

Run by tools/check; prints every offence and exits with 1 when there is one.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
LINES_MAX = 500

# Lower layers must not include higher ones: api -> runtime -> memory -> driver interface <- devices, base beneath all.
MAY_NOT_INCLUDE = {
    "lib/base/": ("memory", "compiler", "runtime", "api", "devices"),
    "lib/memory/": ("compiler", "runtime", "api", "devices"),
    "lib/compiler/": ("memory", "runtime", "api", "devices"),
    "devices/": ("memory", "compiler", "runtime", "api"),
    "lib/runtime/": ("api",),
}


def sources():
    """C++ sources; those in OpenCL C have rules of their own."""
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.h", "*.cpp"],
                            cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    return [path for path in listed if (ROOT / path).exists() and not path.startswith("lib/kernel/cl/")]


def offences(path, text):
    lines = text.splitlines()
    if len(lines) > LINES_MAX:
        yield f"{path}: {len(lines)} lines, at most {LINES_MAX}: split it by thing"
    if path.endswith(".h") and "#pragma once" not in text and "#ifndef" not in text:
        yield f"{path}: a header without #pragma once"
    for folder, layers in MAY_NOT_INCLUDE.items():
        if path.startswith(folder):
            for number, line in enumerate(lines, 1):
                if re.match(rf"\s*#include <({'|'.join(layers)})/", line):
                    yield f"{path}:{number}: includes a layer it must not know: {line.strip()}"
    for number, line in enumerate(lines, 1):
        if re.search(r"\b(TODO|FIXME|XXX)\b", line):
            yield f"{path}:{number}: do it, or name it in the documentation"
        if "\t" in line or line != line.rstrip():
            yield f"{path}:{number}: a tab or trailing space"


def main():
    found = [offence for path in sources() for offence in offences(path, (ROOT / path).read_text())]
    print("\n".join(found) if found else "style: nothing to object to")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
