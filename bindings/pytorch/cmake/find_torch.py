"""Prints the directory of PyTorch and its version, separated by a semicolon."""
import importlib.util
import pathlib
import re
import sys
import sysconfig


def directories():
    found = importlib.util.find_spec("torch")
    if found and found.submodule_search_locations:
        yield from found.submodule_search_locations
    for kind in ("platlib", "purelib"):
        yield str(pathlib.Path(sysconfig.get_path(kind)) / "torch")


for directory in map(pathlib.Path, directories()):
    if (directory / "include" / "torch" / "library.h").exists():
        text = (directory / "version.py").read_text()
        version = re.search(r"__version__ = '([^'+]*)", text)
        print(f"{directory};{version[1]}")
        sys.exit()
sys.exit("torch-opencl is built against the PyTorch that it will run with: install PyTorch first (pip install torch)")
