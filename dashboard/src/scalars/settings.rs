//! The controls above the cards.

use super::{
    curve::CurveSettings,
    range::{self, Steps},
    tooltip::Order,
};
use crate::cards::{XAxis, axis_buttons};
use egui::{ComboBox, DragValue, Role, Slider, Ui};
use std::sync::Arc;
use ui::address::{AddressState as _, Params};
use ui::{
    address_fields,
    chart::Scale,
    filter::Filter,
    theme::metrics,
    widgets::{choice_list, filter_box, group, named},
};

#[derive(Debug, Default)]
pub struct Settings {
    pub curve: CurveSettings,
    /// The filter of the tags.
    pub filter: Filter,
    /// Tags that have a card at the top as well.
    pub pins: Vec<Arc<str>>,
    /// The tag whose values are the x axis; `None` for the axis of `curve`.
    pub x_tag: Option<Arc<str>>,
    /// The pattern that groups runs by the part of their names that it captures.
    pub group: Filter,
    /// The range of steps that is compared.
    pub range: Option<Steps>,
    /// Whether the cards are those of the runs' layouts, rather than one for each tag.
    pub by_layout: bool,
    /// The order of runs in the tooltip.
    pub order: Order,
    /// Whether all cards zoom together along x.
    pub links_zoom: bool,
    /// The x range of all cards in plot space, while their zoom is linked; `None` fits everything.
    pub linked_x: Option<[f64; 2]>,
}

address_fields!(Settings {
    "filter" = filter: Filter,
    "x" = curve.axis: XAxis,
    "xtag" = x_tag: Option<Arc<str>>,
    "smoothing" = curve.smoothing: f64,
    "log" = curve.scale: Scale,
    "logx" = curve.log_x: bool,
    "order" = order: Order,
    "outliers" = curve.shows_outliers: bool,
    "group" = group: Filter,
    "range" = range: Option<Steps>,
    "linkzoom" = links_zoom: bool,
    "zoom" = linked_x: Option<[f64; 2]>,
    "layout" = by_layout: bool,
    "pin" = pins: Vec<Arc<str>>,
});

impl Settings {
    /// Applies an address; invalid values are ignored.
    pub fn go_to(&mut self, params: &Params) {
        self.set_params(params);
        self.curve.smoothing = self.curve.smoothing.clamp(0.0, 0.99);
        self.curve.by_tag = self.x_tag.is_some();
        let is_zoom = |[lo, hi]: &[f64; 2]| lo.is_finite() && hi.is_finite() && lo < hi;
        self.linked_x = self.linked_x.filter(|zoom| self.links_zoom && is_zoom(zoom));
        self.range = self.range.filter(|[lo, hi]| lo <= hi);
    }

    fn set_x_tag(&mut self, tag: Option<Arc<str>>) {
        self.curve.by_tag = tag.is_some();
        self.x_tag = tag;
    }

    /// Switches the range on, with its initial part of `steps`, or off.
    pub fn toggle_range(&mut self, steps: Steps) {
        self.range = if self.range.is_some() { None } else { Some(range::usual(steps)) };
    }

    /// Shows the controls in as many lines as the width needs. `tags`: the choices of an x axis; `steps`: the range of
    /// all runs; `has_layouts`: whether a run defines charts.
    pub fn ui(&mut self, ui: &mut Ui, tags: &[Arc<str>], steps: impl Fn() -> Steps, has_layouts: bool) {
        ui.horizontal_wrapped(|ui| {
            filter_box(ui, &mut self.filter, "Filter tags (regex)", metrics::FILTER_W);
            group(ui, "smoothing", |ui| {
                let label = ui.label("Smoothing");
                let slider = Slider::new(&mut self.curve.smoothing, 0.0..=0.99).step_by(0.01).fixed_decimals(2);
                ui.add(slider).labelled_by(label.id);
            });
            let axes = |of: &Self| (of.curve.axis, of.curve.x_scale(), of.x_tag.clone());
            let before = axes(self);
            group(ui, "x axis", |ui| {
                if let Some(axis) = axis_buttons(ui, self.x_tag.is_none().then_some(self.curve.axis)) {
                    self.curve.axis = axis;
                    self.set_x_tag(None);
                }
                self.tag_axis(ui, tags);
            });
            self.marks_ui(ui);
            if !self.links_zoom || axes(self) != before {
                // The linked range belongs to the previous axis.
                self.linked_x = None;
            }
            group(ui, "order", |ui| {
                choice_list(ui, "Order of runs next to the pointer", &mut self.order)
                    .on_hover_text("The order of the runs next to the pointer")
            });
            group(ui, "group", |ui| {
                filter_box(ui, &mut self.group, "Group runs by (regex)", metrics::FILTER_W).on_hover_text(
                    "Runs whose names have the same match, or the same first group ( ), become one band with their mean",
                )
            });
            group(ui, "range", |ui| self.range_ui(ui, steps));
            if has_layouts {
                group(ui, "layout", |ui| {
                    ui.checkbox(&mut self.by_layout, "Custom layout")
                        .on_hover_text("The charts that the runs lay out (custom scalars), not one for each tag")
                });
            }
        });
    }

    /// The switches.
    fn marks_ui(&mut self, ui: &mut Ui) {
        group(ui, "switches", |ui| {
            ui.checkbox(&mut self.curve.log_x, "Log x")
                .on_hover_text("Steps and times from 0 down have no place on it");
            let mut is_log = self.curve.scale == Scale::Log10;
            ui.checkbox(&mut is_log, "Log y");
            self.curve.scale = if is_log { Scale::Log10 } else { Scale::Linear };
            let mut ignores_outliers = !self.curve.shows_outliers;
            ui.checkbox(&mut ignores_outliers, "Ignore outliers")
                .on_hover_text("The y axis spans the 5 % to 95 % quantile");
            self.curve.shows_outliers = !ignores_outliers;
            ui.checkbox(&mut self.links_zoom, "Sync zoom").on_hover_text("All cards zoom along x together");
        });
    }

    /// The choice of a tag as x axis.
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
