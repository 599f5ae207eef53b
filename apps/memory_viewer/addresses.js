// The addresses of a space over time.
//
// An image with one pixel for each point. Of several blocks in one pixel the first is drawn, but a block that the search has found is preferred.
// Blocks are sorted by when they begin, so a new block only has to be drawn behind the furthest end so far in its row: each pixel is drawn once.
// This is done in steps, so that the page stays responsive.
const canvases = [0, 1].map(() => document.createElement("canvas"));
let painted = -Infinity, paintTimer = 0;
// Draws the image a few times a second while the view changes. In between the last image is stretched.
function paintSoon(row) {
  const wait = mapImage && mapImage.id === row.id ? painted + 120 - performance.now() : 0;
  clearTimeout(paintTimer);
  if (wait > 0) paintTimer = setTimeout(() => paintMap(row), wait); else paintMap(row);
}
function paintMap(row) {
  painted = performance.now();
  const job = ++mapJob, s = spaces.get(row.id), b = s.blocks, width = W - left - right, height = row.h, mine = [view[0], view[1]], which = wanted;
  const image = new ImageData(width, height), at = new Uint32Array(image.data.buffer), per = width / (mine[1] - mine[0]), high = height / b.extent;
  const end = upTo(b.t0, mine[1]);
  const filled = new Uint16Array(height), filledByHits = new Uint16Array(height);
  let r = 0, count = 0, looked = 0;
  const paint = i => {
    ++looked;
    if (b.t1[i] < mine[0]) return;
    const x0 = Math.max(0, Math.min(width - 1, (b.t0[i] - mine[0]) * per | 0)), x1 = Math.max(x0 + 1, Math.min(width, Math.round((b.t1[i] - mine[0]) * per)));
    const below = Math.max(1, Math.min(height, Math.round(height - b.place[i] * high))), h = Math.max(1, Math.round(b.n[i] * high));
    const above = Math.max(0, below - h + (h > 3 ? 1 : 0));
    const isFaint = which !== null && !hit(b.who[i]), color = isFaint ? FAINT : b.who[i] ? pixelOf(b.who[i]) : GREY;
    const until = which === null || isFaint ? filled : filledByHits;
    let isNew = false;
    for (let y = above; y < below; ++y) {
      const from = Math.max(x0, until[y]);
      if (from >= x1) continue;
      until[y] = x1; isNew = true;
      if (isFaint) { for (let p = y * width + from; p < y * width + x1; ++p) if (!at[p]) at[p] = color; } else at.fill(color, y * width + from, y * width + x1);
    }
    if (isNew) ++count;
  };
  const step = () => {
    if (job !== mapJob) return;
    const until = performance.now() + 8;
    for (; r * RUN < end; ++r) {
      if (b.ends[r] < mine[0]) continue;
      if (performance.now() > until) break;
      for (let i = r * RUN; i < Math.min(end, r * RUN + RUN); ++i) paint(i);
    }
    if (r * RUN < end) { requestAnimationFrame(step); return; }
    canvases.reverse();
    const made = canvases[0]; made.width = width; made.height = height; made.getContext("2d").putImageData(image, 0, 0);
    mapImage = {canvas: made, view: mine, wanted: which, id: row.id}; drawn.map = count; drawn.looked = looked; later(draw);
  };
  step();
}
