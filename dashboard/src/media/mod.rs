//! Images, sounds, texts, precision-recall curves, meshes and tensors: a card for each tag and run, with a slider over
//! its steps. [`model`]: decoded values, cards and their steps; [`cache`]: the thread that reads values; all without
//! egui. [`card`]: one card; [`images`], [`texts`], [`sounds`], [`pr`], [`mesh`]: its contents; [`player`]: playback of
//! sounds; [`markdown`]: formatted texts.

mod cache;
mod card;
mod images;
mod markdown;
mod mesh;
mod model;
mod player;
mod pr;
mod sounds;
mod texts;

use crate::{
    Data, Selection, View, ViewKind,
    cards::{CardPage, CardPanel},
    catalogue::Catalogue,
    shell::SaveDialog,
};
use cache::MediaCache;
use card::{Card, CardView};
use egui::Ui;
use images::Tone;
pub(crate) use model::decode;
use model::{
    rows::{self, Meshes},
    steps, wav,
};
use summaries::MediaSeries;
use ui::address::{AddressState, Names, Params};
use ui::{
    address_fields,
    chart::orbit,
    command::Entry,
    filter::Filter,
    theme::metrics,
    widgets::{filter_box, group},
};

const ENTRIES: &[Entry] = &[
    Entry::command("link", "", "One step for all cards, or for each its own"),
    Entry::gesture("Drag a slider, arrows", "Another step"),
    Entry::gesture("Ctrl + wheel, drag, double click (image)", "Zoom; pan; fit"),
    Entry::gesture("Click a sound's curve", "Go there"),
    orbit::GESTURES[0],
    orbit::GESTURES[1],
    orbit::GESTURES[2],
];

const PAGE: CardPage = CardPage {
    kind: ViewKind::Media,
    runs: "media runs",
    empty: [
        "No images or texts yet",
        "A run that writes images, sounds, texts, precision-recall curves, meshes or tensors shows them here,\n\
         step by step.",
    ],
};

#[derive(Default)]
struct Settings {
    filter: Filter,
    /// Whether all cards show the same step.
    is_linked: bool,
    tone: Tone,
}

address_fields!(Settings {
    "filter" = filter: Filter,
    "linked" = is_linked: bool,
    "brightness" = tone.brightness: u32,
    "contrast" = tone.contrast: u32,
});

impl Settings {
    /// Shows the controls, including those of images where there are any.
    fn ui(&mut self, ui: &mut Ui, has_images: bool) {
        ui.horizontal_wrapped(|ui| {
            filter_box(ui, &mut self.filter, "Filter tags (regex)", metrics::FILTER_W);
            let hint = "One slider moves all; a step picked in Scalars or Histograms is shown here";
            group(ui, "steps", |ui| ui.checkbox(&mut self.is_linked, "Link steps").on_hover_text(hint));
            if has_images {
                self.tone.ui(ui);
            }
        });
    }
}

pub struct MediaView {
    settings: Settings,
    panel: CardPanel<MediaSeries, Card>,
    meshes: Meshes,
    cache: Option<MediaCache>,
    save: SaveDialog,
}

impl Default for MediaView {
    fn default() -> Self {
        Self {
            settings: Settings::default(),
            panel: CardPanel::new(&PAGE),
            meshes: Meshes::default(),
            cache: None,
            save: SaveDialog::default(),
        }
    }
}

impl View for MediaView {
    fn kind(&self) -> ViewKind {
        ViewKind::Media
    }

    fn entries(&self) -> &'static [Entry] {
        ENTRIES
    }

    fn run(&mut self, _id: &'static str) {
        self.settings.is_linked ^= true;
    }

    fn address(&self, _data: &Data) -> Params {
        self.settings.params()
    }

    fn go_to(&mut self, params: &Params) {
        self.settings.set_params(params);
        let Tone { brightness, contrast } = &mut self.settings.tone;
        (*brightness, *contrast) = ((*brightness).min(400), (*contrast).min(400));
    }

    fn ui(&mut self, ui: &mut Ui, data: &Data, selection: &mut Selection) {
        let (panel, settings) = (&mut self.panel, &mut self.settings);
        if panel.update(data, selection, &settings.filter) {
            self.meshes = rows::arrange(&mut panel.catalogue, data);
        }
        let is_shown = panel.frame_ui(ui, selection, |ui, catalogue| settings.ui(ui, has_images(catalogue, data)))
            && panel.has_matches(ui, selection);
        if !is_shown {
            return;
        }
        let context = ui.ctx().clone();
        let cache = self.cache.get_or_insert_with(|| MediaCache::new(move || context.request_repaint()));
        cache.update();
        let mut save = None;
        let (is_linked, tone) = (settings.is_linked, settings.tone);
        let mut view = CardView { data, cache, meshes: &self.meshes, is_linked, tone, save: &mut save };
        panel.cards_ui(ui, None, |ui, card, row, is_wide| {
            card.ui(ui, row, &mut view, selection, is_wide).is_width_toggled
        });
        if let Some((name, bytes)) = save {
            self.save.open("Save the sound", &name, bytes);
        }
        self.save.ui(ui.ctx());
    }
}

/// Whether a card shows images.
fn has_images(catalogue: &Catalogue, data: &Data) -> bool {
    let mut rows = catalogue.groups.iter().flat_map(|group| &group.rows);
    rows.any(|row| {
        row.members.iter().any(|m| m.series::<MediaSeries>(data, &row.tag).is_some_and(|s| s.kind() == "images"))
    })
}

pub(crate) fn accepts() -> Names {
    Settings::accepts()
}
