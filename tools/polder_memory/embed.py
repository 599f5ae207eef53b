"""Writes a page as a C++ array: embed.py NAME PAGE OUTPUT. Its lines `/*FILE NAME*/` are replaced by the files of that name beside it."""
import pathlib
import re
import sys

name, source, target = sys.argv[1:]
page = pathlib.Path(source)
text = re.sub(r"/\*FILE (\S+)\*/", lambda found: (page.parent / found.group(1)).read_text(), page.read_text())
data = text.encode()
lines = [",".join(str(byte) for byte in data[at:at + 32]) for at in range(0, len(data), 32)]
pathlib.Path(target).write_text(f"constexpr unsigned char {name}[] = {{\n" + ",\n".join(lines) + "\n};\n")
