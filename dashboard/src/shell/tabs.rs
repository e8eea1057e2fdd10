//! The panels in tabs that can be dragged apart, side by side or one above the other.

use crate::{
    Data, Selection, View, ViewKind,
    theme::{Palette, metrics, palette},
};
use egui::{Color32, Stroke, Ui, Visuals, WidgetText};
use egui_tiles::{Behavior, SimplificationOptions, TabState, Tile, TileId, Tiles, Tree, UiResponse};

/// All panels and how they are arranged.
pub struct Tabs {
    tree: Tree<Box<dyn View>>,
}

impl Tabs {
    /// Every panel in one row of tabs, the first in front.
    pub fn new(views: Vec<Box<dyn View>>) -> Self {
        Self { tree: Tree::new_tabs(egui::Id::unique("panels"), views) }
    }

    /// Brings a panel to the front of wherever it is.
    pub fn activate(&mut self, kind: ViewKind) {
        self.tree.make_active(|_, tile| matches!(tile, Tile::Pane(view) if view.kind() == kind));
    }

    /// Shortcuts of the panels: (panel, (keys, what they do)).
    pub fn shortcuts(&self) -> Vec<(ViewKind, &'static [(&'static str, &'static str)])> {
        let panes = self.tree.tiles.tiles().filter_map(|tile| match tile {
            Tile::Pane(view) => Some((view.kind(), view.shortcuts())),
            Tile::Container(_) => None,
        });
        let mut all: Vec<_> = panes.filter(|(_, keys)| !keys.is_empty()).collect();
        all.sort_by_key(|(kind, _)| *kind);
        all
    }

    /// Shows the panels that are in front.
    pub fn ui(&mut self, ui: &mut Ui, data: &Data, selection: &mut Selection) {
        self.tree.ui(&mut Frame { data, selection }, ui);
    }
}

/// What the tree needs in one frame.
struct Frame<'a> {
    data: &'a Data,
    selection: &'a mut Selection,
}

impl Behavior<Box<dyn View>> for Frame<'_> {
    fn pane_ui(&mut self, ui: &mut Ui, _tile: TileId, view: &mut Box<dyn View>) -> UiResponse {
        let p = palette(ui);
        ui.painter().rect_filled(ui.max_rect(), 0.0, p.panel);
        ui.push_id(view.kind().title(), |ui| view.ui(ui, self.data, self.selection));
        UiResponse::None
    }

    fn tab_title_for_pane(&mut self, view: &Box<dyn View>) -> WidgetText {
        view.title().into()
    }

    fn tab_bar_height(&self, _style: &egui::Style) -> f32 {
        metrics::TAB_BAR_H
    }

    fn gap_width(&self, _style: &egui::Style) -> f32 {
        metrics::TILE_GAP
    }

    fn tab_title_spacing(&self, _visuals: &Visuals) -> f32 {
        metrics::GAP_WIDE
    }

    fn tab_bar_color(&self, visuals: &Visuals) -> Color32 {
        Palette::of(visuals.dark_mode).canvas
    }

    fn tab_bg_color(&self, visuals: &Visuals, _: &Tiles<Box<dyn View>>, _: TileId, state: &TabState) -> Color32 {
        let p = Palette::of(visuals.dark_mode);
        if state.active { p.panel } else { p.canvas }
    }

    fn tab_outline_stroke(&self, visuals: &Visuals, _: &Tiles<Box<dyn View>>, _: TileId, state: &TabState) -> Stroke {
        let p = Palette::of(visuals.dark_mode);
        if state.active { Stroke::new(metrics::HAIRLINE, p.border) } else { Stroke::NONE }
    }

    fn tab_bar_hline_stroke(&self, visuals: &Visuals) -> Stroke {
        Stroke::new(metrics::HAIRLINE, Palette::of(visuals.dark_mode).border)
    }

    fn tab_text_color(&self, visuals: &Visuals, _: &Tiles<Box<dyn View>>, _: TileId, state: &TabState) -> Color32 {
        let p = Palette::of(visuals.dark_mode);
        if state.active { p.text_strong } else { p.text_weak }
    }

    fn simplification_options(&self) -> SimplificationOptions {
        SimplificationOptions { all_panes_must_have_tabs: true, ..Default::default() }
    }

    fn is_tab_closable(&self, _: &Tiles<Box<dyn View>>, _: TileId) -> bool {
        false
    }

    fn drag_preview_color(&self, visuals: &Visuals) -> Color32 {
        Palette::of(visuals.dark_mode).selected
    }

    fn drag_preview_stroke(&self, visuals: &Visuals) -> Stroke {
        Stroke::new(metrics::HAIRLINE, Palette::of(visuals.dark_mode).accent)
    }
}

/// Keys 1 to 6: the panel asked for in this frame, unless a text field has the keyboard.
pub fn panel_key(ui: &Ui) -> Option<ViewKind> {
    use egui::Key;
    const KEYS: [Key; 6] = [Key::Num1, Key::Num2, Key::Num3, Key::Num4, Key::Num5, Key::Num6];
    if ui.ctx().text_edit_focused() {
        return None;
    }
    ui.input(|i| {
        let pressed = KEYS.iter().position(|key| i.modifiers.is_none() && i.key_pressed(*key));
        pressed.map(|idx| ViewKind::ALL[idx])
    })
}
