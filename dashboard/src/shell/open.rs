//! The dialog that opens a path by its name.

use crate::theme::{metrics, palette};
use egui::{Context, Id, Key, Modal, RichText, TextEdit, Ui, WidgetInfo};
use std::path::{Path, PathBuf};

/// Entries of a folder that are offered at most.
const MAX_OFFERED: usize = 12;
/// Entries of a folder that are looked at: it may hold millions.
const MAX_SEEN: usize = 10_000;

/// A path being typed, with what its folder holds.
#[derive(Default)]
pub struct OpenDialog {
    is_open: bool,
    text: String,
    /// What was offered, and for which text.
    offered: (String, Vec<String>),
}

impl OpenDialog {
    /// Opens the dialog.
    pub fn open(&mut self) {
        self.is_open = true;
        if self.text.is_empty()
            && let Ok(here) = std::env::current_dir()
        {
            self.text = format!("{}/", here.display());
        }
    }

    /// Shows the dialog while it is open; the path when one was chosen.
    pub fn ui(&mut self, ctx: &Context) -> Option<PathBuf> {
        if !self.is_open {
            return None;
        }
        let modal = Modal::new(Id::unique("open path")).show(ctx, |ui| self.contents(ui));
        if modal.should_close() {
            self.is_open = false;
        }
        let chosen = modal.inner?;
        self.is_open = false;
        self.text.clear();
        Some(chosen)
    }

    fn contents(&mut self, ui: &mut Ui) -> Option<PathBuf> {
        ui.set_width(metrics::DIALOG_W);
        ui.label(RichText::new("Open").size(metrics::TEXT_TITLE).color(palette(ui).text_strong));
        ui.weak("A run folder, a folder of runs, an event file, a trace folder or a graph file.");
        ui.add_space(metrics::GAP);
        let field = TextEdit::singleline(&mut self.text).hint_text("Path").desired_width(f32::INFINITY);
        let response = ui.add(field);
        response.widget_info(|| WidgetInfo::labeled(egui::Role::TextInput, true, "Path to open"));
        if ui.memory(|m| m.focused().is_none()) {
            response.request_focus();
        }
        let is_entered = response.lost_focus() && ui.input(|i| i.key_pressed(Key::Enter));
        if self.offered.0 != self.text || self.offered.1.is_empty() {
            self.offered = (self.text.clone(), completions(&self.text));
        }
        let mut taken = None;
        for offer in &self.offered.1 {
            if ui.add(egui::Button::new(offer).frame(false)).clicked() {
                taken = Some(offer.clone());
            }
        }
        if let Some(taken) = taken {
            self.text = taken;
            response.request_focus();
        }
        ui.add_space(metrics::PAD);
        let mut chosen = None;
        ui.horizontal(|ui| {
            let can_open = !self.text.trim().is_empty();
            if ui.add_enabled(can_open, egui::Button::new("Open")).clicked() || (is_entered && can_open) {
                chosen = Some(expand_home(self.text.trim()));
            }
            if ui.button("Cancel").clicked() {
                self.is_open = false;
            }
            ui.weak("Files and folders can also be dropped on the window.");
        });
        chosen
    }
}

/// Entries of the typed path's folder that begin with its last part, folders with a slash at the end.
fn completions(text: &str) -> Vec<String> {
    let (folder, prefix) = text.rsplit_once('/').map_or((".", text), |(folder, prefix)| (folder, prefix));
    let stem = if text.contains('/') { format!("{folder}/") } else { String::new() };
    let folder = if folder.is_empty() { PathBuf::from("/") } else { expand_home(folder) };
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let named = entries.take(MAX_SEEN).flatten().filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let is_hidden = name.starts_with('.') && !prefix.starts_with('.');
        let slash = if entry.path().is_dir() { "/" } else { "" };
        (name.starts_with(prefix) && !is_hidden).then(|| format!("{stem}{name}{slash}"))
    });
    let mut all: Vec<String> = named.collect();
    all.sort_unstable_by(|a, b| b.ends_with('/').cmp(&a.ends_with('/')).then_with(|| a.cmp(b)));
    all.truncate(MAX_OFFERED);
    all
}

/// `~` at the beginning stands for the home folder.
fn expand_home(text: &str) -> PathBuf {
    match (text.strip_prefix('~'), std::env::home_dir()) {
        (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
        _ => Path::new(text).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completes_names_folders_first() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["run-b", "run-a"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
        }
        std::fs::write(dir.path().join("run.pb"), "").unwrap();
        std::fs::write(dir.path().join(".hidden"), "").unwrap();
        let base = format!("{}/", dir.path().display());
        let offers = |typed: &str| -> Vec<String> {
            completions(&format!("{base}{typed}")).iter().map(|o| o[base.len()..].to_owned()).collect()
        };
        assert_eq!(offers("r"), ["run-a/", "run-b/", "run.pb"]);
        assert_eq!(offers(".h"), [".hidden"]);
        assert_eq!(offers("nothing"), Vec::<String>::new());
        assert_eq!(completions("/no/such/folder/x"), Vec::<String>::new());
    }
}
