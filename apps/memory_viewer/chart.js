// The rows: memory of each space over time, the addresses of one, transfers, evictions, kernels. Each pixel is drawn once, whatever the trace has.
const canvas = document.getElementById("chart"), g = canvas.getContext("2d"), tip = document.getElementById("tip"), line = document.getElementById("line");
const ids = [...spaces.keys()].filter(id => spaces.get(id).live.t.length).sort((a, b) => a - b);
const select = document.getElementById("space"), by = document.getElementById("by");
for (const id of ids) select.add(new Option(spaceName(id), id));
// Where something failed, else where the most bytes are.
if (ids.length) select.value = failures.t.length && ids.includes(failures.space[0]) ? failures.space[0] : ids.reduce((most, id) => spaces.get(id).count > spaces.get(most).count ? id : most);
// Counters for tests: what the last draw() and the last image of addresses have drawn, and how many blocks were examined for that image and for
// the moment. They depend on the number of pixels and on the visible part, not on the number of events.
const drawn = {chart: 0, map: 0, looked: 0, moment: 0};
let view = [0, T_END], held = null, wanted = null, mapImage = null, mapJob = 0;
// The charts are on the screen before the blocks are looked at: until then they are not even decoded.
let isShown = false;
const left = 118, right = 8, mapHeight = 260, chartHeight = ids.length > 4 ? 60 : 110, rowHeight = 42;
const IN_USE = "#3b7dd8", RELEASED = "#e9a23b", FREE = "#8885", COPIED = "#2a9d6f", EVICTED = "#b5651d", LAUNCHED = "#8a5cc2", FAILED = "#d33", REFUSED = "#d90";
const rows = () => {
  const list = []; let y = 24;
  for (const id of ids) { list.push({type: "space", id, y, h: chartHeight}); y += chartHeight + 14; }
  if (select.value !== "") { list.push({type: "map", id: +select.value, y, h: mapHeight}); y += mapHeight + 14; }
  for (const link of links) { list.push({type: "link", link, y, h: rowHeight}); y += rowHeight + 8; }
  for (const eviction of evictions) { list.push({type: "evictions", eviction, y, h: rowHeight}); y += rowHeight + 8; }
  if (kernels.t.length) { list.push({type: "kernels", y, h: rowHeight}); y += rowHeight + 8; }
  list.height = Math.max(y + 10, 100); return list;
};
const X = t => left + (t - view[0]) / (view[1] - view[0]) * (W - left - right);
const T = x => view[0] + (x - left) / (W - left - right) * (view[1] - view[0]);
let W = 800, layout = rows();
let styles = {};
const style = name => styles[name] ??= getComputedStyle(document.documentElement).getPropertyValue(name);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { styles = {}; draw(); });
const rect = (x, y, w, h) => { ++drawn.chart; g.fillRect(x, y, w, h); };
// Draws one mark for all events within one pixel.
function marks(times, y, w, h) {
  let last = -1;
  for (let i = under(times, view[0]); i < times.length; ++i) {
    const x = Math.floor(X(times[i]));
    if (x >= W - right) break;
    if (x === last) { i = under(times, T(x + 1)) - 1; continue; }
    last = x; rect(x, y, w, h);
  }
}
function resize() {
  layout = rows(); W = canvas.parentElement.clientWidth; const scale = devicePixelRatio || 1;
  canvas.width = W * scale; canvas.height = layout.height * scale; canvas.style.height = line.style.height = layout.height + "px";
  g.setTransform(scale, 0, 0, scale, 0, 0); mapImage = null; draw();
}
// Where the parts of the time that each pixel has begin and end among some times: one search for each pixel.
const cutsOf = (times, find) => Uint32Array.from({length: W - left - right + 1}, (_, n) => find(times, T(left + n)));
const perPixel = value => Float64Array.from({length: W - left - right}, (_, n) => value(n));
const maximaOf = (series, cuts = cutsOf(series.t, upTo)) => perPixel(n => series.most(cuts[n], cuts[n + 1]));
// Rectangles of equal height: runs of pixels.
function area(row, values, top, color) {
  g.fillStyle = color;
  let from = left, before = -1;
  for (let n = 0; n <= values.length; ++n) {
    const bytes = n < values.length ? values[n] : -1, h = bytes > 0 ? Math.max(1, Math.round(row.h * bytes / top)) : bytes;
    if (h === before) continue;
    if (before > 0) rect(from, row.y + row.h - before, left + n - from, before);
    from = left + n; before = h;
  }
}
// Amounts in each pixel, against the most in any.
function bars(row, sums, color) {
  const cuts = cutsOf(sums.t, under), amounts = perPixel(n => sums.sum(cuts[n], cuts[n + 1])), most = amounts.reduce((x, y) => Math.max(x, y), 0);
  g.fillStyle = color;
  amounts.forEach((amount, n) => { if (amount > 0) { const h = Math.max(2, amount / most * row.h); rect(left + n, row.y + row.h - h, 1, h); } });
}
// What a space's memory in use is for: the groups that have most bytes for most of the time, each as a value over time. Kernels are the same in
// all spaces; storages are those of the space. Made when they are first asked for.
const GROUPS = 12;
const groupOf = {storage: who => who, kernel: who => { const list = kernelsOf.get(who); return list ? list[0] : ""; }};
const stacks = new Map();
function largestGroups(kind, places) {
  const weights = new Map();
  for (const {blocks: b} of places)
    for (let i = 0; i < b.count; ++i) { const key = groupOf[kind](b.who[i]); if (key) weights.set(key, (weights.get(key) || 0) + b.n[i] * (b.t1[i] - b.t0[i])); }
  return [...weights].sort((x, y) => y[1] - x[1]).slice(0, GROUPS).map(([key]) => key);
}
function stackOf(kind, id) {
  const known = stacks.get(kind + id);
  if (known) return known;
  const b = spaces.get(id).blocks, keys = largestGroups(kind, kind === "kernel" ? spaces.values() : [spaces.get(id)]), changes = new Map(keys.map(key => [key, []]));
  for (let i = 0; i < b.count; ++i) { const list = changes.get(groupOf[kind](b.who[i])); if (list) list.push([b.t0[i], b.n[i]], [b.t1[i], -b.n[i]]); }
  const made = keys.map((key, n) => {
    const list = changes.get(key).sort((x, y) => x[0] - y[0]);
    let sum = 0;
    return {name: kind === "storage" ? "storage " + key : key, color: kind === "storage" ? hue(key) : `hsl(${n * 360 / GROUPS} 60% ${n % 2 ? 42 : 58}%)`,
            series: new Series(Float64Array.from(list, change => change[0]), Float64Array.from(list, change => sum += change[1]))};
  });
  stacks.set(kind + id, made);
  return made;
}
const mostOf = space => Math.max(1, space.reserved.top, space.held.top);
// The memory's size is in the picture where it is not much more than what was used; else 0.
const sizeOf = space => space.memory < mostOf(space) * 2 ? space.memory : 0;
const drawers = {
  space(row) {
    const s = spaces.get(row.id), size = sizeOf(s), top = Math.max(mostOf(s), size) * 1.05;
    const cuts = cutsOf(s.live.t, upTo), live = maximaOf(s.live, cuts);
    area(row, maximaOf(s.reserved, cuts), top, FREE); area(row, maximaOf(s.held, cuts), top, RELEASED); area(row, live, top, by.value === "state" ? IN_USE : "#888");
    if (by.value !== "state") {
      const sums = new Float64Array(live.length), layers = [];
      for (const {series, color} of stackOf(by.value, row.id)) {
        if (series.top <= 0) continue;
        maximaOf(series).forEach((bytes, n) => { sums[n] += bytes; });
        layers.push({color, values: perPixel(n => Math.min(sums[n], live[n]))});
      }
      // From the sum of all down to the first one, so that each covers what is below the ones before it.
      for (const {color, values} of layers.reverse()) area(row, values, top, color);
    }
    if (size) { const y = Math.round(row.y + row.h - row.h * size / top); g.fillStyle = FAILED; for (let x = left; x < W - right; x += 8) g.fillRect(x, y, 4, 1); }
    label(row, spaceName(row.id) === "host" ? "host memory" : "memory of " + spaceName(row.id), `in use, most ${bytesText(s.live.top)}`, `reserved ${bytesText(s.reserved.top)}`, s.memory ? `size ${bytesText(s.memory)}` : "");
  },
  map(row) {
    label(row, "addresses of", spaceName(row.id), isShown && spaces.get(row.id).count ? `${bytesText(spaces.get(row.id).blocks.top)} in all` : "", "a color for", "each storage");
    g.fillStyle = "#8882"; g.fillRect(left, row.y, W - left - right, row.h);
    if (mapImage) { // stretched while the new one is made
      const x0 = X(mapImage.view[0]), x1 = X(mapImage.view[1]);
      g.save(); g.beginPath(); g.rect(left, row.y, W - left - right, row.h); g.clip(); g.imageSmoothingEnabled = false; ++drawn.chart; g.drawImage(mapImage.canvas, x0, row.y, x1 - x0, row.h); g.restore();
    }
    if (!mapImage || mapImage.view[0] !== view[0] || mapImage.view[1] !== view[1] || mapImage.wanted !== wanted || mapImage.id !== row.id) { if (isShown) paintSoon(row); }
  },
  link(row) {
    const {from, to, sums} = row.link;
    bars(row, sums, COPIED);
    label(row, spaceName(from) + " \u2192 " + spaceName(to), bytesText(sums.total), `${sums.t.length} copies`);
  },
  evictions(row) {
    const {space, sums} = row.eviction;
    bars(row, sums, EVICTED);
    label(row, "evicted, " + spaceName(space), bytesText(sums.total), `${sums.t.length} times`);
  },
  kernels(row) {
    const first = under(kernels.t, view[0]), last = under(kernels.t, view[1]);
    if (last - first < 400) for (let n = first; n < last; ++n) {
      const name = textOf(kernels.names[n]), x = X(kernels.t[n]), room = (n + 1 < last ? X(kernels.t[n + 1]) : W - right) - x;
      g.fillStyle = wanted && name.includes(wanted) ? FAILED : LAUNCHED; rect(x, row.y, 2, row.h);
      if (room > 40) { g.fillStyle = style("--text"); g.fillText(name.slice(0, room / 6.5), x + 4, row.y + 20); }
    } else bars(row, kernels, LAUNCHED);
    label(row, "kernels", `${kernels.t.length} launches`);
  }
};
function label(row, ...lines) {
  lines.forEach((text, n) => { g.fillStyle = n ? style("--soft") : style("--text"); g.fillText(text, 4, row.y + 12 + 14 * n, left - 8); });
  g.strokeStyle = "#8884"; g.strokeRect(left + .5, row.y + .5, W - left - right - 1, row.h - 1);
}
// Times of 1, 2 or 5 times a power of ten, at least 110 pixels apart.
function drawTimes() {
  const least = (view[1] - view[0]) / Math.max(1, (W - left - right) / 110), power = 10 ** Math.floor(Math.log10(least)), step = [1, 2, 5, 10].map(n => n * power).find(n => n >= least);
  for (let t = Math.ceil(view[0] / step) * step; t <= view[1]; t += step) {
    const x = Math.round(X(t)), text = step >= 1e3 ? timeText(t).replace(/(\.\d*?)0+(?= )/, "$1").replace(/\.(?= )/, "") : timeText(t);
    g.fillStyle = "#8883"; g.fillRect(x, 16, 1, layout.height - 16);
    g.fillStyle = style("--soft"); if (x + g.measureText(text).width < W) g.fillText(text, x, 12);
  }
}
function draw() {
  drawn.chart = 0; g.clearRect(0, 0, W, layout.height); g.font = "12px system-ui, sans-serif";
  if (!ids.length) { g.fillStyle = style("--text"); g.fillText("This trace has no memory in use: the process ended before it used any, or it was recorded without OpenCL.", left, 40); }
  for (const row of layout) drawers[row.type](row);
  if (ids.length) drawTimes();
  g.fillStyle = REFUSED; marks(refusals.t, 16, 1, 6);
  g.fillStyle = FAILED; marks(failures.t, 14, 2, 8);
  g.fillStyle = FAILED + "6"; marks(failures.t, 22, 1, layout.height);
  if (held !== null) { g.fillStyle = style("--text"); g.fillRect(X(held), 14, 1, layout.height); }
}
// Calls f once in the next frame, even when it is requested several times.
const asked = new Map();
function later(f, ...words) {
  if (!asked.size) requestAnimationFrame(() => { const all = [...asked]; asked.clear(); for (const [what, with_] of all) what(...with_); });
  asked.set(f, words);
}
