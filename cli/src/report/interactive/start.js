// 4. The page.

const SHORTCUTS = [["W, S, wheel", "Zoom in, zoom out"], ["A, D, drag", "Pan"], ["Arrow keys", "Pan and scroll"], ["Shift and wheel", "Scroll the tracks"], ["F, double click", "Zoom to the selection"], ["R, 0", "Show the whole trace"],
  ["Shift and drag", "Measure a range"], [", and .", "Previous and next slice of the lane"], ["/, Ctrl+F", "Search slices"], ["Enter, Shift+Enter", "Next and previous match"], ["Esc", "Clear"], ["?", "Keyboard shortcuts"]];

function start() {
  readTheme();
  // The end of a path says most.
  document.getElementById("title").textContent = data.title.length > 40 ? `…${data.title.slice(-39)}` : data.title;
  document.getElementById("title").title = data.title;
  const items = [], several = (list, title, name) => (list.length > 1 ? `${title} ${name}` : title);
  let current = null;
  for (const [i, trace] of data.traces.entries()) {
    const timeline = new Timeline(trace);
    themed.push(() => timeline.redraw());
    items.push([several(data.traces, "Timeline", i + 1), timeline.panel, () => { current = timeline; timeline.redraw(); }]);
  }
  for (const [i, logdir] of data.logdirs.entries()) for (const [title, panel, onShow] of summaryPanels(logdir)) items.push([several(data.logdirs, title, i + 1), panel, () => { current = null; if (onShow) onShow(); }]);
  document.getElementById("panels").append(...items.map(([, panel]) => panel));
  tabs(document.getElementById("tabs"), items);
  const parts = [...data.traces, ...data.logdirs];
  document.getElementById("notices").append(...parts.flatMap((part) => part.warnings).map((text) => el("div", {}, text)));

  const repaint = () => { readTheme(); themed.forEach((draw) => draw()); };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
  document.getElementById("theme").addEventListener("click", () => { document.documentElement.dataset.theme = colors.isDark ? "light" : "dark"; repaint(); });
  const dialog = document.getElementById("shortcuts");
  dialog.append(el("h2", {}, "Keyboard shortcuts"), facts(SHORTCUTS), el("form", { method: "dialog" }, el("button", {}, "Close")));
  document.getElementById("help").addEventListener("click", () => dialog.showModal());
  addEventListener("keydown", (event) => {
    if (dialog.open) return;
    if ((event.ctrlKey || event.metaKey) && event.key === "f" && current) { current.search.focus(); current.search.select(); event.preventDefault(); return; }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const on = event.target instanceof Element ? event.target : document.body;
    if (on.matches("input, select, textarea")) return;
    if (event.key === "?") { dialog.showModal(); return; }
    if (on.matches("button, summary") && (event.key === "Enter" || event.key === " ")) return;
    if (current) current.key(event);
  });
  if (!data.traces.length) document.documentElement.dataset.ready = "0";
}

start();
})();
