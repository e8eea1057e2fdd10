//! Controls that choose a variant of a [`Choice`].

use super::named;
use crate::address::Choice;
use egui::{ComboBox, Response, Role, Ui, WidgetInfo};

/// Shows a button for each variant in one row. `name`: the name of the choice (`Mode`).
pub fn choice_buttons<T: Choice>(ui: &mut Ui, name: &str, chosen: &mut T) {
    for choice in T::all() {
        let response = ui.selectable_value(chosen, choice, choice.title());
        let label = format!("{name}: {}", choice.title());
        response.widget_info(|| WidgetInfo::selected(Role::RadioButton, true, *chosen == choice, &label));
    }
}

/// Shows a drop-down list of the variants. `name`: the name of the choice.
pub fn choice_list<T: Choice>(ui: &mut Ui, name: &str, chosen: &mut T) -> Response {
    let combo = ComboBox::from_id_salt(name).selected_text(chosen.title());
    let response = combo.show_ui(ui, |ui| {
        for choice in T::all() {
            ui.selectable_value(chosen, choice, choice.title());
        }
    });
    named(&response.response, Role::ComboBox, &format!("{name}: {}", chosen.title()));
    response.response
}
