//! A scrolling page of cards in collapsible groups, with columns by width and cards over the full width on demand. Only
//! cards on the screen are drawn, so that a page of thousands costs as much as its visible part.

use crate::catalogue::{Catalogue, Group, TagRow};
use egui::{Align, CollapsingHeader, Frame, Margin, Rect, RichText, ScrollArea, Ui, UiBuilder, pos2, vec2};
use rustc_hash::FxHashSet;
use std::sync::Arc;
use ui::{
    format,
    theme::{metrics, palette},
};

/// The state of a page of cards.
#[derive(Default)]
pub struct CardGrid {
    /// The keys of cards over the full width.
    wide: FxHashSet<Arc<str>>,
    /// The key of the card to scroll to.
    reveal: Option<Arc<str>>,
}

impl CardGrid {
    /// Scrolls to the first card for which `is_wanted` returns true.
    pub fn reveal(&mut self, catalogue: &Catalogue, is_wanted: impl Fn(&TagRow) -> bool) {
        let found = catalogue.groups.iter().flat_map(|group| &group.rows).find(|row| is_wanted(row));
        self.reveal = found.map(|row| row.key.clone());
    }

    /// Shows the page. `card` draws one card into a space of a fixed size; it returns whether its width is to change.
    pub fn ui(&mut self, ui: &mut Ui, catalogue: &Catalogue, mut card: impl FnMut(&mut Ui, &TagRow, bool) -> bool) {
        let frame = Frame::new().inner_margin(Margin::symmetric(metrics::PAD as i8, 0));
        frame.show(ui, |ui| {
            ScrollArea::vertical().auto_shrink(false).show(ui, |ui| {
                let sizes: Vec<usize> = catalogue.groups.iter().map(|group| group.rows.len()).collect();
                let n_columns = n_columns(ui.available_width(), &sizes);
                for group in &catalogue.groups {
                    self.group_ui(ui, group, n_columns, &mut card);
                }
                ui.add_space(metrics::PAD);
            });
        });
    }

    fn group_ui(
        &mut self,
        ui: &mut Ui,
        group: &Group,
        n_columns: usize,
        card: &mut impl FnMut(&mut Ui, &TagRow, bool) -> bool,
    ) {
        let title = if group.name.is_empty() { "Ungrouped" } else { &*group.name };
        let text = RichText::new(format!("{title}  ({})", count_text(group))).color(palette(ui).text_strong);
        let is_revealed = self.reveal.as_ref().is_some_and(|tag| group.rows.iter().any(|row| row.key == *tag));
        let header = CollapsingHeader::new(text)
            .id_salt(("group", group.is_pinned, &*group.name))
            .default_open(true)
            .open(is_revealed.then_some(true));
        header.show_unindented(ui, |ui| self.cards_ui(ui, group, n_columns, card));
    }

    fn cards_ui(
        &mut self,
        ui: &mut Ui,
        group: &Group,
        n_columns: usize,
        card: &mut impl FnMut(&mut Ui, &TagRow, bool) -> bool,
    ) {
        let width = ui.available_width();
        let column_w = (width - metrics::PAD * (n_columns - 1) as f32) / n_columns as f32;
        let [min_h, max_h] = metrics::CARD_CHART_H;
        let chart_h = (column_w * metrics::CARD_CHART_ASPECT).clamp(min_h, max_h).round();
        let mut column = 0;
        let mut top = ui.cursor().top();
        let left = ui.cursor().left();
        let mut bottom = top;
        for row in &group.rows {
            let is_wide = self.wide.contains(&row.key);
            if is_wide && column > 0 || column == n_columns {
                (column, top) = (0, bottom + metrics::PAD);
            }
            let height = if is_wide { metrics::CARD_CHART_TALL_H } else { chart_h };
            let w = if is_wide { width } else { column_w };
            let min = pos2(left + column as f32 * (column_w + metrics::PAD), top);
            let rect = Rect::from_min_size(min, vec2(w, metrics::CARD_HEADER_H + height));
            bottom = bottom.max(rect.bottom());
            column = if is_wide { n_columns } else { column + 1 };
            if self.reveal.as_ref() == Some(&row.key) {
                ui.scroll_to_rect(rect, Some(Align::Center));
                self.reveal = None;
            }
            if ui.is_rect_visible(rect) {
                let builder = UiBuilder::new().id_salt(&*row.key).max_rect(rect);
                let is_toggled = ui.scope_builder(builder, |ui| card(ui, row, is_wide)).inner;
                if is_toggled && !self.wide.remove(&row.key) {
                    self.wide.insert(row.key.clone());
                }
            }
        }
        let all = Rect::from_min_max(pos2(left, ui.cursor().top()), pos2(left + width, bottom + metrics::PAD));
        ui.advance_cursor_after_rect(all);
    }
}

/// Returns the number of a group's tags, and of its cards if a tag has several.
fn count_text(group: &Group) -> String {
    let tags: FxHashSet<&str> = group.rows.iter().map(|row| &*row.tag).collect();
    let n_tags = format::count_of(tags.len() as u64, "tag");
    match group.rows.len() {
        n if n == tags.len() => n_tags,
        n => format!("{n_tags}, {}", format::count_of(n as u64, "card")),
    }
}

/// Returns the number of columns that leaves the fewest holes after groups of these sizes; of equal ones the greatest.
fn n_columns(width: f32, sizes: &[usize]) -> usize {
    let [min_w, max_w] = metrics::CARD_W;
    let max = ((width + metrics::PAD) / (min_w + metrics::PAD)).floor().max(1.0) as usize;
    let min = (((width + metrics::PAD) / (max_w + metrics::PAD)).ceil().max(1.0) as usize).min(max);
    let holes = |n: &usize| sizes.iter().map(|size| size.next_multiple_of(*n) - *size).sum::<usize>();
    (min..=max).rev().min_by_key(holes).unwrap_or(min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_counted_not_cards() {
        let row = |tag: &str, key: &str| TagRow {
            key: key.into(),
            tag: tag.into(),
            name: tag.into(),
            node: None,
            source: None,
            members: Vec::new(),
        };
        let group = |rows| Group { name: "g".into(), is_pinned: false, rows };
        assert_eq!(count_text(&group(vec![row("a", "a 1"), row("a", "a 2"), row("a", "a 3")])), "1 tag, 3 cards");
        assert_eq!(count_text(&group(vec![row("a", "a"), row("b", "b")])), "2 tags");
    }

    #[test]
    fn columns_without_holes() {
        assert_eq!(n_columns(1385.0, &[3, 2]), 3);
        assert_eq!(n_columns(1385.0, &[4, 4, 4]), 4);
        assert_eq!(n_columns(1065.0, &[3, 2]), 3);
        assert_eq!(n_columns(1065.0, &[4, 4]), 2);
        assert_eq!(n_columns(200.0, &[9]), 1, "no room: one column all the same");
        assert_eq!(n_columns(1385.0, &[1]), 2, "a lone card does not fill the window");
    }
}
