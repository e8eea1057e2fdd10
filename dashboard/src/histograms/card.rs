//! The card of one histogram series: ridges one behind the other (newest in front) or on one base line, or bands over
//! steps.

use super::{
    axis,
    bands::Bands,
    bins::{N_BINS, Ridge, Ridges},
    distribution,
    settings::{Mode, Settings},
};
use crate::{
    Data, Selection, ViewKind,
    cards::{XAxis, card_frame},
    catalogue::TagRow,
};
use egui::{Color32, Pos2, Rect, Response, Sense, Shape, Stroke, Ui, pos2};
use summaries::HistogramSeries;
use ui::{
    chart::{
        extent, strip,
        ticks::{Unit, date_time, ticks},
    },
    format,
    theme::{metrics, mix, palette},
    widgets,
};

/// The cached contents of a card.
#[derive(Debug, Default)]
pub struct Card {
    ridges: Ridges,
    bands: Bands,
}

/// The geometry of the ridges.
struct RidgeLayout {
    inner: Rect,
    mode: Mode,
    /// The least position on the axis of steps or times, and the length of that axis.
    lo: f64,
    span: f64,
    /// Height of the greatest count, points.
    rise: f32,
}

impl Card {
    /// Shows the card in all of `ui`'s space; returns whether its width is toggled.
    pub fn ui(
        &mut self,
        ui: &mut Ui,
        row: &TagRow,
        data: &Data,
        settings: &Settings,
        selection: &mut Selection,
        is_wide: bool,
    ) -> bool {
        let (mode, axis) = (settings.mode, settings.axis);
        let series = row.members.first().and_then(|m| m.series::<HistogramSeries>(data, &row.tag));
        let kind = ViewKind::Histograms;
        let (clicks, outer) = card_frame(ui, (kind, row), (is_wide, None), selection, |ui, _| {
            if let Some(step) = series.and_then(|s| s.step.last()) {
                ui.weak(format!("step {}", format::step(*step)));
            }
        });
        let Some(series) = series else {
            return clicks.is_width_toggled;
        };
        let mut inner = outer;
        inner.min.x += metrics::PAD;
        inner.max.x -= metrics::AXIS_LABEL_W;
        inner.max.y -= metrics::AXIS_LABEL_H;
        let response = ui.interact(inner, ui.scope_id().with("chart"), Sense::click());
        let color = palette(ui).series(row.members.first().map_or(0, |m| m.color_idx));
        if mode == Mode::Distribution {
            self.bands.update(series, axis);
            let bands = &self.bands;
            widgets::describe(&response, || {
                let newest = bands.rows.last().map(|row| [row.values[0], row.values[row.values.len() - 1]]);
                let median = bands.rows.last().map_or_else(String::new, |row| {
                    format!(", half of the values below {}", format::value(row.median()))
                });
                summary(row, series, newest) + &median
            });
            distribution::show(ui, &response, bands, axis, color, series);
            return clicks.is_width_toggled;
        }
        self.ridges.update(series, axis);
        let ridges = &self.ridges;
        widgets::describe(&response, || summary(row, series, ridges.newest));
        let layout = RidgeLayout::new(inner, mode, ridges);
        paint_axes(ui, &layout, ridges, axis);
        paint_ridges(ui, &layout, ridges, color);
        if let Some(step) = selection.step.get() {
            paint_picked(ui, &layout, ridges, *step);
        }
        if let Some(step) = hover_ui(ui, &response, &layout, ridges, series) {
            selection.step.set(kind, Some(step));
        }
        clicks.is_width_toggled
    }
}

impl RidgeLayout {
    fn new(inner: Rect, mode: Mode, ridges: &Ridges) -> Self {
        let [lo, hi] = extent(ridges.rows.iter().map(|ridge| ridge.x));
        let share = if mode == Mode::Offset { metrics::RIDGE_RISE } else { 0.95 };
        Self { inner, mode, lo, span: hi - lo, rise: inner.height() * share }
    }

    /// Returns the base line (y) of a ridge: the oldest is at the back (above), the newest in front.
    fn base(&self, x: f64) -> f32 {
        let depth = self.inner.height() - self.rise;
        match self.mode {
            Mode::Overlay => self.inner.bottom(),
            Mode::Offset if self.span > 0.0 => {
                self.inner.top() + self.rise + ((x - self.lo) / self.span) as f32 * depth
            }
            Mode::Offset | Mode::Distribution => self.inner.bottom(),
        }
    }

    /// Returns the outline of a ridge through the middles of its bins; both ends are on the base line.
    fn outline(&self, ridge: &Ridge, greatest: f64) -> Vec<Pos2> {
        let base = self.base(ridge.x);
        let bin_w = self.inner.width() / N_BINS as f32;
        let height = |count: f64| if greatest > 0.0 { (count / greatest) as f32 * self.rise } else { 0.0 };
        let tops = ridge.bins.iter().enumerate();
        let tops = tops.map(|(i, count)| pos2(self.inner.left() + (i as f32 + 0.5) * bin_w, base - height(*count)));
        let ends = [pos2(self.inner.left(), base), pos2(self.inner.right(), base)];
        [ends[0]].into_iter().chain(tops).chain([ends[1]]).collect()
    }
}

fn paint_ridges(ui: &Ui, layout: &RidgeLayout, ridges: &Ridges, color: Color32) {
    let p = palette(ui);
    let painter = ui.painter_at(layout.inner.expand(1.0));
    let n = ridges.rows.len().max(2);
    for (i, ridge) in ridges.rows.iter().enumerate() {
        // Older ridges fade into the background.
        let age = i as f32 / (n - 1) as f32;
        let tone = mix(p.canvas, color, 0.3 + 0.6 * age);
        let outline = layout.outline(ridge, ridges.greatest);
        if layout.mode == Mode::Offset {
            let base = layout.base(ridge.x);
            painter.add(strip(outline.iter().map(|top| [*top, pos2(top.x, base)]), tone));
            painter.add(Shape::line(outline, Stroke::new(metrics::HAIRLINE, mix(p.canvas, p.text, 0.1 + 0.15 * age))));
        } else {
            painter.add(Shape::line(outline, Stroke::new(metrics::HAIRLINE, tone)));
        }
    }
}

/// Draws the axis of values below, and of steps or times at the right.
fn paint_axes(ui: &Ui, layout: &RidgeLayout, ridges: &Ridges, axis: XAxis) {
    let inner = layout.inner;
    let n_columns = (inner.width() / metrics::TICK_EVERY_X).round().max(2.0) as usize;
    let x = |at: f64| inner.left() + ((at - ridges.lo) / (ridges.hi - ridges.lo)) as f32 * inner.width();
    axis::vertical_lines(ui, inner, &ticks(Unit::Number, ridges.lo, ridges.hi, n_columns), x);
    if layout.mode != Mode::Overlay {
        let n_rows = ((inner.height() - layout.rise) / metrics::TICK_EVERY_Y).round().max(2.0) as usize;
        let lines = ticks(axis.unit(), layout.lo, layout.lo + layout.span, n_rows);
        axis::horizontal_lines(ui, inner, &lines, |at| layout.base(at));
    }
}

/// Highlights the ridge of the picked step, if that step is drawn.
fn paint_picked(ui: &Ui, layout: &RidgeLayout, ridges: &Ridges, step: i64) {
    let Some(ridge) = ridges.rows.iter().rev().find(|ridge| ridge.step == step) else { return };
    let outline = layout.outline(ridge, ridges.greatest);
    ui.painter_at(layout.inner).add(Shape::line(outline, Stroke::new(metrics::LINE, palette(ui).accent)));
}

/// Highlights the ridge under the pointer and shows its step, the bin and its count; returns the step that was clicked.
fn hover_ui(
    ui: &Ui,
    response: &Response,
    layout: &RidgeLayout,
    ridges: &Ridges,
    series: &HistogramSeries,
) -> Option<i64> {
    let at = response.hover_pos()?;
    let bin_position = (at.x - layout.inner.left()) / layout.inner.width() * N_BINS as f32;
    let bin = (bin_position.max(0.0) as usize).min(N_BINS - 1);
    let top = |ridge: &Ridge| {
        let share = if ridges.greatest > 0.0 { (ridge.bins[bin] / ridges.greatest) as f32 } else { 0.0 };
        layout.base(ridge.x) - share * layout.rise
    };
    let distance = |ridge: &&Ridge| (top(ridge) - at.y).abs();
    let ridge = ridges.rows.iter().rev().min_by(|a, b| distance(a).total_cmp(&distance(b)))?;
    let p = palette(ui);
    let painter = ui.painter_at(layout.inner.expand(metrics::DOT));
    let outline = layout.outline(ridge, ridges.greatest);
    painter.add(Shape::line(outline, Stroke::new(metrics::LINE, p.highlight)));
    let x = layout.inner.left() + (bin as f32 + 0.5) * layout.inner.width() / N_BINS as f32;
    painter.circle_filled(pos2(x, top(ridge)), metrics::DOT, p.highlight);
    let [lo, hi] = ridges.bin_range(bin);
    response.show_tooltip_ui(|ui| {
        let n_values: f64 = ridge.bins.iter().sum();
        ui.label(format!("step {}", format::step(ridge.step)));
        ui.label(format!("{} of {} values", format::value(ridge.bins[bin].round()), format::value(n_values.round())));
        ui.label(format!("between {} and {}", format::value(lo), format::value(hi)));
        ui.weak(date_time(series.wall[ridge.row]));
    });
    response.clicked().then_some(ridge.step)
}

/// Returns a text for assistive technology: `w1: 60 histograms, last at step 1,200, from -0.31 to 0.29`.
fn summary(row: &TagRow, series: &HistogramSeries, newest: Option<[f64; 2]>) -> String {
    let n = format::count_of(series.len() as u64, "histogram");
    match (newest, series.step.last()) {
        (Some([min, max]), Some(step)) => format!(
            "{}: {n}, last at step {}, from {} to {}",
            row.tag,
            format::step(*step),
            format::value(min),
            format::value(max)
        ),
        _ => format!("{}: {n}", row.tag),
    }
}
