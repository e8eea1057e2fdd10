//! Saves a panel or a card as pixels or shapes, or a panel's table.

use super::save::SaveDialog;
use crate::{Data, Selection, shell::panels::Tabs};
use egui::{ColorImage, LayerId, PointerState, Rect, ScreenshotCallback, Ui, ViewportCommand, layers::GraphicLayers};
use parking_lot::Mutex;
use std::sync::Arc;
use ui::{
    export,
    theme::{metrics, palette},
    widgets::Dialog,
};

/// Longest time for which the window shows the panels alone while it waits for a screenshot, seconds.
const PATIENCE_S: f64 = 1.0;

/// A requested screenshot of a part of the window.
struct Picture {
    name: String,
    rect: Rect,
    /// When the window stops showing only panels for it.
    until: f64,
    /// The screenshot, requested once a frame shows only panels.
    taken: Option<Arc<Mutex<Option<Arc<ColorImage>>>>>,
    /// The state of the pointer while it is hidden from the panels.
    pointer: Option<PointerState>,
}

/// Pending screenshots and exports.
#[derive(Default)]
pub struct PendingSaves {
    dialog: SaveDialog,
    picture: Option<Picture>,
    /// Name, rect and frame of a requested export of shapes, taken at the end of a later frame.
    vectors: Option<(String, Rect, u64)>,
    /// The reason why nothing was saved.
    pub notice: Option<String>,
}

impl PendingSaves {
    /// Shows a message for a moment.
    pub fn notify(&mut self, ctx: &egui::Context, text: &str) {
        self.dialog.notify(ctx, text);
    }

    /// Requests a screenshot of a panel; it comes with a later frame.
    pub fn png(&mut self, ctx: &egui::Context, tabs: &Tabs) {
        if let Some(rect) = tabs.rect(tabs.front()) {
            self.pixels_of(ctx, tabs.front().id().to_owned(), rect);
        }
    }

    fn pixels_of(&mut self, ctx: &egui::Context, name: String, rect: Rect) {
        let until = ctx.input(|i| i.time) + PATIENCE_S;
        self.picture = Some(Picture { name, rect, until, taken: None, pointer: None });
        ctx.request_repaint();
    }

    /// Hides the pointer from the panels of a frame for a screenshot, which would show hover effects. Call before they
    /// are shown.
    pub fn begin_frame(&mut self, ctx: &egui::Context) {
        if let Some(picture) = &mut self.picture {
            picture.pointer = Some(ctx.input_mut(|i| std::mem::take(&mut i.pointer)));
        }
    }

    /// Removes everything but the panels, which are in `panels`, from a frame for a screenshot. Call when all is shown.
    pub fn end_frame(&mut self, ctx: &egui::Context, panels: LayerId) {
        let Some(picture) = &mut self.picture else { return };
        // A request in the middle of this frame begins with the next.
        let Some(pointer) = picture.pointer.take() else { return };
        ctx.input_mut(|i| i.pointer = pointer);
        ctx.graphics_mut(|graphics| {
            let own = graphics.get_mut(panels).map(std::mem::take);
            *graphics = GraphicLayers::default();
            *graphics.entry(panels) = own.unwrap_or_default();
        });
        if picture.taken.is_none() {
            let taken: Arc<Mutex<Option<Arc<ColorImage>>>> = Arc::default();
            let (slot, wake) = (Arc::clone(&taken), ctx.clone());
            let callback = ScreenshotCallback::new(move |image| {
                *slot.lock() = Some(image);
                wake.request_repaint();
            });
            ctx.send_viewport_cmd(ViewportCommand::Screenshot(callback));
            picture.taken = Some(taken);
        }
        if picture.until < ctx.input(|i| i.time) {
            self.picture = None;
            self.notice = Some("No screenshot: the window system returned none.".to_owned());
        }
        ctx.request_repaint();
    }

    /// Requests a panel's shapes; they are taken at the end of a frame.
    pub fn svg(&mut self, ctx: &egui::Context, tabs: &Tabs) {
        if let Some(rect) = tabs.rect(tabs.front()) {
            self.shapes_of(ctx, tabs.front().id().to_owned(), rect);
        }
    }

    fn shapes_of(&mut self, ctx: &egui::Context, name: String, rect: Rect) {
        export::request_shapes(ctx, true);
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
        let is_painted = |(.., requested): &mut (String, Rect, u64)| ui.ctx().cumulative_frame_nr() > *requested;
        if let Some((name, rect, _)) = self.vectors.take_if(is_painted) {
            export::request_shapes(ui.ctx(), false);
            let background = palette(ui).panel;
            let text = ui.ctx().graphics(|graphics| {
                let shapes = graphics.get(ui.layer_id()).into_iter().flat_map(egui::layers::PaintList::all_entries);
                export::svg::document(shapes, rect, background)
            });
            self.dialog.open("Save as SVG", &file_name(&name, "svg"), text.into_bytes());
        }
        let image = self.picture.as_ref().and_then(|picture| picture.taken.as_ref()?.lock().take());
        if let Some(image) = image
            && let Some(Picture { name, rect, pointer, .. }) = self.picture.take()
        {
            if let Some(pointer) = pointer {
                ui.input_mut(|i| i.pointer = pointer);
            }
            match export::png::encode(&image, rect, ui.ctx().pixels_per_point()) {
                Ok(bytes) => self.dialog.open("Save as PNG", &file_name(&name, "png"), bytes),
                Err(error) => self.notice = Some(format!("No screenshot: {error}.")),
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

/// A file name for a panel or tag; slashes are replaced.
fn file_name(name: &str, extension: &str) -> String {
    let name: String = name.chars().map(|c| if c.is_alphanumeric() || "._-".contains(c) { c } else { '-' }).collect();
    format!("stepscope-{name}.{extension}")
}
