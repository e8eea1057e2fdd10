// 2. The timeline.

const LANE = 18, RULER = 26, GROUP = 24, COUNTER = 40, GAP = 6, DIM = 0.22;

/** Prepares a trace: lanes as typed arrays. */
function loadTrace(trace) {
  trace.totals = { count: numbers(trace.totals.count), ns: numbers(trace.totals.ns) };
  for (const [id, track] of trace.tracks.entries()) {
    const begins = track.columns.begin.map(sums);
    const column = (name) => (track.columns[name] ? numbers(track.columns[name]) : null);
    const all = { dur: column("dur"), name: column("name"), count: column("count"), busy: column("busy") };
    const argRows = sums(track.args.row);
    const args = new Map(Array.from(argRows, (row, i) => [row, track.args.text[i]]));
    let first = 0;
    track.id = id;
    track.lanes = begins.map((begin, depth) => {
      const part = (values) => values && values.subarray(first, first + begin.length);
      const lane = { track, depth, begin, dur: part(all.dur), name: part(all.name), count: part(all.count), busy: part(all.busy), first, args };
      first += begin.length;
      return lane;
    }).filter((lane) => lane.begin.length);
    track.marks = { time: sums(track.marks.time), name: numbers(track.marks.name) };
    delete track.columns;
  }
  for (const counter of trace.counters) {
    counter.time = sums(counter.time);
    counter.value = numbers(counter.value);
    counter.max = counter.value.reduce((a, b) => (b > a ? b : a), 0);
    counter.min = counter.value.reduce((a, b) => (b < a ? b : a), 0);
  }
  for (const key of Object.keys(trace.flows)) trace.flows[key] = numbers(trace.flows[key]);
  for (const key of ["begin", "dur", "number", "track"]) trace.steps[key] = numbers(trace.steps[key]);
  trace.stallsByTrack = new Map();
  for (const stall of trace.stalls) trace.stallsByTrack.set(stall.track, [...(trace.stallsByTrack.get(stall.track) || []), stall]);
}

class Timeline {
  constructor(trace) {
    loadTrace(trace);
    this.trace = trace;
    this.end = Math.max(trace.range_ns, 1);
    this.folded = new Set();
    this.selected = null;
    this.range = null;
    this.match = null;
    this.hits = [];
    this.widths = new Map();
    this.scroll = 0;
    this.build();
    this.reset();
  }

  build() {
    const button = (text, title, act) => el("button", { type: "button", textContent: text, title, onclick: act });
    this.filter = el("input", { type: "search", placeholder: "Filter tracks", "aria-label": "Filter tracks", oninput: () => this.layout() });
    this.search = el("input", { type: "search", placeholder: "Search slices (/)", "aria-label": "Search slices", oninput: () => this.find(), onkeydown: (event) => this.searchKey(event) });
    this.found = el("span", { class: "weak number", role: "status" });
    this.shown = el("span", { class: "weak number" });
    const tools = el("div", { class: "tools" }, button("Fit trace", "Show the whole trace (R)", () => this.reset()), button("Fit", "Zoom to the selection (F)", () => this.fit()),
      this.filter, this.search, this.found, el("span", { class: "space" }), this.shown);
    this.clip = el("div", { class: "clip" });
    this.labels = el("div", { class: "labels" }, this.clip);
    this.canvas = el("canvas", { tabIndex: 0, role: "application", "aria-label": "Timeline: W and S zoom, A and D pan, arrow keys pan and scroll, comma and full stop choose slices" });
    const stage = el("div", { class: "stage" }, this.canvas);
    this.side = el("aside", { class: "side", "aria-label": "Details" });
    this.panel = el("section", { class: "panel" }, tools, el("div", { class: "columns" }, el("div", { class: "timeline" }, this.labels, stage), this.side));
    this.buildSide();
    this.listen();
    // At once, before the browser paints: a canvas that waits for the next frame would be stretched in this one.
    new ResizeObserver(() => { if (this.canvas.clientWidth) this.draw(); }).observe(stage);
  }

  buildSide() {
    const bodies = ["Details", "Findings", "Stalls", "Names"].map((title) => [title, el("div", { class: "body", role: "tabpanel" })]);
    const list = el("div", { role: "tablist", "aria-label": "About the trace" });
    this.side.append(list, ...bodies.map(([, body]) => body));
    this.showSide = tabs(list, bodies);
    [this.details, this.findings, this.stalls, this.names] = bodies.map(([, body]) => body);
    const item = (row, title, amount, text) => el("button", { type: "button", class: "item", onclick: () => this.goTo(row) }, el("span", { class: "number weak" }, amount), el("b", {}, title), el("div", {}, text));
    this.findings.append(...this.trace.findings.map((row) => item(row, row.title, row.saves, row.text)));
    if (!this.trace.findings.length) this.findings.append(el("p", { class: "weak" }, "No findings"));
    const parts = this.trace.breakdown.filter(([, ns]) => ns > 0), total = parts.reduce((sum, [, ns]) => sum + ns, 0);
    if (total) this.findings.append(el("h3", {}, "Where the time went"), table(["", "Total", "Share"], parts.map(([name, ns]) => [name, duration(ns), `${(100 * ns / total).toFixed(1)} %`])));
    this.stalls.append(...this.trace.stalls.map((row) => item(row, row.cause, duration(row.dur), row.text)));
    if (!this.trace.stalls.length) this.stalls.append(el("p", { class: "weak" }, "No stalls"));
    else if (this.trace.stalls_total > this.trace.stalls.length) this.stalls.prepend(el("p", { class: "weak" }, `The longest ${this.trace.stalls.length} of ${grouped(this.trace.stalls_total)}`));
    const order = this.trace.names.map((_, row) => row).sort((a, b) => this.trace.totals.ns[b] - this.trace.totals.ns[a]).filter((row) => this.trace.totals.count[row]);
    this.names.append(table(["Name", "Count", "Total"], order.slice(0, 200).map((row) => [this.nameCell(row), grouped(this.trace.totals.count[row]), duration(this.trace.totals.ns[row])])));
    this.showDetails();
  }

  /** The rows from top to bottom, and their labels. */
  layout() {
    const { trace } = this, filter = this.filter.value.toLowerCase(), kinds = ["cpu", "thread", "worker", "stream", "copy", "network"];
    const kind = (track) => (track.kind === "worker" ? 1 : (kinds.indexOf(track.kind) + 6) % 6);
    this.rows = [];
    let y = 0;
    const add = (row) => { this.rows.push({ ...row, y }); y += row.height; };
    if (trace.steps.begin.length && !filter) add({ type: "steps", height: LANE + GAP, title: "Steps" });
    for (const [process, info] of trace.processes.entries()) {
      const tracks = trace.tracks.filter((track) => track.process === process && (track.slices || track.marks.time.length) && track.name.toLowerCase().includes(filter));
      const counters = filter ? [] : trace.counters.filter((counter) => counter.process === process);
      if (!tracks.length && !counters.length) continue;
      const key = `p${process}`, host = new Set(trace.processes.map((p) => p.host)).size > 1 ? ` on ${info.host}` : "";
      add({ type: "group", key, height: GROUP, title: info.title + host });
      if (this.folded.has(key)) continue;
      tracks.sort((a, b) => a.order - b.order || kind(a) - kind(b) || a.name.localeCompare(b.name, "en", { numeric: true }) || a.id - b.id);
      for (const track of tracks) {
        const lanes = this.folded.has(`t${track.id}`) ? track.lanes.slice(0, 1) : track.lanes;
        add({ type: "track", key: track.lanes.length > 1 ? `t${track.id}` : null, track, lanes, height: Math.max(lanes.length, 1) * LANE + GAP, title: track.name });
      }
      for (const counter of counters) add({ type: "counter", counter, height: COUNTER, title: counter.title });
    }
    this.height = y;
    this.buildLabels();
    this.redraw();
  }

  buildLabels() {
    const label = (row) => {
      const isFolded = this.folded.has(row.key);
      const props = { class: row.type === "group" ? "row group" : "row", title: row.title };
      const name = el("span", { class: "name" }, row.title), fold = el("span", { class: "fold", "aria-hidden": "true" }, isFolded ? "▶" : "▼");
      const node = row.key ? el("button", { ...props, type: "button", "aria-expanded": String(!isFolded), onclick: () => this.toggle(row.key) }, fold, name) : el("div", props, name);
      node.style.top = `${row.y}px`;
      node.style.height = `${row.height}px`;
      if (row.type === "group") node.style.lineHeight = `${GROUP}px`;
      return node;
    };
    const focused = this.rows.findIndex((row) => row.key && row.key === this.focusKey);
    this.list = el("div", {}, ...this.rows.map(label));
    this.clip.replaceChildren(this.list);
    if (focused >= 0) this.list.children[focused].focus();
    this.focusKey = null;
  }

  toggle(key) {
    if (!this.folded.delete(key)) this.folded.add(key);
    this.focusKey = key;
    this.layout();
  }

  x(time) { return (time - this.from) / (this.to - this.from) * this.width; }
  time(x) { return this.from + x / this.width * (this.to - this.from); }

  redraw() {
    if (this.isQueued) return;
    this.isQueued = true;
    requestAnimationFrame(() => { this.isQueued = false; if (this.canvas.clientWidth) this.draw(); });
  }

  draw() {
    const { g, width, height } = context(this.canvas);
    this.width = width;
    this.scroll = Math.max(0, Math.min(this.scroll, this.height - (height - RULER)));
    this.list.style.transform = `translateY(${-this.scroll}px)`;
    this.drawn = 0;
    this.drawGrid(g, width, height);
    g.save();
    g.beginPath();
    g.rect(0, RULER, width, height - RULER);
    g.clip();
    for (const row of this.rows) {
      const y = RULER + row.y - this.scroll;
      if (y + row.height < RULER || y > height) continue;
      if (row.type === "group") { g.fillStyle = colors.panel; g.fillRect(0, y, width, GROUP - 2); }
      else if (row.type === "steps") this.drawSteps(g, y);
      else if (row.type === "counter") this.drawCounter(g, row.counter, y);
      else this.drawTrack(g, row, y);
    }
    this.drawFlows(g);
    this.drawRange(g, height);
    g.restore();
    const [from, to] = [Math.max(this.from, 0), Math.min(this.to, this.end)];
    this.shown.textContent = `${duration(from)} to ${duration(to)} (${duration(to - from)})`;
    if (!document.documentElement.dataset.ready) document.documentElement.dataset.ready = String(this.drawn);
  }

  drawGrid(g, width, height) {
    const step = tickStep(this.to - this.from, width, 110);
    const units = [["s", 1e9], ["ms", 1e6], ["µs", 1e3], ["ns", 1]];
    const [unit, size] = units.find(([, ns]) => this.to >= ns && step >= ns / 1000) || units[3];
    g.fillStyle = colors.panel;
    g.fillRect(0, 0, width, RULER);
    for (let time = Math.ceil(this.from / step) * step; time <= this.to; time += step) {
      const x = Math.round(this.x(time)) + 0.5;
      g.fillStyle = colors.grid;
      g.fillRect(x, RULER, 1, height);
      g.fillStyle = colors.weak;
      g.fillRect(x, RULER - 8, 1, 8);
      const text = `${tickText(time / size, step / size)} ${unit}`;
      if (x + 6 + g.measureText(text).width < width) g.fillText(text, x + 4, 11);
    }
    g.fillStyle = colors.border;
    g.fillRect(0, RULER - 1, width, 1);
  }

  bar(g, x0, x1, y, color, text) {
    const x = Math.max(x0, -1), w = Math.min(x1, this.width + 1) - x;
    g.fillStyle = color;
    g.fillRect(x, y, Math.max(w - (w > 3 ? 1 : 0), 0.75), LANE - 1);
    if (w < 26 || !text) return;
    const full = this.textWidth(g, text), room = w - 9;
    const cut = full <= room ? text : text.slice(0, Math.max(0, Math.floor(text.length * room / full) - 1)) + "…";
    if (cut.length < 3 && cut !== text) return;
    g.fillStyle = inkOn(color);
    g.fillText(cut, x + 4, y + LANE / 2);
  }

  textWidth(g, text) {
    if (!this.widths.has(text)) this.widths.set(text, g.measureText(text).width);
    return this.widths.get(text);
  }

  drawSteps(g, y) {
    const { begin, dur, number, label } = this.trace.steps;
    let drawnTo = -Infinity;
    for (let i = 0; i < begin.length; i++) {
      const x0 = this.x(begin[i]), x1 = this.x(begin[i] + dur[i]);
      if (x1 < 0 || x0 > this.width || x1 < drawnTo + 0.5) continue;
      this.bar(g, x0, x1, y + 2, i % 2 ? colors.step : mix(colors.step, colors.stripe, 0.25), `${label[i]} ${number[i]}`);
      drawnTo = x1;
    }
  }

  drawCounter(g, counter, y) {
    const { time, value, max, min } = counter, bottom = y + COUNTER - 5, tall = COUNTER - 8, span = max - min || 1;
    const first = Math.max(0, partition(time.length, (i) => time[i] <= this.from) - 1);
    const height = (v) => (v - min) / span * tall;
    g.beginPath();
    g.moveTo(Math.max(this.x(time[first]), 0), bottom);
    // Of the values in a pixel: the greatest, the least and the last one.
    let last = null;
    const finish = () => { for (const v of [last.max, last.min, last.v]) g.lineTo(last.x, bottom - height(v)); };
    for (let i = first; i < time.length && time[i] <= this.to; i++) {
      const x = Math.floor(Math.max(this.x(time[i]), 0)), v = value[i];
      if (last !== null && last.x === x) { last.max = Math.max(last.max, v); last.min = Math.min(last.min, v); last.v = v; continue; }
      if (last !== null) { finish(); g.lineTo(x, bottom - height(last.v)); }
      last = { x, v, max: v, min: v };
    }
    if (last !== null) { finish(); g.lineTo(this.x(this.end), bottom - height(last.v)); }
    g.lineTo(last === null ? 0 : this.x(this.end), bottom);
    g.globalAlpha = 0.4;
    g.fillStyle = colors.series[0];
    g.fill();
    g.globalAlpha = 1;
    g.strokeStyle = colors.series[0];
    g.stroke();
    g.fillStyle = colors.canvas;
    const text = counter.bytes ? bytes(max) : short(max);
    g.globalAlpha = 0.75;
    g.fillRect(2, y + 2, this.textWidth(g, text) + 6, 14);
    g.globalAlpha = 1;
    g.fillStyle = colors.text;
    g.fillText(text, 5, y + 9);
  }

  drawTrack(g, row, y) {
    row.lanes.forEach((lane, i) => this.drawLane(g, lane, y + 2 + i * LANE));
    g.fillStyle = colors.error;
    for (const stall of this.trace.stallsByTrack.get(row.track.id) || []) {
      const x0 = this.x(stall.begin), x1 = this.x(stall.begin + stall.dur);
      if (x1 > 0 && x0 < this.width) g.fillRect(x0, y + row.height - GAP + 1, Math.max(x1 - x0, 1), 2);
    }
    const { time } = row.track.marks;
    g.fillStyle = colors.text;
    let last = -9;
    for (let i = partition(time.length, (at) => time[at] < this.from); i < time.length && time[i] <= this.to; i++) {
      const x = this.x(time[i]);
      if (x < last + 2) continue;
      last = x;
      g.beginPath();
      g.moveTo(x - 3.5, y);
      g.lineTo(x + 3.5, y);
      g.lineTo(x, y + 6);
      g.fill();
    }
  }

  drawLane(g, lane, y) {
    const { begin, dur, name, count } = lane, names = this.trace.names, { from, to, match } = this;
    const scale = this.width / (to - from);
    // Slices narrower than a pixel are drawn as one bar of that pixel, as opaque as the time in them.
    let pixel = -1, covered = 0, color = null, longest = 0, isMatch = false;
    const flush = () => {
      if (pixel < 0) return;
      g.globalAlpha = (match && !isMatch ? DIM : 1) * (0.35 + 0.65 * Math.min(covered, 1));
      g.fillStyle = color;
      g.fillRect(pixel, y, 1, LANE - 1);
      g.globalAlpha = 1;
      pixel = -1;
    };
    const first = partition(begin.length, (i) => begin[i] + dur[i] < from);
    for (let i = first; i < begin.length && begin[i] < to; i++) {
      const x0 = (begin[i] - from) * scale, w = dur[i] * scale, n = name[i];
      this.drawn += count ? count[i] : 1;
      if (w < 1) {
        const at = Math.max(0, Math.floor(x0)), isHit = !match || match.has(n);
        if (at !== pixel) { flush(); pixel = at; covered = 0; longest = -1; isMatch = false; }
        covered += w;
        if (w > longest && (isHit || !isMatch)) { longest = w; color = nameColor(names[n][2]); }
        isMatch = isMatch || (match && isHit);
        continue;
      }
      flush();
      g.globalAlpha = match && !match.has(n) ? DIM : 1;
      const isMerged = count && count[i] > 1;
      this.bar(g, x0, x0 + w, y, isMerged ? mix(nameColor(names[n][2]), colors.canvas, 0.35) : nameColor(names[n][2]), isMerged ? `${grouped(count[i])} slices` : names[n][0]);
      g.globalAlpha = 1;
    }
    flush();
    if (this.selected && this.selected.lane === lane) {
      const x0 = this.x(begin[this.selected.i]), x1 = this.x(begin[this.selected.i] + dur[this.selected.i]);
      g.strokeStyle = colors.highlight;
      g.lineWidth = 2;
      g.strokeRect(Math.max(x0, -4) , y, Math.max(Math.min(x1, this.width + 4) - Math.max(x0, -4) - 1, 2), LANE - 1);
      g.lineWidth = 1;
    }
  }

  /** The y of the innermost slice of a track at a time; of the heading where the process is folded. */
  flowY(id, time) {
    const row = this.rows.find((r) => r.type === "track" && r.track.id === id) || this.rows.find((r) => r.key === `p${this.trace.tracks[id].process}`);
    if (!row) return null;
    const covers = ({ begin, dur }) => { const i = partition(begin.length, (at) => begin[at] <= time) - 1; return i >= 0 && time <= begin[i] + dur[i]; };
    const lane = row.lanes ? Math.max(row.lanes.findLastIndex(covers), 0) : 0;
    return RULER + row.y - this.scroll + 2 + LANE * (lane + 0.5);
  }

  /** The arrows of the selected slice. */
  drawFlows(g) {
    const { from_track, from_time, to_track, to_time } = this.trace.flows;
    for (const i of this.arrows || []) {
      const [y0, y1] = [this.flowY(from_track[i], from_time[i]), this.flowY(to_track[i], to_time[i])];
      if (y0 === null || y1 === null) continue;
      const [x0, x1] = [this.x(from_time[i]), this.x(to_time[i])], bend = Math.min(60, Math.max(16, Math.abs(x1 - x0) / 2));
      g.strokeStyle = g.fillStyle = colors.accent;
      g.lineWidth = 1.5;
      g.beginPath();
      g.moveTo(x0, y0);
      g.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1 - 4, y1);
      g.stroke();
      g.beginPath();
      g.moveTo(x1, y1);
      g.lineTo(x1 - 7, y1 - 4);
      g.lineTo(x1 - 7, y1 + 4);
      g.fill();
      g.lineWidth = 1;
    }
  }

  drawRange(g, height) {
    if (!this.range) return;
    const [a, b] = this.range, x0 = this.x(a), x1 = this.x(b);
    g.fillStyle = g.strokeStyle = colors.accent;
    g.globalAlpha = 0.14;
    g.fillRect(x0, RULER, x1 - x0, height);
    g.globalAlpha = 1;
    g.strokeRect(x0, RULER - 1, x1 - x0, height);
    const text = duration(b - a), w = this.textWidth(g, text) + 10, x = Math.max(2, Math.min((x0 + x1 - w) / 2, this.width - w - 2));
    g.fillRect(x, RULER + 2, w, 16);
    g.fillStyle = inkOn(colors.accent);
    g.fillText(text, x + 5, RULER + 10);
  }

  /** What is at a point: a slice, an instant, a value, a step. */
  at(px, py) {
    if (py < RULER) return null;
    const y = py - RULER + this.scroll, row = this.rows.find((r) => y >= r.y && y < r.y + r.height), time = this.time(px);
    if (!row) return null;
    const near = 3 * (this.to - this.from) / this.width;
    if (row.type === "counter") {
      const i = partition(row.counter.time.length, (at) => row.counter.time[at] <= time) - 1;
      return i < 0 ? null : { row, value: row.counter.value[i] };
    }
    if (row.type === "steps") {
      const { begin, dur } = this.trace.steps;
      for (let i = begin.length - 1; i >= 0; i--) if (begin[i] <= time && time < begin[i] + dur[i]) return { row, step: i };
      return null;
    }
    if (row.type !== "track") return null;
    if (y - row.y < 7) {
      const marks = row.track.marks.time, i = partition(marks.length, (at) => marks[at] < time - near);
      if (i < marks.length && marks[i] <= time + near) return { row, mark: i };
    }
    const lane = row.lanes[Math.floor((y - row.y - 2) / LANE)];
    if (!lane) {
      const stall = (this.trace.stallsByTrack.get(row.track.id) || []).find((s) => s.begin - near <= time && time <= s.begin + s.dur + near);
      return stall ? { row, stall } : null;
    }
    const { begin, dur } = lane, i = partition(begin.length, (at) => begin[at] <= time);
    const distance = (at) => (at < 0 || at >= begin.length ? Infinity : Math.max(begin[at] - time, time - begin[at] - dur[at], 0));
    const best = distance(i - 1) <= distance(i) ? i - 1 : i;
    return distance(best) <= near ? { row, lane, i: best } : null;
  }

  sliceFacts({ lane, i }) {
    const { trace } = this, [name, category] = trace.names[lane.name[i]], count = lane.count ? lane.count[i] : 1;
    const rows = [];
    if (count > 1) rows.push(["Slices", `${grouped(count)}, drawn merged`], ["Busy", duration(lane.busy[i])], ["Longest", name]);
    rows.push(["Duration", duration(lane.dur[i])], ["Start", duration(lane.begin[i])], ["Track", lane.track.name], ["Depth", String(lane.depth)]);
    if (category) rows.push(["Category", category]);
    const step = this.stepAt(lane, i), args = lane.args.get(lane.first + i);
    if (step !== null) rows.push(["Step", `${trace.steps.label[step]} ${trace.steps.number[step]}`]);
    return { title: count > 1 ? plural(count, "slice") : name, rows, args: count > 1 ? [] : argRows(args) };
  }

  /** The step of a slice's process in which it began. */
  stepAt(lane, i) {
    const { begin, dur, track } = this.trace.steps, time = lane.begin[i];
    const process = lane.track.process;
    for (let at = partition(begin.length, (s) => begin[s] <= time) - 1, left = 8; at >= 0 && left > 0; at--, left--) {
      const owner = this.trace.tracks[track[at]];
      if (time < begin[at] + dur[at] && owner && owner.process === process) return at;
    }
    return null;
  }

  hover(event, px, py) {
    const hit = this.at(px, py);
    if (!hit) return hideTooltip();
    const { trace } = this;
    if (hit.lane) {
      const { title, rows, args } = this.sliceFacts(hit);
      return showTooltip(event, el("b", {}, title), facts([...rows, ...args.slice(0, 6)]));
    }
    if (hit.mark !== undefined) return showTooltip(event, el("b", {}, trace.names[hit.row.track.marks.name[hit.mark]][0]), facts([["Time", duration(hit.row.track.marks.time[hit.mark])], ["Track", hit.row.title]]));
    if (hit.stall) return showTooltip(event, el("b", {}, hit.stall.cause), el("div", {}, hit.stall.text), facts([["Duration", duration(hit.stall.dur)]]));
    if (hit.step !== undefined) return showTooltip(event, el("b", {}, `${trace.steps.label[hit.step]} ${trace.steps.number[hit.step]}`), facts([["Duration", duration(trace.steps.dur[hit.step])], ["Start", duration(trace.steps.begin[hit.step])]]));
    return showTooltip(event, el("b", {}, hit.row.title), facts([["Value", hit.row.counter.bytes ? bytes(hit.value) : short(hit.value)], ["Time", duration(this.time(px))]]));
  }

  select(hit) {
    this.selected = hit && hit.lane ? { lane: hit.lane, i: hit.i } : null;
    this.arrows = null;
    if (this.selected) {
      const { lane, i } = hit, from = lane.begin[i], to = from + lane.dur[i], id = lane.track.id, flows = this.trace.flows;
      const touches = (track, time) => track === id && from <= time && time <= to;
      this.arrows = Array.from(flows.from_track.keys()).filter((f) => touches(flows.from_track[f], flows.from_time[f]) || touches(flows.to_track[f], flows.to_time[f])).slice(0, 200);
      this.range = null;
    } else if (hit && hit.step !== undefined) {
      const { begin, dur } = this.trace.steps;
      this.range = [begin[hit.step], begin[hit.step] + dur[hit.step]];
    } else if (hit && hit.stall) this.range = [hit.stall.begin, hit.stall.begin + hit.stall.dur];
    else this.range = null;
    this.showDetails();
    this.redraw();
  }

  showDetails() {
    this.showSide(0);
    const { trace, selected } = this;
    if (selected) {
      const { title, rows, args } = this.sliceFacts(selected), name = selected.lane.name[selected.i], process = trace.processes[selected.lane.track.process];
      rows.push(["Process", process ? process.title : ""]);
      this.details.replaceChildren(el("h2", {}, title), facts(rows));
      if (args.length) this.details.append(el("h3", {}, "Arguments"), facts(args));
      this.details.append(el("h3", {}, `All slices of ${trace.names[name][0]}`), facts([["Count", grouped(trace.totals.count[name])], ["Total", duration(trace.totals.ns[name])], ["Mean", duration(trace.totals.ns[name] / trace.totals.count[name])]]));
      if (this.arrows.length) this.details.append(el("h3", {}, plural(this.arrows.length, "flow")));
    } else if (this.range) this.showRange();
    else this.details.replaceChildren(el("h2", {}, "Trace"), el("p", {}, trace.facts), el("p", { class: "weak" }, "Click a slice for its details, shift and drag to measure"), ...trace.notes.map((note) => el("p", { class: "weak" }, note)));
  }

  /** Sums by name of the time in the range. */
  showRange() {
    const [from, to] = this.range, sums = new Map();
    for (const row of this.rows.filter((r) => r.type === "track")) for (const lane of row.track.lanes) {
      const { begin, dur, name, count, busy } = lane;
      for (let i = partition(begin.length, (at) => begin[at] + dur[at] <= from); i < begin.length && begin[i] < to; i++) {
        const inside = Math.min(begin[i] + dur[i], to) - Math.max(begin[i], from), isMerged = count && count[i] > 1;
        const key = isMerged ? -1 : name[i], sum = sums.get(key) || [0, 0];
        sum[0] += isMerged ? count[i] : 1;
        sum[1] += isMerged && dur[i] ? inside * busy[i] / dur[i] : inside;
        sums.set(key, sum);
      }
    }
    const rows = [...sums].sort((a, b) => b[1][1] - a[1][1]).slice(0, 100);
    this.details.replaceChildren(el("h2", {}, `Range of ${duration(to - from)}`), facts([["Start", duration(from)], ["End", duration(to)]]), el("h3", {}, "Slices in the range"),
      table(["Name", "Count", "Total"], rows.map(([row, [count, ns]]) => [row < 0 ? "Merged slices" : this.nameCell(row), grouped(count), duration(ns)])));
  }

  /** A name that breaks at its slashes, with its category if it is no op. */
  nameCell(row) {
    const [name, category] = this.trace.names[row];
    const parts = name.split("/").flatMap((part, i) => (i ? ["/", el("wbr"), part] : [part]));
    return el("span", {}, ...parts, category && category !== "op" ? el("span", { class: "weak" }, ` (${category})`) : null);
  }

  view(from, to) {
    const least = 20, span = Math.max(to - from, least), margin = Math.min(span, this.end) * 0.02;
    const full = this.end * 1.04 + least, size = Math.min(span, full);
    if (span !== to - from) from = (from + to - span) / 2;
    this.from = Math.max(-margin, Math.min(from, this.end + margin - size));
    this.to = this.from + size;
    this.redraw();
  }

  reset() {
    this.layout();
    this.scroll = 0;
    this.view(-this.end * 0.01, this.end * 1.01);
  }

  fit() {
    const { selected, range } = this;
    if (selected) this.show(selected.lane.begin[selected.i], selected.lane.dur[selected.i]);
    else if (range) this.show(range[0], range[1] - range[0]);
  }

  show(begin, dur) { this.view(begin - dur * 0.1, begin + dur * 1.1); }

  zoom(factor, x = this.width / 2) {
    const at = this.time(x);
    this.view(at - (at - this.from) * factor, at + (this.to - at) * factor);
  }

  pan(share) { const by = (this.to - this.from) * share; this.view(this.from + by, this.to + by); }

  /** Scrolls to a track, unfolding what hides it. */
  reveal(id, depth = 0) {
    const track = this.trace.tracks[id];
    if (!track) return;
    const isHidden = this.folded.delete(`p${track.process}`) | (depth > 0 && this.folded.delete(`t${id}`));
    if (!this.rows.some((r) => r.track === track) && this.filter.value) { this.filter.value = ""; this.layout(); } else if (isHidden) this.layout();
    const row = this.rows.find((r) => r.track === track);
    if (!row) return;
    const y = row.y + depth * LANE, room = this.canvas.clientHeight - RULER;
    if (y < this.scroll || y + LANE > this.scroll + room) this.scroll = y - room / 2;
  }

  goTo(row) {
    this.selected = this.arrows = null;
    this.range = [row.begin, row.begin + row.dur];
    if (row.track !== null && row.track !== undefined) this.reveal(row.track);
    this.view(row.begin - row.dur, row.begin + 2 * row.dur);
  }

  find() {
    const text = this.search.value.toLowerCase(), { names, totals } = this.trace;
    this.match = null;
    this.hits = [];
    this.found.textContent = "";
    this.hit = -1;
    if (text) {
      this.match = new Set([...names.keys()].filter((row) => names[row][0].toLowerCase().includes(text)));
      let n = 0;
      for (const row of this.match) n += totals.count[row];
      for (const track of this.trace.tracks) for (const lane of track.lanes) for (let i = 0; i < lane.begin.length; i++) if (this.match.has(lane.name[i])) this.hits.push({ lane, i });
      this.hits.sort((a, b) => a.lane.begin[a.i] - b.lane.begin[b.i]);
      this.found.textContent = plural(n, "match").replace("matchs", "matches");
    }
    this.redraw();
  }

  searchKey(event) {
    if (event.key === "Escape") { this.search.value = ""; this.find(); this.canvas.focus(); }
    if (event.key !== "Enter" || !this.hits.length) return;
    const n = this.hits.length;
    this.hit = this.hit < 0 ? (event.shiftKey ? n - 1 : 0) : (this.hit + (event.shiftKey ? n - 1 : 1)) % n;
    this.choose(this.hits[this.hit]);
    this.found.textContent = `${grouped(this.hit + 1)} of ${grouped(n)}`;
  }

  /** Selects a slice and brings it into view. */
  choose(hit) {
    const begin = hit.lane.begin[hit.i], dur = hit.lane.dur[hit.i], span = this.to - this.from;
    this.reveal(hit.lane.track.id, hit.lane.depth);
    this.select(hit);
    if (dur > span || dur < span / 400) this.view(begin + dur / 2 - Math.max(dur, 1) * 10, begin + dur / 2 + Math.max(dur, 1) * 10);
    else if (begin < this.from || begin + dur > this.to) this.view(begin + dur / 2 - span / 2, begin + dur / 2 + span / 2);
  }

  /** The next or previous slice of the lane. */
  neighbour(by) {
    const { lane, i } = this.selected || {};
    if (lane && i + by >= 0 && i + by < lane.begin.length) this.choose({ lane, i: i + by });
  }

  key(event) {
    const act = {
      w: () => this.zoom(1 / 1.4), s: () => this.zoom(1.4), "+": () => this.zoom(1 / 1.4), "-": () => this.zoom(1.4), a: () => this.pan(-0.2), d: () => this.pan(0.2),
      ArrowLeft: () => this.pan(-0.1), ArrowRight: () => this.pan(0.1), ArrowUp: () => { this.scroll -= 40; this.redraw(); }, ArrowDown: () => { this.scroll += 40; this.redraw(); },
      f: () => this.fit(), r: () => this.reset(), 0: () => this.reset(), ",": () => this.neighbour(-1), ".": () => this.neighbour(1), "/": () => this.search.focus(), Escape: () => this.select(null),
    }[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (act) { act(); event.preventDefault(); }
  }

  listen() {
    const { canvas } = this;
    const point = (event) => { const box = canvas.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; };
    let drag = null;
    const wheel = (event) => {
      event.preventDefault();
      if (event.shiftKey || event.currentTarget === this.labels) { this.scroll += event.deltaY || event.deltaX; this.redraw(); }
      else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.pan(event.deltaX / this.width);
      else this.zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY / 300))), point(event)[0]);
      hideTooltip();
    };
    canvas.addEventListener("wheel", wheel, { passive: false });
    this.labels.addEventListener("wheel", wheel, { passive: false });
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      canvas.setPointerCapture(event.pointerId);
      const [x, y] = point(event);
      drag = { x, y, from: this.from, to: this.to, scroll: this.scroll, isRange: event.shiftKey, hasMoved: false };
      hideTooltip();
    });
    canvas.addEventListener("pointermove", (event) => {
      const [x, y] = point(event);
      if (!drag) return this.hover(event, x, y);
      drag.hasMoved = drag.hasMoved || Math.hypot(x - drag.x, y - drag.y) > 3;
      if (!drag.hasMoved) return undefined;
      if (drag.isRange) {
        this.selected = this.arrows = null;
        this.range = [this.time(Math.min(x, drag.x)), this.time(Math.max(x, drag.x))];
        return this.redraw();
      }
      const by = (drag.x - x) / this.width * (drag.to - drag.from);
      this.scroll = drag.scroll + drag.y - y;
      canvas.style.cursor = "grabbing";
      return this.view(drag.from + by, drag.to + by);
    });
    canvas.addEventListener("pointerup", (event) => {
      if (!drag) return;
      const { hasMoved, isRange } = drag;
      drag = null;
      canvas.style.cursor = "";
      if (!hasMoved) this.select(this.at(...point(event)));
      else if (isRange) this.showDetails();
    });
    canvas.addEventListener("pointercancel", () => { drag = null; });
    canvas.addEventListener("pointerleave", hideTooltip);
    canvas.addEventListener("dblclick", () => this.fit());
  }
}

/** A slice's arguments as rows of a table. */
function argRows(text) {
  if (!text) return [];
  try {
    return Object.entries(JSON.parse(text)).map(([key, value]) => [key, typeof value === "string" ? value : JSON.stringify(value)]);
  } catch { return [["Arguments", text]]; }
}

/** A table whose first column is text, the others numbers. */
function table(titles, rows) {
  const cell = (tag) => (text, i) => el(tag, { class: i ? "n" : "" }, text);
  return el("table", {}, el("thead", {}, el("tr", {}, ...titles.map(cell("th")))), el("tbody", {}, ...rows.map((row) => el("tr", {}, ...row.map(cell("td"))))));
}
