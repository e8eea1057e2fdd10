//! Curves with bands.

use plotters::{
    prelude::*,
    style::text_anchor::{HPos, Pos, VPos},
};

use super::paint::{Area, DrawResult, Paint, TEXT_HEIGHT, TITLE_HEIGHT, padded_range};

/// A line with a band around it.
#[derive(Debug, Clone, Default)]
pub struct Curve {
    /// The name in the legend; empty for none.
    pub label: String,
    /// x and y. A y that is not finite breaks the line.
    pub points: Vec<(f64, f64)>,
    /// x, lower end and upper end of each point of the band; empty for none.
    pub band: Vec<(f64, f64, f64)>,
}

/// The most points of a line or band that are drawn; of a longer one only the extremes of each stretch.
const MAX_POINTS: usize = 4_000;
/// The most labels in the legend, which ends with the number of the others.
const MAX_LABELS: usize = 10;

pub(super) fn draw<DB: DrawingBackend>(
    area: &Area<DB>,
    paint: &Paint,
    title: &str,
    names: (&str, &str),
    curves: &[Curve],
) -> DrawResult<(), DB> {
    let finite_points = || {
        let line_points = curves.iter().flat_map(|c| c.points.iter().copied());
        let band_points = curves.iter().flat_map(|c| c.band.iter().flat_map(|&(x, lo, hi)| [(x, lo), (x, hi)]));
        line_points.chain(band_points).filter(|(x, y)| x.is_finite() && y.is_finite())
    };
    let (x, y) = (padded_range(finite_points().map(|p| p.0), 0.0), padded_range(finite_points().map(|p| p.1), 0.05));
    let mut chart = paint.frame(area, title, (x, y))?;
    paint.axes(&mut chart, names, None)?;
    for (i, curve) in curves.iter().enumerate().filter(|(_, curve)| !curve.band.is_empty()) {
        let is_finite = |&&(x, lo, hi): &&(f64, f64, f64)| [x, lo, hi].iter().all(|v| v.is_finite());
        let edge = |y_of: fn(&(f64, f64, f64)) -> f64| {
            thin(&curve.band.iter().filter(is_finite).map(|p| (p.0, y_of(p))).collect::<Vec<_>>())
        };
        let (upper, lower) = (edge(|p| p.2), edge(|p| p.1));
        let outline: Vec<(f64, f64)> = upper.into_iter().chain(lower.into_iter().rev()).collect();
        chart.draw_series([Polygon::new(outline, paint.color(i).mix(0.2))])?;
    }
    for (i, curve) in curves.iter().enumerate() {
        let pieces = curve.points.split(|(x, y)| !x.is_finite() || !y.is_finite()).filter(|piece| !piece.is_empty());
        for piece in pieces {
            let line = paint.color(i).stroke_width(paint.px(2) * 3 / 4);
            paint.line(&mut chart, thin(piece), line)?;
        }
    }
    legend(area, paint, curves)
}

/// Thins points out to the first, lowest, highest and last point of each stretch.
fn thin(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    if points.len() <= MAX_POINTS {
        return points.to_vec();
    }
    let stretch = points.len().div_ceil(MAX_POINTS / 4);
    let extremes = |part: &[(f64, f64)]| {
        let by_y = |a: &usize, b: &usize| part[*a].1.total_cmp(&part[*b].1);
        let (lowest, highest) = ((0..part.len()).min_by(by_y), (0..part.len()).max_by(by_y));
        let mut indices: Vec<usize> = [Some(0), lowest, highest, Some(part.len() - 1)].into_iter().flatten().collect();
        indices.sort_unstable();
        indices.dedup();
        indices.into_iter().map(|i| part[i]).collect::<Vec<_>>()
    };
    points.chunks(stretch).flat_map(extremes).collect()
}

/// Draws the labels of the curves at the top right, each with its colour; nothing where no curve has a label.
fn legend<DB: DrawingBackend>(area: &Area<DB>, paint: &Paint, curves: &[Curve]) -> DrawResult<(), DB> {
    let px = |n: u32| paint.px(n) as i32;
    let labels = curves.iter().enumerate().filter(|(_, curve)| !curve.label.is_empty());
    let n_labels = labels.clone().count();
    let mut entries: Vec<(String, RGBColor)> = labels
        .take(MAX_LABELS)
        .map(|(i, curve)| (paint.truncate(&curve.label, TEXT_HEIGHT, 200), paint.color(i)))
        .collect();
    if n_labels > MAX_LABELS {
        entries.push((format!("and {} more", n_labels - MAX_LABELS), paint.background));
    }
    let widths = entries
        .iter()
        .map(|(name, _)| area.estimate_text_size(name, &paint.text_style(TEXT_HEIGHT)).map(|size| size.0));
    let widest = widths.collect::<Result<Vec<u32>, _>>()?.into_iter().max().unwrap_or(0) as i32;
    let (right, top) = (area.dim_in_pixel().0 as i32 - px(26), px(TITLE_HEIGHT + 16));
    let bottom = top + entries.len() as i32 * px(TEXT_HEIGHT + 4) + px(2);
    if !entries.is_empty() {
        let background = paint.background.mix(0.75).filled();
        area.draw(&Rectangle::new([(right - widest - px(20), top - px(4)), (right + px(2), bottom)], background))?;
    }
    for (line, (name, color)) in entries.into_iter().enumerate() {
        let y = top + line as i32 * px(TEXT_HEIGHT + 4);
        area.draw(&Rectangle::new([(right - px(10), y), (right, y + px(10))], color.filled()))?;
        let place = Pos::new(HPos::Right, VPos::Center);
        area.draw(&Text::new(name, (right - px(16), y + px(5)), paint.text_style(TEXT_HEIGHT).pos(place)))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_the_extremes() {
        let mut points: Vec<(f64, f64)> = (0..100_000).map(|i| (f64::from(i), f64::from(i % 7))).collect();
        points[50_001].1 = 99.0;
        points[70_001].1 = -99.0;
        let thin = thin(&points);
        assert!(thin.len() <= MAX_POINTS + 4 && thin[0] == points[0] && thin.last() == points.last());
        assert!(thin.contains(&points[50_001]) && thin.contains(&points[70_001]));
        assert!(thin.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }
}
