//! The background and title row of a card.

use super::{Icon, icon_button, named, text_elided};
use crate::{
    export,
    theme::{metrics, palette},
};
use egui::{Align, Layout, Popup, Rect, Role, Sense, Stroke, StrokeKind, Ui, UiBuilder, vec2};

/// The title of a card and its state.
#[derive(Clone, Copy, Debug)]
pub struct CardFrame<'a> {
    /// The short name in the title.
    pub name: &'a str,
    /// The full tag, in the tooltip.
    pub tag: &'a str,
    /// The graph node of the tag, which a click on the title selects.
    pub node: Option<&'a str>,
    /// Whether that node is selected.
    pub is_selected: bool,
    /// Whether the card takes the full width.
    pub is_wide: bool,
    /// Whether the card is pinned; `None` where cards cannot be pinned.
    pub pin: Option<bool>,
}

/// The clicks in a card's title row.
#[derive(Clone, Copy, Debug, Default)]
pub struct CardClicks {
    /// Whether the title was clicked.
    pub is_clicked: bool,
    /// Whether the button that toggles the width was clicked.
    pub is_width_toggled: bool,
    /// Whether the pin was clicked.
    pub is_pin_toggled: bool,
}

impl CardFrame<'_> {
    /// Draws the background and the title row with `values` at its right; returns the clicks and the rectangle of
    /// the chart.
    pub fn ui(&self, ui: &mut Ui, values: impl FnOnce(&mut Ui)) -> (CardClicks, Rect) {
        let p = palette(ui);
        let rect = ui.max_rect();
        let radius = f32::from(metrics::RADIUS);
        let (width, color) = if self.is_selected { (metrics::LINE, p.accent) } else { (metrics::HAIRLINE, p.border) };
        ui.painter().rect(rect, radius, p.canvas, Stroke::new(width, color), StrokeKind::Inside);
        let header = Rect::from_min_size(rect.min, vec2(rect.width(), metrics::CARD_HEADER_H));
        let inner = header.shrink2(vec2(metrics::PAD, 0.0));
        let (mut is_width_toggled, mut is_pin_toggled) = (false, false);
        let builder = UiBuilder::new().max_rect(inner).layout(Layout::right_to_left(Align::Center));
        let controls = ui.scope_builder(builder, |ui| {
            is_width_toggled = self.width_button(ui);
            is_pin_toggled = self.pin_button(ui);
            let save = icon_button(ui, Icon::Save, &format!("Save {}", self.tag), false);
            Popup::menu(&save).show(|ui| self.save_menu(ui, rect));
            let remaining = ui.available_rect_before_wrap();
            let values_rect = Rect::from_min_max(egui::pos2(remaining.center().x, remaining.top()), remaining.max);
            let builder = UiBuilder::new().max_rect(values_rect).layout(Layout::right_to_left(Align::Center));
            ui.scope_builder(builder, |ui| {
                values(ui);
                ui.min_rect().left()
            })
            .inner
        });
        let title_right = controls.inner.min(controls.response.rect.right());
        let title_rect = Rect::from_min_max(inner.min, egui::pos2(title_right, inner.bottom()));
        let is_clicked = self.title_ui(ui, title_rect, rect);
        let mut chart = rect;
        chart.min.y = header.bottom();
        (CardClicks { is_clicked, is_width_toggled, is_pin_toggled }, chart.shrink2(vec2(1.0, 2.0)))
    }

    /// Shows the button that toggles the card's width; returns whether it was clicked.
    fn width_button(&self, ui: &mut Ui) -> bool {
        let (icon, what) = if self.is_wide { (Icon::Shrink, "One column") } else { (Icon::Expand, "Full width") };
        icon_button(ui, icon, &format!("{what}: {}", self.tag), false).clicked()
    }

    /// Shows the pin; returns whether it was clicked.
    fn pin_button(&self, ui: &mut Ui) -> bool {
        let Some(is_pinned) = self.pin else { return false };
        let what = if is_pinned { "Unpin" } else { "Pin" };
        icon_button(ui, Icon::Pin, &format!("{what} {}", self.tag), is_pinned).clicked()
    }

    /// Shows the title; returns whether it was clicked.
    fn title_ui(&self, ui: &Ui, rect: Rect, card: Rect) -> bool {
        let p = palette(ui);
        let response = ui.interact(rect, ui.scope_id().with("title"), Sense::click());
        named(&response, Role::Link, self.tag);
        let color = if response.hovered() && self.node.is_some() { p.accent } else { p.text_strong };
        text_elided(ui, self.name, rect, color);
        let hint = match self.node {
            Some(node) => format!("{}\nnode {node}: click to select it in every panel", self.tag),
            None => self.tag.to_owned(),
        };
        let response = response.on_hover_text(format!("{hint}\nright click: save this card"));
        response.context_menu(|ui| self.save_menu(ui, card));
        response.clicked()
    }

    fn save_menu(&self, ui: &mut Ui, card: Rect) {
        for (text, as_vectors) in [("Save this card as PNG", false), ("Save this card as SVG", true)] {
            if ui.button(text).clicked() {
                export::request_card(ui.ctx(), export::Card { name: self.tag.to_owned(), rect: card, as_vectors });
                ui.close();
            }
        }
    }
}
