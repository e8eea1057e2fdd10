//! The controls above the cards.

use crate::cards::{XAxis, axis_buttons};
use egui::Ui;
use ui::{
    address::Choice,
    address_fields,
    filter::Filter,
    theme::metrics,
    widgets::{choice_buttons, filter_box, together},
};

/// How the histograms of a series stand to each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// One behind the other, the newest in front.
    #[default]
    Offset,
    /// All on the same baseline.
    Overlay,
    /// Bands of quantiles over steps.
    Distribution,
}

impl Choice for Mode {
    const TABLE: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Offset, "offset", "Offset"),
        (Self::Overlay, "overlay", "Overlay"),
        (Self::Distribution, "distribution", "Distribution"),
    ];
}

#[derive(Default)]
pub struct Settings {
    /// Which tags have a card.
    pub filter: Filter,
    pub mode: Mode,
    /// The x axis of distributions.
    pub axis: XAxis,
}

address_fields!(Settings { "filter" = filter: Filter, "mode" = mode: Mode, "x" = axis: XAxis });

impl Settings {
    pub fn ui(&mut self, ui: &mut Ui) {
        ui.horizontal_wrapped(|ui| {
            filter_box(ui, &mut self.filter, "Filter tags (regex)", metrics::FILTER_W);
            together(ui, "mode", |ui| choice_buttons(ui, "Mode", &mut self.mode));
            together(ui, "x axis", |ui| self.axis = axis_buttons(ui, Some(self.axis)).unwrap_or(self.axis));
        });
    }
}
