// 3. Scalars, histograms, images, hyperparameters.

/** The panels of a logdir: `[title, panel, onShow]`. */
function summaryPanels(logdir) {
  const shown = new Set(logdir.runs.keys()), color = (run) => colors.series[run % colors.series.length];
  const redraws = [], panels = [];
  const redraw = () => redraws.forEach((draw) => draw());
  themed.push(() => { redraw(); document.querySelectorAll(".swatch[data-run]").forEach((dot) => { dot.style.background = color(+dot.dataset.run); }); });

  const runList = () => {
    const filter = el("input", { type: "search", placeholder: "Filter runs", "aria-label": "Filter runs" });
    const boxes = logdir.runs.map((name, run) => {
      const dot = el("span", { class: "swatch", "data-run": String(run) });
      dot.style.background = color(run);
      const box = el("input", { type: "checkbox", checked: true, onchange: () => { if (box.checked) shown.add(run); else shown.delete(run); redraw(); } });
      return { box, label: el("label", {}, box, dot, el("span", {}, name)), name: name.toLowerCase(), run };
    });
    filter.addEventListener("input", () => boxes.forEach(({ label, name }) => { label.hidden = !name.includes(filter.value.toLowerCase()); }));
    const all = el("button", { type: "button", textContent: "All", onclick: () => set(true) }), none = el("button", { type: "button", textContent: "None", onclick: () => set(false) });
    function set(isOn) {
      for (const { box, label, run } of boxes) if (!label.hidden) { box.checked = isOn; if (isOn) shown.add(run); else shown.delete(run); }
      redraw();
    }
    return el("aside", { class: "runs", "aria-label": "Runs" }, filter, el("p", { class: "weak" }, `${plural(logdir.runs.length, "run")} `, all, " ", none), ...boxes.map(({ label }) => label));
  };

  /** Cards by the part of their tags before the first slash. */
  const cards = (items, makeCard) => {
    const groups = new Map();
    for (const item of items) {
      const name = item.tag.includes("/") ? item.tag.slice(0, item.tag.indexOf("/")) : "";
      groups.set(name, [...(groups.get(name) || []), item]);
    }
    const section = ([name, list]) => el("details", { open: true }, el("summary", {}, name || "Ungrouped", el("span", { class: "weak" }, ` (${list.length})`)), el("div", { class: "grid" }, ...list.map(makeCard)));
    return el("div", { class: "cards" }, ...[...groups].sort((a, b) => (a[0] === "" ? -1 : b[0] === "" ? 1 : a[0].localeCompare(b[0]))).map(section));
  };
  const page = (title, tools, body) => panels.push([title, el("section", { class: "panel" }, tools, el("div", { class: "columns" }, runList(), body)), redraw]);
  const tagFilter = () => el("input", { type: "search", placeholder: "Filter tags", "aria-label": "Filter tags", oninput: (event) => {
    const root = event.target.closest(".panel");
    root.querySelectorAll(".card").forEach((card) => { card.hidden = !card.title.toLowerCase().includes(event.target.value.toLowerCase()); });
    root.querySelectorAll("details").forEach((group) => { group.hidden = !group.querySelector(".card:not([hidden])"); });
    redraw();
  } });

  if (logdir.scalars.length) {
    const options = { smoothing: 0.6, x: "step", logY: false };
    const slider = el("input", { type: "range", min: 0, max: 0.999, step: 0.001, value: 0.6, "aria-label": "Smoothing" });
    const number = el("span", { class: "number" }, "0.60");
    slider.addEventListener("input", () => { options.smoothing = +slider.value; number.textContent = options.smoothing.toFixed(2); redraw(); });
    const axis = (value, title) => el("label", {}, el("input", { type: "radio", name: `x-${panels.length}-${logdir.title}`, checked: value === "step", onchange: () => { options.x = value; charts.forEach((chart) => chart.reset()); } }), title);
    const charts = [];
    const tools = el("div", { class: "tools" }, tagFilter(), el("label", {}, "Smoothing", slider, number), el("span", { class: "weak" }, "x"), axis("step", "Step"), axis("relative", "Relative"), axis("wall", "Wall"),
      el("label", {}, el("input", { type: "checkbox", onchange: (event) => { options.logY = event.target.checked; charts.forEach((chart) => chart.reset()); } }), "Log y"));
    page("Scalars", tools, cards(logdir.scalars, (item) => {
      const chart = new ScalarChart(item, logdir, shown, options, color);
      charts.push(chart);
      redraws.push(() => chart.redraw());
      return chart.card;
    }));
  }
  if (logdir.histograms.length) {
    page("Histograms", el("div", { class: "tools" }, tagFilter()), cards(logdir.histograms, (item) => {
      const canvas = el("canvas", { role: "img", "aria-label": `Histograms of ${item.tag} of ${logdir.runs[item.run]}, ${item.rows.length} steps` });
      const title = logdir.runs.length > 1 ? `${item.tag} of ${logdir.runs[item.run]}` : item.tag, card = el("div", { class: "card", title }, el("h3", {}, title), canvas);
      redraws.push(() => { card.style.display = shown.has(item.run) ? "" : "none"; drawRidges(canvas, item, color(item.run)); });
      new ResizeObserver(() => drawRidges(canvas, item, color(item.run))).observe(canvas);
      return card;
    }));
  }
  if (logdir.images.length) {
    page("Images", el("div", { class: "tools" }, tagFilter()), cards(logdir.images, (item) => {
      const title = logdir.runs.length > 1 ? `${item.tag} of ${logdir.runs[item.run]}` : item.tag, image = el("img", { alt: title });
      const step = el("span", { class: "weak number" });
      const slider = el("input", { type: "range", min: 0, max: item.rows.length - 1, value: item.rows.length - 1, "aria-label": `Step of ${title}`, oninput: () => show() });
      const show = () => { const row = item.rows[+slider.value]; image.src = row.url; step.textContent = `step ${grouped(row.step)}`; };
      show();
      const card = el("div", { class: "card", title }, el("h3", {}, title, " ", step), image, slider);
      redraws.push(() => { card.style.display = shown.has(item.run) ? "" : "none"; });
      return card;
    }));
  }
  if (logdir.hparams.rows.length) {
    const cell = (value) => el("td", { class: typeof value === "number" ? "n" : "" }, value === null ? "" : typeof value === "number" ? short(value) : String(value));
    const last = logdir.scalars.slice(0, 8).map((item) => ({ tag: item.tag, of: new Map(item.curves.map((curve) => [curve.run, curve.last])) }));
    panels.push(["Hyperparameters", el("section", { class: "panel" }, el("div", { class: "scroll" }, el("table", {},
      el("thead", {}, el("tr", {}, ...["Run", ...logdir.hparams.names, ...last.map((item) => item.tag)].map((name) => el("th", {}, name)))),
      el("tbody", {}, ...logdir.hparams.rows.map((row) => el("tr", {}, el("td", {}, logdir.runs[row.run]), ...row.values.map(cell), ...last.map((item) => cell(item.of.get(row.run) ?? null)))))))), null]);
  }
  return panels;
}

/** TensorBoard's smoothing: an exponential moving average without the bias of its start. */
function smooth(values, weight) {
  if (weight === 0 || values.every((value) => value === values[0])) return values;
  const out = new Float64Array(values.length);
  let last = 0, n = 0;
  for (let i = 0; i < values.length; i++) {
    if (!Number.isFinite(values[i])) { out[i] = values[i]; continue; }
    last = weight * last + (1 - weight) * values[i];
    n++;
    out[i] = last / (1 - weight ** n);
  }
  return out;
}

/** A card with the curves of a tag. */
class ScalarChart {
  constructor(item, logdir, shown, options, color) {
    Object.assign(this, { item, logdir, shown, options, color, box: null, pointer: null });
    for (const curve of item.curves) {
      for (const key of ["step", "wall", "value"]) curve[key] = Float64Array.from(numbers(curve[key]));
      curve.last = curve.value.length ? curve.value[curve.value.length - 1] : null;
      curve.relative = curve.wall.map((wall) => wall - Number(curve.first_wall));
    }
    this.canvas = el("canvas", { tabIndex: 0, role: "img", "aria-label": `${item.tag}: ${item.curves.map((c) => `${logdir.runs[c.run]} ${short(c.last)}`).slice(0, 8).join(", ")}` });
    this.card = el("div", { class: "card", title: item.tag }, el("h3", {}, item.tag), this.canvas);
    this.canvas.title = "";
    this.listen();
    new ResizeObserver(() => { if (this.canvas.clientWidth) this.draw(); }).observe(this.canvas);
    new IntersectionObserver(([entry]) => { this.isVisible = entry.isIntersecting; if (this.isVisible && this.isStale) this.redraw(); }).observe(this.canvas);
  }

  curves() { return this.item.curves.filter((curve) => this.shown.has(curve.run)); }

  reset() { this.box = null; this.redraw(); }

  redraw() {
    this.isStale = true;
    if (this.isQueued || !this.isVisible) return;
    this.isQueued = true;
    requestAnimationFrame(() => { this.isQueued = false; this.draw(); });
  }

  /** Smoothed values; computed anew only where the weight has changed. */
  smoothed(curve) {
    if (curve.weight !== this.options.smoothing) { curve.weight = this.options.smoothing; curve.smooth = smooth(curve.value, curve.weight); }
    return curve.smooth;
  }

  extent(curves) {
    let [x0, x1, y0, y1] = [Infinity, -Infinity, Infinity, -Infinity];
    for (const curve of curves) {
      const x = curve[this.options.x];
      for (let i = 0; i < x.length; i++) {
        const y = curve.value[i];
        if (x[i] < x0) x0 = x[i];
        if (x[i] > x1) x1 = x[i];
        if (!Number.isFinite(y) || (this.options.logY && y <= 0)) continue;
        if (y < y0) y0 = y;
        if (y > y1) y1 = y;
      }
    }
    if (!(x1 > x0)) [x0, x1] = Number.isFinite(x0) ? [x0 - 0.5, x0 + 0.5] : [0, 1];
    if (!(y1 >= y0)) [y0, y1] = [this.options.logY ? 0.1 : 0, 1];
    if (this.options.logY) { const room = (y1 / y0) ** 0.05 || 1.1; return { x0, x1, y0: y0 / Math.max(room, 1.05), y1: y1 * Math.max(room, 1.05) }; }
    const room = (y1 - y0) * 0.06 || Math.abs(y1) * 0.1 || 0.5;
    return { x0, x1, y0: y0 - room, y1: y1 + room };
  }

  draw() {
    this.isStale = false;
    const { g, width, height } = context(this.canvas), { logY } = this.options, curves = this.curves();
    if (!width) return;
    const box = this.box || this.extent(curves), left = 52, bottom = height - 18, top = 4, right = width - 6;
    const level = (y) => (logY ? Math.log10(y) : y), lo = level(box.y0), hi = level(box.y1);
    this.px = (x) => left + (x - box.x0) / (box.x1 - box.x0) * (right - left);
    this.py = (y) => bottom - (level(y) - lo) / (hi - lo || 1) * (bottom - top);
    this.inverse = (px, py) => { const v = lo + (bottom - py) / (bottom - top) * (hi - lo); return [box.x0 + (px - left) / (right - left) * (box.x1 - box.x0), logY ? 10 ** v : v]; };
    this.drawAxes(g, box, { left, bottom, top, right, lo, hi });
    g.save();
    g.beginPath();
    g.rect(left, top, right - left, bottom - top);
    g.clip();
    for (const curve of curves) this.drawCurve(g, curve, right - left);
    g.restore();
    this.drawPointer(g, curves, { left, bottom, top, right });
  }

  drawAxes(g, box, { left, bottom, top, right, lo, hi }) {
    g.fillStyle = colors.weak;
    g.strokeStyle = colors.grid;
    const line = (x0, y0, x1, y1) => { g.beginPath(); g.moveTo(x0, y0); g.lineTo(x1, y1); g.stroke(); };
    const isLog = this.options.logY && hi - lo > 1, step = isLog ? Math.max(1, Math.ceil((hi - lo) / 5)) : tickStep(hi - lo, bottom - top, 30);
    g.textAlign = "right";
    for (let v = Math.ceil(lo / step) * step; v <= hi; v += step) {
      const y = Math.round(bottom - (v - lo) / (hi - lo || 1) * (bottom - top)) + 0.5;
      line(left, y, right, y);
      g.fillText(this.options.logY ? short(10 ** v) : tickText(v, step), left - 6, y);
    }
    const xStep = tickStep(box.x1 - box.x0, right - left, 70);
    g.textAlign = "center";
    for (let v = Math.ceil(box.x0 / xStep) * xStep; v <= box.x1; v += xStep) {
      const x = Math.round(this.px(v)) + 0.5, text = this.xText(v, xStep), half = g.measureText(text).width / 2;
      line(x, top, x, bottom);
      g.fillText(text, Math.min(x, right - half), bottom + 10);
    }
    g.textAlign = "left";
  }

  xText(v, step) {
    if (this.options.x === "step") return Math.abs(v) >= 1e4 ? `${+(v / 1e3).toFixed(step < 1e3 ? 1 : 0)}k` : String(+v.toFixed(2));
    if (this.options.x === "relative") return duration(v * 1e9);
    const date = new Date(v * 1e3), two = (n) => String(n).padStart(2, "0");
    return step >= 86400 ? `${two(date.getMonth() + 1)}-${two(date.getDate())}` : `${two(date.getHours())}:${two(date.getMinutes())}${step < 60 ? `:${two(date.getSeconds())}` : ""}`;
  }

  /** A curve, by pixel: the first, least, greatest and last value of each; its line breaks at a restart and at NaN. */
  path(g, curve, values) {
    const x = curve[this.options.x], { logY } = this.options;
    let isDown = false, column = null;
    const line = (px, y) => { const py = this.py(y); if (isDown) g.lineTo(px, py); else g.moveTo(px, py); isDown = true; };
    const flush = () => {
      if (!column) return;
      line(column.px, column.first);
      if (column.min < column.first || column.max > column.first) { line(column.px, column.min); line(column.px, column.max); line(column.px, column.last); }
      column = null;
    };
    g.beginPath();
    let restart = 0;
    for (let i = 0; i < x.length; i++) {
      const y = values[i], isNew = curve.restarts[restart] === i;
      if (isNew) restart++;
      if (isNew || !Number.isFinite(y) || (logY && y <= 0)) { flush(); isDown = false; }
      if (!Number.isFinite(y) || (logY && y <= 0)) continue;
      const px = x.length > 2000 ? Math.round(this.px(x[i])) : this.px(x[i]);
      if (column && column.px === px) { column.min = Math.min(column.min, y); column.max = Math.max(column.max, y); column.last = y; }
      else { flush(); column = { px, first: y, min: y, max: y, last: y }; }
    }
    flush();
    g.stroke();
  }

  drawCurve(g, curve) {
    const smoothed = this.smoothed(curve), isSmooth = smoothed !== curve.value;
    g.strokeStyle = g.fillStyle = this.color(curve.run);
    g.lineJoin = "round";
    if (isSmooth) { g.globalAlpha = 0.3; g.lineWidth = 1; this.path(g, curve, curve.value); g.globalAlpha = 1; }
    g.lineWidth = 1.7;
    this.path(g, curve, smoothed);
    g.lineWidth = 1;
    if (curve.value.length === 1 && Number.isFinite(curve.value[0])) { g.beginPath(); g.arc(this.px(curve[this.options.x][0]), this.py(curve.value[0]), 3, 0, 7); g.fill(); }
    // Values that are not finite are triangles at the bottom.
    const bottom = this.canvas.clientHeight - 19;
    let last = -9;
    for (let i = 0; i < curve.value.length; i++) {
      if (Number.isFinite(curve.value[i])) continue;
      const px = this.px(curve[this.options.x][i]);
      if (px < last + 6) continue;
      last = px;
      g.beginPath(); g.moveTo(px - 4, bottom); g.lineTo(px + 4, bottom); g.lineTo(px, bottom - 7); g.fill();
    }
  }

  /** The row of a curve nearest to x. */
  nearest(curve, at) {
    const x = curve[this.options.x];
    let best = 0;
    if (curve.restarts.length) { for (let i = 1; i < x.length; i++) if (Math.abs(x[i] - at) <= Math.abs(x[best] - at)) best = i; return best; }
    const i = partition(x.length, (row) => x[row] < at);
    return i > 0 && (i === x.length || at - x[i - 1] < x[i] - at) ? i - 1 : Math.min(i, x.length - 1);
  }

  drawPointer(g, curves, { left, bottom, top, right }) {
    const { pointer, drag } = this;
    if (drag && drag.hasMoved) {
      g.strokeStyle = g.fillStyle = colors.accent;
      g.globalAlpha = 0.15;
      g.fillRect(drag.x, drag.y, pointer.x - drag.x, pointer.y - drag.y);
      g.globalAlpha = 1;
      g.strokeRect(drag.x, drag.y, pointer.x - drag.x, pointer.y - drag.y);
      return;
    }
    if (!pointer || pointer.x < left || pointer.x > right) return hideTooltip();
    const [at] = this.inverse(pointer.x, pointer.y);
    const rows = curves.filter((curve) => curve.value.length).map((curve) => ({ curve, i: this.nearest(curve, at) }));
    if (!rows.length) return hideTooltip();
    g.strokeStyle = colors.weak;
    g.setLineDash([3, 3]);
    g.beginPath(); g.moveTo(pointer.x, top); g.lineTo(pointer.x, bottom); g.stroke();
    g.setLineDash([]);
    for (const { curve, i } of rows) {
      const y = this.smoothed(curve)[i];
      if (!Number.isFinite(y)) continue;
      g.fillStyle = this.color(curve.run);
      g.beginPath(); g.arc(this.px(curve[this.options.x][i]), this.py(y), 3.2, 0, 7); g.fill();
    }
    const value = ({ curve, i }) => curve.value[i];
    rows.sort((a, b) => value(b) - value(a) || 0);
    const line = ({ curve, i }) => {
      const dot = el("span", { class: "swatch" });
      dot.style.cssText = `display:inline-block;margin-right:6px;background:${this.color(curve.run)}`;
      return el("tr", {}, el("td", {}, dot, this.logdir.runs[curve.run]), el("td", { class: "n" }, short(curve.value[i])), el("td", { class: "n" }, short(this.smoothed(curve)[i])), el("td", { class: "n" }, grouped(curve.step[i])), el("td", { class: "n" }, duration(curve.relative[i] * 1e9)));
    };
    const more = rows.length - 16;
    return showTooltip(pointer.event, el("table", {}, el("thead", {}, el("tr", {}, ...["Run", "Value", "Smoothed", "Step", "Relative"].map((text, i) => el("th", { class: i ? "n" : "" }, text)))), el("tbody", {}, ...rows.slice(0, 16).map(line))), ...(more > 0 ? [el("div", { class: "weak" }, `and ${plural(more, "run")} more`)] : []));
  }

  listen() {
    const { canvas } = this;
    const point = (event) => { const box = canvas.getBoundingClientRect(); return { x: event.clientX - box.left, y: event.clientY - box.top, event }; };
    canvas.addEventListener("pointerdown", (event) => { if (event.button === 0) { this.drag = { ...point(event), hasMoved: false }; canvas.setPointerCapture(event.pointerId); } });
    canvas.addEventListener("pointermove", (event) => {
      this.pointer = point(event);
      if (this.drag && Math.hypot(this.pointer.x - this.drag.x, this.pointer.y - this.drag.y) > 4) { this.drag.hasMoved = true; hideTooltip(); }
      this.redraw();
    });
    canvas.addEventListener("pointerup", (event) => {
      const { drag } = this, end = point(event);
      this.drag = null;
      if (drag && drag.hasMoved && Math.abs(end.x - drag.x) > 4 && Math.abs(end.y - drag.y) > 4) {
        const [xa, ya] = this.inverse(drag.x, drag.y), [xb, yb] = this.inverse(end.x, end.y);
        this.box = { x0: Math.min(xa, xb), x1: Math.max(xa, xb), y0: Math.min(ya, yb), y1: Math.max(ya, yb) };
      }
      this.redraw();
    });
    canvas.addEventListener("pointercancel", () => { this.drag = null; });
    canvas.addEventListener("pointerleave", () => { this.pointer = null; hideTooltip(); this.redraw(); });
    canvas.addEventListener("dblclick", () => this.reset());
    canvas.addEventListener("keydown", (event) => { if (["r", "0", "Escape"].includes(event.key)) this.reset(); });
  }
}

const RIDGE_BINS = 40;

/** The counts of a histogram in bins of equal width, as buckets of unequal width cannot be compared by their heights. */
function rebin({ left, right, count }, lo, hi) {
  const bins = new Float64Array(RIDGE_BINS), size = (hi - lo) / RIDGE_BINS;
  for (let i = 0; i < count.length; i++) {
    const from = (left[i] - lo) / size, to = (right[i] - lo) / size;
    const first = Math.min(Math.max(Math.floor(from), 0), RIDGE_BINS - 1), last = Math.min(Math.max(Math.ceil(to) - 1, first), RIDGE_BINS - 1);
    for (let bin = first; bin <= last; bin++) {
      const share = to > from ? Math.min(bin + 1, to) - Math.max(bin, from) : 1;
      bins[bin] += count[i] * (to > from ? Math.max(share, 0) / (to - from) : share);
    }
  }
  return bins;
}

/** Histograms over steps as ridges, the newest in front. */
function drawRidges(canvas, item, color) {
  if (!canvas.clientWidth) return;
  const { g, width, height } = context(canvas);
  item.rows.forEach((row) => { if (!row.buckets) row.buckets = { left: numbers(row.left), right: numbers(row.right), count: numbers(row.count) }; });
  const rows = item.rows.filter((row) => row.buckets.count.length);
  if (!rows.length) return;
  let [lo, hi] = [Infinity, -Infinity];
  for (const { buckets: { left, right, count } } of rows) for (let i = 0; i < count.length; i++) if (count[i] > 0) { lo = Math.min(lo, left[i]); hi = Math.max(hi, right[i]); }
  if (!(hi > lo)) [lo, hi] = Number.isFinite(lo) ? [lo - 0.5, lo + 0.5] : [0, 1];
  const ridges = rows.map((row) => rebin(row.buckets, lo, hi)), peak = ridges.reduce((most, bins) => Math.max(most, ...bins), 0) || 1;
  const left = 8, right = width - 48, bottom = height - 20, top = 60, px = (v) => left + (v - lo) / (hi - lo) * (right - left), tall = 56;
  g.fillStyle = colors.weak;
  g.textAlign = "center";
  const step = tickStep(hi - lo, right - left, 60);
  for (let v = Math.ceil(lo / step) * step; v <= hi; v += step) g.fillText(tickText(v, step), Math.max(px(v), 14), bottom + 11);
  g.textAlign = "left";
  let labelled = -99;
  rows.forEach((row, at) => {
    const y = rows.length > 1 ? top + (bottom - top) * at / (rows.length - 1) : bottom, bins = ridges[at];
    g.beginPath();
    g.moveTo(left, y);
    bins.forEach((n, bin) => g.lineTo(px(lo + (bin + 0.5) * (hi - lo) / RIDGE_BINS), y - n / peak * tall));
    g.lineTo(right, y);
    g.closePath();
    g.fillStyle = mix(colors.canvas, color, 0.3 + 0.6 * at / Math.max(rows.length - 1, 1));
    g.fill();
    g.strokeStyle = colors.canvas;
    g.stroke();
    if (y > labelled + 18 || (at === rows.length - 1 && y > labelled + 11)) { labelled = y; g.fillStyle = colors.weak; g.fillText(grouped(row.step), right + 6, y - 2); }
  });
}
