// The moment under the pointer, the search, the reports, and what the mouse does.
// 1 for each storage that the search has found.
let hits = new Uint8Array(0);
const STORAGES_MAX = 1 << 26;
const hit = storage => hits[storage] === 1;
function search(text) {
  if (!hits.length) {
    let last = 0;
    for (const s of spaces.values()) last = s.blocks.who.reduce((most, who) => Math.max(most, who), last);
    hits = new Uint8Array(Math.min(last + 1, STORAGES_MAX));
  }
  hits.fill(0);
  if (text === null) return 0;
  for (const [name, storages] of storagesOf) if (name.includes(text)) for (const storage of storages) hits[storage] = 1;
  if (/^\d+$/.test(text)) hits[+text] = 1;
  let n = 0;
  for (const s of spaces.values()) { const who = s.blocks.who; for (let i = 0; i < who.length; ++i) if (hits[who[i]]) ++n; }
  return n;
}
const MOST = 20;
const element = (name, text, title) => { const made = document.createElement(name); made.textContent = text; if (title) made.title = title; return made; };
// The rows of the table are made once, and changed where they differ: a hover changes few of them.
const holders = [...Array(MOST)].map(() => {
  const row = document.getElementById("holders").insertRow(), color = document.createElement("i"), name = document.createTextNode(""), cells = [...Array(4)].map(() => row.insertCell()), kernels = document.createElement("div"), use = document.createElement("div");
  row.hidden = true; cells[0].append(color, name); cells[1].className = cells[2].className = "n"; cells[3].append(kernels, use);
  return {row, color, name, size: cells[1], part: cells[2], kernels, use, said: null};
});
function setHolder(holder, said, values) {
  if (holder.said === said) return;
  holder.said = said; holder.row.hidden = values === null;
  if (!values) return;
  holder.row.className = values.isHit ? "hit" : ""; holder.row.title = values.title; holder.color.style.background = values.color;
  for (const name of ["name", "size", "part", "kernels", "use"]) holder[name].textContent = values[name];
}
// The colors are those of the addresses.
function fillHolders(s, t) {
  const b = s.blocks, most = [], all = s.live.at(t);
  drawn.moment = 0;
  b.visit(t, t, i => {
    ++drawn.moment;
    if (b.t1[i] <= t || (most.length === MOST && b.n[i] <= b.n[most[MOST - 1]])) return;
    most.push(i); most.sort((x, y) => b.n[y] - b.n[x]); most.length = Math.min(most.length, MOST);
  }, run => most.length === MOST && b.largest[run] <= b.n[most[MOST - 1]]);
  holders.forEach((holder, at) => {
    if (at >= most.length) { setHolder(holder, null, null); return; }
    const i = most[at], who = b.who[i], used = b.used[i] ? b.t0[i] + b.used[i] - 1 : -1, isHit = hit(who), part = all ? Math.round(100 * b.n[i] / all) + "%" : "";
    const use = !who ? "" : used < 0 ? "never used" : used > t ? "used again later" : "not used since " + timeText(used);
    setHolder(holder, `${i} ${use} ${part} ${isHit}`, {isHit, part, use, color: who ? hue(who) : "#888", name: who ? "storage " + who : "block", size: bytesText(b.n[i]),
      title: `from ${timeText(b.t0[i])} to ${timeText(b.t1[i])}`, kernels: (kernelsOf.get(who) || []).join(", ")});
  });
}
function moment(t) {
  const id = +select.value, s = select.value === "" ? null : spaces.get(id);
  if (!s) return;
  const place = document.getElementById("moment"); place.textContent = "";
  place.append(element("h2", `${spaceName(id)} at ${timeText(t)}${t === held ? " (held; click to let go)" : ""}`));
  const entry = (color, text) => { const entry = document.createElement("div"), mark = document.createElement("i"); mark.style.background = color; entry.append(mark, text); place.append(entry); };
  const live = s.live.at(t), all = s.held.at(t), reserved = s.reserved.at(t);
  entry(IN_USE, `in use ${bytesText(live)}`);
  entry(RELEASED, `released, still used by commands ${bytesText(all - live)}`);
  entry(FREE, `reserved, free ${bytesText(Math.max(0, reserved - all))}`);
  if (all === 0) place.append("Nothing is in use then.");
  if (s.memory) entry("transparent", `not reserved ${bytesText(Math.max(0, s.memory - reserved))} of ${bytesText(s.memory)}`);
  fillHolders(s, t);
}
function legend() {
  const place = document.getElementById("legend"); place.textContent = "";
  const entry = (color, text) => { const entry = element("span", ""), mark = document.createElement("i"); mark.style.background = color; entry.append(mark, text); place.append(entry); };
  if (by.value === "state" || !ids.length) entry(IN_USE, "in use");
  else { for (const group of stackOf(by.value, +select.value)) entry(group.color, group.name); entry("#888", "others"); }
  entry(RELEASED, "released, still used by commands"); entry(FREE, "reserved, free");
  if (ids.some(id => sizeOf(spaces.get(id)))) entry(`linear-gradient(transparent 4px, ${FAILED} 4px, ${FAILED} 6px, transparent 6px)`, "size of the memory");
  if (failures.t.length) entry(FAILED, "a command got no memory");
  if (refusals.t.length) entry(REFUSED, "an allocator had no room");
}
function hover(event) {
  const box = canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top, t = T(x);
  const row = layout.find(r => y >= r.y && y < r.y + r.h);
  if (x < left || x > W - right) { leave(); return; }
  let text = timeText(t);
  if (row && row.type === "map") {
    const b = spaces.get(row.id).blocks, at = (1 - (y - row.y) / row.h) * b.extent;
    let found = -1;
    b.visit(t, t, i => { if (at >= b.place[i] && at < b.place[i] + b.n[i]) found = i; });
    if (found >= 0) text += `\n${b.who[found] ? "storage " + b.who[found] : "block"}: ${bytesText(b.n[found])} at 0x${b.a[found].toString(16)}\nfrom ${timeText(b.t0[found])} to ${timeText(b.t1[found])}\n${(kernelsOf.get(b.who[found]) || []).join(", ")}`;
  } else if (row && row.type === "space") {
    const s = spaces.get(row.id); text += `\n${spaceName(row.id)}: ${bytesText(s.live.at(t))} in use of ${bytesText(s.reserved.at(t))} reserved`;
    if (by.value !== "state") for (const {name, series} of stackOf(by.value, row.id)) { const bytes = series.at(t); if (bytes) text += `\n${name}: ${bytesText(bytes)}`; }
  } else if (row && (row.type === "link" || row.type === "evictions")) text += `\n${bytesText((row.link || row.eviction).sums.between(t, T(x + 1)))} within ${timeText(T(x + 1) - t)}`;
  else if (row && row.type === "kernels") { const n = under(kernels.t, t) - 1; if (n >= 0) text += `\n${textOf(kernels.names[n])} at ${timeText(kernels.t[n])}\n${kernels.between(t, T(x + 1))} launches within ${timeText(T(x + 1) - t)}`; }
  tip.textContent = text; tip.style.display = "block"; tip.style.left = Math.min(event.clientX + 14, innerWidth - 300) + "px"; tip.style.top = Math.min(event.clientY + 14, innerHeight - 80) + "px";
  line.style.display = "block"; line.style.left = x + "px";
  if (held === null) moment(t);
}
const leave = () => { tip.style.display = line.style.display = "none"; };
let drag = null, moved = false;
const show = (begin, end) => { const length = Math.max(100, Math.min(end - begin, T_END)), from = Math.max(0, Math.min(begin, T_END - length)); view = [from, from + length]; later(draw); };
canvas.addEventListener("wheel", event => {
  // The mouse with Shift, and touchpads, move.
  if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
    event.preventDefault(); const by_ = (event.deltaX || event.deltaY) / (W - left - right) * (view[1] - view[0]); show(view[0] + by_, view[1] + by_); return;
  }
  event.preventDefault(); const t = T(event.clientX - canvas.getBoundingClientRect().left), f = Math.exp(event.deltaY / 500);
  view = [Math.max(0, t - (t - view[0]) * f), Math.min(T_END, t + (view[1] - t) * f)];
  if (view[1] - view[0] < 100) view[1] = view[0] + 100;
  later(draw);
}, {passive: false});
canvas.addEventListener("mousedown", event => { drag = [event.clientX, view[0], view[1]]; moved = false; });
addEventListener("mouseup", () => drag = null);
canvas.addEventListener("mousemove", event => {
  if (!drag) { later(hover, event); return; }
  const by_ = (event.clientX - drag[0]) / (W - left - right) * (drag[2] - drag[1]); moved = moved || Math.abs(event.clientX - drag[0]) > 3;
  const shift = Math.min(Math.max(-by_, -drag[1]), T_END - drag[2]); view = [drag[1] + shift, drag[2] + shift]; later(draw);
});
canvas.addEventListener("mouseleave", leave);
canvas.addEventListener("click", event => { if (moved) return; held = held === null ? T(event.clientX - canvas.getBoundingClientRect().left) : null; if (held !== null) moment(held); draw(); });
canvas.addEventListener("dblclick", () => { view = [0, T_END]; held = null; draw(); });
select.addEventListener("change", () => { legend(); resize(); moment(held ?? fullest(spaces.get(+select.value))); });
by.addEventListener("change", () => { legend(); draw(); });
document.getElementById("search").addEventListener("input", event => {
  wanted = event.target.value.trim() || null; const n = search(wanted);
  document.getElementById("found").textContent = wanted === null ? "" : `${n} blocks`; later(draw); moment(held ?? (view[0] + view[1]) / 2);
});
const REPORTS = 200;
function listReports(name, reports) {
  const place = document.getElementById(name);
  for (let i = 0; i < Math.min(reports.t.length, REPORTS); ++i) {
    // Sizes as elsewhere on the page; as they were written when the mouse is on it.
    const text = reports.text(i), entry = element("div", timeText(reports.t[i]) + ": ", text); entry.className = "report"; place.append(entry);
    for (const sentence of text.replace(/\b\d{4,}\b(?: bytes)?/g, number => bytesText(parseInt(number))).split(/(?<=; )/)) entry.append(element("div", sentence));
    const launch = under(kernels.t, reports.t[i]) - 1;
    if (launch >= 0) entry.append(element("div", `The last launch before was ${textOf(kernels.names[launch])} at ${timeText(kernels.t[launch])}.`));
    entry.onclick = () => {
      const t = held = reports.t[i], w = (view[1] - view[0]) / 4;
      if (ids.includes(reports.space[i]) && +select.value !== reports.space[i]) { select.value = reports.space[i]; legend(); resize(); }
      moment(t); show(t - w, t + w);
    };
  }
  if (reports.t.length > REPORTS) place.append(element("div", `and ${reports.t.length - REPORTS} more`));
  if (!reports.t.length) place.textContent = "none";
}
document.getElementById("failed").textContent += ` (${failures.t.length})`;
document.getElementById("refused").textContent += ` (${refusals.t.length})`;
listReports("reports", failures); listReports("refusals", refusals);
document.getElementById("summary").textContent = `process ${TRACE.process}, ${TRACE.events} events, ${timeText(T_END)}`;
legend();
addEventListener("resize", resize); resize();
if (failures.t.length) held = failures.t[0];
// Else the moment at which most was in use.
const fullest = s => s ? s.live.t[s.live.v.indexOf(s.live.top)] : 0;
requestAnimationFrame(() => setTimeout(() => { isShown = true; moment(held ?? fullest(spaces.get(+select.value))); draw(); }));
