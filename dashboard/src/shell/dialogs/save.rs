//! The dialog that saves a file. An existing file is replaced only after the user has been warned.

use super::browse;
use egui::{Context, Key, Role, TextEdit, Ui, WidgetInfo};
use ui::{
    theme::{metrics, palette},
    widgets::Dialog,
};

/// Contents to be written.
struct Pending {
    /// `Graph as SVG`.
    title: String,
    contents: Vec<u8>,
    text: String,
    error: Option<String>,
}

#[derive(Default)]
pub struct SaveDialog {
    pending: Option<Pending>,
    /// The last message, such as where a file was saved, and its time.
    message: Option<(String, f64)>,
}

/// Time for which a message is shown, seconds.
const MESSAGE_S: f64 = 5.0;

impl SaveDialog {
    /// Opens the dialog to save `contents`, with `name` in the current folder as default.
    pub fn open(&mut self, title: &str, name: &str, contents: Vec<u8>) {
        let folder = std::env::current_dir().map_or_else(|_| String::new(), |here| format!("{}/", here.display()));
        let text = format!("{folder}{name}");
        self.pending = Some(Pending { title: title.to_owned(), contents, text, error: None });
    }

    /// Shows a message for a moment.
    pub fn notify(&mut self, ctx: &Context, text: &str) {
        self.message = Some((text.to_owned(), ctx.input(|i| i.time)));
    }

    /// Shows the dialog while it is open, and messages.
    pub fn ui(&mut self, ctx: &Context) {
        let now = ctx.input(|i| i.time);
        if let Some((text, at)) = &self.message {
            if now - at < MESSAGE_S {
                egui::Window::new("saved")
                    .title_bar(false)
                    .resizable(false)
                    .anchor(egui::Align2::CENTER_BOTTOM, [0.0, -metrics::GAP_WIDE])
                    .show(ctx, |ui| ui.label(text));
                ctx.request_repaint_after_secs((MESSAGE_S - (now - at)) as f32);
            } else {
                self.message = None;
            }
        }
        let Some(pending) = &mut self.pending else { return };
        let title = pending.title.clone();
        let shown = Dialog::new("save file").title(&title).show(ctx, |ui| contents(ui, pending));
        match shown.inner {
            Some(true) => match write(pending) {
                Ok(path) => {
                    self.message = Some((format!("Saved: {path}"), now));
                    self.pending = None;
                }
                Err(error) => pending.error = Some(error),
            },
            Some(false) => self.pending = None,
            None if shown.is_closed => self.pending = None,
            None => {}
        }
    }
}

/// Save (true), cancel (false), or neither yet.
fn contents(ui: &mut Ui, pending: &mut Pending) -> Option<bool> {
    let field = TextEdit::singleline(&mut pending.text).hint_text("Path").desired_width(f32::INFINITY);
    let response = ui.add(field);
    // Before the field gets the keyboard back.
    let is_entered = response.lost_focus() && ui.input(|i| i.key_pressed(Key::Enter));
    response.widget_info(|| WidgetInfo::labeled(Role::TextInput, true, "Path to save to"));
    if ui.memory(|m| m.focused().is_none()) {
        response.request_focus();
    }
    let path = browse::expand_home(pending.text.trim());
    let (is_there, is_folder) = (path.exists(), path.is_dir());
    if let Some(error) = &pending.error {
        ui.colored_label(palette(ui).error, error);
    } else if is_folder {
        ui.colored_label(palette(ui).warning, "This is a folder: add a file name");
    } else if is_there {
        ui.colored_label(palette(ui).warning, "A file with this name exists");
    }
    ui.add_space(metrics::PAD);
    let mut answer = None;
    ui.horizontal_wrapped(|ui| {
        let verb = if is_there { "Replace" } else { "Save" };
        let can_save = !pending.text.trim().is_empty() && !is_folder;
        // Enter alone replaces nothing.
        if ui.add_enabled(can_save, egui::Button::new(verb)).clicked() || (is_entered && can_save && !is_there) {
            answer = Some(true);
        }
        if ui.button("Cancel").clicked() {
            answer = Some(false);
        }
    });
    answer
}

fn write(pending: &Pending) -> Result<String, String> {
    let path = browse::expand_home(pending.text.trim());
    std::fs::write(&path, &pending.contents).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(path.display().to_string())
}
