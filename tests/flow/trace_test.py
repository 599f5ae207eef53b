"""Records a program with POLDER_TRACE, then replays, shows and converts the trace with polder-memory.

trace_test.py POLDER_MEMORY PROGRAM
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

tool, program = sys.argv[1:3]


def run(*words, code=0):
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert done.returncode == code, (words, done.returncode, done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout


def check_replay(trace):
    """Every policy serves the trace, with the same decisions each time."""
    first, second = run(tool, "replay", trace), run(tool, "replay", trace)
    decisions = [re.findall(r"\b[0-9a-f]{16}\b", text) for text in (first, second)]
    assert decisions[0] and decisions[0] == decisions[1], first
    assert "(as recorded)" in first and "bucket" in first and "caching" in first, first
    rows = [line.split() for line in first.split("\n\n")[0].splitlines()[1:]]
    assert first.count("optimum") == 1 and first.count("ratio") == 1, first
    assert all(float(re.search(r"([\d.]+)%", " ".join(row)).group(1)) <= 100 for row in rows), first
    small = run(tool, "replay", trace, "--policy=bufalloc", "--memory=64K", "--fixed")
    assert small.count("bufalloc") >= 1, small
    # The settings of POLDER_ALLOC_CONF, also without a backend.
    rounded = run(tool, "replay", trace, "--policy=roundup_power2_divisions:4")
    assert "roundup_power2_divisions:4" in rounded, rounded
    print(first)


def check_perfetto(text):
    events = json.loads(text)["traceEvents"]
    names = {event.get("name") for event in events}
    assert {event["ph"] for event in events} >= {"C", "X", "M"}, names
    assert "host memory" in names and any("copy from" in name for name in names), names
    counters = [event["args"] for event in events if event["ph"] == "C"]
    assert max(args["allocated"] for args in counters) > 0


def check_pytorch(text):
    """The structure that PyTorch's viewer reads: https://pytorch.org/docs/stable/torch_cuda_memory.html."""
    snapshot = json.loads(text)
    actions = {entry["action"] for trace in snapshot["device_traces"] for entry in trace}
    assert actions >= {"segment_alloc", "alloc", "free_requested", "free_completed"}, actions
    for segment in snapshot["segments"]:
        at = segment["address"]
        for block in segment["blocks"]:
            assert block["address"] == at, segment
            at += block["size"]
        assert at == segment["address"] + segment["total_size"], segment


def check_page(text):
    assert "/*TRACE*/" not in text and text.count("</script>") == 1
    assert not re.search(r"(src|href)\s*=|https?://|@import", text), "the page loads something"


def check_in_browser(page):
    """The page's script runs to its end. Only where Chromium is installed."""
    browser = shutil.which("chromium")
    if not browser:
        print("no chromium: the page was not opened")
        return
    done = subprocess.run([browser, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
                           "--user-data-dir=" + page + ".profile", "--virtual-time-budget=10000", "--dump-dom",
                           "file://" + page], capture_output=True, text=True, timeout=240)
    assert "Uncaught" not in done.stderr, [line for line in done.stderr.splitlines() if "Uncaught" in line]
    assert re.search(r"process \d+, \d+ events", done.stdout), done.stdout[-500:]
    # What is held in the middle of the time depends on the machine; how much it is, is always there.
    assert re.search(r"in use [\d.]+ ", done.stdout), "the moment's figures are missing"


with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
    trace = os.path.join(folder, "trace")
    done = subprocess.run([program], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "POLDER_TRACE": trace})
    assert done.returncode == 0, done.stdout[-3000:]
    check_replay(trace)
    check_perfetto(run(tool, "view", trace, "--format=perfetto"))
    check_pytorch(run(tool, "view", trace, "--format=pytorch"))
    check_page(run(tool, "view", trace))
    run(tool, "view", trace, "--output=" + os.path.join(folder, "page.html"))
    check_in_browser(os.path.join(folder, "page.html"))
    run(tool, "view", trace, "--format=other", code=2)
    run(tool, "replay", trace, "--policy=nothing", code=2)
    run(tool, "replay", trace, "--memory=many", code=2)
    run(tool, "replay", os.path.join(folder, "missing"), code=1)
    run(tool, "replay", tool, code=1)
    run(tool, code=2)
    # Where no file can be made, the program still runs, and one line reports it.
    done = subprocess.run([program, "--gtest_filter=*Nothing*"], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "POLDER_TRACE": "/nonexistent/trace"})
    assert done.returncode == 0, done.stderr
