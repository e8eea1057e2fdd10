//! The list of tables with their columns.

use super::engine::Table;
use egui::{CollapsingHeader, RichText, ScrollArea, Ui};
use ui::theme::{metrics, palette};

/// Lists the tables; returns the name of the table or column that was clicked.
pub fn side_ui(ui: &mut Ui, tables: &[Table]) -> Option<String> {
    let weak = palette(ui).text_weak;
    let mut picked = None;
    ui.add_space(metrics::GAP);
    ScrollArea::vertical().auto_shrink([false, false]).show(ui, |ui| {
        for table in tables {
            CollapsingHeader::new(&table.name).show(ui, |ui| {
                ui.add(egui::Label::new(RichText::new(&table.about).color(weak)).wrap());
                if ui.link(format!("all of {}", table.name)).clicked() {
                    picked = Some(table.name.clone());
                }
                for [name, kind, unit] in &table.columns {
                    ui.horizontal(|ui| {
                        if ui.link(name).clicked() {
                            picked = Some(name.clone());
                        }
                        let text = if unit.is_empty() { kind.clone() } else { format!("{kind}, {unit}") };
                        ui.add(egui::Label::new(RichText::new(text).color(weak)).truncate());
                    });
                }
            });
        }
    });
    picked
}
