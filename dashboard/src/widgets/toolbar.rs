//! The row of controls at the top of a panel.

use crate::theme::{metrics, palette};
use egui::{Frame, Margin, Panel, Ui};

/// Shows `contents` above what follows in `ui`.
pub fn toolbar<R>(ui: &mut Ui, contents: impl FnOnce(&mut Ui) -> R) -> R {
    let margin = Margin::symmetric(metrics::PAD as i8, metrics::GAP as i8);
    let frame = Frame::new().fill(palette(ui).panel).inner_margin(margin);
    Panel::top("toolbar").frame(frame).show(ui, contents).inner
}
