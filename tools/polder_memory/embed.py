"""Writes a file as a C++ array: embed.py NAME INPUT OUTPUT."""
import pathlib
import sys

name, source, target = sys.argv[1:]
data = pathlib.Path(source).read_bytes()
lines = [",".join(str(byte) for byte in data[at:at + 32]) for at in range(0, len(data), 32)]
pathlib.Path(target).write_text(f"constexpr unsigned char {name}[] = {{\n" + ",\n".join(lines) + "\n};\n")
