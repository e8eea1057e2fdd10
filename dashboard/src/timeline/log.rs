//! Log messages: what programs said while they ran, in a list that follows the pointer.

use super::{state::Command, ticks};
use crate::theme::{metrics, palette};
use egui::{Align, Label, RichText, ScrollArea, Sense, Ui};
use profiler::{Category, Store, TrackId};

/// Messages that are kept, at most: the newest.
const MAX_LINES: usize = 100_000;
/// Letters of a message that are shown, at most.
const MAX_LEN: usize = 400;

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// When, ns from the origin.
    pub time: i64,
    /// Who said it.
    pub track: TrackId,
    /// Row of the sites: level or target, and what it is called.
    pub site: u32,
    /// Row of the arguments; `u32::MAX` for none.
    pub args: u32,
}

/// All messages by time: instants that are no samples and no stamps of transfers, nor tell that all is well.
pub fn lines(store: &Store) -> Vec<LogLine> {
    let is_message = |i: &profiler::InstantEvent| {
        store.sites().get(i.site as usize).is_some_and(|s| match s.category {
            Category::Other => true,
            Category::Numerics => i.arg != 0,
            _ => false,
        })
    };
    let of_track = |t: &'_ profiler::Track| {
        let messages = t.instants.iter().filter(|i| is_message(i));
        messages.map(|i| LogLine { time: i.time, track: t.id, site: i.site, args: i.args }).collect::<Vec<_>>()
    };
    let mut all: Vec<LogLine> = store.tracks().iter().flat_map(of_track).collect();
    all.sort_by_key(|line| line.time);
    let over = all.len().saturating_sub(MAX_LINES);
    all.drain(..over);
    all
}

/// The message's text: what it says, or what it is called.
pub fn text(store: &Store, line: &LogLine) -> String {
    let name = store.sites().get(line.site as usize).map_or("?", |s| &s.name);
    let args = store.args().get(line.args).unwrap_or_default();
    let message = serde_json::from_str::<serde_json::Value>(&args)
        .ok()
        .and_then(|v| Some(v.get("message")?.as_str()?.to_owned()));
    let is_numerics = store.sites().get(line.site as usize).is_some_and(|s| s.category == Category::Numerics);
    let text = match message {
        Some(message) if is_numerics => format!("{name}: {message}"),
        Some(message) => message,
        None if args.is_empty() || args == "{}" => name.to_owned(),
        None => format!("{name} {args}"),
    };
    text.chars().take(MAX_LEN).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// The list. `cursor` is the time that it follows: the pointer's.
pub fn panel_ui(ui: &mut Ui, store: &Store, lines: Option<&[LogLine]>, cursor: Option<i64>) -> Vec<Command> {
    let mut out = Vec::new();
    let p = palette(ui);
    // Short messages do not make the panel narrow.
    ui.set_min_width(ui.available_width());
    let Some(lines) = lines else {
        ui.label("reading");
        return out;
    };
    if lines.is_empty() {
        ui.label("The trace has no log messages. Programs that use tracing record theirs as events.");
        return out;
    }
    // The last one before the pointer.
    let at = cursor.map(|time| lines.partition_point(|l| l.time <= time).saturating_sub(1));
    let row_h = metrics::ROW_H;
    let mut area = ScrollArea::vertical().id_salt("log").auto_shrink(false);
    let id = ui.scope_id().with("log follows");
    let before: Option<usize> = ui.data(|d| d.get_temp(id)).flatten();
    if at != before {
        ui.data_mut(|d| d.insert_temp(id, at));
        if let Some(at) = at {
            let middle = (ui.available_height() - row_h) / 2.0;
            area = area.vertical_scroll_offset((at as f32 * row_h - middle).max(0.0));
        }
    }
    ui.spacing_mut().item_spacing.y = 0.0;
    area.show_rows(ui, row_h, lines.len(), |ui, rows| {
        for i in rows {
            let line = &lines[i];
            let site = store.sites().get(line.site as usize);
            let said = text(store, line);
            let frame = egui::Frame::new().fill(if at == Some(i) { p.selected } else { egui::Color32::TRANSPARENT });
            let row = frame.show(ui, |ui| {
                ui.horizontal(|ui| {
                    ui.set_min_height(row_h);
                    ui.set_width(ui.available_width());
                    ui.label(RichText::new(ticks::position(line.time, 1)).monospace().color(p.text_weak));
                    let color = match site.map_or("", |s| s.category_name.as_str()) {
                        level if level.contains("ERROR") || level == "numerics" => p.error,
                        level if level.contains("WARN") => p.warning,
                        _ => p.text,
                    };
                    ui.with_layout(egui::Layout::left_to_right(Align::Center).with_main_wrap(false), |ui| {
                        ui.add(Label::new(RichText::new(&said).color(color)).truncate().sense(Sense::click()))
                    })
                    .inner
                })
                .inner
            });
            let track = store.track(line.track).map_or("?", |t| &t.name);
            let category = site.map_or("", |s| &s.category_name);
            let response = row.inner.on_hover_text(format!("{said}\n{track}, {category}\nclick: show in the timeline"));
            if response.clicked() {
                out.extend([Command::RevealTrack(line.track.0), Command::CentreOn(line.time)]);
            }
        }
    });
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::testing::slice;
    use profiler::{
        Batch,
        batch::{Event, EventKind, NO_NODE, Name, TrackKey},
    };

    #[test]
    fn messages_of_all_threads_by_time() {
        let mut batch = Batch::new();
        batch.set_origin(0);
        for (id, (category, name)) in (0..).zip([("app WARN", "event"), ("op", "MatMul"), ("app", "checkpoint")]) {
            batch.name(Name::Site { pid: 1, id, category: category.into(), name: name.into() });
        }
        let said = batch.args(r#"{"message":"queue\nlow","left":3}"#);
        let fields = batch.args(r#"{"step":7}"#);
        let message = |at, site, args| Event { kind: EventKind::Instant, args, ..slice(at, at, site, NO_NODE, 0) };
        let none = profiler::batch::NO_ARGS;
        batch.track(TrackKey { pid: 1, ring: 0 }).events.extend([message(50, 0, said), message(60, 1, none)]);
        batch.track(TrackKey { pid: 1, ring: 1 }).events.extend([message(10, 2, fields), message(55, 2, none)]);
        let mut store = Store::new();
        store.apply(batch);
        let all = lines(&store);
        let texts: Vec<String> = all.iter().map(|l| format!("{} {}", l.time, text(&store, l))).collect();
        assert_eq!(texts, ["10 checkpoint {\"step\":7}", "50 queue low", "55 checkpoint"]);
    }
}
