//! Saves a panel or a card: its pixels, its shapes; a panel's table.

use super::{SaveDialog, Tabs};
use crate::{
    Data, Selection, export,
    theme::{metrics, palette},
    widgets::Dialog,
};
use egui::{ColorImage, Rect, ScreenshotCallback, Ui, ViewportCommand};
use parking_lot::Mutex;
use std::sync::Arc;

/// A picture of the window that was asked for.
type Picture = Arc<Mutex<Option<Arc<ColorImage>>>>;

/// What is being saved.
#[derive(Default)]
pub struct Saving {
    dialog: SaveDialog,
    /// What the picture that is on its way is called, and where in the window it is.
    picture: Option<(String, Rect, Picture)>,
    /// The same of what has its shapes taken, at the end of a frame after this one.
    vectors: Option<(String, Rect, u64)>,
    /// Why nothing was saved, for the user.
    pub notice: Option<String>,
}

impl Saving {
    /// Shows a few words for a moment.
    pub fn tell(&mut self, ctx: &egui::Context, text: &str) {
        self.dialog.tell(ctx, text);
    }

    /// Asks for a picture of a panel; it comes with the next frame.
    pub fn png(&mut self, ctx: &egui::Context, tabs: &Tabs) {
        if let Some(rect) = tabs.rect(tabs.front()) {
            self.pixels_of(ctx, tabs.front().id().to_owned(), rect);
        }
    }

    fn pixels_of(&mut self, ctx: &egui::Context, name: String, rect: Rect) {
        let picture = Picture::default();
        let (slot, wake) = (Arc::clone(&picture), ctx.clone());
        let callback = ScreenshotCallback::new(move |image| {
            *slot.lock() = Some(image);
            wake.request_repaint();
        });
        ctx.send_viewport_cmd(ViewportCommand::Screenshot(callback));
        self.picture = Some((name, rect, picture));
    }

    /// Asks for a panel's shapes; they are taken at the end of the frame.
    pub fn svg(&mut self, ctx: &egui::Context, tabs: &Tabs) {
        if let Some(rect) = tabs.rect(tabs.front()) {
            self.shapes_of(ctx, tabs.front().id().to_owned(), rect);
        }
    }

    fn shapes_of(&mut self, ctx: &egui::Context, name: String, rect: Rect) {
        export::want_shapes(ctx, true);
        self.vectors = Some((name, rect, ctx.cumulative_frame_nr()));
        ctx.request_repaint();
    }

    /// Saves what a panel shows as a table.
    pub fn csv(&mut self, tabs: &Tabs, data: &Data, selection: &Selection) {
        let kind = tabs.front();
        match tabs.view(kind).and_then(|view| view.table(data, selection)) {
            Some(text) => self.dialog.open("Save the table as CSV", &file_name(kind.id(), "csv"), text.into_bytes()),
            None => self.notice = Some(format!("{} shows no table.", kind.title())),
        }
    }

    /// Shows the dialogs. Call when the panels are painted.
    pub fn ui(&mut self, ui: &Ui) {
        match export::take_card(ui.ctx()) {
            Some(card) if card.as_vectors => self.shapes_of(ui.ctx(), card.name, card.rect),
            Some(card) => self.pixels_of(ui.ctx(), card.name, card.rect),
            None => {}
        }
        let is_painted = |(.., asked): &mut (String, Rect, u64)| ui.ctx().cumulative_frame_nr() > *asked;
        if let Some((name, rect, _)) = self.vectors.take_if(is_painted) {
            export::want_shapes(ui.ctx(), false);
            let ground = palette(ui).panel;
            let text = ui.ctx().graphics(|graphics| {
                let shapes = graphics.get(ui.layer_id()).into_iter().flat_map(egui::layers::PaintList::all_entries);
                export::svg::document(shapes, rect, ground)
            });
            self.dialog.open("Save as SVG", &file_name(&name, "svg"), text.into_bytes());
        }
        let arrived = self.picture.take_if(|(.., slot)| slot.lock().is_some());
        if let Some((name, rect, slot)) = arrived
            && let Some(image) = slot.lock().take()
        {
            match export::png::encode(&image, rect, ui.ctx().pixels_per_point()) {
                Ok(bytes) => self.dialog.open("Save as PNG", &file_name(&name, "png"), bytes),
                Err(error) => self.notice = Some(format!("No picture: {error}.")),
            }
        }
        self.dialog.ui(ui.ctx());
        if let Some(notice) = self.notice.clone() {
            let dialog = Dialog::new("not saved").title("Not saved").width(metrics::SETTINGS_W);
            if dialog.show(ui.ctx(), |ui| ui.label(notice)).is_closed {
                self.notice = None;
            }
        }
    }
}

/// A name for a file with something of this name: a tag's slashes are no folders.
fn file_name(name: &str, extension: &str) -> String {
    let name: String = name.chars().map(|c| if c.is_alphanumeric() || "._-".contains(c) { c } else { '-' }).collect();
    format!("stepscope-{name}.{extension}")
}
