//! A ring around the widget with the keyboard focus: from the first Tab until the pointer is used.

use egui::{Id, Key, LayerId, Order, Stroke, StrokeKind, Ui};
use ui::theme::{metrics, palette};

/// Distance of the ring from the widget, and its width, points.
const GAP: f32 = 1.0;
const WIDTH: f32 = 2.0;

#[derive(Default)]
pub struct FocusRing {
    by_keys: bool,
}

impl FocusRing {
    /// Paints the ring over everything. Call last.
    pub fn ui(&mut self, ui: &Ui) {
        let ctx = ui.ctx();
        ctx.input(|i| {
            if i.key_pressed(Key::Tab) {
                self.by_keys = true;
            } else if i.pointer.any_pressed() {
                self.by_keys = false;
            }
        });
        if !self.by_keys {
            return;
        }
        // A widget that is scrolled out of view has no response.
        let Some(response) = ctx.memory(egui::Memory::focused).and_then(|id| ctx.read_response(id)) else { return };
        let painter = ctx.layer_painter(LayerId::new(Order::Tooltip, Id::unique("focus ring")));
        let stroke = Stroke::new(WIDTH, palette(ui).accent);
        painter.rect_stroke(response.rect.expand(GAP), f32::from(metrics::RADIUS), stroke, StrokeKind::Outside);
    }
}
