//! The frame of every dialog. A dialog is modal: widgets behind it get no pointer and no keys, and show no tooltips. It
//! is never larger than the window; larger contents scroll. Escape, the cross and a click outside close it.

use super::{Icon, icon_button, scroll_area};
use crate::theme::{metrics, palette};
use egui::{Align, Align2, Context, Frame, Id, Label, Layout, Modal, RichText, Ui, Vec2};

/// A dialog.
pub struct Dialog<'a> {
    id: &'static str,
    title: Option<&'a str>,
    width: f32,
    at_top: bool,
}

/// The response of a dialog in a frame.
pub struct DialogResponse<R> {
    /// The return value of the contents.
    pub inner: R,
    /// Whether the user closed the dialog.
    pub is_closed: bool,
}

impl<'a> Dialog<'a> {
    /// A dialog in the middle of the window, of the default width.
    pub fn new(id: &'static str) -> Self {
        Self { id, title: None, width: metrics::DIALOG_W, at_top: false }
    }

    /// Adds a title and a cross.
    pub fn title(self, title: &'a str) -> Self {
        Self { title: Some(title), ..self }
    }

    /// Sets the width; a narrower window limits it.
    pub fn width(self, width: f32) -> Self {
        Self { width, ..self }
    }

    /// Puts the dialog near the top of the window.
    pub fn at_top(self) -> Self {
        Self { at_top: true, ..self }
    }

    /// Shows the dialog while `is_open`, which it clears when the user closes it; returns the value of the contents.
    pub fn show_while<R>(self, is_open: &mut bool, ctx: &Context, contents: impl FnOnce(&mut Ui) -> R) -> Option<R> {
        is_open.then(|| {
            let response = self.show(ctx, contents);
            *is_open = !response.is_closed;
            response.inner
        })
    }

    /// Shows the dialog. The available size in `contents` is the room in the window.
    pub fn show<R>(self, ctx: &Context, contents: impl FnOnce(&mut Ui) -> R) -> DialogResponse<R> {
        let frame = Frame::window(&ctx.global_style());
        let screen = ctx.content_rect().size();
        let top =
            if self.at_top { metrics::PALETTE_TOP.min(screen.y * metrics::PALETTE_TOP_SHARE) } else { metrics::PAD };
        let room = screen - frame.total_margin().sum() - Vec2::new(2.0 * metrics::PAD, top + metrics::PAD);
        let mut area = Modal::default_area(Id::unique(self.id)).movable(false);
        if self.at_top {
            area = area.anchor(Align2::CENTER_TOP, [0.0, top]);
        }
        let mut has_clicked_close = false;
        let modal = Modal::new(Id::unique(self.id)).area(area).frame(frame).show(ctx, |ui| {
            ui.set_width(self.width.min(room.x));
            let content_top = ui.cursor().top();
            if let Some(title) = self.title {
                has_clicked_close = header(ui, title);
            }
            let height = (room.y - (ui.cursor().top() - content_top)).max(metrics::ROW_H);
            scroll_area(ui, [true, true], height).auto_shrink([false, true]).show(ui, contents).inner
        });
        DialogResponse { is_closed: has_clicked_close || modal.should_close(), inner: modal.inner }
    }
}

/// Shows the title and the cross; returns whether the cross was clicked.
fn header(ui: &mut Ui, title: &str) -> bool {
    let row = ui.horizontal(|ui| {
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            let has_clicked_close = icon_button(ui, Icon::Close, &format!("Close {title}"), false).clicked();
            ui.with_layout(Layout::left_to_right(Align::Center), |ui| {
                let text = RichText::new(title).size(metrics::TEXT_TITLE).color(palette(ui).text_strong);
                ui.add(Label::new(text).truncate());
            });
            has_clicked_close
        })
        .inner
    });
    ui.add_space(metrics::GAP);
    row.inner
}
