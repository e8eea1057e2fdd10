//! The command palette: every command with its keys, and everything with a name: panels, tags, nodes, ops, threads.

use crate::{
    Data, ViewKind,
    command::{Entry, SHELL, ShellCommand, keys_text},
    shell::contents::has_contents,
};
use egui::{Context, Key, Modifiers, Role, ScrollArea, TextEdit, Ui, WidgetInfo};
use std::sync::Arc;
use ui::{
    fuzzy,
    theme::{metrics, palette},
    widgets::Dialog,
};

/// Names of each kind that are searched, at most.
const MAX_NAMES: usize = 50_000;
/// Maximum number of lines that are listed.
const MAX_LINES: usize = 200;

/// The action of a line of the palette.
#[derive(Clone, Debug, PartialEq)]
pub enum Choice {
    /// A command of the window.
    Shell(ShellCommand),
    /// A command of a panel.
    Panel(ViewKind, &'static str),
    /// Selects a graph node.
    Node(Arc<str>),
    /// Selects an op type.
    Op(Arc<str>),
    /// Shows a summary's card.
    Tag(Arc<str>, ViewKind),
    /// Shows a track of a trace: index of the trace, row of its tracks.
    Track(usize, u32),
}

/// The panels of the window and their commands.
pub struct Panels {
    /// In the order of their keys.
    pub kinds: Vec<ViewKind>,
    /// Commands that have an effect now.
    pub commands: Vec<(ViewKind, Vec<Entry>)>,
}

struct Line {
    choice: Choice,
    text: String,
    /// `Timeline`, `node`, ...
    kind: &'static str,
    keys: String,
}

/// The palette while it is open.
#[derive(Default)]
pub struct CommandPalette {
    is_open: bool,
    text: String,
    at: usize,
    /// The lines, and the text they belong to.
    listed: Option<(String, Vec<Line>)>,
}

impl CommandPalette {
    pub fn open(&mut self) {
        *self = Self { is_open: true, ..Self::default() };
    }

    /// Shows the palette while it is open; returns the choice. `panels` has the commands of each panel; those of
    /// `front` come first.
    pub fn ui(
        &mut self,
        ctx: &Context,
        data: &Data,
        panels: impl FnOnce() -> Panels,
        front: ViewKind,
    ) -> Option<Choice> {
        if !self.is_open {
            return None;
        }
        if self.listed.as_ref().is_none_or(|(text, _)| *text != self.text) {
            self.listed = Some((self.text.clone(), offers(ctx, data, &panels(), front, &self.text)));
            self.at = 0;
        }
        let shown = Dialog::new("palette").at_top().show(ctx, |ui| self.contents(ui));
        self.is_open = !shown.is_closed && shown.inner.is_none();
        shown.inner
    }

    fn contents(&mut self, ui: &mut Ui) -> Option<Choice> {
        let n = self.listed.as_ref().map_or(0, |(_, lines)| lines.len());
        let moved = ui.input_mut(|i| {
            let mut down = |key| i.count_and_consume_key(Modifiers::NONE, key) as isize;
            let page = metrics::PALETTE_ROWS as isize;
            down(Key::ArrowDown) - down(Key::ArrowUp) + page * (down(Key::PageDown) - down(Key::PageUp))
        });
        self.at = self.at.saturating_add_signed(moved).min(n.saturating_sub(1));
        let hint = "Type a command, tag, node, op or thread";
        let field = TextEdit::singleline(&mut self.text).hint_text(hint).desired_width(f32::INFINITY);
        let response = ui.add(field);
        response.widget_info(|| WidgetInfo::labeled(Role::TextInput, true, "Command palette"));
        response.request_focus();
        let is_entered = ui.input(|i| i.key_pressed(Key::Enter));
        ui.add_space(metrics::GAP);
        let Some((_, lines)) = &self.listed else { return None };
        if lines.is_empty() {
            ui.weak("No matches");
            return None;
        }
        let mut chosen = is_entered.then_some(self.at);
        let least = metrics::LIST_ROWS_MIN * metrics::ROW_H;
        let height = ui.available_height().clamp(least, metrics::PALETTE_ROWS as f32 * metrics::ROW_H);
        ui.spacing_mut().item_spacing.y = 0.0;
        let list = ScrollArea::vertical().max_height(height).min_scrolled_height(height).auto_shrink([false, true]);
        list.show(ui, |ui| {
            for (i, line) in lines.iter().enumerate() {
                let response = line_ui(ui, line, i == self.at);
                if moved != 0 && i == self.at {
                    response.scroll_to_me(None);
                }
                if response.clicked() {
                    chosen = Some(i);
                }
            }
        });
        chosen.and_then(|i| lines.get(i)).map(|line| line.choice.clone())
    }
}

fn line_ui(ui: &mut Ui, line: &Line, is_at: bool) -> egui::Response {
    let p = palette(ui);
    let (rect, response) =
        ui.allocate_exact_size(egui::vec2(ui.available_width(), metrics::ROW_H), egui::Sense::click());
    let label = if line.keys.is_empty() {
        format!("{}: {}", line.kind, line.text)
    } else {
        format!("{}: {} ({})", line.kind, line.text, line.keys)
    };
    response.widget_info(|| WidgetInfo::selected(Role::Button, true, is_at, &label));
    if !ui.is_rect_visible(rect) {
        return response;
    }
    if is_at || response.hovered() {
        ui.painter().rect_filled(rect, f32::from(metrics::RADIUS), if is_at { p.selected } else { p.hovered });
    }
    let inner = rect.shrink2(egui::vec2(metrics::PAD, 0.0));
    let font = egui::FontId::proportional(metrics::TEXT_SMALL);
    let kind = ui.painter().layout_no_wrap(line.kind.to_owned(), font.clone(), p.text_weak);
    let keys = ui.painter().layout_no_wrap(line.keys.clone(), font, p.accent);
    let right = inner.right() - kind.size().x;
    let keys_left = right - metrics::PAD - keys.size().x;
    let y = |galley: &egui::Galley| rect.center().y - galley.size().y / 2.0;
    let (kind_y, keys_y) = (y(&kind), y(&keys));
    ui.painter().galley(egui::pos2(right, kind_y), kind, p.text_weak);
    ui.painter().galley(egui::pos2(keys_left, keys_y), keys, p.accent);
    let room = egui::Rect::from_min_max(inner.min, egui::pos2(keys_left - metrics::PAD, inner.bottom()));
    ui::widgets::text_elided(ui, &line.text, room, if is_at { p.text_strong } else { p.text });
    response
}

/// The matching lines, best first. Without a text, the commands only.
fn offers(ctx: &Context, data: &Data, panels: &Panels, front: ViewKind, text: &str) -> Vec<Line> {
    let mut scored: Vec<(i32, Line)> = Vec::new();
    let mut offer = |bonus: i32, line: Line| {
        if let Some(score) = fuzzy::score(text, &line.text) {
            scored.push((score + bonus, line));
        }
    };
    // Commands of a panel without contents are of no use.
    let useful = panels.commands.iter().filter(|(kind, _)| has_contents(data, *kind));
    let (of_front, others): (Vec<_>, Vec<_>) = useful.partition(|(kind, _)| *kind == front);
    for (kind, entries) in of_front.into_iter().chain(others) {
        let bonus = if *kind == front { FRONT_BONUS } else { 0 };
        for entry in entries.iter().filter(|e| !e.id.is_empty()) {
            let choice = Choice::Panel(*kind, entry.id);
            offer(bonus, Line { choice, text: entry.what.into(), kind: kind.title(), keys: entry.keys.into() });
        }
    }
    for entry in SHELL.iter().filter(|e| e.command != ShellCommand::Palette) {
        let keys = keys_text(ctx, entry);
        offer(0, Line { choice: Choice::Shell(entry.command), text: entry.what.into(), kind: "Window", keys });
    }
    for (nth, kind) in panels.kinds.iter().copied().enumerate() {
        let keys = if nth < 9 { (nth + 1).to_string() } else { String::new() };
        let text = format!("Go to {}", kind.title());
        offer(0, Line { choice: Choice::Shell(ShellCommand::Panel(kind)), text, kind: "Window", keys });
    }
    if !text.trim().is_empty() {
        names(data, text, &mut scored);
    }
    // The sort is stable: equal scores stay in the order of the tables.
    scored.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    scored.truncate(MAX_LINES);
    scored.into_iter().map(|(_, line)| line).collect()
}

/// The front panel's commands come before others that match as well.
const FRONT_BONUS: i32 = 8;

/// Everything with a matching name: tags, nodes, ops, tracks.
fn names(data: &Data, text: &str, out: &mut Vec<(i32, Line)>) {
    let mut add = |name: &str, kind: &'static str, choice: &dyn Fn() -> Choice| {
        if let Some(score) = fuzzy::score(text, name) {
            out.push((score, Line { choice: choice(), text: name.to_owned(), kind, keys: String::new() }));
        }
    };
    let mut tags = std::collections::BTreeMap::new();
    for (tag, series) in data.runs().flat_map(|r| &r.run.series).take(MAX_NAMES) {
        tags.insert(tag, ViewKind::showing(series));
    }
    for (tag, view) in tags {
        add(tag, "tag", &|| Choice::Tag(tag.as_str().into(), view));
    }
    for node in data.graphs.iter().flat_map(|g| &g.def.node).take(MAX_NAMES) {
        add(&node.name, "node", &|| Choice::Node(node.name.as_str().into()));
    }
    let mut ops = std::collections::BTreeSet::new();
    let has_graph = data.graphs.iter().any(|g| !g.def.node.is_empty());
    for (trace_idx, trace) in data.traces.iter().enumerate() {
        let sites = trace.store.sites().iter().take(MAX_NAMES);
        ops.extend(sites.filter(|s| s.category == trace_model::Category::Op).map(|s| s.name.as_str()));
        for track in trace.store.tracks().iter().take(MAX_NAMES) {
            add(&track.name, track.kind.name(), &|| Choice::Track(trace_idx, track.id.0));
        }
        // A graph's nodes include those of its traces.
        for node in trace.store.nodes().iter().take(if has_graph { 0 } else { MAX_NAMES }) {
            add(&node.name, "node", &|| Choice::Node(node.name.as_str().into()));
        }
    }
    for op in ops {
        add(op, "op", &|| Choice::Op(op.into()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_front_panels_commands_come_first_and_names_are_found() {
        let ctx = Context::default();
        let graph = formats::proto::GraphDef::default();
        let data = Data::default().with_trace("demo", crate::timeline::testing::demo(1)).with_graph("g", graph);
        const TABLE: &[Entry] = &[Entry::command("fit", "F", "Fit the selection"), Entry::gesture("Drag", "Move")];
        let commands = vec![(ViewKind::Graph, TABLE.to_vec()), (ViewKind::Timeline, TABLE.to_vec())];
        let panels = Panels { kinds: vec![ViewKind::Ops, ViewKind::Timeline], commands };
        let check = |text: &str| -> Vec<String> {
            let lines = offers(&ctx, &data, &panels, ViewKind::Timeline, text);
            lines.iter().map(|l| format!("{}: {}", l.kind, l.text)).collect()
        };
        let all = check("");
        assert_eq!(all[0], "Timeline: Fit the selection");
        assert!(all.iter().any(|l| l == "Window: Go to Ops") && !all.iter().any(|l| l.contains("Move")), "{all:?}");
        assert!(!all.iter().any(|l| l.contains("Go to SQL")), "a panel that the program does not have: {all:?}");
        assert_eq!(check("fitsel"), ["Timeline: Fit the selection", "Graph: Fit the selection"]);
        assert!(check("matmul").contains(&"op: MatMul".to_owned()));
        assert!(check("worker 10").contains(&"worker: worker 10".to_owned()), "{:?}", check("worker 10"));
        assert!(check("l1mm").contains(&"node: layer1/MatMul".to_owned()));
        assert_eq!(check("qqqq"), Vec::<String>::new());
    }
}
