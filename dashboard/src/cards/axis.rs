//! The x axis of charts over steps.

use egui::{Role, Ui};
use ui::{address::Choice, chart::ticks::Unit, theme::metrics, widgets::named};

/// The quantity on the x axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum XAxis {
    #[default]
    Step,
    /// Seconds since the run's first point of this series.
    Relative,
    /// Unix seconds.
    Wall,
}

impl Choice for XAxis {
    const TABLE: &'static [(Self, &'static str, &'static str)] =
        &[(Self::Step, "Step", "Step"), (Self::Relative, "Relative", "Relative"), (Self::Wall, "Wall", "Wall")];
}

impl XAxis {
    /// The unit of the axis.
    pub fn unit(self) -> Unit {
        match self {
            Self::Step => Unit::Whole,
            Self::Relative => Unit::Seconds,
            Self::Wall => Unit::Wall,
        }
    }
}

/// Shows buttons for step, relative and wall time; returns the one that was clicked. `current` is the selected axis;
/// `None` if the axis has a tag's values.
pub fn axis_buttons(ui: &mut Ui, current: Option<XAxis>) -> Option<XAxis> {
    ui.spacing_mut().item_spacing.x = metrics::GAP;
    ui.weak("x");
    let mut chosen = None;
    for choice in XAxis::all() {
        let response = ui.selectable_label(current == Some(choice), choice.title());
        named(&response, Role::RadioButton, &format!("x axis: {}", choice.title()));
        chosen = response.clicked().then_some(choice).or(chosen);
    }
    chosen
}
