"""The page of a trace stays fluid however many events there are: what it draws depends on pixels, not on events.

viewer_test.py POLDER_MEMORY [EVENTS]

Writes a trace of 200,000 events, opens its page in Chromium, sends it the inputs of a user, and counts what is drawn and what is looked at:
times depend on the machine. Only where Chromium is installed. What the page decodes is checked where node is installed.
"""
import html
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "support"))
from trace_writer import (COMPLETED, EVICT, FREE, LAUNCH, LEASE, OUT_OF_MEMORY, REFUSED, REPLICA, RESERVE, SPACE, TRANSFER, USE, Maker, pack, pack_text,
                          write_events)

tool = sys.argv[1]
event_count = int(sys.argv[2]) if len(sys.argv) > 2 else 200_000
ROWS, KERNELS = 32, 40
BASE, BLOCK, LIVE, MIB = 1 << 40, 1 << 20, 20_000, 1 << 20


def many_events():
    """Blocks of short life in ROWS rows, over LIVE blocks that stay; launches, transfers and refusals in between."""
    ticks = 0

    def event(kind, **fields):
        nonlocal ticks
        ticks += 1000
        return pack(kind, ticks, **fields)

    yield event(SPACE, size=1 << 40)
    yield event(RESERVE, address=BASE, size=1 << 36)
    for number in range(1, KERNELS + 1):
        yield pack_text(ticks, number, f"kernel_{number}")
    for number in range(1, LIVE + 1):
        yield event(LEASE, address=BASE + (1 << 30) + number * 4096, size=4096, extra=4096)
        yield event(REPLICA, storage=number, address=BASE + (1 << 30) + number * 4096, size=4096)
    written, number = 2 * LIVE, LIVE
    while written < event_count:
        number += 1
        address = BASE + number % ROWS * BLOCK
        yield event(LEASE, address=address, size=4096, extra=4096)
        yield event(REPLICA, storage=number, address=address, size=4096)
        yield event(LAUNCH, queue=1, storage=1 + number % KERNELS, size=1, extra=number)
        yield event(USE, flags=2, storage=number, size=4096)
        yield event(TRANSFER, queue=2, storage=number, size=4096, other=0, extra=number)
        yield event(REFUSED, size=4096)
        yield event(FREE, address=address, size=4096, queue=1, extra=number)
        written += 7


def write_shortage(path, devices):
    """Devices of 16 MiB, whose kernel `keep` leaves a buffer behind in each step, until its command gets no memory."""
    trace = Maker()
    for number, name in enumerate(["keep", "use<float, 4>"], 1):
        trace.text(number, name)
    for space in range(1, devices + 1):
        trace.add(SPACE, space=space, size=16 * MIB)
        trace.add(RESERVE, space=space, address=BASE, size=16 * MIB)
    for step in range(9):
        for space in range(1, devices + 1):
            kept, used, at = 100 * space + step, 100 * space + 50 + step, BASE + step * 3 * MIB // 2
            if step == 8:
                trace.text(10 + space, f"out of memory in space {space}: asked for 4194304 bytes; live 12582912 in 8 blocks")
                trace.add(REFUSED, space=space, storage=10 + space, size=4 * MIB)
                trace.add(EVICT, space=space, storage=kept - 1, size=MIB)
                trace.add(OUT_OF_MEMORY, space=space, storage=10 + space, size=4 * MIB)
                continue
            trace.add(LEASE, space=space, address=at, size=3 * MIB // 2 - 100, extra=3 * MIB // 2)
            trace.add(REPLICA, space=space, storage=kept, address=at, size=3 * MIB // 2 - 100)
            trace.add(LEASE, space=space, address=BASE + 12 * MIB, size=4 * MIB, extra=4 * MIB)
            trace.add(REPLICA, space=space, storage=used, address=BASE + 12 * MIB, size=4 * MIB)
            trace.add(LAUNCH, space=space, queue=space, storage=1, size=1, extra=2 * step + 1)
            trace.add(USE, space=space, storage=kept, flags=2, size=MIB)
            trace.add(LAUNCH, space=space, queue=space, storage=2, size=1, extra=2 * step + 2)
            trace.add(USE, space=space, storage=used, flags=3, size=4 * MIB)
            trace.add(FREE, space=space, address=BASE + 12 * MIB, size=4 * MIB, queue=space, extra=2 * step + 2)
            trace.add(COMPLETED, queue=space, extra=2 * step + 2)
    trace.write(path)


def write_without_regions(path):
    trace = Maker()
    for number in range(1, 9):
        trace.add(LEASE, address=BASE + number * MIB, size=MIB, extra=MIB)
        trace.add(REPLICA, storage=number, address=BASE + number * MIB, size=MIB)
    trace.write(path)


# Frames follow the virtual time of --virtual-time-budget.
FRAMES = "<body><script>requestAnimationFrame = f => setTimeout(() => f(performance.now()), 1);</script>"
# Sends inputs, waits until the image of addresses is there, and notes the counts of each step.
INPUTS = """
<script>(async () => {
  const counts = [], frame = () => new Promise(done => requestAnimationFrame(done)), box = () => canvas.getBoundingClientRect();
  const mouse = (type, x, y, more) => canvas.dispatchEvent(new MouseEvent(type, {bubbles: true, clientX: x, clientY: y, ...more}));
  const note = async name => {
    for (let n = 0; n < 500; ++n) { await frame(); if (!asked.size && mapImage && mapImage.view[0] === view[0] && mapImage.view[1] === view[1] && mapImage.wanted === wanted) break; }
    counts.push({name, ...drawn, width: W, view: view[1] - view[0], found: document.getElementById("found").textContent,
                 tip: tip.textContent, holders: document.getElementById("holders").rows.length});
  };
  const early = {decoded: spaces.get(1).made !== undefined, chart: drawn.chart};
  await note("all");
  const map = layout.find(row => row.type === "map"), y = box().top + map.y + map.h * (1 - STAYING / spaces.get(1).extent);
  for (let x = 150; x < W - 50; x += 100) { mouse("mousemove", x, y); await frame(); }
  await note("hover");
  for (let n = 0; n < 25; ++n) { canvas.dispatchEvent(new WheelEvent("wheel", {deltaY: -120, clientX: W / 2, clientY: 300, cancelable: true})); if (n % 5 === 0) await note("zoom " + n); }
  await note("zoomed");
  mouse("mousedown", W / 2, 300); for (let n = 0; n < 10; ++n) { mouse("mousemove", W / 2 - 10 * n, 300); await frame(); } dispatchEvent(new MouseEvent("mouseup"));
  await note("moved");
  mouse("mousemove", W / 2, y); await note("hover zoomed");
  const search = document.getElementById("search"); search.value = "kernel_7"; search.dispatchEvent(new Event("input")); await note("searched");
  canvas.dispatchEvent(new MouseEvent("dblclick")); await note("searched all");
  for (const kind of ["storage", "kernel"]) { by.value = kind; by.dispatchEvent(new Event("change")); await note("by " + kind); }
  counts.push({name: "early", ...early});
  document.title = "counts " + JSON.stringify(counts);
})();</script></body>"""


# What a small page says, once its addresses are painted; `said` is of the step that the page's own script makes.
WORDS = """
<script>(async () => {
  const frame = () => new Promise(done => requestAnimationFrame(done)), said = id => document.getElementById(id).innerText;
  for (let n = 0; n < 100; ++n) { await frame(); if (!asked.size && (!ids.length || mapImage)) break; }
  const answer = {selected: select.value, moment: said("moment"), holders: [...document.getElementById("holders").rows].filter(row => !row.hidden).map(row => row.innerText.replace(/\\s+/g, " ").trim()),
                  reports: said("reports"), refusals: said("refusals"), rows: layout.map(row => row.type), held, drawn, legend: said("legend")};
  if (ids.length) { by.value = "kernel"; by.dispatchEvent(new Event("change")); answer.byKernel = said("legend"); }
  const report = document.querySelector("#refusals .report"); if (report) { report.click(); await frame(); answer.view = view; }
  document.title = "counts " + JSON.stringify(answer);
})();</script></body>"""


def run_page(folder, page, script):
    with open(page, encoding="utf-8") as file:
        text = file.read()
    assert text.count("</body>") == 1 and text.count("<body>") == 1
    with open(page, "w", encoding="utf-8") as file:
        file.write(text.replace("<body>", FRAMES).replace("</body>", script))
    done = subprocess.run([shutil.which("chromium"), "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
                           "--user-data-dir=" + os.path.join(folder, "profile"), "--window-size=1600,1000",
                           "--virtual-time-budget=60000", "--dump-dom", "file://" + page],
                          capture_output=True, text=True, timeout=500)
    assert "Uncaught" not in done.stderr, [line for line in done.stderr.splitlines() if "Uncaught" in line]
    found = re.search(r"<title>counts (.*?)</title>", done.stdout, re.S)
    assert found, done.stdout[-500:]
    return json.loads(html.unescape(found.group(1)))


# What the page decodes of a trace, without a browser.
DECODED = """
const s = spaces.get(1), b = s.blocks;
console.log(JSON.stringify({spaces: [...spaces.keys()], count: b.count, begin: [...b.t0], end: [...b.t1], used: [...b.used], place: [...b.place], bytes: [...b.n], who: [...b.who], top: b.top,
  live: s.live.top, held: s.held.top, reserved: s.reserved.top, memory: s.memory, halfway: s.live.at(b.t0[2]), waiting: [s.held.at(b.t1[1]), s.held.at(b.t1[1] + 1000)], kernels: [kernelsOf.get(100), kernelsOf.get(150)], storages: storagesOf.get("keep").length,
  launches: kernels.total, failures: failures.t.length, text: failures.text(0), evicted: evictions.map(e => e.sums.total), end_of_all: T_END}));"""


def check_decoded(page, devices):
    with open(page, encoding="utf-8") as file:
        script = file.read().split("<script>")[1].split("// The rows:")[0]
    done = subprocess.run(["node", "-"], input=script + DECODED, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr[-500:]
    seen = json.loads(done.stdout)
    assert seen["spaces"] == list(range(1, devices + 1)) and seen["count"] == 16, seen
    # Kept and used buffers in turns. The first stays, the second is released in its step.
    assert seen["who"][:4] == [100, 150, 101, 151] and seen["bytes"][:2] == [3 * MIB // 2, 4 * MIB] and seen["place"][:4] == [0, 12 * MIB, 3 * MIB // 2, 12 * MIB], seen
    assert seen["end"][0] == seen["end_of_all"] and seen["begin"][1] < seen["end"][1] < seen["begin"][2], seen
    assert all(0 < used - 1 <= end - begin for used, begin, end in zip(seen["used"], seen["begin"], seen["end"])), seen
    assert seen["live"] == 8 * 3 * MIB // 2 + 4 * MIB == seen["held"] == seen["reserved"] == seen["memory"] == seen["top"], seen
    # Released, and a microsecond later the queue had passed its last use.
    assert seen["waiting"] == [3 * MIB // 2 + 4 * MIB, 3 * MIB // 2], seen
    assert seen["halfway"] == 3 * MIB and seen["launches"] == 16 * devices, seen
    assert seen["kernels"] == [["keep"], ["use<float, 4>"]] and seen["storages"] == 8 * devices, seen
    assert seen["failures"] == devices and "asked for 4194304 bytes" in seen["text"] and seen["evicted"] == [MIB] * devices, seen


def check_many(counts):
    early = counts.pop("early")
    assert early["chart"] > 0 and not early["decoded"], "the charts wait for the blocks"
    for name, step in counts.items():
        print(name, step)
        # Three areas, transfers, kernels, refusals: one thing for each pixel of the width. By storage or kernel, 12 areas more.
        areas = 20 if name.startswith("by") else 8
        assert 0 < step["chart"] <= areas * step["width"], "more is drawn than there are pixels"
        # The short-lived blocks are in 8 rows of pixels, the others in 20, which few of them fill.
        assert 0 < step["map"] <= 12 * step["width"], "more blocks are drawn than there are pixels"
        assert step["holders"] == 20
        assert step["moment"] <= LIVE + 3 * 256, "blocks that have ended are looked at"
    zoomed = counts["zoomed"]
    assert zoomed["view"] < counts["all"]["view"] / 300, zoomed
    assert counts["moved"]["view"] == zoomed["view"]
    visible = (zoomed["view"] / 7000 + 2) * 1.1
    assert zoomed["looked"] <= LIVE + visible + 4 * 256, "blocks that are out of view are looked at"
    assert counts["all"]["looked"] > 2 * LIVE, "the test has too few blocks"
    assert "storage" in counts["hover"]["tip"] and "storage" in counts["hover zoomed"]["tip"], counts["hover"]
    expected = sum(1 for number in range(LIVE + 1, LIVE + 1 + (event_count - 2 * LIVE + 6) // 7) if 1 + number % KERNELS == 7)
    assert counts["searched"]["found"] == counts["searched all"]["found"] == f"{expected} blocks", counts["searched"]


def check_shortage(words, devices):
    """The page opens at the first command without memory, and says what holds it."""
    assert words["selected"] == "1" and "space 1 at" in words["moment"] and words["held"] > 0, words
    assert "in use 12.0 MiB" in words["moment"] and "not reserved 0 B of 16.0 MiB" in words["moment"], words
    # In the first step 1.5 MiB, and so on; the buffers of the other kernel were released.
    assert len(words["holders"]) == 8 and re.match(r"storage 100 1.5 MiB 13% keep not used since [\d.]+ us", words["holders"][0]), words
    assert words["reports"].count("asked for 4.0 MiB") == devices and words["reports"].count("The last launch before was use<float, 4> at") == devices, words
    assert words["refusals"].count("live 12.0 MiB in 8 blocks") == devices, words
    assert words["rows"] == ["space"] * devices + ["map"] + ["evictions"] * devices + ["kernels"], words
    assert "size of the memory" in words["legend"] and "a command got no memory" in words["legend"], words
    assert "keep" in words["byKernel"] and "use<float, 4>" in words["byKernel"], words
    assert words["view"][0] <= words["held"] <= words["view"][1], words


with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
    def page_of(write, *words):
        trace, page = os.path.join(folder, "trace"), os.path.join(folder, "page.html")
        write(trace, *words)
        subprocess.run([tool, "view", trace, "--output=" + page], check=True, timeout=300)
        return page

    if shutil.which("node"):
        check_decoded(page_of(write_shortage, 8), 8)
    page = page_of(write_events, many_events())
    # 59 bytes an event when each field was written whole, 12 when the page had the events.
    assert os.path.getsize(page) < 200_000 + 10 * event_count, os.path.getsize(page)
    print(f"{os.path.getsize(page)} bytes for {event_count} events")
    if shutil.which("chromium"):
        check_many({step["name"]: step for step in run_page(folder, page, INPUTS.replace("STAYING", str((1 << 30) + LIVE * 2048)))})
        check_shortage(run_page(folder, page_of(write_shortage, 8), WORDS), 8)
        words = run_page(folder, page_of(write_without_regions), WORDS)
        assert len(words["holders"]) == 8 and "in use 8.0 MiB" in words["moment"] and words["drawn"]["map"] == 8, words
        words = run_page(folder, page_of(write_events, []), WORDS)
        assert words["rows"] == [] and words["reports"] == "none", words
    else:
        print("no chromium: the page was not opened")
