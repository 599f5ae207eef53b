// What the page is given (tools/polder_memory/scene.h): columns in base64. Numbers have seven bits in each byte, the low ones first, and the last byte of a
// number is below 128. A number is the difference to the row before, of either sign: 0, -1, 1, -2, ...
const bytesOf = text => {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const binary = atob(text), bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; ++i) bytes[i] = binary.charCodeAt(i);
  return bytes;
};
function column(table, name) {
  const bytes = bytesOf(table[name]), values = new Float64Array(table.n);
  table[name] = null;
  for (let i = 0, at = 0, last = 0; i < values.length; ++i) {
    let byte = bytes[at++], value = byte & 127;
    for (let unit = 128; byte > 127; unit *= 128) { byte = bytes[at++]; value += (byte & 127) * unit; }
    values[i] = last += value % 2 ? -(value + 1) / 2 : value / 2;
  }
  return values;
}
const T_END = TRACE.end;
const hue = number => `hsl(${(number * 137.508) % 360} 55% 55%)`;
// The color of a storage as a pixel of an image.
const pixels = Uint32Array.from({length: 360}, (_, degrees) => {
  const part = n => { const k = (n + degrees / 30) % 12; return Math.round(255 * (.55 - .2475 * Math.max(-1, Math.min(k - 3, 9 - k, 1)))); };
  return (255 << 24 | part(4) << 16 | part(8) << 8 | part(0)) >>> 0;
});
const pixelOf = number => pixels[Math.floor((number * 137.508) % 360)], GREY = 0xFF888888, FAINT = 0x33888888;
const bytesText = b => b >= 2 ** 30 ? (b / 2 ** 30).toFixed(2) + " GiB" : b >= 2 ** 20 ? (b / 2 ** 20).toFixed(1) + " MiB"
  : b >= 1024 ? (b / 1024).toFixed(1) + " KiB" : b + " B";
const timeText = ns => ns >= 1e9 ? (ns / 1e9).toFixed(3) + " s" : ns >= 1e6 ? (ns / 1e6).toFixed(3) + " ms" : (ns / 1e3).toFixed(2) + " us";
const spaceName = s => s === 0 ? "host" : s === 63 ? "application" : "space " + s;
const textOf = id => TRACE.texts[id] || "";
// How many of the sorted `values` are at most `value`.
const upTo = (values, value) => { let low = 0, high = values.length; while (low < high) { const mid = (low + high) >> 1; if (values[mid] <= value) low = mid + 1; else high = mid; } return low; };
// How many are below it.
const under = (values, value) => { let low = 0, high = values.length; while (low < high) { const mid = (low + high) >> 1; if (values[mid] < value) low = mid + 1; else high = mid; } return low; };

// A value over time: times, values, and maxima of 16, 256, ... neighbours, so that a pixel costs a few look-ups.
class Series {
  constructor(times, values) {
    this.t = times; this.v = values; this.levels = [values];
    for (let below = values; below.length > 16;) {
      const up = new Float64Array(Math.ceil(below.length / 16));
      for (let i = 0; i < below.length; ++i) { const j = i >> 4; if (below[i] > up[j]) up[j] = below[i]; }
      this.levels.push(up); below = up;
    }
    this.top = this.maximum(0, T_END);
  }
  at(t) { const i = upTo(this.t, t) - 1; return i < 0 ? 0 : this.v[i]; }
  maximum(t0, t1) { return this.most(upTo(this.t, t0), upTo(this.t, t1)); }
  // From the value before number `low` on.
  most(low, high) {
    let most = 0, level = 0;
    low = Math.max(0, low - 1);
    while (low < high) {
      const values = this.levels[level];
      if (level + 1 < this.levels.length && (high - low) > 32) {
        while (low & 15 && low < high) most = Math.max(most, values[low++]);
        while (high & 15 && low < high) most = Math.max(most, values[--high]);
        low >>= 4; high >>= 4; ++level;
      } else { while (low < high) most = Math.max(most, values[low++]); }
    }
    return most;
  }
}
// Sums of amounts up to each time, so that the amount within a pixel is one subtraction.
class Sums {
  constructor(times, amounts) {
    this.t = times; this.s = new Float64Array(times.length + 1);
    for (let i = 0; i < times.length; ++i) this.s[i + 1] = this.s[i] + (amounts ? amounts[i] : 1);
  }
  get total() { return this.s[this.s.length - 1]; }
  sum(low, high) { return this.s[high] - this.s[low]; }
  between(t0, t1) { return this.sum(under(this.t, t0), under(this.t, t1)); }
}

// The blocks of a space, sorted by when they begin. An index has, for each run of 256 blocks, when the last of them ends and the size of the largest.
// So a query for a moment or a time range examines all runs, but the blocks of only a few.
const RUN = 256;
class Blocks {
  constructor(table, regions) {
    this.t0 = column(table, "begin"); this.t1 = column(table, "life"); this.used = column(table, "used"); this.a = column(table, "address"); this.n = column(table, "bytes");
    this.who = Uint32Array.from(column(table, "storage")); this.place = new Float64Array(this.count); this.top = 1;
    // Addresses without the gaps between regions.
    const begins = column(regions, "begin"), ends = column(regions, "end"), offsets = new Float64Array(begins.length);
    for (let i = 1; i < begins.length; ++i) offsets[i] = offsets[i - 1] + ends[i - 1] - begins[i - 1];
    const runs = Math.ceil(this.count / RUN); this.ends = new Float64Array(runs); this.largest = new Float64Array(runs);
    for (let i = 0; i < this.count; ++i) {
      const r = i >> 8, end = this.t1[i] += this.t0[i], region = upTo(begins, this.a[i]) - 1;
      this.place[i] = offsets[region] + this.a[i] - begins[region];
      if (end > this.ends[r]) this.ends[r] = end;
      if (this.n[i] > this.largest[r]) this.largest[r] = this.n[i];
      this.top = Math.max(this.top, this.place[i] + this.n[i]);
    }
  }
  get count() { return this.t0.length; }
  // What the height of the picture stands for.
  get extent() { return this.top * 1.02; }
  // Calls f(i) for each block that exists at some time within [t0, t1], except in runs for which skip(run) is true.
  visit(t0, t1, f, skip) {
    const end = upTo(this.t0, t1);
    for (let r = 0; r * RUN < end; ++r) {
      if (this.ends[r] < t0 || (skip && skip(r))) continue;
      for (let i = r * RUN; i < Math.min(end, r * RUN + RUN); ++i) if (this.t1[i] >= t0) f(i);
    }
  }
}
class Space {
  constructor(data) {
    this.id = data.id; this.memory = data.memory; this.count = data.blocks.n;
    const times = column(data.levels, "ns");
    this.live = new Series(times, column(data.levels, "allocated")); this.held = new Series(times, column(data.levels, "held")); this.reserved = new Series(times, column(data.levels, "reserved"));
    this.data = data; this.stacks = {};
  }
  // When they are first needed: the charts are drawn before.
  get blocks() { if (!this.made) { this.made = new Blocks(this.data.blocks, this.data.regions); this.data = null; } return this.made; }
  get extent() { return this.blocks.extent; }
}

// The kernels that used a storage, and the storages that a kernel used.
const kernelsOf = new Map(), storagesOf = new Map();
{
  const storages = column(TRACE.kernels, "storage"), texts = column(TRACE.kernels, "text");
  storages.forEach((storage, i) => {
    const name = textOf(texts[i]), kernels = kernelsOf.get(storage), list = storagesOf.get(name);
    if (kernels) kernels.push(name); else kernelsOf.set(storage, [name]);
    if (list) list.push(storage); else storagesOf.set(name, [storage]);
  });
}
const amountsOf = list => new Sums(column(list, "ns"), column(list, "value"));
const spaces = new Map(TRACE.spaces.map(data => [data.id, new Space(data)]));
const links = TRACE.transfers.map(list => ({from: list.from, to: list.to, sums: amountsOf(list)}));
const evictions = TRACE.evictions.map(list => ({space: list.space, sums: amountsOf(list)}));
const kernels = new Sums(column(TRACE.launches, "ns"));
kernels.names = Uint32Array.from(column(TRACE.launches, "value"));
const reportsOf = table => {
  const times = column(table, "ns"), texts = column(table, "text"), sizes = column(table, "bytes"), places = column(table, "space");
  return {t: times, text: i => textOf(texts[i]) || `no room for ${bytesText(sizes[i])} in ${spaceName(places[i])}`, space: places};
};
const failures = reportsOf(TRACE.failures), refusals = reportsOf(TRACE.refusals);
