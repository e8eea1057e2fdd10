//! Saves a panel: its pixels, its shapes, its table.

use super::{SaveDialog, Tabs};
use crate::{Data, Selection, ViewKind, export, theme::palette};
use egui::{ColorImage, Rect, ScreenshotCallback, Ui, ViewportCommand};
use parking_lot::Mutex;
use std::sync::Arc;

/// A picture of the window that was asked for.
type Picture = Arc<Mutex<Option<Arc<ColorImage>>>>;

/// What is being saved.
#[derive(Default)]
pub struct Saving {
    dialog: SaveDialog,
    /// The panel whose picture is on its way, with where it is.
    picture: Option<(ViewKind, Rect, Picture)>,
    /// The panel whose shapes are taken at the end of the frame after this one.
    vectors: Option<(ViewKind, u64)>,
    /// Why nothing was saved, for the user.
    pub notice: Option<String>,
}

impl Saving {
    /// Asks for a picture of a panel; it comes with the next frame.
    pub fn png(&mut self, ctx: &egui::Context, tabs: &Tabs) {
        let kind = tabs.front();
        let Some(rect) = tabs.rect(kind) else { return };
        let picture = Picture::default();
        let (slot, wake) = (Arc::clone(&picture), ctx.clone());
        let callback = ScreenshotCallback::new(move |image| {
            *slot.lock() = Some(image);
            wake.request_repaint();
        });
        ctx.send_viewport_cmd(ViewportCommand::Screenshot(callback));
        self.picture = Some((kind, rect, picture));
    }

    /// Asks for a panel's shapes; they are taken at the end of the frame.
    pub fn svg(&mut self, ctx: &egui::Context, tabs: &Tabs) {
        export::want_shapes(ctx, true);
        self.vectors = Some((tabs.front(), ctx.cumulative_frame_nr()));
        ctx.request_repaint();
    }

    /// Saves what a panel shows as a table.
    pub fn csv(&mut self, tabs: &Tabs, data: &Data, selection: &Selection) {
        let kind = tabs.front();
        match tabs.view(kind).and_then(|view| view.table(data, selection)) {
            Some(text) => self.dialog.open("Save the table as CSV", &file_name(kind, "csv"), text.into_bytes()),
            None => self.notice = Some(format!("{} shows no table.", kind.title())),
        }
    }

    /// Shows the dialogs. Call when the panels are painted.
    pub fn ui(&mut self, ui: &Ui, tabs: &Tabs) {
        let is_painted = |(_, asked): &mut (ViewKind, u64)| ui.ctx().cumulative_frame_nr() > *asked;
        if let Some((kind, _)) = self.vectors.take_if(is_painted)
            && let Some(rect) = tabs.rect(kind)
        {
            export::want_shapes(ui.ctx(), false);
            let ground = palette(ui).panel;
            let text = ui.ctx().graphics(|graphics| {
                let shapes = graphics.get(ui.layer_id()).into_iter().flat_map(egui::layers::PaintList::all_entries);
                export::svg::document(shapes, rect, ground)
            });
            self.dialog.open("Save the panel as SVG", &file_name(kind, "svg"), text.into_bytes());
        }
        let arrived = self.picture.as_ref().and_then(|(kind, rect, slot)| Some((*kind, *rect, slot.lock().take()?)));
        if let Some((kind, rect, image)) = arrived {
            self.picture = None;
            match export::png::encode(&image, rect, ui.ctx().pixels_per_point()) {
                Ok(bytes) => self.dialog.open("Save the panel as PNG", &file_name(kind, "png"), bytes),
                Err(error) => self.notice = Some(format!("No picture: {error}.")),
            }
        }
        self.dialog.ui(ui.ctx());
        if let Some(notice) = self.notice.clone() {
            let mut is_open = true;
            egui::Window::new("Not saved").open(&mut is_open).collapsible(false).resizable(false).show(
                ui.ctx(),
                |ui| {
                    ui.label(notice);
                },
            );
            if !is_open || ui.input(|i| i.key_pressed(egui::Key::Escape)) {
                self.notice = None;
            }
        }
    }
}

fn file_name(kind: ViewKind, extension: &str) -> String {
    format!("stepscope-{}.{extension}", kind.id())
}
