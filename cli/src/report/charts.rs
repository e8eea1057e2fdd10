//! Charts as SVG, in a light and a dark version.

use plotters::coord::Shift;
use plotters::prelude::*;

/// A chart that could not be drawn.
pub type Error = DrawingAreaErrorKind<std::io::Error>;
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Colours of a chart.
#[derive(Clone, Copy)]
pub struct Theme {
    /// `light` or `dark`, for files and classes.
    pub name: &'static str,
    text: RGBColor,
    grid: RGBColor,
    series: [RGBColor; 8],
}

/// On white.
pub const LIGHT: Theme = Theme {
    name: "light",
    text: RGBColor(0x33, 0x33, 0x33),
    grid: RGBColor(0xdd, 0xdd, 0xdd),
    series: [
        RGBColor(0x1f, 0x6f, 0xb4),
        RGBColor(0xd9, 0x6c, 0x06),
        RGBColor(0x2a, 0x8c, 0x4a),
        RGBColor(0xb8, 0x2e, 0x4e),
        RGBColor(0x75, 0x4f, 0xb0),
        RGBColor(0x8a, 0x6a, 0x1f),
        RGBColor(0x0f, 0x86, 0x8f),
        RGBColor(0x70, 0x70, 0x70),
    ],
};

/// On a dark ground.
pub const DARK: Theme = Theme {
    name: "dark",
    text: RGBColor(0xd6, 0xd6, 0xd6),
    grid: RGBColor(0x44, 0x44, 0x44),
    series: [
        RGBColor(0x6f, 0xb1, 0xee),
        RGBColor(0xf2, 0xa1, 0x54),
        RGBColor(0x72, 0xc9, 0x8b),
        RGBColor(0xee, 0x80, 0x98),
        RGBColor(0xb8, 0x9c, 0xe8),
        RGBColor(0xd2, 0xb4, 0x68),
        RGBColor(0x66, 0xc9, 0xd0),
        RGBColor(0xa8, 0xa8, 0xa8),
    ],
};

/// What a chart shows.
pub enum Shape {
    /// Named lines over x.
    Lines { x: &'static str, y: String, lines: Vec<(String, Vec<(f64, f64)>)> },
    /// A bar per name, with its value in words.
    Bars(Vec<(String, f64, String)>),
}

/// A chart with its name (of its file) and title.
pub struct Chart {
    /// For its files: letters, digits and `-`.
    pub name: String,
    /// Above it.
    pub title: String,
    /// What it shows.
    pub shape: Shape,
}

const WIDTH: u32 = 720;
const LINES_HEIGHT: u32 = 260;
const BAR_HEIGHT: u32 = 24;
const BAR_LABEL: i32 = 240;
const BAR_VALUE: i32 = 100;
/// A line has no more points than pixels to show them: the extremes of each stretch.
const MAX_POINTS: usize = 2 * WIDTH as usize;

impl Chart {
    /// The chart as SVG.
    ///
    /// # Errors
    /// When plotters cannot draw it.
    pub fn svg(&self, theme: Theme) -> Result<String, Error> {
        let mut svg = String::new();
        let height = match &self.shape {
            Shape::Lines { .. } => LINES_HEIGHT,
            Shape::Bars(bars) => BAR_HEIGHT * bars.len().max(1) as u32,
        };
        {
            let area = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
            match &self.shape {
                Shape::Lines { x, y, lines } => draw_lines(&area, theme, x, y, lines)?,
                Shape::Bars(bars) => draw_bars(&area, theme, bars)?,
            }
            area.present()?;
        }
        Ok(svg)
    }
}

fn range_of(values: impl Iterator<Item = f64> + Clone) -> std::ops::Range<f64> {
    let finite = values.filter(|v| v.is_finite());
    let (low, high) = (finite.clone().fold(f64::INFINITY, f64::min), finite.fold(f64::NEG_INFINITY, f64::max));
    match low.partial_cmp(&high) {
        Some(std::cmp::Ordering::Less) => low..high,
        Some(std::cmp::Ordering::Equal) => low - low.abs().max(1.0) * 0.5..high + high.abs().max(1.0) * 0.5,
        _ => 0.0..1.0,
    }
}

fn draw_lines(
    area: &Area<'_>,
    theme: Theme,
    x: &str,
    y: &str,
    lines: &[(String, Vec<(f64, f64)>)],
) -> Result<(), Error> {
    let points = || lines.iter().flat_map(|(_, points)| points);
    let (xs, ys) = (range_of(points().map(|p| p.0)), range_of(points().map(|p| p.1)));
    let mut chart =
        ChartBuilder::on(area).margin(8).x_label_area_size(36).y_label_area_size(64).build_cartesian_2d(xs, ys)?;
    let text = ("sans-serif", 12).into_font().color(&theme.text);
    let mut mesh = chart.configure_mesh();
    let mesh = mesh.disable_x_mesh().light_line_style(TRANSPARENT).bold_line_style(theme.grid).axis_style(theme.grid);
    mesh.x_desc(x).y_desc(y).x_labels(8).y_labels(5).axis_desc_style(text.clone()).label_style(text.clone()).draw()?;
    for (i, (name, points)) in lines.iter().enumerate() {
        let color = theme.series[i % theme.series.len()];
        let drawn = chart.draw_series(LineSeries::new(thinned(points), color.stroke_width(1)))?;
        drawn.label(name).legend(move |(x, y)| PathElement::new(vec![(x, y), (x + 16, y)], color.stroke_width(2)));
    }
    if lines.len() > 1 {
        chart.configure_series_labels().label_font(text).border_style(theme.grid).draw()?;
    }
    Ok(())
}

/// The first, least, greatest and last point of each stretch.
fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let finite: Vec<(f64, f64)> = points.iter().copied().filter(|(x, y)| x.is_finite() && y.is_finite()).collect();
    if finite.len() <= MAX_POINTS {
        return finite;
    }
    let stretch = finite.len().div_ceil(MAX_POINTS / 4);
    let of = |part: &[(f64, f64)]| {
        let by_y = |a: &usize, b: &usize| part[*a].1.total_cmp(&part[*b].1);
        let (low, high) = ((0..part.len()).min_by(by_y), (0..part.len()).max_by(by_y));
        let mut kept: Vec<usize> = [Some(0), low, high, Some(part.len() - 1)].into_iter().flatten().collect();
        kept.sort_unstable();
        kept.dedup();
        kept.into_iter().map(|i| part[i]).collect::<Vec<_>>()
    };
    finite.chunks(stretch).flat_map(of).collect()
}

fn draw_bars(area: &Area<'_>, theme: Theme, bars: &[(String, f64, String)]) -> Result<(), Error> {
    use plotters::style::text_anchor::{HPos, Pos, VPos};
    let text = ("sans-serif", 13).into_font().color(&theme.text);
    let most = bars.iter().map(|(_, value, _)| *value).fold(0.0, f64::max);
    let width = f64::from(WIDTH as i32 - BAR_LABEL - BAR_VALUE);
    for (row, (name, value, words)) in bars.iter().enumerate() {
        let top = (row as u32 * BAR_HEIGHT) as i32;
        let (middle, bottom) = (top + BAR_HEIGHT as i32 / 2, top + BAR_HEIGHT as i32 - 4);
        let end = BAR_LABEL + if most > 0.0 { (width * value.max(0.0) / most) as i32 } else { 0 };
        let name = crate::table::cut(name, 34);
        let right = text.pos(Pos::new(HPos::Right, VPos::Center));
        area.draw(&Text::new(name, (BAR_LABEL - 8, middle), right))?;
        area.draw(&Rectangle::new([(BAR_LABEL, top + 4), (end, bottom)], theme.series[0].filled()))?;
        let left = text.pos(Pos::new(HPos::Left, VPos::Center));
        area.draw(&Text::new(words.clone(), (end + 8, middle), left))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_shapes_are_drawn_in_both_themes_whatever_the_numbers() {
        let odd = vec![(0.0, 1.0), (1.0, f64::NAN), (2.0, f64::INFINITY), (3.0, 2.0)];
        let lines = vec![("a<b".to_owned(), odd), ("empty".to_owned(), Vec::new())];
        let bars = vec![("x & y".to_owned(), 3.0, "3 ms".to_owned()), (String::new(), f64::NAN, String::new())];
        let shapes = [Shape::Lines { x: "step", y: "ms".to_owned(), lines }, Shape::Bars(bars)];
        for shape in shapes {
            let chart = Chart { name: "c".to_owned(), title: "C".to_owned(), shape };
            let (light, dark) = (chart.svg(LIGHT).unwrap(), chart.svg(DARK).unwrap());
            assert!(light.starts_with("<svg") && light.contains("#333333") && dark.contains("#D6D6D6"), "{light}");
            assert!(!light.contains("a<b") && !light.contains("x & y") && !light.contains("NaN"), "{light}");
        }
    }

    #[test]
    fn thinning_keeps_the_extremes() {
        let mut points: Vec<(f64, f64)> = (0..100_000).map(|i| (f64::from(i), f64::from(i % 7))).collect();
        points[50_001].1 = 99.0;
        points[70_001].1 = -99.0;
        let thin = thinned(&points);
        assert!(thin.len() <= MAX_POINTS + 4 && thin[0] == points[0] && thin.last() == points.last());
        assert!(thin.contains(&points[50_001]) && thin.contains(&points[70_001]));
        assert!(thin.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }
}
