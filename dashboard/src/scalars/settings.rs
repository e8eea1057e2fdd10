//! The controls above the cards.

use super::{curve::CurveSettings, points::XAxis};
use crate::{
    address::Params,
    chart::Scale,
    filter::Filter,
    theme::metrics,
    widgets::{filter_box, named},
};
use egui::{Role, Slider, Ui};

/// What the controls say.
#[derive(Debug)]
pub struct Settings {
    /// How curves look.
    pub curve: CurveSettings,
    /// Which tags have a card.
    pub filter: Filter,
}

impl Default for Settings {
    fn default() -> Self {
        // TensorBoard's default, so that a curve looks as people know it.
        let curve = CurveSettings { axis: XAxis::Step, smoothing: 0.6, scale: Scale::Linear, ignore_outliers: false };
        Self { curve, filter: Filter::default() }
    }
}

impl Settings {
    /// What differs from the defaults.
    pub fn address(&self) -> Params {
        let (now, usual) = (self.curve, Self::default().curve);
        let mut out = Params::default();
        out.set_some("filter", Some(self.filter.text()).filter(|t| !t.is_empty()));
        out.set_some("x", (now.axis != usual.axis).then(|| now.axis.name()));
        out.set_some("smoothing", (now.smoothing != usual.smoothing).then_some(now.smoothing));
        out.set_some("log", (now.scale == Scale::Log10).then_some(1));
        out.set_some("outliers", now.ignore_outliers.then_some(0));
        out
    }

    /// The inverse of [`Settings::address`].
    pub fn go_to(&mut self, params: &Params) {
        let usual = Self::default().curve;
        self.filter.set(params.get("filter").unwrap_or_default());
        self.curve.axis = XAxis::ALL.into_iter().find(|a| Some(a.name()) == params.get("x")).unwrap_or(usual.axis);
        self.curve.smoothing = params.read("smoothing").unwrap_or(usual.smoothing).clamp(0.0, 0.99);
        self.curve.scale = if params.get("log") == Some("1") { Scale::Log10 } else { Scale::Linear };
        self.curve.ignore_outliers = params.get("outliers") == Some("0");
    }

    /// One row of controls, on two lines where the window is narrow.
    pub fn ui(&mut self, ui: &mut Ui) {
        ui.horizontal_wrapped(|ui| {
            filter_box(ui, &mut self.filter, "Filter tags (regex)", metrics::FILTER_W);
            ui.separator();
            let label = ui.label("Smoothing");
            ui.spacing_mut().slider_width = metrics::SLIDER_W;
            let slider = Slider::new(&mut self.curve.smoothing, 0.0..=0.99).step_by(0.01).fixed_decimals(2);
            ui.add(slider).labelled_by(label.id);
            ui.separator();
            axis_buttons(ui, &mut self.curve.axis);
            ui.separator();
            let mut is_log = self.curve.scale == Scale::Log10;
            ui.checkbox(&mut is_log, "Log y");
            self.curve.scale = if is_log { Scale::Log10 } else { Scale::Linear };
            ui.checkbox(&mut self.curve.ignore_outliers, "Ignore outliers")
                .on_hover_text("The y axis spans the 5 % to 95 % quantile");
        });
    }
}

/// Step, relative or wall time.
pub fn axis_buttons(ui: &mut Ui, axis: &mut XAxis) {
    ui.spacing_mut().item_spacing.x = metrics::GAP;
    ui.weak("x");
    for choice in XAxis::ALL {
        let response = ui.selectable_value(axis, choice, choice.name());
        named(&response, Role::RadioButton, &format!("x axis: {}", choice.name()));
    }
}
