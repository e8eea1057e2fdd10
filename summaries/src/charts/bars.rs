//! Bars, one below the other.

use plotters::{
    prelude::*,
    style::text_anchor::{HPos, Pos, VPos},
};

use super::paint::{Area, DrawResult, Paint, TEXT_HEIGHT, TITLE_HEIGHT};

/// A bar with its name.
#[derive(Debug, Clone)]
pub struct Bar {
    /// The name, to the left of the bar.
    pub name: String,
    /// The length relative to the other bars; a bar of 0 or less is not drawn.
    pub value: f64,
    /// The value as text, to the right of the bar.
    pub value_text: String,
}

/// The height of a bar's row, pixels.
const ROW_HEIGHT: u32 = 24;
/// The height of the title's row, pixels.
const HEAD_HEIGHT: u32 = TITLE_HEIGHT + 20;
/// The width of the value's text, pixels.
const VALUE_TEXT_WIDTH: u32 = 90;

/// Returns the height of the chart, pixels.
pub(super) fn height(bars: &[Bar]) -> u32 {
    HEAD_HEIGHT + ROW_HEIGHT * bars.len().max(1) as u32 + ROW_HEIGHT / 2
}

pub(super) fn draw<DB: DrawingBackend>(
    area: &Area<DB>,
    paint: &Paint,
    title: &str,
    bars: &[Bar],
) -> DrawResult<(), DB> {
    let width = area.dim_in_pixel().0 / paint.px(1);
    let name_width = width * 3 / 8;
    let point = |x: u32, y: u32| (paint.px(x) as i32, paint.px(y) as i32);
    let centre = paint.text_style(TITLE_HEIGHT).pos(Pos::new(HPos::Center, VPos::Center));
    area.draw(&Text::new(paint.truncate(title, TITLE_HEIGHT, width - 20), point(width / 2, HEAD_HEIGHT / 2), centre))?;
    let max = bars.iter().map(|bar| bar.value).fold(0.0, f64::max);
    let room = f64::from(width.saturating_sub(name_width + VALUE_TEXT_WIDTH));
    for (row, bar) in bars.iter().enumerate() {
        let top = HEAD_HEIGHT + row as u32 * ROW_HEIGHT;
        let end = name_width + if max > 0.0 { (room * bar.value.max(0.0) / max) as u32 } else { 0 };
        let right = paint.text_style(TEXT_HEIGHT).pos(Pos::new(HPos::Right, VPos::Center));
        let name = paint.truncate(&bar.name, TEXT_HEIGHT, name_width - 16);
        area.draw(&Text::new(name, point(name_width - 8, top + ROW_HEIGHT / 2), right))?;
        let corners = [point(name_width, top + 4), point(end, top + ROW_HEIGHT - 4)];
        area.draw(&Rectangle::new(corners, paint.color(0).filled()))?;
        let left = paint.text_style(TEXT_HEIGHT).pos(Pos::new(HPos::Left, VPos::Center));
        area.draw(&Text::new(bar.value_text.clone(), point(end + 8, top + ROW_HEIGHT / 2), left))?;
    }
    Ok(())
}
