//! The roofline of each device: a point for each op, below the device's limits; both axes logarithmic.

use super::parts::{Target, heading, row_ui};
use egui::{Align2, FontId, Mesh, Pos2, Rect, Response, Sense, Shape, Stroke, Ui, pos2, vec2};
use trace_analysis::roofline::{Bound, Roof, Roofline, RooflineRow, Work};
use ui::{
    chart::dots,
    format,
    theme::{metrics, palette},
    widgets,
};

/// Ops that are listed, at most.
const MAX_ROWS: usize = 12;

/// Shows the rooflines of all devices.
pub(super) fn rooflines_ui(ui: &mut Ui, lines: &[Roofline], target: &mut Option<Target>) {
    for line in lines {
        let device = if line.device.is_empty() { "the host" } else { &line.device };
        heading(ui, &format!("Roofline of {device}"));
        ui.weak(limits_text(&line.roof));
        if let Some(scale) = Scale::from_roofline(line) {
            plot_ui(ui, line, &scale, target);
        }
        table_ui(ui, line, target);
    }
}

fn limits_text(roof: &Roof) -> String {
    let limits = match (roof.flops_per_s, roof.bytes_per_s) {
        (Some(flops), Some(bytes)) => {
            format!("At most {} and {}.", format::prefixed(flops, "FLOP/s"), format::prefixed(bytes, "B/s"))
        }
        (Some(flops), None) => {
            format!("At most {}; its memory bandwidth is unknown.", format::prefixed(flops, "FLOP/s"))
        }
        (None, Some(bytes)) => {
            format!("At most {}; its peak of operations is unknown.", format::prefixed(bytes, "B/s"))
        }
        (None, None) => "The device's limits are unknown.".to_owned(),
    };
    format!(
        "{limits} Ops at the left move too many bytes for what they compute, those at the right compute all the time."
    )
}

/// The ranges of both axes as exponents of ten: operations per byte, operations per second.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Scale {
    x: [i32; 2],
    y: [i32; 2],
}

impl Scale {
    /// Returns the ranges that hold every op and the ridge; `None` without an op.
    fn from_roofline(line: &Roofline) -> Option<Scale> {
        let mut points: Vec<(f64, f64)> = line.rows.iter().filter_map(|row| point(&row.work)).collect();
        if points.is_empty() {
            return None;
        }
        points.extend(line.roof.ridge().zip(line.roof.flops_per_s));
        let range = |coordinate: fn(&(f64, f64)) -> f64| {
            let logs = points.iter().map(|p| coordinate(p).log10());
            let (low, high) = logs.fold((f64::MAX, f64::MIN), |(low, high), log| (low.min(log), high.max(log)));
            // The margin keeps points off the frame.
            [(low - 0.05).floor() as i32, (high + 0.05).ceil() as i32]
        };
        Some(Scale { x: range(|p| p.0), y: range(|p| p.1) })
    }

    /// Returns a point as shares of the chart's width and height, from the left and from below.
    fn shares(&self, (x, y): (f64, f64)) -> (f64, f64) {
        let share =
            |value: f64, [low, high]: [i32; 2]| (value.log10() - f64::from(low)) / f64::from((high - low).max(1));
        (share(x, self.x), share(y, self.y))
    }
}

/// Returns operations per byte and per second; `None` if one is zero, which has no logarithm.
fn point(work: &Work) -> Option<(f64, f64)> {
    let (x, y) = (work.intensity()?, work.flops_per_s());
    (x > 0.0 && y > 0.0).then_some((x, y))
}

fn plot_ui(ui: &mut Ui, line: &Roofline, scale: &Scale, target: &mut Option<Target>) {
    let size = vec2(ui.available_width().min(metrics::CARD_W[1]), metrics::CARD_CHART_H[1]);
    let (outer, response) = ui.allocate_exact_size(size, Sense::click());
    let mut inner = outer;
    inner.min.x += 1.5 * metrics::AXIS_LABEL_W;
    inner.min.y += metrics::AXIS_LABEL_H / 2.0;
    inner.max.y -= 2.0 * metrics::AXIS_LABEL_H;
    let pos_of = |point: (f64, f64)| {
        let (x, y) = scale.shares(point);
        pos2(inner.left() + x as f32 * inner.width(), inner.bottom() - y as f32 * inner.height())
    };
    let p = palette(ui);
    ui.painter().rect_filled(inner, 0.0, p.canvas);
    paint_axes(ui, inner, scale, &pos_of);
    paint_roof(ui, inner, line, scale, &pos_of);
    let points: Vec<(&RooflineRow, Pos2)> =
        line.rows.iter().filter_map(|row| Some((row, pos_of(point(&row.work)?)))).collect();
    let mut mesh = Mesh::default();
    for (row, pos) in &points {
        let color = if line.roof.bound(&row.work) == Some(Bound::Memory) { p.warning } else { p.accent };
        dots::add(&mut mesh, *pos, 1.3 * metrics::DOT, color);
    }
    ui.painter().add(mesh);
    widgets::describe(&response, || {
        let n = format::count_of(points.len() as u64, "op");
        format!("Roofline: {n}, operations a second by operations per byte")
    });
    *target = hover_ui(ui, &response, &points, &line.roof).or(target.take());
}

/// Shows a tooltip for the op under the pointer; returns the evidence where the op was clicked.
fn hover_ui(ui: &Ui, response: &Response, points: &[(&RooflineRow, Pos2)], roof: &Roof) -> Option<Target> {
    let at = response.hover_pos()?;
    let (row, pos) = points.iter().min_by(|a, b| a.1.distance(at).total_cmp(&b.1.distance(at)))?;
    if pos.distance(at) > metrics::PICK_SLACK {
        return None;
    }
    ui.painter().circle_stroke(*pos, 2.0 * metrics::DOT, Stroke::new(metrics::LINE, palette(ui).highlight));
    response.show_tooltip_ui(|ui| {
        ui.strong(row.name.chars().take(80).collect::<String>());
        ui.label(format!("{} in {}", format::count_of(row.count, "execution"), format::duration_ns(row.work.ns)));
        ui.label(figures(&row.work, roof).join(", "));
    });
    response.clicked().then(|| Target::Op(row.name.as_str().into()))
}

/// Paints grid lines with labels.
fn paint_axes(ui: &Ui, inner: Rect, scale: &Scale, pos_of: &impl Fn((f64, f64)) -> Pos2) {
    let (p, font) = (palette(ui), FontId::proportional(metrics::TEXT_TICK));
    let painter = ui.painter();
    let grid = Stroke::new(metrics::HAIRLINE, p.grid);
    let tick_step = |low: i32, high: i32, length: f32, spacing: f32| {
        let max_ticks = (length / spacing).max(1.0) as u32;
        ((high - low) as u32).div_ceil(max_ticks).max(1) as usize
    };
    let (y0, x0) = (10f64.powi(scale.y[0]), 10f64.powi(scale.x[0]));
    let step = tick_step(scale.x[0], scale.x[1], inner.width(), metrics::TICK_EVERY_X);
    for power in (scale.x[0]..=scale.x[1]).step_by(step) {
        let x = pos_of((10f64.powi(power), y0)).x;
        painter.vline(x, inner.y_range(), grid);
        let text = format::value(10f64.powi(power));
        painter.text(pos2(x, inner.bottom() + 2.0 * metrics::GAP), Align2::CENTER_TOP, text, font.clone(), p.text_weak);
    }
    let step = tick_step(scale.y[0], scale.y[1], inner.height(), metrics::TICK_EVERY_Y);
    for power in (scale.y[0]..=scale.y[1]).step_by(step) {
        let y = pos_of((x0, 10f64.powi(power))).y;
        painter.hline(inner.x_range(), y, grid);
        let text = format::prefixed(10f64.powi(power), "FLOP/s").replace(".00", "");
        painter.text(pos2(inner.left() - metrics::GAP, y), Align2::RIGHT_CENTER, text, font.clone(), p.text_weak);
    }
    let below = pos2(inner.center().x, inner.bottom() + metrics::AXIS_LABEL_H + metrics::GAP);
    painter.text(below, Align2::CENTER_TOP, "operations per byte", font, p.text_weak);
}

/// Paints the limits: memory up to the ridge, arithmetic beyond it; or the only one that is known.
fn paint_roof(ui: &Ui, inner: Rect, line: &Roofline, scale: &Scale, pos_of: &impl Fn((f64, f64)) -> Pos2) {
    let [left, right] = scale.x.map(|power| 10f64.powi(power));
    let Roof { flops_per_s: flops, bytes_per_s: bytes } = line.roof;
    let limit = |x: f64| bytes.map_or(f64::MAX, |b| b * x).min(flops.unwrap_or(f64::MAX));
    if flops.is_none() && bytes.is_none() {
        return;
    }
    let ridge = line.roof.ridge().filter(|x| (left..right).contains(x));
    let points = [Some(left), ridge, Some(right)].into_iter().flatten().map(|x| pos_of((x, limit(x)))).collect();
    let stroke = Stroke::new(metrics::LINE_STRONG, palette(ui).text_strong);
    ui.painter_at(inner).add(Shape::line(points, stroke));
}

/// Returns the rates, the operations per byte, the limit, and the share of the limit that was reached.
fn figures(work: &Work, roof: &Roof) -> Vec<String> {
    let mut figures = vec![format::prefixed(work.flops_per_s(), "FLOP/s"), format::prefixed(work.bytes_per_s(), "B/s")];
    figures.push(work.intensity().map_or_else(|| "-".to_owned(), |i| format!("{} FLOP/B", format::value(i))));
    figures.push(roof.bound(work).map_or_else(|| "-".to_owned(), |bound| format!("bound by {}", bound.name())));
    figures.push(roof.share(work).map_or_else(|| "-".to_owned(), |s| format!("{} of its limit", format::percent(s))));
    figures
}

fn table_ui(ui: &mut Ui, line: &Roofline, target: &mut Option<Target>) {
    widgets::figure_grid(
        ui,
        ("roofline", &line.device),
        &["Name", "Time", "Operations", "Memory", "Per byte", "Bound", "Reached"],
        |ui| {
            for row in line.rows.iter().take(MAX_ROWS) {
                let mut cells = vec![format::duration_ns(row.work.ns)];
                cells.extend(figures(&row.work, &line.roof));
                let name: String = row.name.chars().take(80).collect();
                if row_ui(ui, &name, &cells, "Highlights its slices in Timeline") {
                    *target = Some(Target::Op(row.name.as_str().into()));
                }
            }
        },
    );
    if line.rows.len() > MAX_ROWS {
        let more = format::count((line.rows.len() - MAX_ROWS) as u64);
        ui.weak(format!("and {more} more: see stepscope analyze --json"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(works: &[(f64, f64, i64)], roof: Roof) -> Roofline {
        let row = |&(flops, bytes, ns): &(f64, f64, i64)| {
            let work = Work { flops, bytes, ns };
            RooflineRow { name: "dot".into(), category: "kernel".into(), count: 1, work }
        };
        let rows = works.iter().map(row).collect();
        Roofline { device: "TPU:0".into(), roof, total: Work::default(), rows }
    }

    #[test]
    fn a_scale_holds_every_op_and_the_ridge() {
        let roof = Roof { flops_per_s: Some(2e14), bytes_per_s: Some(1e12) };
        // 500 GFLOP/s at 5 operations per byte; one without memory traffic has no place.
        let scale = Scale::from_roofline(&line(&[(500.0, 100.0, 1), (7.0, 0.0, 1)], roof)).unwrap();
        assert_eq!(scale, Scale { x: [0, 3], y: [11, 15] });
        let (x, y) = scale.shares((10.0, 1e13));
        assert!((x - 1.0 / 3.0).abs() < 1e-9 && (y - 0.5).abs() < 1e-9, "{x} {y}");
        assert_eq!(Scale::from_roofline(&line(&[(7.0, 0.0, 1)], roof)), None);
        let alone = Scale::from_roofline(&line(&[(1000.0, 1.0, 1)], Roof::default())).unwrap();
        assert_eq!(alone, Scale { x: [2, 4], y: [11, 13] }, "a point on a power of ten has room on both sides");
    }
}
