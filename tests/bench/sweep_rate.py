"""How much of a device's link sweeps over twice its memory use: three sweeps over 512 MiB, on a discrete device of 256 MiB.

sweep_rate.py EVICTION_PATTERNS [ROUNDS [MIB_PER_SECOND]]

The bytes that come into the device's memory are counted in a trace of the run (doc/trace.md), and divided by the time of the sweeps and by
the bandwidth of the simulated link. Prints the best of the rounds for kernels that are all enqueued before the first one runs ("ahead"),
and for kernels that may run at once ("now"). The link waits for threads of this process, so a loaded machine gives lower figures.
"""
import os
import struct
import subprocess
import sys
import tempfile

TRANSFER, TEXT = 10, 17
program = sys.argv[1]
rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
mib_per_second = int(sys.argv[3]) if len(sys.argv) > 3 else 500


def bytes_to_device(path):
    """Of all transfers from host memory, space 0, to space 1."""
    with open(path, "rb") as file:
        data = file.read()
    chunk_bytes = struct.unpack_from("<I", data, 12)[0]
    total = 0
    for chunk in range(chunk_bytes, len(data), chunk_bytes):
        at = chunk + 48
        while at + 48 <= chunk + chunk_bytes and data[at + 15] != 0:
            size = struct.unpack_from("<Q", data, at + 32)[0]
            if data[at + 15] == TRANSFER and (data[at + 12], data[at + 13]) == (0, 1):
                total += size
            at += 48 + ((size + 47) // 48 * 48 if data[at + 15] == TEXT else 0)
    return total


with tempfile.TemporaryDirectory() as folder:
    trace = os.path.join(folder, "trace")
    for mode in "ahead", "now":
        best = 0
        for _ in range(rounds):
            done = subprocess.run([program, "timed", mode], capture_output=True, text=True, check=True,
                                  env={**os.environ, "POCL_DEVICES": "cpu discrete", "POLDER_TRACE": trace,
                                       "POCL_DISCRETE0_PARAMETERS": f"memory=256M,bandwidth={mib_per_second}M"})
            seconds = float(done.stdout.split()[0])
            best = max(best, bytes_to_device(trace) / seconds / 2**20)
        print(f"{mode}: {best:.1f} of {mib_per_second} MiB/s came in, {100 * best / mib_per_second:.1f}%")
