//! The panels in tabs that can be dragged apart, side by side or one above the other.

use super::arrangement::Layout;
use crate::{Data, Selection, View, ViewKind, command::Entry};
use egui::{Color32, Rect, Stroke, Ui, Visuals, WidgetText};
use egui_tiles::{Behavior, SimplificationOptions, TabState, Tile, TileId, Tiles, Tree, UiResponse};
use std::collections::BTreeMap;
use ui::theme::{Palette, metrics, palette};

/// All panels and how they are arranged.
pub struct Tabs {
    tree: Tree<ViewKind>,
    views: BTreeMap<ViewKind, Box<dyn View>>,
    /// The panel that was brought to the front or used last.
    front: ViewKind,
}

impl Tabs {
    /// Every panel in one row of tabs, the first in front.
    pub fn new(views: Vec<Box<dyn View>>) -> Self {
        let views: BTreeMap<ViewKind, Box<dyn View>> = views.into_iter().map(|view| (view.kind(), view)).collect();
        let kinds = || views.keys().copied();
        Self { tree: Layout::tabs(kinds()).tree(kinds()), front: ViewKind::ALL[0], views }
    }

    /// How the panels are arranged.
    pub fn layout(&self) -> Layout {
        Layout::from_tree(&self.tree)
    }

    pub fn arrange(&mut self, layout: &Layout) {
        self.tree = layout.tree(self.kinds());
    }

    /// Puts all panels back into one row of tabs.
    pub fn reset(&mut self) {
        self.arrange(&Layout::tabs(self.kinds().collect::<Vec<_>>()));
    }

    /// The panels that this program has, in their order.
    pub fn kinds(&self) -> impl Iterator<Item = ViewKind> {
        self.views.keys().copied()
    }

    /// Brings a panel to the front of wherever it is.
    pub fn activate(&mut self, kind: ViewKind) {
        if !self.views.contains_key(&kind) {
            return;
        }
        self.front = kind;
        self.tree.make_active(|_, tile| matches!(tile, Tile::Pane(k) if *k == kind));
    }

    /// The panel that was brought to the front or used last.
    pub fn front(&self) -> ViewKind {
        self.front
    }

    /// The visible panels, the one in front first.
    pub fn visible(&self) -> Vec<ViewKind> {
        let tiles = self.tree.active_tiles().into_iter();
        let mut kinds: Vec<ViewKind> = tiles.filter_map(|id| self.tree.tiles.get_pane(&id).copied()).collect();
        kinds.sort_by_key(|kind| (*kind != self.front, *kind));
        kinds
    }

    pub fn view(&self, kind: ViewKind) -> Option<&dyn View> {
        self.views.get(&kind).map(|view| &**view)
    }

    /// A panel, for changes.
    pub fn view_mut(&mut self, kind: ViewKind) -> Option<&mut Box<dyn View>> {
        self.views.get_mut(&kind)
    }

    /// Where a panel is on the screen, as of the last frame.
    pub fn rect(&self, kind: ViewKind) -> Option<Rect> {
        let pane = self.tree.tiles.find_pane(&kind)?;
        self.tree.tiles.rect(pane)
    }

    /// The commands and gestures of each panel.
    pub fn entries(&self) -> Vec<(ViewKind, &'static [Entry])> {
        let all = self.views.values().map(|view| (view.kind(), view.entries()));
        all.filter(|(_, entries)| !entries.is_empty()).collect()
    }

    /// The commands of each panel that have an effect now.
    pub fn commands(&self, data: &Data) -> Vec<(ViewKind, Vec<Entry>)> {
        let of = |view: &dyn View| {
            let can = |entry: &&Entry| !entry.id.is_empty() && view.can(entry.id, data);
            (view.kind(), view.entries().iter().filter(can).copied().collect::<Vec<Entry>>())
        };
        self.views.values().map(|view| of(&**view)).filter(|(_, entries)| !entries.is_empty()).collect()
    }

    /// Shows the panels that are in front.
    pub fn ui(&mut self, ui: &mut Ui, data: &Data, selection: &mut Selection) {
        let pressed = ui.input(|i| i.pointer.any_pressed().then(|| i.pointer.interact_pos()).flatten());
        if let Some(at) = pressed {
            let under = self.visible().into_iter().find(|kind| self.rect(*kind).is_some_and(|r| r.contains(at)));
            self.front = under.unwrap_or(self.front);
        }
        self.tree.ui(&mut Frame { data, selection, views: &mut self.views }, ui);
        // A click on a tab brings its panel to the front without an event.
        let visible = self.visible();
        if !visible.contains(&self.front) {
            self.front = visible.first().copied().unwrap_or(self.front);
        }
    }
}

/// Everything that the tree needs in one frame.
struct Frame<'a> {
    data: &'a Data,
    selection: &'a mut Selection,
    views: &'a mut BTreeMap<ViewKind, Box<dyn View>>,
}

impl Behavior<ViewKind> for Frame<'_> {
    fn pane_ui(&mut self, ui: &mut Ui, _tile: TileId, kind: &mut ViewKind) -> UiResponse {
        let p = palette(ui);
        ui.painter().rect_filled(ui.max_rect(), 0.0, p.panel);
        if let Some(view) = self.views.get_mut(kind) {
            ui.push_id(kind.title(), |ui| view.ui(ui, self.data, self.selection));
        }
        UiResponse::None
    }

    fn tab_title_for_pane(&mut self, kind: &ViewKind) -> WidgetText {
        kind.title().into()
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
        Palette::for_theme(visuals.dark_mode).canvas
    }

    fn tab_bg_color(&self, visuals: &Visuals, _: &Tiles<ViewKind>, _: TileId, state: &TabState) -> Color32 {
        let p = Palette::for_theme(visuals.dark_mode);
        if state.active { p.panel } else { p.canvas }
    }

    fn tab_outline_stroke(&self, visuals: &Visuals, _: &Tiles<ViewKind>, _: TileId, state: &TabState) -> Stroke {
        let p = Palette::for_theme(visuals.dark_mode);
        if state.active { Stroke::new(metrics::HAIRLINE, p.border) } else { Stroke::NONE }
    }

    fn tab_bar_hline_stroke(&self, visuals: &Visuals) -> Stroke {
        Stroke::new(metrics::HAIRLINE, Palette::for_theme(visuals.dark_mode).border)
    }

    fn tab_text_color(&self, visuals: &Visuals, _: &Tiles<ViewKind>, _: TileId, state: &TabState) -> Color32 {
        let p = Palette::for_theme(visuals.dark_mode);
        if state.active { p.text_strong } else { p.text_weak }
    }

    fn simplification_options(&self) -> SimplificationOptions {
        SimplificationOptions { all_panes_must_have_tabs: true, ..Default::default() }
    }

    fn is_tab_closable(&self, _: &Tiles<ViewKind>, _: TileId) -> bool {
        false
    }

    fn drag_preview_color(&self, visuals: &Visuals) -> Color32 {
        Palette::for_theme(visuals.dark_mode).selected
    }

    fn drag_preview_stroke(&self, visuals: &Visuals) -> Stroke {
        Stroke::new(metrics::HAIRLINE, Palette::for_theme(visuals.dark_mode).accent)
    }
}

/// The panel whose key (1 to 9) was pressed in this frame. (0 fits a trace or a graph.)
pub fn panel_key(ui: &Ui) -> Option<ViewKind> {
    use egui::Key::{Num1, Num2, Num3, Num4, Num5, Num6, Num7, Num8, Num9};
    ui.input(|i| {
        let keys = [Num1, Num2, Num3, Num4, Num5, Num6, Num7, Num8, Num9];
        let pressed = keys.iter().position(|key| i.modifiers.is_none() && i.key_pressed(*key));
        pressed.and_then(|idx| ViewKind::ALL.get(idx).copied())
    })
}
