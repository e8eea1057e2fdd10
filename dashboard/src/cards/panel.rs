//! A page of cards with its list of runs, its toolbar and its empty state.

use super::{CardGrid, run_list};
use crate::{
    Data, Selection,
    catalogue::{Catalogue, Kind, TagRow},
    panels::ViewKind,
};
use egui::{Rect, Ui};
use rustc_hash::FxHashMap;
use std::{marker::PhantomData, sync::Arc};
use ui::{
    filter::Filter,
    widgets::{CardClicks, CardFrame, empty_state, side_panel, toolbar},
};

/// The properties by which pages of cards differ.
pub struct CardPage {
    pub kind: ViewKind,
    /// The id under which the width of the list of runs is stored.
    pub runs: &'static str,
    /// Title and explanation of the empty state.
    pub empty: [&'static str; 2],
}

/// Cards of type `C` for series of kind `K`.
pub struct CardPanel<K, C> {
    page: &'static CardPage,
    /// The tags with a card, in groups.
    pub catalogue: Catalogue,
    cards: FxHashMap<Arc<str>, C>,
    grid: CardGrid,
    /// The last seen revisions of the common selections of node and tag.
    node_revision: u64,
    tag_revision: u64,
    series: PhantomData<K>,
}

impl<K: Kind, C: Default> CardPanel<K, C> {
    /// Creates a page without cards.
    pub fn new(page: &'static CardPage) -> Self {
        Self {
            page,
            catalogue: Catalogue::default(),
            cards: FxHashMap::default(),
            grid: CardGrid::default(),
            node_revision: 0,
            tag_revision: 0,
            series: PhantomData,
        }
    }

    /// Updates the catalogue; returns whether it changed.
    pub fn update(&mut self, data: &Data, selection: &Selection, filter: &Filter) -> bool {
        self.catalogue.update::<K>(data, &selection.runs, filter)
    }

    /// Shows the list of runs and the `controls`; returns whether any run has a tag for this page, filtered or not.
    pub fn frame_ui(&self, ui: &mut Ui, selection: &mut Selection, controls: impl FnOnce(&mut Ui, &Catalogue)) -> bool {
        if self.catalogue.n_tags == 0 {
            let [title, explanation] = self.page.empty;
            empty_state(ui, title, explanation);
            return false;
        }
        side_panel(ui, self.page.runs, |ui| run_list(ui, &mut selection.runs, selection.run.get()));
        toolbar(ui, |ui| controls(ui, &self.catalogue));
        true
    }

    /// Returns whether any card passes the filters; shows an empty state if none does. Scrolls to the cards of another
    /// panel's selection.
    pub fn has_matches(&mut self, ui: &mut Ui, selection: &Selection) -> bool {
        if self.catalogue.groups.is_empty() {
            empty_state(ui, "No matches", "Change the filter of tags or of runs.");
            return false;
        }
        if let Some(node) = selection.node.news(self.page.kind, &mut self.node_revision) {
            self.grid.reveal(&self.catalogue, |row| row.belongs_to(node));
        }
        if let Some(tag) = selection.tag.news(self.page.kind, &mut self.tag_revision) {
            self.grid.reveal(&self.catalogue, |row| row.tag == *tag);
        }
        true
    }

    /// Shows the cards of `custom`, or else of the page's catalogue. `card` draws one card and returns whether its
    /// width is toggled.
    pub fn cards_ui(
        &mut self,
        ui: &mut Ui,
        custom: Option<&Catalogue>,
        mut card: impl FnMut(&mut Ui, &mut C, &TagRow, bool) -> bool,
    ) {
        let cards = &mut self.cards;
        self.grid.ui(ui, custom.unwrap_or(&self.catalogue), |ui, row, is_wide| {
            card(ui, cards.entry(row.key.clone()).or_default(), row, is_wide)
        });
    }

    /// Every card that was shown so far.
    pub fn cards_mut(&mut self) -> impl Iterator<Item = &mut C> {
        self.cards.values_mut()
    }
}

/// Draws a card's frame with `values` at the right of its title; a click on the title selects the node and the tag.
/// Returns the clicks on the header and the room for the chart.
pub fn card_frame(
    ui: &mut Ui,
    (kind, row): (ViewKind, &TagRow),
    (is_wide, pin): (bool, Option<bool>),
    selection: &mut Selection,
    values: impl FnOnce(&mut Ui, &Selection),
) -> (CardClicks, Rect) {
    let (target, is_selected) = (row.target(), row.is_selected(selection));
    let node = target.map(|node| &**node);
    let frame = CardFrame { name: &row.name, tag: &row.tag, node, is_selected, is_wide, pin };
    let (clicks, rect) = frame.ui(ui, |ui| values(ui, selection));
    if clicks.is_clicked {
        selection.node.set(kind, target.cloned());
        selection.tag.set(kind, Some(row.tag.clone()));
    }
    (clicks, rect)
}
