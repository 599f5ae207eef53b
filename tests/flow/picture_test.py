"""picture_test.py PICTURE: the example computes one picture by all devices of POCL_DEVICES.

It is the picture that the processor alone computes; the bands that the program names are all rows, each once, one for each device;
exactly the bands of devices with a memory of their own have moved. Wrong arguments are errors.
"""
import os
import re
import subprocess
import sys
import tempfile

WIDTH, HEIGHT = 96, 66
program = sys.argv[1]


def run(devices, path, *size):
    return subprocess.run([program, path, *map(str, size)], env={**os.environ, "POCL_DEVICES": devices}, text=True,
                          capture_output=True, timeout=200)


def pixels(path):
    with open(path, "rb") as file:
        header = b"P6\n%d %d\n255\n" % (WIDTH, HEIGHT)
        data = file.read()
    assert data.startswith(header) and len(data) == len(header) + 3 * WIDTH * HEIGHT, data[:20]
    return data[len(header):]


with tempfile.TemporaryDirectory() as directory:
    pictures = {}
    devices = os.environ["POCL_DEVICES"].split()
    for name, list_of_devices in (("alone", "cpu"), ("all", " ".join(devices))):
        path = os.path.join(directory, name + ".ppm")
        done = run(list_of_devices, path, WIDTH, HEIGHT)
        print(done.stdout, done.stderr)
        assert done.returncode == 0, done.returncode
        pictures[name] = pixels(path)
    bands = [tuple(map(int, numbers)) for numbers in
             re.findall(r"^rows +(\d+) to +(\d+) .* ms +(\d+) bytes moved", done.stdout, re.M)]
    assert len(bands) == len(devices), bands
    row = 0
    for device, (first, last, moved) in zip(devices, bands):
        assert first == row and last >= first, bands
        row = last + 1
        has_memory = device != "cpu"
        assert moved == (4 * WIDTH * (last + 1 - first) if has_memory else 0), bands
    assert row == HEIGHT, bands

    # Devices round differently: an edge may be one pixel away.
    differences = [abs(a - b) for a, b in zip(pictures["alone"], pictures["all"])]
    assert sum(difference > 4 for difference in differences) <= len(differences) // 200, "another picture"
    assert len(set(pictures["all"])) > 100, "an empty picture"

    assert run("cpu", os.path.join(directory, "no", "such.ppm"), 8, 8).returncode == 1
    for size in ((0, 5), ("8x", 8), (8,), (20000, 1)):
        assert run("cpu", os.path.join(directory, "wrong.ppm"), *size).returncode == 2, size
