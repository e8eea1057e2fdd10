//! One frame of the picture: overview, ruler and rows, painted from what is kept, and their input.

use super::{
    analysis::Findings,
    cores, critical, find,
    flows::{self, Arrow},
    gutter,
    input::{self, Areas, Drag},
    instants,
    layout::{self, Frame, Hit, Place, Sizes},
    model::{self, Rows},
    notes,
    paint::{self, Marks},
    picture::{Key, Picture, Scene},
    stalls,
    state::{Command, State},
    tags::Tags,
    ticks,
    viewport::Scale,
};
use crate::{
    config::Note,
    format,
    theme::{Palette, metrics, palette},
    widgets::{describe, keys_are_free, pointer},
};
use egui::{Pos2, Rect, Response, Sense, Ui, pos2, vec2};
use profiler::{Category, InstantEvent, SliceRef, Span, Stall, Store, TrackId};
use std::ops::Range;

/// The sizes of rows; lanes are as dense as controls are.
pub fn sizes(ui: &Ui) -> Sizes {
    let density = ui.spacing().interact_size.y / metrics::ROW_H;
    Sizes {
        lane_h: (metrics::LANE_H * density).round(),
        heading_h: (metrics::ROW_H * density).round(),
        counter_h: (metrics::COUNTER_H * density).round(),
        gap: metrics::GAP,
        label_min_w: metrics::LABEL_MIN_W,
    }
}

/// What the frame shows.
pub struct Shown<'a> {
    /// Index of the trace.
    pub trace_idx: usize,
    /// The trace.
    pub store: &'a Store,
    /// All there is.
    pub whole: &'a Range<i64>,
    /// What the analysis found out, perhaps about a moment ago.
    pub findings: Option<&'a Findings>,
    /// Whether slices that do not match are dimmed.
    pub dims: bool,
    /// All of the panel, with its bar and details.
    pub panel: Rect,
    /// What made the selected slice ready.
    pub before: Option<SliceRef>,
    /// The arrows of the selected slice.
    pub arrows: &'a [Arrow],
    /// The user's bookmarks.
    pub notes: Vec<Note>,
}

impl<'a> Shown<'a> {
    /// The stalls on the screen, longest first.
    fn stalls(&self) -> &'a [Stall] {
        self.findings.map_or(&[], |f| &f.stalls.top)
    }
}

/// What is kept between frames.
#[derive(Default)]
pub struct Canvas {
    rows_of: Option<(usize, u64, u64, f32)>,
    rows: Rows,
    places: Vec<Place>,
    picture: Picture,
    /// The range and the columns, and where it lacked something how often something had come by then.
    density_of: Option<(Range<i64>, usize, Option<u64>)>,
    density: Vec<paint::Density>,
    drag: Drag,
}

impl Canvas {
    /// The rows of the last frame.
    pub fn rows(&self) -> &Rows {
        &self.rows
    }

    /// Shows the frame. `commands` and what the input asks for go to `act` before anything is painted.
    pub fn ui(
        &mut self,
        ui: &mut Ui,
        shown: &Shown<'_>,
        state: &mut State,
        mut commands: Vec<Command>,
        mut act: impl FnMut(&mut State, Command),
    ) {
        let (_, all) = ui.allocate_space(ui.available_size());
        // An id of its own: the panel under the picture comes and goes during a drag.
        let response = ui.interact(all, ui.scope_id().with("timeline canvas"), Sense::click_and_drag());
        let areas = areas(all);
        let sizes = sizes(ui);
        self.update_rows(shown, state, &sizes);
        let now = ui.input(|i| i.time);
        let before = Scale::new(state.eased.view(now), areas.body.left(), areas.body.width());
        let scrolls = layout::total_height(&self.places) > areas.body.height();
        commands.extend(self.input(ui, &response, &areas, &before, shown, state, scrolls));
        let acted = commands.iter().any(|c| !matches!(c, Command::Cursor(_)));
        for command in commands {
            act(state, command);
        }
        if acted {
            self.update_rows(shown, state, &sizes);
            ui.ctx().request_repaint();
        }
        self.settle_scroll(state, areas.body.height());
        let view = state.eased.view(now);
        let frame = Frame {
            view,
            scale: Scale::new(view, areas.body.left(), areas.body.width()),
            pixels_per_point: ui.pixels_per_point(),
            sizes,
        };
        let n_paths = shown.findings.filter(|_| state.critical).map_or(0, |f| f.paths.len());
        describe(&response, || model::summary(shown.store, &self.rows, &ticks::view_text(view), n_paths));
        self.paint(ui, all, &areas, shown, state, &frame);
        let p = palette(ui);
        let top = areas.body.top() - state.scroll;
        let gutter_area = Rect::from_min_max(pos2(all.left(), areas.body.top()), areas.body.left_bottom());
        let visible = layout::visible(&self.places, state.scroll, state.scroll + areas.body.height());
        let uses = shown.findings.map_or(&[][..], |f| &f.track_use);
        let folds = gutter::gutter_ui(ui, gutter_area, &self.scene(shown, p), visible, top, uses);
        for command in folds {
            act(state, command);
            ui.ctx().request_repaint();
        }
        self.hover(ui, &response, &areas, shown, state, &frame);
    }

    /// Middle of a lane relative to the top of all rows.
    #[cfg(test)]
    pub(super) fn lane_middle(&self, track: u32, lane: u32) -> Option<f32> {
        layout::lane_at(&self.rows, &self.places, track, lane).map(|(y, h)| y + h / 2.0)
    }

    fn update_rows(&mut self, shown: &Shown<'_>, state: &State, sizes: &Sizes) {
        let key = (shown.trace_idx, shown.store.version(), state.folding.revision(), sizes.lane_h);
        if self.rows_of != Some(key) {
            self.rows = model::rows(shown.store, &state.folding);
            self.places = layout::places(&self.rows, sizes);
            self.rows_of = Some(key);
        }
    }

    /// Scrolls to the slice that is to be seen, and keeps the rows in the window.
    fn settle_scroll(&self, state: &mut State, height: f32) {
        if let Some(row) = state.scroll_to.take()
            && let Some((y, h)) = layout::lane_at(&self.rows, &self.places, row.track, row.lane)
            && (y < state.scroll || y + h > state.scroll + height)
        {
            state.scroll = y - height / 3.0;
        }
        let most = (layout::total_height(&self.places) - height).max(0.0);
        state.scroll = state.scroll.clamp(0.0, most).round();
    }

    #[expect(clippy::too_many_arguments, reason = "input depends on everything that is on the screen")]
    fn input(
        &mut self,
        ui: &Ui,
        response: &Response,
        areas: &Areas,
        scale: &Scale,
        shown: &Shown<'_>,
        state: &State,
        scrolls: bool,
    ) -> Vec<Command> {
        let pointer = response.hover_pos();
        let mut out = Vec::new();
        let cursor =
            pointer.filter(|p| areas.body.contains(*p) || areas.ruler.contains(*p)).map(|p| scale.time_from_x(p.x));
        if cursor.is_some() && cursor != state.cursor {
            out.push(Command::Cursor(cursor));
        }
        // Keys go to the panel under the pointer.
        let elsewhere = ui.input(|i| i.pointer.hover_pos()).is_some_and(|pos| !shown.panel.contains(pos));
        if keys_are_free(ui) && !elsewhere {
            out.extend(input::keys(ui, pointer, scale));
        }
        if let Some(pointer) = pointer {
            out.extend(input::wheel(ui, pointer, areas, scale, scrolls));
        }
        out.extend(input::drags(ui, response, areas, scale, shown.whole, &mut self.drag));
        if response.clicked()
            && let Some(pos) = response.interact_pointer_pos()
        {
            response.request_focus();
            if let Some(note) = notes::under(pos, areas, &shown.notes, scale) {
                out.push(Command::EditNote(Some(note)));
            } else if areas.body.contains(pos) {
                let frame = Frame {
                    view: state.eased.target(),
                    scale: *scale,
                    pixels_per_point: ui.pixels_per_point(),
                    sizes: sizes(ui),
                };
                out.push(self.pick(pos, areas, shown, state, &frame));
            }
        }
        if response.double_clicked() {
            out.push(Command::Fit);
        }
        out
    }

    fn hit(&self, pos: Pos2, areas: &Areas, state: &State) -> Option<Hit> {
        let y = pos.y - areas.body.top() + state.scroll;
        layout::hit(&self.rows, &self.places, y).filter(|_| areas.body.contains(pos))
    }

    /// What a click picks: a slice, or the stall where nothing ran.
    fn pick(&self, pos: Pos2, areas: &Areas, shown: &Shown<'_>, state: &State, frame: &Frame) -> Command {
        let marks = Marks { rows: &self.rows, places: &self.places, top: areas.body.top() - state.scroll, frame };
        let slice = self.slice_under(pos, areas, shown.store, state, &frame.scale);
        let ran = slice.filter(|s| shown.store.category(s) != Category::Wait);
        match stalls::under(shown.stalls(), pos, &marks) {
            Some(stall) if ran.is_none() => Command::SelectStall(Box::new(stall.clone())),
            _ => Command::Select(slice.map(|s| s.id)),
        }
    }

    fn slice_under(&self, pos: Pos2, areas: &Areas, store: &Store, state: &State, scale: &Scale) -> Option<SliceRef> {
        match self.hit(pos, areas, state)? {
            Hit::Lane { track, lane } => {
                find::slice_at(store, track, lane, scale.time_from_x(pos.x), scale.ns_of_px(metrics::CLICK_SLACK))
            }
            _ => None,
        }
    }

    fn paint(&mut self, ui: &Ui, all: Rect, areas: &Areas, shown: &Shown<'_>, state: &State, frame: &Frame) {
        let p = palette(ui);
        let painter = ui.painter_at(all);
        painter.rect_filled(all, 0.0, p.canvas);
        self.update_density(shown, areas.minimap.width());
        paint::minimap(
            &painter.with_clip_rect(areas.minimap),
            areas.minimap,
            &self.density,
            shown.whole,
            frame.view,
            p,
        );
        let timed = painter.with_clip_rect(Rect::from_min_max(areas.ruler.min, areas.body.max));
        let pointed = pointer(ui).filter(|_| self.drag == Drag::None);
        let crosshair = pointed.filter(|pos| areas.body.contains(*pos) || areas.ruler.contains(*pos)).map(|pos| pos.x);
        let mut tags = Tags::default();
        if let Some(range) = &state.range {
            paint::range_tag(&mut tags, &timed, areas, range, frame, p);
        }
        notes::tag(&mut tags, &timed, areas, &shown.notes, frame, p);
        if let Some(x) = crosshair {
            paint::pointer_tag(&mut tags, &timed, areas, x, frame, p);
        }
        paint::ruler(&timed, areas, frame, &tags, p);
        let strip =
            Rect::from_min_max(pos2(areas.ruler.left(), areas.ruler.bottom() - metrics::LANE_H), areas.ruler.max);
        paint::steps(&timed, strip, shown.store, frame, p);

        let scene = self.scene(shown, p);
        let key = Key {
            trace_idx: shown.trace_idx,
            version: shown.store.version(),
            frame: *frame,
            body: areas.body,
            scroll: state.scroll,
            folding: state.folding.revision(),
            color_by: state.color_by,
            matches: scene.matches.map(|m| std::ptr::from_ref(m) as usize),
            palette: p.id(),
            shapes: crate::export::wants_shapes(ui.ctx()),
        };
        let body = painter.with_clip_rect(areas.body);
        let mut picture = std::mem::take(&mut self.picture);
        picture.paint(&body, key, &self.scene(shown, p));
        self.picture = picture;
        let scene = self.scene(shown, p);
        let top = areas.body.top() - state.scroll;
        let visible = layout::visible(&self.places, state.scroll, state.scroll + areas.body.height());
        paint::counters(&body, &scene, visible.clone(), top, frame);
        paint::open_slices(&body, &scene, visible.clone(), top, frame, shown.whole.end);
        let marks = Marks { rows: &self.rows, places: &self.places, top, frame };
        instants::paint(&body, &scene, visible, &marks);
        self.paint_marks(&body, &timed, areas, shown, state, &marks, pointed);
        notes::paint(&timed, areas, &shown.notes, frame, p);
        if let Some(x) = crosshair {
            paint::crosshair(&timed, areas, x, p);
        }
        tags.paint(&timed, p);
        if layout::total_height(&self.places) > areas.body.height() {
            scroll_mark(&painter, areas.body, state.scroll, layout::total_height(&self.places), p);
        }
    }

    /// Selection, range and arrows over the slices.
    #[expect(clippy::too_many_arguments, reason = "what is marked comes from many places")]
    fn paint_marks(
        &self,
        body: &egui::Painter,
        timed: &egui::Painter,
        areas: &Areas,
        shown: &Shown<'_>,
        state: &State,
        marks: &Marks<'_>,
        pointed: Option<Pos2>,
    ) {
        let p = Palette::of(body.ctx().theme() == egui::Theme::Dark);
        stalls::bands(body, shown.stalls(), marks, state.color_by, p);
        if let Some(note) = shown.findings.and_then(|f| crate::far::note(f.hand)) {
            paint::note(body, note, p);
        } else if let Some(ns) = shown.findings.and_then(|f| f.stalls.only_last_ns) {
            let last = format::duration_ns(ns);
            paint::note(body, &format!("Stalls are marked in the last {last} only: come closer for others"), p);
        }
        if state.critical {
            critical::paint(body, shown.store, shown.findings.map_or(&[][..], |f| &f.paths), marks, p);
        }
        if let Some(range) = &state.range {
            paint::range_band(timed, areas, range, marks.frame, p);
        }
        let pointed = pointed.and_then(|pos| stalls::under(shown.stalls(), pos, marks));
        if let Some(stall) = state.stall.as_deref().or(pointed) {
            stalls::blame(body, shown.store, stall, marks, p);
        }
        let Some(slice) = state.slice(shown.store) else { return };
        let Some(rect) = marks.slice(&slice) else { return };
        if let Some(before) = &shown.before
            && let Some(from) = marks.slice(before)
        {
            paint::arrow(body, from.right_center(), rect.left_center(), p.highlight);
        }
        flows::paint(body, &slice, shown.arrows, marks, p);
        if slice.end > marks.frame.view.start && slice.start < marks.frame.view.end {
            paint::outline(body, rect, p);
        }
    }

    fn scene<'a>(&'a self, shown: &Shown<'a>, palette: &'a Palette) -> Scene<'a> {
        let matches = shown.findings.map(|f| &*f.matches).filter(|_| shown.dims);
        Scene { store: shown.store, rows: &self.rows, places: &self.places, matches, palette }
    }

    fn update_density(&mut self, shown: &Shown<'_>, width: f32) {
        let n = (width / 2.0).max(1.0) as usize;
        // A live trace's overview moves with its end: anew when that moved by a column.
        let whole = shown.whole;
        let column = (whole.end - whole.start) / n as i64 + 1;
        // One that lacked what is still to come is made again when something came.
        let pager = shown.store.pager();
        let came = pager.map_or(0, |pager| pager.version());
        let fresh = self.density_of.as_ref().is_some_and(|(known, known_n, lacked)| {
            let is_same = *known_n == n && known.start == whole.start && (known.end - whole.end).abs() < column;
            is_same && lacked.is_none_or(|version| version == came)
        });
        if !fresh {
            self.density = paint::density(shown.store, whole, n);
            let lacks = pager.is_some_and(|pager| pager.has_requests());
            self.density_of = Some((whole.clone(), n, lacks.then_some(came)));
        }
    }

    /// What is under the pointer, in words.
    fn hover(&self, ui: &Ui, response: &Response, areas: &Areas, shown: &Shown<'_>, state: &State, frame: &Frame) {
        let Some(pos) = response.hover_pos().filter(|_| self.drag == Drag::None) else { return };
        let Some(Hit::Lane { track, lane }) = self.hit(pos, areas, state) else {
            if let Some(Hit::Counter(counter)) = self.hit(pos, areas, state) {
                counter_tip(response, shown.store, counter, frame.scale.time_from_x(pos.x));
            }
            return;
        };
        let marks = Marks { rows: &self.rows, places: &self.places, top: areas.body.top() - state.scroll, frame };
        if let Some(instant) = instants::under(shown.store, track, pos, &marks) {
            instant_tip(response, shown.store, instant);
            return;
        }
        if let Some(stall) = stalls::under(shown.stalls(), pos, &marks) {
            response.clone().on_hover_ui_at_pointer(|ui| stalls::tip(ui, shown.store, stall));
            return;
        }
        let time = frame.scale.time_from_x(pos.x);
        let merged = merged_at(shown.store, track, lane, time, frame);
        let slice = find::slice_at(shown.store, track, lane, time, frame.scale.ns_of_px(1.0));
        let weak = palette(ui).text_weak;
        let store = shown.store;
        let Some(slice) = slice else {
            let stay = store.track(track).filter(|track| cores::is_scheduling(store, track));
            if let Some((cpu, run)) = stay.and_then(|track| cores::stay_at(store, track, time, 1)) {
                response.clone().on_hover_ui_at_pointer(|ui| {
                    ui.label(format!("ran on CPU {cpu}"));
                    ui.label(super::facts::exact(run.dur()));
                    ui.colored_label(weak, format!("starts at {}", ticks::position(run.start, 1)));
                });
            }
            return;
        };
        response.clone().on_hover_ui_at_pointer(|ui| match merged {
            Some((span, top)) => {
                ui.label(format::counted(u64::from(span.count), "slice"));
                let length = span.end - span.start;
                let share = |ns: i64| format::percent(ns as f64 / length.max(1) as f64);
                let (busy, waiting) = (share(span.busy_ns), share(span.wait_ns));
                let length = format::duration_ns(length);
                ui.label(if span.wait_ns > 0 {
                    format!("{busy} busy, {waiting} waiting in {length}")
                } else {
                    format!("{busy} busy in {length}")
                });
                let longest = if span.waits || span.wait_ns == 0 { "longest" } else { "longest work" };
                let top_ns = format::duration_ns(top.dur());
                ui.colored_label(weak, format!("{longest}: {}, {top_ns}", shortened(store.slice_name(&top))));
            }
            None => {
                ui.label(shortened(store.slice_name(&slice)).into_owned());
                ui.label(super::facts::exact(slice.dur()));
                let site = store.sites().get(slice.site as usize).map_or("", |s| &s.name);
                // A slice without a node is called by its site: that stands above already.
                let what = if site == store.slice_name(&slice) { String::new() } else { format!("{site}, ") };
                ui.colored_label(weak, format!("{what}starts at {}", ticks::position(slice.start, 1)));
            }
        });
    }
}

/// As much of a name as a tooltip shows.
fn shortened(name: &str) -> std::borrow::Cow<'_, str> {
    format::shortened(name, 200)
}

/// The span that merges several slices at `time`, with the one that stands for them.
fn merged_at(store: &Store, track: TrackId, lane: u32, time: i64, frame: &Frame) -> Option<(Span, SliceRef)> {
    let lane = store.track(track)?.lanes.get(lane as usize)?;
    let slack = frame.scale.ns_of_px(1.0);
    let mut spans = Vec::new();
    let width = (frame.scale.width() * frame.pixels_per_point).ceil().max(1.0) as usize;
    lane.spans(frame.view.range(), width, &mut spans);
    let i = spans.partition_point(|s| s.end <= time - slack);
    let span = spans.get(i).filter(|s| s.start <= time + slack && s.count > 1)?;
    Some((*span, lane.slice(span.top)?))
}

fn instant_tip(response: &Response, store: &Store, instant: &InstantEvent) {
    let site = store.sites().get(instant.site as usize);
    response.clone().on_hover_ui_at_pointer(|ui| {
        ui.label(site.map_or("?", |s| &s.name));
        let category = site.map_or("", |s| &s.category_name);
        ui.colored_label(palette(ui).text_weak, format!("{category} at {}", ticks::position(instant.time, 1)));
    });
}

fn counter_tip(response: &Response, store: &Store, counter: usize, time: i64) {
    let Some(c) = store.counters().get(counter) else { return };
    let Some(i) = c.time.partition_point(|t| *t <= time).checked_sub(1) else { return };
    let (Some(at), Some(value)) = (c.time.get(i), c.value.get(i)) else { return };
    let bytes = store.sites().get(c.site as usize).is_some_and(|s| s.category == Category::Alloc);
    let text = if bytes { format::bytes(value.max(0.0) as u64) } else { format::value(*value) };
    response.clone().on_hover_ui_at_pointer(|ui| {
        ui.label(text);
        ui.label(format!("since {}", ticks::position(*at, 1)));
    });
}

/// Where overview, ruler and rows are.
pub(super) fn areas(all: Rect) -> Areas {
    let gutter = metrics::GUTTER_W.min(all.width() * 0.4);
    let left = all.left() + gutter;
    let minimap = Rect::from_min_max(all.min, pos2(all.right(), all.top() + metrics::MINIMAP_H));
    let ruler_h = metrics::RULER_H + metrics::LANE_H;
    let ruler = Rect::from_min_size(pos2(left, minimap.bottom() + 1.0), vec2(all.right() - left, ruler_h));
    let body = Rect::from_min_max(
        pos2(left, ruler.bottom() + metrics::GAP),
        all.max.max(pos2(left, ruler.bottom() + metrics::GAP)),
    );
    Areas { minimap, ruler, body }
}

fn scroll_mark(painter: &egui::Painter, body: Rect, scroll: f32, total: f32, p: &Palette) {
    let share = body.height() / total;
    let top = body.top() + scroll * share;
    let rect = Rect::from_min_size(pos2(body.right() - metrics::GAP, top), vec2(3.0, body.height() * share));
    painter.rect_filled(rect, 1.0, p.text_weak.gamma_multiply(0.6));
}
