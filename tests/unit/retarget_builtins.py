#!/usr/bin/env python3
"""Two inputs that define internal functions of one name end polder-retarget-builtins with an error that names the function.

usage: retarget_builtins.py RETARGET_BUILTINS
"""
import pathlib
import subprocess
import sys
import tempfile

# One of the built-in functions, with a helper that only its file sees.
MODULE = """
target triple = "spir64-unknown-unknown"
define float @_Z{length}{name}f(float %x) {{
  %y = call float @{helper}(float %x)
  ret float %y
}}
define internal float @{helper}(float %x) noinline {{
  %y = fadd float %x, {addend}
  ret float %y
}}
"""


def retarget(program, folder, helpers):
    """Runs the program on two modules, whose helpers have the names given."""
    inputs = []
    for number, helper in enumerate(helpers):
        path = folder / f"{number}.ll"
        path.write_text(MODULE.format(length=4, name=f"fun{number}", helper=helper, addend=f"{number}.0"))
        inputs.append(path)
    return subprocess.run([program, *inputs, "-o", folder / "out.bca"], capture_output=True, text=True, timeout=60)


def check(condition, text):
    if not condition:
        sys.exit(f"retarget_builtins: {text}")


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        different = retarget(sys.argv[1], folder, ["_Z6first_f", "_Z6other_f"])
        check(different.returncode == 0, f"two helpers with different names: {different.stderr}")
        check((folder / "out.bca").stat().st_size > 0, "no archive")
        same = retarget(sys.argv[1], folder, ["_Z6helperf", "_Z6helperf"])
        check(same.returncode == 1, f"two helpers with one name: exit status {same.returncode}, expected 1")
        check("two input files define an internal function _Z6helperf" in same.stderr, f"the error is: {same.stderr}")


if __name__ == "__main__":
    main()
