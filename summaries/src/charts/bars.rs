//! Bars, one below the other.

use plotters::{
    prelude::*,
    style::text_anchor::{HPos, Pos, VPos},
};

use super::paint::{Area, Drawn, Paint, TEXT, TITLE};

/// A named length.
#[derive(Debug, Clone)]
pub struct Bar {
    /// To the left of it.
    pub name: String,
    /// How long it is, against the other bars; nothing is drawn of what is not above 0.
    pub value: f64,
    /// The value in words, to the right of it.
    pub words: String,
}

const ROW: u32 = 24;
const HEAD: u32 = TITLE + 20;
const WORDS_W: u32 = 90;

/// Of the chart, in pixels.
pub(super) fn height(bars: &[Bar]) -> u32 {
    HEAD + ROW * bars.len().max(1) as u32 + ROW / 2
}

pub(super) fn draw<DB: DrawingBackend>(area: &Area<DB>, paint: &Paint, title: &str, bars: &[Bar]) -> Drawn<(), DB> {
    let width = area.dim_in_pixel().0 / paint.px(1);
    let name_w = width * 3 / 8;
    let at = |x: u32, y: u32| (paint.px(x) as i32, paint.px(y) as i32);
    let centre = paint.letters(TITLE).pos(Pos::new(HPos::Center, VPos::Center));
    area.draw(&Text::new(paint.cut(title, TITLE, width - 20), at(width / 2, HEAD / 2), centre))?;
    let most = bars.iter().map(|bar| bar.value).fold(0.0, f64::max);
    let room = f64::from(width.saturating_sub(name_w + WORDS_W));
    for (row, bar) in bars.iter().enumerate() {
        let top = HEAD + row as u32 * ROW;
        let end = name_w + if most > 0.0 { (room * bar.value.max(0.0) / most) as u32 } else { 0 };
        let right = paint.letters(TEXT).pos(Pos::new(HPos::Right, VPos::Center));
        area.draw(&Text::new(paint.cut(&bar.name, TEXT, name_w - 16), at(name_w - 8, top + ROW / 2), right))?;
        let corners = [at(name_w, top + 4), at(end, top + ROW - 4)];
        area.draw(&Rectangle::new(corners, paint.color(0).filled()))?;
        let left = paint.letters(TEXT).pos(Pos::new(HPos::Left, VPos::Center));
        area.draw(&Text::new(bar.words.clone(), at(end + 8, top + ROW / 2), left))?;
    }
    Ok(())
}
