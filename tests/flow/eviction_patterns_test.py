"""Records patterns of memory use that exceed a device's memory, and compares the moved bytes with the optimum.

eviction_patterns_test.py POLDER_MEMORY EVICTION_PATTERNS
"""
import os
import pickle
import struct
import subprocess
import sys
import tempfile

tool, program = sys.argv[1:3]
OUT_OF_MEMORY, EVICT, TEXT, REFUSED = 6, 11, 17, 18
# The most that may be moved, as a multiple of the optimum, when all kernels are enqueued before the first one runs.
LIMITS = {"sweep": 1.15, "product": 1.15, "stencil": 1.15, "random": 1.15}


def run(*words, **environment):
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, env={**os.environ, **environment})
    assert done.returncode == 0, (words, done.returncode, done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout


def count_events(path, wanted):
    """Of one kind, in the format that doc/trace.md describes."""
    with open(path, "rb") as file:
        data = file.read()
    chunk_bytes = struct.unpack_from("<I", data, 12)[0]
    count = 0
    for chunk in range(chunk_bytes, len(data), chunk_bytes):
        at = chunk + 48
        while at + 48 <= chunk + chunk_bytes and data[at + 15] != 0:
            count += data[at + 15] == wanted
            if data[at + 15] == TEXT:
                at += (struct.unpack_from("<Q", data, at + 32)[0] + 47) // 48 * 48
            at += 48
    return count


def check_refusals(trace):
    """Every kernel got its memory by evictions, so the allocator refused and no command failed."""
    assert count_events(trace, REFUSED) > 0 and count_events(trace, OUT_OF_MEMORY) == 0
    perfetto = run(tool, "view", trace, "--format=perfetto")
    assert '"no room for ' in perfetto and '"out of memory: ' not in perfetto  # a report begins "out of memory in"
    run(tool, "view", trace, "--format=pytorch", "--output=" + trace + ".pickle")
    with open(trace + ".pickle", "rb") as file:
        snapshot = pickle.load(file)
    assert all(entry["action"] != "oom" for entries in snapshot["device_traces"] for entry in entries)


with tempfile.TemporaryDirectory() as folder:
    failed = []
    for pattern, limit in LIMITS.items():
        for mode in "ahead", "now":
            trace = os.path.join(folder, f"{pattern}.{mode}")
            run(program, pattern, mode, POLDER_TRACE=trace)
            rows = run(tool, "replay", trace, "--policy=bufalloc").split("ratio\n")[1].splitlines()
            assert len(rows) == 1, rows
            words = rows[0].split()
            moved, optimum, ratio = float(words[6]), float(words[8]), float(words[10])
            print(f"{pattern} {mode}: moved {moved:.1f} MiB, optimum {optimum:.1f} MiB, ratio {ratio}")
            assert optimum > 0 and moved > 0, rows
            assert count_events(trace, EVICT) > 0
            check_refusals(trace)
            if mode == "ahead" and ratio > limit:
                failed.append((pattern, ratio))
    assert not failed, failed
