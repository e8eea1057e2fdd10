//! The legend of the colours, if a column determines them.

use super::state::{Mode, State};
use egui::{Align2, FontId, Mesh, Panel, Rect, Sense, Ui, pos2, vec2};
use ui::{
    theme::{metrics, palette},
    widgets,
};

/// Parts in which the ramp is drawn.
const N_RAMP_PARTS: u16 = 32;

impl State {
    /// Shows the ramp of the colour's column with its values, to the right of the picture.
    pub(super) fn legend_ui(&self, ui: &mut Ui) {
        let axis = self.choices.color.as_ref().and_then(|key| self.axis(key));
        let Some(axis) = axis.filter(|_| self.choices.mode != Mode::Table) else { return };
        let panel = Panel::right("hparams legend").resizable(false).exact_size(metrics::LEGEND_W);
        panel.show(ui, |ui| {
            let p = palette(ui);
            ui.add_space(metrics::PAD);
            ui.add(egui::Label::new(axis.key.title()).truncate());
            let room = vec2(ui.available_width(), ui.available_height() - metrics::PAD);
            let (outer, response) = ui.allocate_exact_size(room, Sense::hover());
            let ramp = Rect::from_min_size(outer.min, vec2(metrics::SWATCH, outer.height()))
                .shrink2(vec2(0.0, metrics::TEXT_TICK));
            let y = |share: f64| ramp.bottom() - share as f32 * ramp.height();
            let mut mesh = Mesh::default();
            for i in 0..N_RAMP_PARTS {
                let [from, to] = [i, i + 1].map(|edge| f64::from(edge) / f64::from(N_RAMP_PARTS));
                let first = mesh.vertices.len() as u32;
                for share in [from, to] {
                    mesh.colored_vertex(pos2(ramp.left(), y(share)), p.ramp(share));
                    mesh.colored_vertex(pos2(ramp.right(), y(share)), p.ramp(share));
                }
                mesh.add_triangle(first, first + 1, first + 2);
                mesh.add_triangle(first + 1, first + 3, first + 2);
            }
            ui.painter().add(mesh);
            let ticks = axis.ticks((ramp.height() / metrics::TICK_EVERY_Y).max(2.0) as usize);
            for (share, label) in &ticks {
                let at = pos2(ramp.right() + metrics::GAP, y(*share));
                let painter = ui.painter_at(outer);
                painter.text(at, Align2::LEFT_CENTER, label, FontId::proportional(metrics::TEXT_TICK), p.text);
            }
            widgets::describe(&response, || {
                let labels: Vec<&str> = ticks.iter().map(|(_, label)| &**label).collect();
                format!("Colours of {}: {}", axis.key.title(), labels.join(", "))
            });
        });
    }
}
