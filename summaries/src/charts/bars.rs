//! Bars, one below the other.

use plotters::{
    prelude::*,
    style::text_anchor::{HPos, Pos, VPos},
};

use super::paint::{Area, Drawn, Paint, TEXT, TITLE};

/// A bar with its name.
#[derive(Debug, Clone)]
pub struct Bar {
    /// The name, to the left of the bar.
    pub name: String,
    /// The length relative to the other bars; a bar of 0 or less is not drawn.
    pub value: f64,
    /// The value as text, to the right of the bar.
    pub words: String,
}

/// The height of a bar's row, pixels.
const ROW: u32 = 24;
/// The height of the title, pixels.
const HEAD: u32 = TITLE + 20;
/// The width of the value's text, pixels.
const WORDS_W: u32 = 90;

/// The height of the chart, pixels.
pub(super) fn height(bars: &[Bar]) -> u32 {
    HEAD + ROW * bars.len().max(1) as u32 + ROW / 2
}

pub(super) fn draw<DB: DrawingBackend>(area: &Area<DB>, paint: &Paint, title: &str, bars: &[Bar]) -> Drawn<(), DB> {
    let width = area.dim_in_pixel().0 / paint.px(1);
    let name_w = width * 3 / 8;
    let point = |x: u32, y: u32| (paint.px(x) as i32, paint.px(y) as i32);
    let centre = paint.letters(TITLE).pos(Pos::new(HPos::Center, VPos::Center));
    area.draw(&Text::new(paint.cut(title, TITLE, width - 20), point(width / 2, HEAD / 2), centre))?;
    let max = bars.iter().map(|bar| bar.value).fold(0.0, f64::max);
    let room = f64::from(width.saturating_sub(name_w + WORDS_W));
    for (row, bar) in bars.iter().enumerate() {
        let top = HEAD + row as u32 * ROW;
        let end = name_w + if max > 0.0 { (room * bar.value.max(0.0) / max) as u32 } else { 0 };
        let right = paint.letters(TEXT).pos(Pos::new(HPos::Right, VPos::Center));
        area.draw(&Text::new(paint.cut(&bar.name, TEXT, name_w - 16), point(name_w - 8, top + ROW / 2), right))?;
        let corners = [point(name_w, top + 4), point(end, top + ROW - 4)];
        area.draw(&Rectangle::new(corners, paint.color(0).filled()))?;
        let left = paint.letters(TEXT).pos(Pos::new(HPos::Left, VPos::Center));
        area.draw(&Text::new(bar.words.clone(), point(end + 8, top + ROW / 2), left))?;
    }
    Ok(())
}
