//! Widgets of the page: headings and rows of figures that lead to evidence.

use egui::Ui;
use std::{ops::Range, sync::Arc};
use trace_model::SliceId;
use ui::{
    theme::{metrics, palette},
    widgets::{self, with_names},
};

/// The evidence that a line leads to.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Target {
    /// A range of the timeline, and a slice to select in it.
    Time(Range<i64>, Option<SliceId>),
    /// A node in the graph.
    Node(Arc<str>),
    /// The slices of an op in the timeline.
    Op(Arc<str>),
}

/// Shows the heading of a section.
pub(super) fn heading(ui: &mut Ui, text: &str) {
    ui.add_space(metrics::GAP_WIDE);
    widgets::heading(ui, text);
    ui.add_space(metrics::GAP);
}

/// Shows a row of a name and figures; returns whether the name was clicked.
pub(super) fn row_ui(ui: &mut Ui, name: &str, figures: &[String], hint: &str) -> bool {
    let hint = with_names(hint, metrics::TEXT, palette(ui).text);
    let is_clicked = ui.link(name).on_hover_text(hint).clicked();
    for figure in figures {
        ui.label(figure);
    }
    ui.end_row();
    is_clicked
}
