//! The controls above the cards.

use super::{
    curve::CurveSettings,
    points::XAxis,
    range::{self, Steps},
    tooltip::Order,
};
use crate::{
    address::Params,
    chart::Scale,
    filter::Filter,
    theme::metrics,
    widgets::{filter_box, named, together},
};
use egui::{ComboBox, DragValue, Role, Slider, Ui};
use std::sync::Arc;

/// What the controls say.
#[derive(Debug)]
pub struct Settings {
    /// How curves look.
    pub curve: CurveSettings,
    /// Which tags have a card.
    pub filter: Filter,
    /// The tag whose values are the x axis; none for the axis of `curve`.
    pub x_tag: Option<Arc<str>>,
    /// What makes runs a group: the part of their names that it captures.
    pub group: Filter,
    /// The range of steps that is compared.
    pub range: Option<Steps>,
    /// Whether cards are those of the runs' layouts, not one for each tag.
    pub by_layout: bool,
    /// In which order runs stand beside the pointer.
    pub order: Order,
    /// Whether a zoom along x is one of all cards.
    pub links_zoom: bool,
    /// What all cards show of x, in plot space, while their zoom is linked; `None` for everything.
    pub linked_x: Option<[f64; 2]>,
}

impl Default for Settings {
    fn default() -> Self {
        // TensorBoard's default, so that a curve looks as people know it.
        let curve = CurveSettings {
            axis: XAxis::Step,
            by_tag: false,
            smoothing: 0.6,
            scale: Scale::Linear,
            log_x: false,
            ignore_outliers: false,
        };
        Self {
            curve,
            filter: Filter::default(),
            x_tag: None,
            group: Filter::default(),
            range: None,
            by_layout: false,
            order: Order::default(),
            links_zoom: false,
            linked_x: None,
        }
    }
}

impl Settings {
    /// What differs from the defaults.
    pub fn address(&self) -> Params {
        let (now, usual) = (self.curve, Self::default().curve);
        let filled = |filter: &Filter| Some(filter.text().to_owned()).filter(|t| !t.is_empty());
        let mut out = Params::default();
        out.set_some("filter", filled(&self.filter));
        out.set_some("x", (now.axis != usual.axis).then(|| now.axis.name()));
        out.set_some("xtag", self.x_tag.as_ref());
        out.set_some("smoothing", (now.smoothing != usual.smoothing).then_some(now.smoothing));
        out.set_some("log", (now.scale == Scale::Log10).then_some(1));
        out.set_some("logx", now.log_x.then_some(1));
        out.set_some("order", (self.order != Order::default()).then(|| self.order.name()));
        out.set_some("outliers", now.ignore_outliers.then_some(0));
        out.set_some("group", filled(&self.group));
        out.set_some("range", self.range.map(|[lo, hi]| format!("{lo}..{hi}")));
        out.set_some("linkzoom", self.links_zoom.then_some(1));
        out.set_some("zoom", self.linked_x.filter(|_| self.links_zoom).map(|[lo, hi]| format!("{lo}..{hi}")));
        out.set_some("layout", self.by_layout.then_some(1));
        out
    }

    /// The inverse of [`Settings::address`].
    pub fn go_to(&mut self, params: &Params) {
        let usual = Self::default().curve;
        self.filter.set(params.get("filter").unwrap_or_default());
        self.curve.axis = XAxis::ALL.into_iter().find(|a| Some(a.name()) == params.get("x")).unwrap_or(usual.axis);
        self.set_x_tag(params.get("xtag").map(Into::into));
        self.curve.smoothing = params.read("smoothing").unwrap_or(usual.smoothing).clamp(0.0, 0.99);
        self.curve.scale = if params.get("log") == Some("1") { Scale::Log10 } else { Scale::Linear };
        self.curve.log_x = params.get("logx") == Some("1");
        self.order = Order::ALL.into_iter().find(|o| Some(o.name()) == params.get("order")).unwrap_or_default();
        self.curve.ignore_outliers = params.get("outliers") == Some("0");
        self.by_layout = params.get("layout") == Some("1");
        self.group.set(params.get("group").unwrap_or_default());
        self.links_zoom = params.get("linkzoom") == Some("1");
        let ends = params.get("zoom").and_then(|text| text.split_once(".."));
        let zoom = ends.and_then(|(lo, hi)| Some([lo.parse::<f64>().ok()?, hi.parse().ok()?]));
        self.linked_x = zoom.filter(|[lo, hi]| self.links_zoom && lo.is_finite() && hi.is_finite() && lo < hi);
        let ends = params.get("range").and_then(|text| text.split_once(".."));
        let steps = ends.and_then(|(lo, hi)| Some([lo.parse().ok()?, hi.parse().ok()?]));
        self.range = steps.filter(|[lo, hi]: &Steps| lo <= hi);
    }

    fn set_x_tag(&mut self, tag: Option<Arc<str>>) {
        self.curve.by_tag = tag.is_some();
        self.x_tag = tag;
    }

    /// Switches the range on, over a part of `steps`, or off.
    pub fn toggle_range(&mut self, steps: Steps) {
        self.range = if self.range.is_some() { None } else { Some(range::usual(steps)) };
    }

    /// The controls, on as many lines as the window's width makes them. `tags`: what can be an x axis; `steps`: what the
    /// runs span; `has_layouts`: whether a run lays out charts.
    pub fn ui(&mut self, ui: &mut Ui, tags: &[Arc<str>], steps: impl Fn() -> Steps, has_layouts: bool) {
        ui.horizontal_wrapped(|ui| {
            filter_box(ui, &mut self.filter, "Filter tags (regex)", metrics::FILTER_W);
            together(ui, "smoothing", |ui| {
                let label = ui.label("Smoothing");
                let slider = Slider::new(&mut self.curve.smoothing, 0.0..=0.99).step_by(0.01).fixed_decimals(2);
                ui.add(slider).labelled_by(label.id);
            });
            let axes = |of: &Self| (of.curve.axis, of.curve.x_scale(), of.x_tag.clone());
            let before = axes(self);
            together(ui, "x axis", |ui| {
                if let Some(axis) = axis_buttons(ui, self.x_tag.is_none().then_some(self.curve.axis)) {
                    self.curve.axis = axis;
                    self.set_x_tag(None);
                }
                self.tag_axis(ui, tags);
            });
            self.marks_ui(ui);
            if !self.links_zoom || axes(self) != before {
                // A zoom belongs to the axis that it was made on.
                self.linked_x = None;
            }
            together(ui, "order", |ui| self.order_ui(ui));
            together(ui, "group", |ui| {
                filter_box(ui, &mut self.group, "Group runs by (regex)", metrics::FILTER_W).on_hover_text(
                    "Runs whose names have the same match, or the same first group ( ), become one band with their mean",
                )
            });
            together(ui, "range", |ui| self.range_ui(ui, steps));
            if has_layouts {
                together(ui, "layout", |ui| {
                    ui.checkbox(&mut self.by_layout, "Custom layout")
                        .on_hover_text("The charts that the runs lay out (custom scalars), not one for each tag")
                });
            }
        });
    }

    /// What is switched on and off.
    fn marks_ui(&mut self, ui: &mut Ui) {
        together(ui, "switches", |ui| {
            ui.checkbox(&mut self.curve.log_x, "Log x")
                .on_hover_text("Steps and times from 0 down have no place on it");
            let mut is_log = self.curve.scale == Scale::Log10;
            ui.checkbox(&mut is_log, "Log y");
            self.curve.scale = if is_log { Scale::Log10 } else { Scale::Linear };
            ui.checkbox(&mut self.curve.ignore_outliers, "Ignore outliers")
                .on_hover_text("The y axis spans the 5 % to 95 % quantile");
            ui.checkbox(&mut self.links_zoom, "Link zoom").on_hover_text("A zoom along x is one of all cards");
        });
    }

    /// The choice of another tag as x axis.
    fn tag_axis(&mut self, ui: &mut Ui, tags: &[Arc<str>]) {
        let text = self.x_tag.as_ref().map_or("another tag", |tag| &**tag);
        let mut chosen = self.x_tag.clone();
        let combo = ComboBox::from_id_salt("x tag").selected_text(text).width(metrics::FILTER_W / 2.0).truncate();
        let response = combo.show_ui(ui, |ui| {
            ui.selectable_value(&mut chosen, None, "No tag: the axis at the left");
            for tag in tags {
                ui.selectable_value(&mut chosen, Some(tag.clone()), &**tag);
            }
        });
        named(&response.response, Role::ComboBox, &format!("x axis: {text}"));
        if chosen != self.x_tag {
            self.set_x_tag(chosen);
        }
    }

    /// In which order runs stand beside the pointer.
    fn order_ui(&mut self, ui: &mut Ui) {
        let combo = ComboBox::from_id_salt("order").selected_text(self.order.name());
        let response = combo.show_ui(ui, |ui| {
            for order in Order::ALL {
                ui.selectable_value(&mut self.order, order, order.name());
            }
        });
        let response = response.response.on_hover_text("The order of the runs beside the pointer");
        named(&response, Role::ComboBox, &format!("Order of runs beside the pointer: {}", self.order.name()));
    }

    fn range_ui(&mut self, ui: &mut Ui, steps: impl Fn() -> Steps) {
        let mut is_on = self.range.is_some();
        let hint = "Compare the runs over a range of steps, in a table below.\n\
                    Drag its edges in a chart, or Alt + drag for another one";
        if ui.checkbox(&mut is_on, "Range").on_hover_text(hint).changed() {
            self.toggle_range(steps());
        }
        let Some([lo, hi]) = &mut self.range else { return };
        let (least, greatest) = (*lo, *hi);
        let first = ui.add(DragValue::new(lo).range(i64::MIN..=greatest));
        named(&first, Role::SpinButton, "First step of the range");
        ui.label("to");
        let last = ui.add(DragValue::new(hi).range(least..=i64::MAX));
        named(&last, Role::SpinButton, "Last step of the range");
    }
}

/// Step, relative or wall time; the one that was clicked. `now`: the one that is the axis, unless something else is.
pub fn axis_buttons(ui: &mut Ui, now: Option<XAxis>) -> Option<XAxis> {
    ui.spacing_mut().item_spacing.x = metrics::GAP;
    ui.weak("x");
    let mut chosen = None;
    for choice in XAxis::ALL {
        let response = ui.selectable_label(now == Some(choice), choice.name());
        named(&response, Role::RadioButton, &format!("x axis: {}", choice.name()));
        chosen = response.clicked().then_some(choice).or(chosen);
    }
    chosen
}
