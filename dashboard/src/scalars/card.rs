//! The card of one tag: title, newest values, chart.

use super::{
    band::{self, Band},
    curve::{Curve, CurveSettings},
    paint::{self, Weight},
    paired::PairedSeries,
    picture::{FrameBudget, Key, Picture},
    points::{Line, Points},
    range::Steps,
    range_band, tooltip,
};
use crate::{
    Data, Selection, ViewKind,
    cards::{XAxis, card_frame},
    catalogue::{Member, TagRow},
    selection::is_at_or_below,
};
use egui::{Pos2, Response, Sense, Stroke, Ui};
use regex::Regex;
use rustc_hash::{FxHashMap, FxHasher};
use std::{
    hash::{Hash, Hasher},
    sync::Arc,
};
use summaries::{ScalarSeries, derive::align};
use ui::{
    chart::{
        Bounds, XWindow, extent,
        frame::Frame,
        input::{self, Command},
        ticks::Unit,
    },
    format,
    natural::Natural,
    theme::{metrics, palette},
    widgets::{self, CardClicks},
};

/// Least time between two updates of growing runs' bands, seconds.
const REFRESH_S: f64 = 0.5;

/// The zoom and the curves of a card.
#[derive(Debug, Default)]
pub struct Card {
    curves: FxHashMap<Arc<str>, Curve>,
    paired: FxHashMap<Arc<str>, PairedSeries>,
    bands: Bands,
    picture: Picture,
    /// The part that is shown; `None` fits everything and follows growth.
    zoom: Option<Bounds>,
    zoom_of: Option<(CurveSettings, String)>,
}

/// The state that all cards share in a frame.
pub struct CardView<'a> {
    pub curve: CurveSettings,
    /// The tag whose values are the x axis; `None` for steps or times.
    pub x_tag: Option<&'a str>,
    /// The pattern that groups runs, each group drawn as a band.
    pub group: Option<&'a Regex>,
    /// The step under the pointer in the previous frame, on any card.
    pub pointed: Option<i64>,
    /// The range of steps that is compared.
    pub range: Option<Steps>,
    /// The x range of all cards where their zoom is linked: see
    /// [`Settings::linked_x`](super::settings::Settings::linked_x).
    pub linked_x: Option<Option<[f64; 2]>>,
    /// The order of runs in the tooltip.
    pub order: tooltip::Order,
    /// The budget of this frame for drawing lines into pictures.
    pub budget: FrameBudget,
}

/// The bands of a card, cached while nothing that they depend on changes.
#[derive(Debug, Default)]
struct Bands {
    all: Vec<(Band, usize)>,
    /// Least and greatest value of the bands in plot space.
    extent: [f64; 2],
    of: Option<(String, CurveSettings, usize)>,
    at: f64,
}

impl Card {
    /// Shows the card in all of `ui`'s space; returns the clicks in its title. `state`: whether the card is wide, and
    /// pinned.
    pub fn ui(
        &mut self,
        ui: &mut Ui,
        row: &TagRow,
        data: &Data,
        view: &mut CardView<'_>,
        selection: &mut Selection,
        state: (bool, Option<bool>),
    ) -> CardClicks {
        let settings = view.curve;
        let mut paired = std::mem::take(&mut self.paired);
        let lines = lines(&mut paired, row, data, view, ui.input(|i| i.time));
        let (clicks, outer) = card_frame(ui, (ViewKind::Scalars, row), state, selection, |ui, selection| {
            last_values(ui, &lines, selection);
        });
        self.forget_old_zoom(settings, view.x_tag);
        if !self.make_ready(&lines, view, ui::export::has_shapes_request(ui.ctx())) {
            // Until the new picture is ready the card shows the previous one.
            if let Some(bounds) = self.picture.bounds() {
                let frame = Frame::new(outer, bounds, settings.scale).with_x_scale(settings.x_scale());
                frame.paint(ui, if settings.by_tag { Unit::Number } else { settings.axis.unit() });
                self.picture.show(ui, &frame);
            }
            ui.ctx().request_repaint();
            self.paired = paired;
            return clicks;
        }
        self.update_bands(&lines, data, view, ui.input(|i| i.time));
        if view.linked_x == Some(None) {
            self.zoom = None;
        }
        let mut bounds = self.zoom.unwrap_or_else(|| self.fit(&lines, settings));
        bounds.x = view.linked_x.flatten().unwrap_or(bounds.x);
        let frame = Frame::new(outer, bounds, settings.scale).with_x_scale(settings.x_scale());
        let response = ui.interact(frame.inner, ui.scope_id().with("chart"), Sense::click_and_drag());
        widgets::describe(&response, || summary(row, &lines, view, &self.bands.all));
        frame.paint(ui, if settings.by_tag { Unit::Number } else { settings.axis.unit() });
        let has_steps = settings.axis == XAxis::Step && !settings.by_tag && !settings.log_x;
        let is_busy =
            has_steps && view.range.as_mut().is_some_and(|steps| range_band::ui(ui, &response, &frame, steps));
        self.paint_lines(ui, &frame, &lines, view, selection);
        if !is_busy {
            match input::gestures(ui, &response, &frame) {
                Some(Command::Show(bounds)) => {
                    self.zoom = Some(bounds);
                    view.linked_x = view.linked_x.map(|_| Some(bounds.x));
                }
                Some(Command::Fit) => {
                    self.zoom = None;
                    view.linked_x = view.linked_x.map(|_| None);
                }
                None => {}
            }
        }
        self.pointer(ui, &response, &frame, &lines, view, selection);
        self.paired = paired;
        clicks
    }

    /// Updates the curves as far as the frame's budget allows; returns whether all are up to date.
    fn make_ready(&mut self, lines: &[Line<'_>], view: &mut CardView<'_>, at_once: bool) -> bool {
        for Line { member, points, generation } in lines {
            let curve = self.curves.get(&member.label);
            let n_stale = curve.map_or(points.len(), |curve| curve.n_stale(*points, *generation, view.curve));
            if n_stale > 0 || curve.is_none() {
                if !at_once && !view.budget.take_points(n_stale, self.picture.drawn) {
                    return false;
                }
                self.curves.entry(member.label.clone()).or_default().update(*points, *generation, view.curve);
            }
        }
        true
    }

    /// Clears a zoom that was made on other axes.
    fn forget_old_zoom(&mut self, settings: CurveSettings, x_tag: Option<&str>) {
        let x_tag = x_tag.unwrap_or_default();
        let is_other = |(old, tag): &(CurveSettings, String)| {
            let axes = |s: &CurveSettings| (s.axis, s.x_scale(), s.scale, s.by_tag);
            axes(old) != axes(&settings) || tag != x_tag
        };
        if self.zoom_of.as_ref().is_none_or(is_other) {
            self.zoom = None;
        }
        if self.zoom_of.as_ref().is_none_or(|(old, tag)| *old != settings || tag != x_tag) {
            self.zoom_of = Some((settings, x_tag.to_owned()));
        }
    }

    fn fit(&mut self, lines: &[Line<'_>], settings: CurveSettings) -> Bounds {
        let union = |a: [f64; 2], b: [f64; 2]| [a[0].min(b[0]), a[1].max(b[1])];
        let (mut x, mut y) = (extent([]), extent([]));
        if !self.bands.all.is_empty() && settings.shows_outliers {
            y = self.bands.extent;
        }
        for line in lines {
            if let Some(curve) = self.curves.get_mut(&line.member.label) {
                x = union(x, curve.x_extent(line.points));
                y = union(y, curve.y_extent(line.points, settings));
            }
        }
        Bounds::around(x, y)
    }

    /// Recomputes the bands where the runs, the pattern or the settings changed.
    fn update_bands(&mut self, lines: &[Line<'_>], data: &Data, view: &CardView<'_>, now: f64) {
        let has_margins = lines.iter().any(|line| line.member.band.is_some());
        if view.group.is_none() && !has_margins {
            self.bands = Bands::default();
            return;
        }
        let pattern = view.group.map_or("", Regex::as_str);
        let of_line = |line: &Line<'_>| line.points.len().wrapping_add(line.member.color_idx << 40);
        let n_points = lines.iter().map(of_line).fold(0, usize::wrapping_add);
        let key = (pattern, view.curve);
        let is_same = self.bands.of.as_ref().is_some_and(|(text, settings, _)| (text.as_str(), *settings) == key);
        let is_old = self.bands.of.as_ref().is_none_or(|(.., n)| *n != n_points);
        if is_same && (!is_old || now - self.bands.at < REFRESH_S) {
            return;
        }
        let mut all = match view.group {
            _ if has_margins => lines.iter().filter_map(|line| margin(line, data, view.curve.axis)).collect(),
            Some(pattern) => self.group_bands(lines, view, pattern),
            None => Vec::new(),
        };
        for (band, _) in &mut all {
            band.places.retain(|(x, _)| x.is_finite());
        }
        let values = all.iter().flat_map(|(band, _): &(Band, usize)| band.places.iter().flat_map(|(_, values)| values));
        let places = values.map(|y| view.curve.scale.forward(*y)).filter(|y| y.is_finite());
        let extent = extent(places);
        self.bands = Bands { all, extent, of: Some((pattern.to_owned(), view.curve, n_points)), at: now };
    }

    fn group_bands(&self, lines: &[Line<'_>], view: &CardView<'_>, pattern: &Regex) -> Vec<(Band, usize)> {
        let groups = band::groups(pattern, lines.iter().map(|line| &*line.member.run_label));
        let band_of = |(nth, (Natural(name), rows)): (usize, (Natural<Arc<str>>, Vec<usize>))| {
            let points: Vec<Points<'_>> = rows.iter().map(|&i| lines[i].points).collect();
            let value = |nth: usize, row: usize| {
                let line = lines[rows[nth]];
                let smoothed =
                    self.curves.get(&line.member.label).and_then(|c| c.smoothed(line.points, row, view.curve));
                smoothed.unwrap_or_else(|| line.points.values().get(row))
            };
            (band::band(name, &points, view.curve.axis, value), nth)
        };
        groups.into_iter().enumerate().map(band_of).collect()
    }

    fn paint_lines(
        &mut self,
        ui: &Ui,
        frame: &Frame,
        lines: &[Line<'_>],
        view: &mut CardView<'_>,
        selection: &Selection,
    ) {
        let (p, settings) = (palette(ui), view.curve);
        for (band, nth) in &self.bands.all {
            paint::band(&ui.painter_at(frame.inner), frame, band, settings, p.series(*nth));
        }
        // A picked run includes the runs below its folder.
        let covers =
            |line: &Line<'_>| selection.run.get().is_some_and(|run| is_at_or_below(run, &line.member.run_label));
        let is_picked = lines.iter().any(covers);
        let weight = |line: &Line<'_>| match (is_picked, covers(line)) {
            (false, _) => Weight::Usual,
            (true, true) => Weight::Picked,
            (true, false) => Weight::Dimmed,
        };
        // Bands replace the lines of runs that are not picked.
        let is_shown = |line: &Line<'_>| self.bands.all.is_empty() || weight(line) == Weight::Picked;
        let behind = lines.iter().filter(|l| is_shown(l) && weight(l) != Weight::Picked);
        let front = lines.iter().filter(|l| is_shown(l) && weight(l) == Weight::Picked);
        let ordered: Vec<(&Line<'_>, Weight)> = behind.chain(front).map(|line| (line, weight(line))).collect();
        let mut hasher = FxHasher::default();
        for (line, weight) in &ordered {
            (line.points.len(), line.generation, line.member.color_idx, *weight as u8).hash(&mut hasher);
            line.member.label.hash(&mut hasher);
        }
        let size = (frame.inner.size() * ui.pixels_per_point()).round();
        let size = [size.x, size.y].map(|side| side.max(1.0) as usize);
        let key = Key { settings, bounds: frame.bounds, size, palette: p.id(), lines: hasher.finish() };
        let [lo, hi] = frame.bounds.x;
        let window = XWindow { lo, hi, n_columns: size[0] as u32 };
        let has_shapes_request = ui::export::has_shapes_request(ui.ctx());
        self.picture.receive(ui);
        let wants_new = self.picture.needs_drawing(&key);
        let curves = &self.curves;
        let styled = |(line, weight): &(&Line<'_>, Weight)| {
            let lines = curves.get(&line.member.label)?.lines_in_window(line.points, settings, window);
            Some(paint::styled(lines, settings, p, p.series(line.member.color_idx), *weight))
        };
        if has_shapes_request {
            let painter = ui.painter_at(frame.inner);
            let all = ordered.iter().filter_map(styled).flatten();
            return all.for_each(|styled| paint::curve(&painter, frame, &styled));
        }
        if wants_new {
            let n_points: Vec<usize> = ordered.iter().map(|(line, _)| line.points.len()).collect();
            let taken = self.picture.take(&key, &n_points, &mut view.budget);
            let lines = ordered[taken].iter().filter_map(styled).flatten();
            if self.picture.add(ui, frame, lines) {
                ui.ctx().request_repaint();
            }
        }
        self.picture.show(ui, frame);
    }

    /// Frees the pictures of a card that is not on the screen.
    pub fn forget_unseen(&mut self, frame_nr: u64) {
        self.picture.forget_unseen(frame_nr);
    }

    /// Paints crosshair and tooltip under the pointer, and the crosshair of another card's pointer.
    fn pointer(
        &self,
        ui: &Ui,
        response: &Response,
        frame: &Frame,
        lines: &[Line<'_>],
        view: &CardView<'_>,
        selection: &mut Selection,
    ) {
        let p = palette(ui);
        let settings = view.curve;
        let hairline = Stroke::new(metrics::HAIRLINE, p.text_weak);
        let line_at = |step: i64, stroke: Stroke| {
            let x = settings.x_scale().forward(step as f64);
            let has_steps = settings.axis == XAxis::Step && !settings.by_tag;
            if has_steps && (frame.bounds.x[0]..=frame.bounds.x[1]).contains(&x) {
                ui.painter().vline(frame.x(x), frame.inner.y_range(), stroke);
            }
        };
        if let Some(step) = selection.step.get() {
            line_at(*step, Stroke::new(metrics::HAIRLINE, p.accent));
        }
        let Some(at) = response.hover_pos().filter(|_| !response.dragged()) else {
            if let Some(step) = view.pointed {
                line_at(step, hairline);
            }
            return;
        };
        let x = frame.bounds.x_at(f64::from((at.x - frame.inner.left()) / frame.inner.width()));
        let mut rows = tooltip::rows(&self.curves, lines, settings, x);
        let up = (frame.inner.bottom() - at.y) / frame.inner.height();
        view.order.sort(&mut rows, settings, frame.bounds.y_at(f64::from(up)));
        if let Some(nearest) = rows.iter().min_by(|a, b| (a.x - x).abs().total_cmp(&(b.x - x).abs())) {
            ui.painter().vline(frame.x(nearest.x), frame.inner.y_range(), hairline);
            selection.pointed_step = Some(nearest.step);
            if response.clicked() {
                selection.step.set(ViewKind::Scalars, Some(nearest.step));
            }
        }
        let painter = ui.painter_at(frame.inner.expand(metrics::DOT));
        let place = |row: &tooltip::Row| {
            let y = settings.scale.forward(row.smoothed.unwrap_or(row.value));
            y.is_finite().then(|| frame.pos(row.x, y))
        };
        let places: Vec<(&tooltip::Row, Pos2)> = rows.iter().filter_map(|row| Some((row, place(row)?))).collect();
        for (row, pos) in &places {
            painter.circle_filled(*pos, metrics::DOT, p.series(row.color_idx));
        }
        if response.clicked() && lines.len() > 1 {
            let near = places.iter().map(|(row, pos)| (row, pos.distance(at)));
            let nearest = near.min_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, d)| *d <= metrics::PICK_SLACK);
            if let Some((row, _)) = nearest {
                selection.run.set(ViewKind::Scalars, Some(row.run_label.clone()));
            }
        }
        if !rows.is_empty() {
            response.show_tooltip_ui(|ui| tooltip::show(ui, &rows, settings));
        }
    }
}

/// The tag's series with points, on the chosen axis.
fn lines<'a>(
    paired: &'a mut FxHashMap<Arc<str>, PairedSeries>,
    row: &'a TagRow,
    data: &'a Data,
    view: &CardView<'_>,
    now: f64,
) -> Vec<Line<'a>> {
    let x_scale = view.curve.x_scale();
    let series_of = |member: &'a Member, tag: &str| member.series::<ScalarSeries>(data, tag);
    let own_series = |member: &'a Member| series_of(member, member.tag.as_deref().unwrap_or(&row.tag));
    if view.x_tag.is_none() {
        paired.clear();
    }
    for (member, x_tag) in row.members.iter().filter_map(|member| Some((member, view.x_tag?))) {
        if let (Some(series), Some(other)) = (own_series(member), series_of(member, x_tag)) {
            paired.entry(member.label.clone()).or_default().update(series, other, view.curve.smoothing, now);
        }
    }
    let paired = &*paired;
    let line = |member: &'a Member| {
        let (points, generation) = match view.x_tag {
            None => (Points::new(own_series(member)?), 0),
            Some(x_tag) => {
                series_of(member, x_tag)?;
                let pairing = paired.get(&member.label)?;
                (pairing.points(), pairing.generation())
            }
        };
        Some(Line { member, points: points.with_x_scale(x_scale), generation })
    };
    row.members.iter().filter_map(line).filter(|line| !line.points.is_empty()).collect()
}

/// The band between the tags below and above a line, at the steps that all three have.
fn margin(line: &Line<'_>, data: &Data, axis: XAxis) -> Option<(Band, usize)> {
    let [lower, upper] = line.member.band.as_ref()?;
    let by_step = |tag: &str| Some(align::values_by_step(line.member.series::<ScalarSeries>(data, tag)?));
    let (lower, upper) = (by_step(lower)?, by_step(upper)?);
    let series = line.points.series();
    let place = |i: usize| {
        let step = series.step(i);
        Some((line.points.x(axis, i), [*lower.get(&step)?, series.values().get(i), *upper.get(&step)?]))
    };
    let places = (0..series.len()).filter_map(place).collect();
    Some((Band { name: line.member.label.clone(), n_runs: 1, places }, line.member.color_idx))
}

/// Shows the newest value of each run in its colour, from right to left as far as there is room, a picked run's first.
fn last_values(ui: &mut Ui, lines: &[Line<'_>], selection: &Selection) {
    let p = palette(ui);
    let is_picked =
        |line: &&Line<'_>| selection.run.get().is_some_and(|run| is_at_or_below(run, &line.member.run_label));
    let (picked, others): (Vec<&Line<'_>>, Vec<&Line<'_>>) = lines.iter().rev().partition(is_picked);
    for (nth, line) in picked.into_iter().chain(others).enumerate() {
        // The newest by step: against another tag, points are in the order of that tag's values.
        let series = line.points.series();
        let latest = || series.points().max_by_key(|point| point.step);
        let last = if line.points.has_tag_x() { latest() } else { series.last() };
        let Some(last) = last.map(|point| point.value) else { continue };
        if ui.available_width() < metrics::VALUE_W {
            ui.weak(format!("+{}", lines.len() - nth)).on_hover_text("runs whose last values have no room here");
            return;
        }
        let color = if lines.len() == 1 { p.text_strong } else { p.series(line.member.color_idx) };
        ui.label(egui::RichText::new(format::value(last)).color(color))
            .on_hover_text(format!("last value of {}", line.member.label));
    }
}

/// `loss: 2 runs, 1,234 points, last 0.0312 at step 1,200`, for assistive technology; the value is that of the longest
/// run.
fn summary(row: &TagRow, lines: &[Line<'_>], view: &CardView<'_>, bands: &[(Band, usize)]) -> String {
    let n_points: usize = lines.iter().map(|line| line.points.len()).sum();
    let against = view.x_tag.map_or_else(String::new, |tag| format!(" against {tag}"));
    let n_runs = format::count_of(lines.len() as u64, "run");
    let mut text = format!("{}{against}: {n_runs}, {}", row.tag, format::count_of(n_points as u64, "point"));
    let longest = lines.iter().max_by_key(|line| line.points.len());
    if let Some(last) = longest.and_then(|l| l.points.series().last()) {
        text += &format!(", last {} at step {}", format::value(last.value), format::step(last.step));
    }
    for (band, _) in bands {
        let last = band.places.last().map_or(f64::NAN, |(_, values)| values[1]);
        let n_runs = format::count_of(band.n_runs as u64, "run");
        text += &format!("; group {}: {n_runs}, mean at the end {}", band.name, format::value(last));
    }
    text
}
