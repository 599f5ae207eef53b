"""The page of a trace stays fluid however many events there are: what it draws depends on pixels, not on events.

viewer_test.py POLDER_MEMORY [EVENTS]

Writes a trace of 300,000 events, opens its page in Chromium, sends it the inputs of a user, and counts what is drawn and what is looked at:
times depend on the machine. Only where Chromium is installed.
"""
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

tool = sys.argv[1]
event_count = int(sys.argv[2]) if len(sys.argv) > 2 else 300_000
SPACE, RESERVE, LEASE, FREE, CREATE, REPLICA, TRANSFER, LAUNCH, USE, TEXT, REFUSED = 1, 2, 4, 5, 7, 9, 10, 14, 15, 17, 18
CHUNK, EVENT, ROWS, KERNELS = 64 << 10, 48, 32, 40
BASE, BLOCK, LIVE = 1 << 40, 1 << 20, 20_000


def make_events():
    """Blocks of short life in ROWS rows, over LIVE blocks that stay; launches, transfers and refusals in between."""
    ticks = 0

    def event(kind, flags=0, queue=0, storage=0, address=0, size=0, extra=0, other=0, space=1):
        nonlocal ticks
        ticks += 1000
        return struct.pack("<QIBBBBQQQQ", ticks, queue, space, other, flags, kind, storage, address, size, extra)

    yield event(SPACE, size=1 << 40)
    yield event(RESERVE, address=BASE, size=1 << 36)
    for number in range(1, KERNELS + 1):
        name = b"kernel_%d" % number
        yield event(TEXT, storage=number, size=len(name)) + name.ljust(EVENT, b"\0")
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


def write_trace(path):
    with open(path, "wb") as file:
        file.write(struct.pack("<8sIIQQII", b"POLDTRC\n", 3, CHUNK, 0, 0, 4711, 0).ljust(CHUNK, b"\0"))
        parts, length, number = [], 0, 0

        def flush():
            nonlocal number
            number += 1
            first = struct.unpack_from("<Q", parts[0])[0]
            header = struct.pack("<IIQQdQQ", 0x4B4E4843, 0, first, first, 1.0, number, 0)
            file.write((header + b"".join(parts)).ljust(CHUNK, b"\0"))

        for event in make_events():
            if length + len(event) > CHUNK - 48:
                flush()
                parts, length = [], 0
            parts.append(event)
            length += len(event)
        flush()


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
  document.title = "counts " + JSON.stringify(counts);
})();</script></body>"""


def counts_of(folder, page):
    with open(page, encoding="utf-8") as file:
        text = file.read()
    assert text.count("</body>") == 1 and text.count("<body>") == 1
    with open(page, "w", encoding="utf-8") as file:
        file.write(text.replace("<body>", FRAMES).replace("</body>", INPUTS.replace("STAYING", str((1 << 30) + LIVE * 2048))))
    done = subprocess.run([shutil.which("chromium"), "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
                           "--user-data-dir=" + os.path.join(folder, "profile"), "--window-size=1600,1000",
                           "--virtual-time-budget=60000", "--dump-dom", "file://" + page],
                          capture_output=True, text=True, timeout=500)
    assert "Uncaught" not in done.stderr, [line for line in done.stderr.splitlines() if "Uncaught" in line]
    found = re.search(r"<title>counts (.*?)</title>", done.stdout, re.S)
    assert found, done.stdout[-500:]
    return {step["name"]: step for step in json.loads(found.group(1))}


def check(counts):
    for name, step in counts.items():
        print(name, step)
        # Three areas, transfers, kernels, refusals: one thing for each pixel of the width.
        assert 0 < step["chart"] <= 8 * step["width"], "more is drawn than there are pixels"
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


with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
    trace, page = os.path.join(folder, "trace"), os.path.join(folder, "page.html")
    write_trace(trace)
    subprocess.run([tool, "view", trace, "--output=" + page], check=True, timeout=300)
    # 59 bytes an event when each field was written whole.
    assert os.path.getsize(page) < 200_000 + 20 * event_count, os.path.getsize(page)
    print(f"{os.path.getsize(page)} bytes for {event_count} events")
    if shutil.which("chromium"):
        check(counts_of(folder, page))
    else:
        print("no chromium: the page was not opened")
