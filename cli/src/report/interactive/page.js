"use strict";
(() => {
// 1. Data, elements, texts.

const data = JSON.parse(document.getElementById("data").textContent);
const TYPES = { u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, i4: Int32Array, f4: Float32Array, f8: Float64Array };

/** The numbers of an array of the data (report/interactive/array.rs). */
function numbers(packed) {
  const text = atob(packed.d), bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return new TYPES[packed.t](bytes.buffer);
}

/** Ascending numbers, which the data have as differences. */
function sums(packed) {
  const out = Float64Array.from(numbers(packed));
  for (let i = 1; i < out.length; i++) out[i] += out[i - 1];
  return out;
}

/** An element with properties and children; texts are never parsed as HTML. */
function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(props)) {
    if (key === "class") node.className = value;
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key.includes("-") || key === "role") node.setAttribute(key, value);
    else node[key] = value;
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

const grouped = (n) => Math.round(n).toLocaleString("en-US");
const plural = (n, noun) => `${grouped(n)} ${noun}${n === 1 ? "" : "s"}`;

/** Three significant digits, as `text::duration` writes them. */
function duration(ns) {
  const abs = Math.abs(ns), sign = ns < 0 ? "-" : "";
  if (abs < 999.5) return `${sign}${Math.round(abs)} ns`;
  for (const [unit, size, limit] of [["µs", 1e3, 1e3], ["ms", 1e6, 1e3], ["s", 1e9, 60]]) {
    const value = abs / size;
    const digits = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
    if (+value.toFixed(digits) < limit) return `${sign}${value.toFixed(digits)} ${unit}`;
  }
  const s = Math.round(abs / 1e9), min = Math.round(abs / 6e10);
  return sign + (s < 3600 ? `${Math.floor(s / 60)} min ${s % 60} s` : `${Math.floor(min / 60)} h ${min % 60} min`);
}

function bytes(n) {
  for (const [unit, size] of [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 1024]]) if (Math.abs(n) >= size) return `${(n / size).toPrecision(3)} ${unit}`;
  return `${grouped(n)} B`;
}

/** Four significant digits. */
function short(value) {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "NaN" : value > 0 ? "∞" : "-∞";
  const abs = Math.abs(value);
  if (value === 0) return "0";
  if (abs >= 1e6 || abs < 1e-3) return value.toExponential(2).replace("e+", "e");
  return abs >= 1000 ? value.toLocaleString("en-US", { maximumFractionDigits: 1 }) : String(+value.toPrecision(4));
}

/** The first row for which `isBefore` is false. */
function partition(n, isBefore) {
  let lo = 0, hi = n;
  while (lo < hi) {
    const mid = (lo + hi) >> 1;
    if (isBefore(mid)) lo = mid + 1; else hi = mid;
  }
  return lo;
}

/** Ticks at 1, 2 or 5 times a power of ten, at most one for `px` pixels. */
function tickStep(range, length, px) {
  const rough = range * px / Math.max(length, 1), power = 10 ** Math.floor(Math.log10(rough || 1));
  return power * [1, 2, 5, 10].find((n) => n * power >= rough * 0.999);
}

/** The text of a tick, with as many digits as the step needs. */
function tickText(value, step) {
  const v = Math.abs(value) < step / 1e6 ? 0 : value, digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  return Math.abs(v) >= 1e6 || digits > 4 ? short(v) : v.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

const colors = {};
/** Reads the theme's colours. */
function readTheme() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["canvas", "panel", "raised", "border", "grid", "stripe", "text", "weak", "strong", "accent", "highlight", "error", "aggregate"]) colors[name] = style.getPropertyValue(`--${name}`).trim();
  colors.isDark = style.colorScheme.trim() === "dark";
  const scheme = data.colors[colors.isDark ? "dark" : "light"];
  colors.series = scheme.series;
  colors.marks = scheme.marks;
  colors.step = mix(colors.stripe, colors.aggregate, 0.5);
  colors.wait = mix(colors.stripe, colors.aggregate, 0.4);
  colors.ink = new Map();
}
const channels = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
function mix(a, b, share) {
  const [x, y] = [channels(a), channels(b)];
  return "#" + x.map((v, i) => Math.round(v + (y[i] - v) * share).toString(16).padStart(2, "0")).join("");
}
/** Black or white, whichever has more contrast with a colour. */
function inkOn(color) {
  if (!colors.ink.has(color)) {
    const light = channels(color).map((v) => (v / 255 <= 0.04045 ? v / 3294.6 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    const luminance = 0.2126 * light[0] + 0.7152 * light[1] + 0.0722 * light[2];
    colors.ink.set(color, luminance > 0.179 ? "#0b0e12" : "#ffffff");
  }
  return colors.ink.get(color);
}
const nameColor = (row) => (row === -1 ? colors.step : row === -2 ? colors.wait : colors.marks[row % colors.marks.length]);

/** What is drawn anew when the theme changes. */
const themed = [];

const tooltip = document.getElementById("tooltip");
function showTooltip(event, ...children) {
  tooltip.replaceChildren(...children);
  tooltip.hidden = false;
  const box = tooltip.getBoundingClientRect();
  const x = event.clientX + 14 + box.width > innerWidth ? event.clientX - 10 - box.width : event.clientX + 14;
  const y = event.clientY + 16 + box.height > innerHeight ? event.clientY - 10 - box.height : event.clientY + 16;
  tooltip.style.left = `${Math.max(4, x)}px`;
  tooltip.style.top = `${Math.max(4, y)}px`;
}
const hideTooltip = () => { tooltip.hidden = true; };

const facts = (rows) => el("table", { class: "facts" }, el("tbody", {}, ...rows.map(([key, value]) => el("tr", {}, el("td", {}, key), el("td", {}, value)))));

/** A canvas's context in CSS pixels, cleared. */
function context(canvas) {
  const ratio = devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const g = canvas.getContext("2d");
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  g.clearRect(0, 0, width, height);
  g.font = "11px system-ui, Ubuntu, sans-serif";
  g.textBaseline = "middle";
  return { g, width, height };
}

/** Tabs: a button for each `[title, panel, onShow]`, of which one is shown. Arrow keys choose. */
function tabs(list, items) {
  const buttons = items.map(([title, panel], i) => el("button", { type: "button", role: "tab", textContent: title, onclick: () => show(i) }));
  function show(chosen) {
    items.forEach(([, panel, onShow], i) => {
      buttons[i].setAttribute("aria-selected", String(i === chosen));
      buttons[i].tabIndex = i === chosen ? 0 : -1;
      panel.hidden = i !== chosen;
      if (i === chosen && onShow) onShow();
    });
    hideTooltip();
  }
  list.addEventListener("keydown", (event) => {
    const move = { ArrowRight: 1, ArrowLeft: -1 }[event.key], at = buttons.indexOf(document.activeElement);
    if (!move || at < 0) return;
    const next = (at + move + buttons.length) % buttons.length;
    show(next);
    buttons[next].focus();
    event.preventDefault();
    event.stopPropagation();
  });
  list.append(...buttons);
  if (items.length) show(0);
  return show;
}
