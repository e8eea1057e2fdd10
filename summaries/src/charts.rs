//! Static charts as SVG, for reports: curves with bands, histogram ridges, distributions. Legible from 600 pixels of width
//! on, in light and in dark.

use plotters::{coord::Shift, prelude::*};

use crate::histogram::Histogram;

/// Okabe and Ito's colours, which people with colour-blindness can tell apart; the two that are hard to see on one of the
/// grounds come last.
const COLORS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
    RGBColor(128, 128, 128),
];
/// Letters' height in pixels: what is legible where a page shows 600 pixels as they are.
const TEXT: u32 = 12;
/// The title's.
const TITLE: u32 = 15;

/// The ground of a chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Theme {
    /// Dark on white.
    Light,
    /// Light on black.
    Dark,
}

/// How large a chart is, and its ground.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    /// Pixels.
    pub width: u32,
    /// Pixels.
    pub height: u32,
    /// The ground.
    pub theme: Theme,
}

impl Default for Style {
    fn default() -> Self {
        Self { width: 600, height: 320, theme: Theme::Light }
    }
}

/// A line, and the band about it.
#[derive(Debug, Clone, Default)]
pub struct Curve {
    /// What the legend calls it; empty for none.
    pub label: String,
    /// x and y. A y that is not finite breaks the line.
    pub points: Vec<(f64, f64)>,
    /// x, lower and upper end; empty for none.
    pub band: Vec<(f64, f64, f64)>,
}

/// A chart that could not be drawn.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the chart cannot be drawn: {0}")]
pub struct ChartError(String);

/// Curves over a common x axis.
///
/// ```
/// use stepscope_summaries::charts::{Curve, Style, curves};
///
/// let points = (0..50).map(|x| (f64::from(x), (-0.1 * f64::from(x)).exp())).collect();
/// let svg = curves("loss", "step", &[Curve { label: "mlp".into(), points, band: vec![] }], Style::default())?;
/// assert!(svg.starts_with("<svg") && svg.contains("mlp"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// When it cannot be drawn.
pub fn curves(title: &str, x_label: &str, curves: &[Curve], style: Style) -> Result<String, ChartError> {
    let xy = || {
        let of_lines = curves.iter().flat_map(|c| c.points.iter().copied());
        let of_bands = curves.iter().flat_map(|c| c.band.iter().flat_map(|&(x, lo, hi)| [(x, lo), (x, hi)]));
        of_lines.chain(of_bands).filter(|(x, y)| x.is_finite() && y.is_finite())
    };
    let (x, y) = (around(xy().map(|p| p.0), 0.0), around(xy().map(|p| p.1), 0.05));
    drawn(style, |area| {
        let paint = Paint::of(style.theme);
        let mut chart = frame(area, title, (x[0]..x[1], y[0]..y[1]))?;
        let mut mesh = chart.configure_mesh();
        mesh.x_desc(x_label).axis_style(paint.text.mix(0.5)).light_line_style(TRANSPARENT);
        mesh.bold_line_style(paint.text.mix(0.15)).label_style(paint.letters(TEXT)).x_labels(6).y_labels(6).draw()?;
        for (i, curve) in curves.iter().enumerate() {
            let color = COLORS[i % COLORS.len()];
            let is_finite = |&&(x, lo, hi): &&(f64, f64, f64)| [x, lo, hi].iter().all(|v| v.is_finite());
            let upper = curve.band.iter().filter(is_finite).map(|&(x, _, hi)| (x, hi));
            let lower = curve.band.iter().rev().filter(is_finite).map(|&(x, lo, _)| (x, lo));
            let outline: Vec<(f64, f64)> = upper.chain(lower).collect();
            chart.draw_series([Polygon::new(outline, color.mix(0.2))])?;
            let pieces =
                curve.points.split(|(x, y)| !x.is_finite() || !y.is_finite()).filter(|piece| !piece.is_empty());
            for piece in pieces {
                chart.draw_series([PathElement::new(piece.to_vec(), color.stroke_width(2))])?;
            }
        }
        legend(area, curves, &paint)
    })
}

/// Histograms one behind the other, the newest in front: each is its step and its distribution.
///
/// # Errors
/// When it cannot be drawn.
pub fn ridges(title: &str, rows: &[(i64, &Histogram)], style: Style) -> Result<String, ChartError> {
    let x = around(rows.iter().flat_map(|(_, h)| [h.min, h.max]).filter(|v| v.is_finite()), 0.02);
    let densities: Vec<Vec<(f64, f64)>> = rows.iter().map(|(_, histogram)| density(histogram)).collect();
    let tallest = densities.iter().flatten().map(|p| p.1).fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let n = rows.len().max(1) as f64;
    drawn(style, |area| {
        let paint = Paint::of(style.theme);
        // A ridge rises over the four behind it at most.
        let mut chart = frame(area, title, (x[0]..x[1], 0.0..n + 4.0))?;
        let step = |y: &f64| {
            let row = rows.len().checked_sub(1 + y.round() as usize).and_then(|row| rows.get(row));
            row.map_or_else(String::new, |(step, _)| step.to_string())
        };
        let mut mesh = chart.configure_mesh();
        mesh.disable_y_mesh().axis_style(paint.text.mix(0.5)).light_line_style(TRANSPARENT).y_desc("step");
        mesh.bold_line_style(paint.text.mix(0.15)).label_style(paint.letters(TEXT)).x_labels(6).y_labels(8);
        mesh.y_label_formatter(&step).draw()?;
        for (row, outline) in densities.iter().enumerate() {
            let base = (rows.len() - 1 - row) as f64;
            let place = |&(x, y): &(f64, f64)| (x, base + y / tallest * 4.0);
            let ridge: Vec<(f64, f64)> = outline.iter().map(place).collect();
            let age = row as f64 / n;
            chart.draw_series([Polygon::new(ridge.clone(), paint.ground.mix(0.85))])?;
            chart.draw_series([PathElement::new(ridge, COLORS[0].mix(0.4 + 0.6 * age).stroke_width(1))])?;
        }
        Ok(())
    })
}

/// How distributions move: TensorBoard's percentiles (0, 6.68, 15.87, 30.85, 50, 69.15, 84.13, 93.32, 100: half a standard
/// deviation apart of a normal distribution) as nested bands over the steps.
///
/// # Errors
/// When it cannot be drawn.
pub fn distributions(title: &str, rows: &[(i64, &Histogram)], style: Style) -> Result<String, ChartError> {
    const PERCENTILES: [f64; 9] = [0.0, 0.0668, 0.1587, 0.3085, 0.5, 0.6915, 0.8413, 0.9332, 1.0];
    let line = |q: f64| -> Vec<(f64, f64)> {
        let points = rows.iter().map(|(step, histogram)| (*step as f64, histogram.quantile(q)));
        points.filter(|(_, y)| y.is_finite()).collect()
    };
    let lines: Vec<Vec<(f64, f64)>> = PERCENTILES.iter().map(|q| line(*q)).collect();
    let all = || lines.iter().flatten().copied();
    let (x, y) = (around(all().map(|p| p.0), 0.0), around(all().map(|p| p.1), 0.05));
    drawn(style, |area| {
        let paint = Paint::of(style.theme);
        let mut chart = frame(area, title, (x[0]..x[1], y[0]..y[1]))?;
        let mut mesh = chart.configure_mesh();
        mesh.x_desc("step").axis_style(paint.text.mix(0.5)).light_line_style(TRANSPARENT);
        mesh.bold_line_style(paint.text.mix(0.15)).label_style(paint.letters(TEXT)).x_labels(6).y_labels(6).draw()?;
        for outer in 0..4 {
            let outline = lines[outer].iter().chain(lines[8 - outer].iter().rev()).copied().collect::<Vec<_>>();
            chart.draw_series([Polygon::new(outline, COLORS[0].mix(0.22))])?;
        }
        chart.draw_series([PathElement::new(lines[4].clone(), COLORS[0].stroke_width(2))])?;
        Ok(())
    })
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn<T> = Result<T, DrawingAreaErrorKind<std::io::Error>>;
type Chart<'a, 'b> = ChartContext<
    'a,
    SVGBackend<'b>,
    Cartesian2d<plotters::coord::types::RangedCoordf64, plotters::coord::types::RangedCoordf64>,
>;

/// Ground and letters.
struct Paint {
    ground: RGBColor,
    text: RGBColor,
}

impl Paint {
    fn of(theme: Theme) -> Self {
        match theme {
            Theme::Light => Self { ground: WHITE, text: RGBColor(32, 32, 32) },
            Theme::Dark => Self { ground: RGBColor(24, 26, 30), text: RGBColor(222, 222, 222) },
        }
    }

    fn letters(&self, size: u32) -> TextStyle<'static> {
        ("sans-serif", size).into_font().color(&self.text)
    }
}

fn drawn(style: Style, draw: impl FnOnce(&Area<'_>) -> Drawn<()>) -> Result<String, ChartError> {
    let mut svg = String::new();
    let area = SVGBackend::with_string(&mut svg, (style.width.max(64), style.height.max(64))).into_drawing_area();
    let result = area.fill(&Paint::of(style.theme).ground).and_then(|()| draw(&area)).and_then(|()| area.present());
    drop(area);
    result.map_err(|e| ChartError(e.to_string()))?;
    Ok(svg)
}

fn frame<'a, 'b>(
    area: &'a Area<'b>,
    title: &str,
    (x, y): (std::ops::Range<f64>, std::ops::Range<f64>),
) -> Drawn<Chart<'a, 'b>> {
    let letters = ("sans-serif", TITLE).into_font().color(&COLORS[6]);
    let mut chart = ChartBuilder::on(area);
    chart.margin(10).margin_right(18).x_label_area_size(3 * TEXT).y_label_area_size(5 * TEXT);
    chart.caption(title, letters).build_cartesian_2d(x, y)
}

/// The curves' names at the top right, each in its colour.
fn legend(area: &Area<'_>, curves: &[Curve], paint: &Paint) -> Drawn<()> {
    let (width, _) = area.dim_in_pixel();
    let named = curves.iter().enumerate().filter(|(_, curve)| !curve.label.is_empty());
    for (line, (i, curve)) in named.enumerate() {
        let y = (TITLE + 18) as i32 + (line as u32 * (TEXT + 5)) as i32;
        let right = width as i32 - 24;
        let color = COLORS[i % COLORS.len()];
        area.draw(&Rectangle::new([(right - 10, y), (right, y + 10)], color.filled()))?;
        let pos = plotters::style::text_anchor::Pos::new(
            plotters::style::text_anchor::HPos::Right,
            plotters::style::text_anchor::VPos::Top,
        );
        area.draw(&Text::new(curve.label.clone(), (right - 16, y - 1), paint.letters(TEXT).pos(pos)))?;
    }
    Ok(())
}

/// From the least to the greatest, with this share of room at both ends; never without a width.
fn around(values: impl Iterator<Item = f64>, room: f64) -> [f64; 2] {
    let [lo, hi] = values.fold([f64::INFINITY, f64::NEG_INFINITY], |[lo, hi], v| [lo.min(v), hi.max(v)]);
    if lo > hi {
        return [0.0, 1.0];
    }
    let width = hi - lo;
    // Beyond the largest floats there is no width to add to.
    let room = if width > 0.0 && width.is_finite() { width * room } else { (lo.abs() * 0.05).max(1e-9) };
    [(lo - room).max(f64::MIN / 4.0), (hi + room).min(f64::MAX / 4.0)]
}

/// The outline of a histogram: counts by width, on the ground at both ends.
fn density(histogram: &Histogram) -> Vec<(f64, f64)> {
    let full = histogram.buckets.iter().filter(|b| [b.left, b.right, b.count].iter().all(|v| v.is_finite()));
    let points: Vec<(f64, f64)> = full
        .map(|b| {
            let width = (b.right - b.left).abs().max(f64::MIN_POSITIVE);
            let share = width / (histogram.max - histogram.min).max(f64::MIN_POSITIVE);
            ((b.left + b.right) / 2.0, b.count / share.max(1e-3))
        })
        .collect();
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return Vec::new() };
    let ends = ((first.0, 0.0), (last.0, 0.0));
    [ends.0].into_iter().chain(points.iter().copied()).chain([ends.1]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::Bucket;

    fn histogram(shift: f64) -> Histogram {
        let bucket = |i: i32| Bucket {
            left: f64::from(i) + shift,
            right: f64::from(i + 1) + shift,
            count: f64::from((i + 1) * (10 - i)),
        };
        Histogram::from_buckets((0..10).map(bucket).collect())
    }

    #[test]
    fn odd_data_is_drawn_all_the_same() {
        let odd = [f64::NAN, f64::INFINITY, f64::MAX, f64::MIN, 0.0, 1.0];
        let points: Vec<(f64, f64)> = (0..).map(f64::from).zip(odd).collect();
        let band = points.iter().map(|&(x, y)| (x, y - 1.0, y + 1.0)).collect();
        for points in [Vec::new(), points, vec![(1.0, 1.0)]] {
            let curve = Curve { label: "odd & <strange>".into(), points, band: Vec::clone(&band) };
            let svg = curves("t", "x", &[curve], Style::default()).unwrap();
            assert!(svg.contains("odd &amp; &lt;strange&gt;") && !svg.contains("NaN"), "{svg}");
        }
        let empty = Histogram::from_buckets(Vec::new());
        for rows in [&[][..], &[(0, &empty)]] {
            ridges("t", rows, Style::default()).unwrap();
            distributions("t", rows, Style::default()).unwrap();
        }
    }

    #[test]
    fn both_grounds_and_all_letters_are_there() {
        let (a, b) = (histogram(0.0), histogram(3.0));
        let rows = [(10, &a), (20, &b)];
        for (theme, ground) in [(Theme::Light, "#FFFFFF"), (Theme::Dark, "#181A1E")] {
            let style = Style { theme, ..Style::default() };
            let curve = Curve { label: "mlp".into(), points: vec![(0.0, 1.0), (9.0, 2.0)], band: vec![] };
            for svg in [
                curves("weights", "step", &[curve], style).unwrap(),
                ridges("weights", &rows, style).unwrap(),
                distributions("weights", &rows, style).unwrap(),
            ] {
                assert!(svg.contains(ground) && svg.contains("weights"));
                let sizes =
                    svg.split("font-size=\"").skip(1).filter_map(|rest| rest.split('"').next()?.parse::<f64>().ok());
                // plotters gives SVG letters 1/1.24 of their height.
                assert!(sizes.fold(f64::INFINITY, f64::min) > 9.0, "legible letters");
            }
        }
    }
}
