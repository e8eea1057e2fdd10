//! The controls above the cards.

use crate::cards::{XAxis, axis_buttons};
use egui::Ui;
use ui::{
    address::Choice,
    address_fields,
    filter::Filter,
    theme::metrics,
    widgets::{choice_buttons, filter_box, group},
};

/// The arrangement of a series' histograms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Ridges one behind the other, the newest in front.
    #[default]
    Offset,
    /// Ridges on one base line.
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

/// The state of the controls.
#[derive(Default)]
pub struct Settings {
    /// The filter of the tags.
    pub filter: Filter,
    pub mode: Mode,
    /// The x axis of bands, and the axis along which ridges are offset.
    pub axis: XAxis,
}

address_fields!(Settings { "filter" = filter: Filter, "mode" = mode: Mode, "x" = axis: XAxis });

impl Settings {
    /// Shows the controls.
    pub fn ui(&mut self, ui: &mut Ui) {
        ui.horizontal_wrapped(|ui| {
            filter_box(ui, &mut self.filter, "Filter tags (regex)", metrics::FILTER_W);
            group(ui, "mode", |ui| choice_buttons(ui, "Mode", &mut self.mode));
            group(ui, "x axis", |ui| self.axis = axis_buttons(ui, Some(self.axis)).unwrap_or(self.axis));
        });
    }
}
