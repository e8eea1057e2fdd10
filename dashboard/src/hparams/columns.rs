//! The list at the left: a choice of columns and filters of their values.

use super::{
    model::{Cell, Column, Key, Table},
    state::Choices,
};
use egui::{DragValue, Role, Ui};
use ui::{
    theme::metrics,
    widgets::{heading, named, scroll_area},
};

/// Shows the list.
pub fn ui(ui: &mut Ui, table: &Table, choices: &mut Choices) {
    ui.add_space(metrics::PAD);
    let height = ui.available_height();
    scroll_area(ui, [true, true], height).auto_shrink(false).show(ui, |ui| {
        for (title, is_metric) in [("Hyperparameters", false), ("Metrics", true)] {
            let columns: Vec<&Column> = table.columns.iter().filter(|c| c.key.is_metric() == is_metric).collect();
            if columns.is_empty() {
                continue;
            }
            heading(ui, title);
            for column in columns {
                ui.push_id(column.key.address(), |ui| column_ui(ui, column, choices));
            }
            ui.add_space(metrics::GAP_WIDE);
        }
    });
}

fn column_ui(ui: &mut Ui, column: &Column, choices: &mut Choices) {
    let (key, title) = (&column.key, column.key.title());
    ui.horizontal(|ui| {
        let mut is_shown = !choices.hidden.contains(key);
        let response = ui.checkbox(&mut is_shown, "");
        named(&response, Role::CheckBox, &format!("Column {title}"));
        if response.on_hover_text("Show the column").changed() {
            if is_shown {
                choices.hidden.remove(key);
            } else {
                choices.hidden.insert(key.clone());
            }
        }
        let has_filter = choices.filters.is_set(key);
        let reset_w = if has_filter { metrics::VALUE_W } else { 0.0 };
        ui.allocate_ui(egui::vec2(ui.available_width() - reset_w, metrics::ROW_H), |ui| {
            ui.add(egui::Label::new(&title).truncate()).on_hover_text(&title);
        });
        if has_filter {
            let response = ui.small_button("All");
            named(&response, Role::Button, &format!("All values of {title}"));
            if response.clicked() {
                choices.filters.clear(key);
            }
        }
    });
    ui.indent("values", |ui| {
        if !column.values.is_empty() {
            values_ui(ui, key, &column.values, choices);
        } else if let Some(extent) = column.extent {
            range_ui(ui, key, extent, choices);
        }
    });
}

fn values_ui(ui: &mut Ui, key: &Key, values: &[Cell], choices: &mut Choices) {
    ui.horizontal_wrapped(|ui| {
        for cell in values {
            let exact = cell.exact();
            let mut is_on = !choices.filters.excluded.get(key).is_some_and(|excluded| excluded.contains(&exact));
            let response = ui.checkbox(&mut is_on, cell.text());
            named(&response, Role::CheckBox, &format!("{} is {exact}", key.title()));
            if response.changed() {
                let excluded = choices.filters.excluded.entry(key.clone()).or_default();
                if is_on {
                    excluded.remove(&exact);
                } else {
                    excluded.insert(exact);
                }
            }
        }
    });
}

fn range_ui(ui: &mut Ui, key: &Key, [min, max]: [f64; 2], choices: &mut Choices) {
    let before = choices.filters.ranges.get(key).copied().unwrap_or([min, max]);
    let mut range = before;
    let speed = ((max - min) / 200.0).max(f64::MIN_POSITIVE);
    ui.horizontal(|ui| {
        for (i, name) in ["Least", "Greatest"].into_iter().enumerate() {
            let value = DragValue::new(&mut range[i]).speed(speed).range(min..=max).max_decimals(6);
            let response = ui.add(value);
            named(&response, Role::SpinButton, &format!("{name} {}", key.title()));
            if i == 0 {
                ui.weak("to");
            }
        }
    });
    if range == before {
        return;
    }
    if range == [min, max] {
        choices.filters.ranges.remove(key);
    } else {
        choices.filters.ranges.insert(key.clone(), [range[0].min(range[1]), range[1].max(range[0])]);
    }
}
