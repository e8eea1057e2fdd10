//! Static charts as SVG and PNG, for reports: curves with bands, histogram ridges, distributions, bars. Legible from
//! 600 pixels of width on, in light and in dark.
//!
//! ```
//! use summaries::charts::{Chart, Curve, Shape, Style};
//!
//! let points = (0..50).map(|x| (f64::from(x), (-0.1 * f64::from(x)).exp())).collect();
//! let curves = vec![Curve { label: "mlp".into(), points, band: vec![] }];
//! let chart = Chart { title: "loss".into(), shape: Shape::Curves { x: "step".into(), y: String::new(), curves } };
//! assert!(chart.svg(Style::default())?.starts_with("<svg"));
//! assert!(chart.png(Style::default())?.starts_with(b"\x89PNG"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`curves`], [`histograms`] and [`bars`] each draw a shape on any of plotters' backends; [`paint`] has their common
//! parts.

mod bars;
mod curves;
mod histograms;
mod paint;
mod theme;

use plotters::prelude::*;

use crate::histogram::Histogram;
use paint::{Area, DrawResult, Paint};

pub use bars::Bar;
pub use curves::Curve;
pub use theme::Theme;

/// A chart.
#[derive(Debug, Clone)]
pub struct Chart {
    /// The title, above the chart.
    pub title: String,
    /// The content of the chart.
    pub shape: Shape,
}

/// The content of a chart.
#[derive(Debug, Clone)]
pub enum Shape {
    /// Curves over a common x axis.
    Curves {
        /// The name of the x axis.
        x: String,
        /// The name of the y axis.
        y: String,
        /// The curves.
        curves: Vec<Curve>,
    },
    /// Histograms one behind the other, the last in front: pairs of step and distribution.
    Ridges(Vec<(i64, Histogram)>),
    /// Distributions over steps as nested bands: pairs of step and distribution.
    Distributions(Vec<(i64, Histogram)>),
    /// Named bars, one below the other, which determine the chart's height.
    Bars(Vec<Bar>),
}

/// The size and background of a chart.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    /// The width in pixels, 64 to 8192.
    pub width: u32,
    /// The height in pixels, 64 to 8192; not used for bars.
    pub height: u32,
    /// Light or dark.
    pub theme: Theme,
}

impl Default for Style {
    fn default() -> Self {
        Self { width: 600, height: 320, theme: Theme::Light }
    }
}

/// A chart that could not be drawn.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the chart cannot be drawn: {0}")]
pub struct ChartError(String);

/// A PNG is drawn at this multiple of its size and scaled down, which smooths edges.
const SUPERSAMPLING: u32 = 2;

impl Chart {
    /// Draws the chart as SVG.
    ///
    /// # Errors
    /// When the chart cannot be drawn.
    pub fn svg(&self, style: Style) -> Result<String, ChartError> {
        let mut svg = String::new();
        let area = SVGBackend::with_string(&mut svg, self.size(style)).into_drawing_area();
        let drawn = self.draw(&area, &Paint::new(style.theme, None));
        drop(area);
        drawn.map_err(|e| ChartError(e.to_string()))?;
        Ok(svg)
    }

    /// Draws the chart as a PNG file of 8-bit RGB.
    ///
    /// # Errors
    /// When the chart cannot be drawn.
    pub fn png(&self, style: Style) -> Result<Vec<u8>, ChartError> {
        let (width, height) = self.size(style);
        let fine_size = (width * SUPERSAMPLING, height * SUPERSAMPLING);
        let mut pixels = vec![0; fine_size.0 as usize * fine_size.1 as usize * 3];
        let area = BitMapBackend::with_buffer(&mut pixels, fine_size).into_drawing_area();
        let drawn = self.draw(&area, &Paint::new(style.theme, Some(SUPERSAMPLING)));
        drop(area);
        drawn.map_err(|e| ChartError(e.to_string()))?;
        encode_png(&downsample(&pixels, width as usize), width, height).map_err(|e| ChartError(e.to_string()))
    }

    fn size(&self, style: Style) -> (u32, u32) {
        let height = if let Shape::Bars(bars) = &self.shape { bars::height(bars) } else { style.height };
        (style.width.clamp(64, 8192), height.clamp(64, 8192))
    }

    fn draw<DB: DrawingBackend>(&self, area: &Area<DB>, paint: &Paint) -> DrawResult<(), DB> {
        paint::register_chart_font();
        area.fill(&paint.background)?;
        match &self.shape {
            Shape::Curves { x, y, curves } => curves::draw(area, paint, &self.title, (x, y), curves)?,
            Shape::Ridges(rows) => histograms::draw_ridges(area, paint, &self.title, rows)?,
            Shape::Distributions(rows) => histograms::draw_distributions(area, paint, &self.title, rows)?,
            Shape::Bars(bars) => bars::draw(area, paint, &self.title, bars)?,
        }
        area.present()
    }
}

/// Scales an image down to the mean of each square of [`SUPERSAMPLING`] pixels.
fn downsample(pixels: &[u8], width: usize) -> Vec<u8> {
    let n_side = SUPERSAMPLING as usize;
    let row_len = width * n_side * 3;
    let mean = |rows: &[u8], x: usize, channel: usize| {
        let square = (0..n_side * n_side)
            .map(|i| u32::from(rows[i / n_side * row_len + (x * n_side + i % n_side) * 3 + channel]));
        (square.sum::<u32>() / (SUPERSAMPLING * SUPERSAMPLING)) as u8
    };
    let row = |rows| (0..width * 3).map(move |i| mean(rows, i / 3, i % 3));
    pixels.chunks_exact(row_len * n_side).flat_map(row).collect()
}

fn encode_png(rgb: &[u8], width: u32, height: u32) -> Result<Vec<u8>, png::EncodingError> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.add_text_chunk("Software".into(), "stepscope".into())?;
    encoder.write_header()?.write_image_data(rgb)?;
    Ok(file)
}

#[cfg(test)]
mod tests;
