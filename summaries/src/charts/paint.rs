//! Backgrounds, colours, text and axes of all charts.

use std::{ops::Range, sync::Once};

use plotters::{
    chart::{ChartContext, MeshStyle},
    coord::{Shift, types::RangedCoordf64},
    prelude::*,
    style::register_font,
};

use super::theme::Theme;
use ::palette::{DARK, LIGHT, OKABE_ITO, channels};

pub(super) type Area<DB> = DrawingArea<DB, Shift>;
pub(super) type DrawResult<T, DB> = Result<T, DrawingAreaErrorKind<<DB as DrawingBackend>::ErrorType>>;
pub(super) type Plane = Cartesian2d<RangedCoordf64, RangedCoordf64>;

/// The height of text in pixels: legible in a chart of 600 pixels that a page does not scale.
pub(super) const TEXT_HEIGHT: u32 = 13;
/// The height of the title's text in pixels.
pub(super) const TITLE_HEIGHT: u32 = 16;
const FONT: &str = "sans-serif";

/// Registers the font of the window, so that charts look the same on every system.
pub(super) fn register_chart_font() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Fails only for an invalid font, which drawing text then reports.
        let _ = register_font(FONT, FontStyle::Normal, epaint_default_fonts::UBUNTU_LIGHT);
    });
}

/// The colours of a chart, and the number of drawn pixels per pixel of the chart.
pub(super) struct Paint {
    pub background: RGBColor,
    pub text: RGBColor,
    series: &'static [u32],
    scale: u32,
    is_bitmap: bool,
}

fn rgb(color: u32) -> RGBColor {
    let [red, green, blue] = channels(color);
    RGBColor(red, green, blue)
}

impl Paint {
    /// Returns the paint of a vector drawing (scale 1), or of a bitmap with `bitmap_scale` drawn pixels per pixel.
    pub fn new(theme: Theme, bitmap_scale: Option<u32>) -> Self {
        let (colors, scheme) = match theme {
            Theme::Light => (&LIGHT, &OKABE_ITO[1]),
            Theme::Dark => (&DARK, &OKABE_ITO[0]),
        };
        Self {
            background: rgb(colors.canvas),
            text: rgb(colors.text),
            series: &scheme.series,
            scale: bitmap_scale.unwrap_or(1),
            is_bitmap: bitmap_scale.is_some(),
        }
    }

    /// Converts pixels of the chart to drawn pixels.
    pub fn px(&self, n: u32) -> u32 {
        n * self.scale
    }

    pub fn color(&self, i: usize) -> RGBColor {
        rgb(self.series[i % self.series.len()])
    }

    pub fn text_style(&self, size: u32) -> TextStyle<'static> {
        (FONT, self.px(size)).into_font().color(&self.text)
    }

    /// Draws a line through points. In a bitmap each segment is a line of its own, because plotters draws sharp bends
    /// as long spikes there.
    pub fn line<DB: DrawingBackend>(
        &self,
        chart: &mut ChartContext<'_, DB, Plane>,
        points: Vec<(f64, f64)>,
        style: ShapeStyle,
    ) -> DrawResult<(), DB> {
        if self.is_bitmap {
            chart.draw_series(points.windows(2).map(|ends| PathElement::new(ends.to_vec(), style)))?;
        } else {
            chart.draw_series([PathElement::new(points, style)])?;
        }
        Ok(())
    }

    /// Truncates a text to `width` pixels, with an ellipsis for the rest.
    pub fn truncate(&self, text: &str, size: u32, width: u32) -> String {
        // Letters are about half as wide as high.
        let n = (2 * width / size).max(4) as usize;
        if text.chars().count() <= n { text.to_owned() } else { text.chars().take(n - 1).chain(['…']).collect() }
    }

    /// Begins a chart with its title and axis ranges.
    pub fn frame<'a, DB: DrawingBackend>(
        &self,
        area: &'a Area<DB>,
        title: &str,
        (x, y): ([f64; 2], [f64; 2]),
    ) -> DrawResult<ChartContext<'a, DB, Plane>, DB> {
        let width = area.dim_in_pixel().0 / self.scale;
        let title = self.truncate(title, TITLE_HEIGHT, width.saturating_sub(40));
        let mut chart = ChartBuilder::on(area);
        chart.margin(self.px(10)).margin_right(self.px(20));
        chart.x_label_area_size(self.px(3 * TEXT_HEIGHT)).y_label_area_size(self.px(5 * TEXT_HEIGHT));
        chart.caption(title, self.text_style(TITLE_HEIGHT)).build_cartesian_2d(x[0]..x[1], y[0]..y[1])
    }

    /// Draws axes with their names and a faint mesh; `format_y` formats the y axis where it has no plain numbers.
    pub fn axes<'a, DB: DrawingBackend>(
        &self,
        chart: &mut ChartContext<'a, DB, Plane>,
        (x, y): (&str, &str),
        format_y: Option<&dyn Fn(f64) -> String>,
    ) -> DrawResult<(), DB> {
        let (x_width, y_width) = (width_of(chart.x_range()), width_of(chart.y_range()));
        let format_x = |v: &f64| format_tick(*v, x_width);
        let format_y = |v: &f64| format_y.map_or_else(|| format_tick(*v, y_width), |format| format(*v));
        let mut mesh: MeshStyle<'_, '_, _, _, DB> = chart.configure_mesh();
        mesh.x_desc(x).y_desc(y).axis_style(self.text.mix(0.5)).light_line_style(TRANSPARENT);
        mesh.bold_line_style(self.text.mix(0.15)).label_style(self.text_style(TEXT_HEIGHT)).x_labels(6).y_labels(6);
        mesh.set_all_tick_mark_size(self.px(4)).x_label_formatter(&format_x).y_label_formatter(&format_y).draw()
    }
}

fn width_of(range: Range<f64>) -> f64 {
    range.end - range.start
}

/// Formats a number at an axis of this width, with as many digits as distinguish adjacent numbers.
fn format_tick(value: f64, range_width: f64) -> String {
    // Far from 0 the digits that adjacent numbers share must be written, too.
    let magnitude = value.abs().max(range_width);
    if range_width <= 0.0 || !(1e-3..1e6).contains(&magnitude) {
        return if value.abs() < range_width * 1e-9 { "0".to_owned() } else { format_exponential(value, range_width) };
    }
    let decimals = (1.0 - (range_width / 6.0).log10()).ceil().clamp(0.0, 12.0) as usize;
    let text = format!("{value:.decimals$}");
    let text = if decimals > 0 { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

fn format_exponential(value: f64, range_width: f64) -> String {
    let digits = (value.abs() / range_width.max(f64::MIN_POSITIVE)).log10().clamp(0.0, 10.0) as usize + 1;
    let text = format!("{value:.digits$e}");
    match text.split_once('e') {
        Some((mantissa, exponent)) if mantissa.contains('.') => {
            format!("{}e{exponent}", mantissa.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => text,
    }
}

/// Returns the range of the values, extended by the share `room` of its width at both ends; never empty.
pub(super) fn padded_range(values: impl Iterator<Item = f64>, room: f64) -> [f64; 2] {
    let [lo, hi] = values.fold([f64::INFINITY, f64::NEG_INFINITY], |[lo, hi], v| [lo.min(v), hi.max(v)]);
    if lo > hi {
        return [0.0, 1.0];
    }
    let width = hi - lo;
    // A single value has no width, and that of the largest floats is infinite.
    let room = if width > 0.0 && width.is_finite() { width * room } else { (lo.abs() * 0.05).max(1e-9) };
    [(lo - room).max(f64::MIN / 4.0), (hi + room).min(f64::MAX / 4.0)]
}

#[cfg(test)]
mod tests {
    use super::format_tick;

    #[test]
    fn axes_tell_neighbours_apart() {
        let cases = [
            (0.25, 1.0, "0.25"),
            (-0.0, 1.0, "0"),
            (1000.0, 5000.0, "1000"),
            (2_500_000.0, 1e7, "2.5e6"),
            (1e-5, 1e-4, "1e-5"),
            (0.5004, 0.001, "0.5004"),
            (1e300, 1e301, "1e300"),
        ];
        for (value, range_width, expected) in cases {
            assert_eq!(format_tick(value, range_width), expected, "{value} of {range_width}");
        }
    }
}
