//! The dialog that opens a file or folder: a list and a field to type into. Not the desktop's, as most of what is
//! opened are folders, which file dialogs of desktops do not choose.

use super::{
    browse::{self, FolderEntry},
    entry_kinds::EntryKinds,
};
use crate::config::Recent;
use egui::{Context, Key, Modifiers, Rect, Role, ScrollArea, Sense, TextEdit, Ui, WidgetInfo};
use std::path::PathBuf;
use ui::{
    format,
    theme::{metrics, palette},
    widgets::Dialog,
};

/// The entries for a typed text.
struct Listing {
    text: String,
    entries: Result<(Vec<FolderEntry>, bool), String>,
}

/// The dialog and its state.
#[derive(Default)]
pub struct OpenDialog {
    is_open: bool,
    text: String,
    listing: Option<Listing>,
    /// Kinds of entries, detected as they come into view.
    kinds: EntryKinds,
    selected: Option<usize>,
}

impl OpenDialog {
    /// Opens the dialog, where it was closed before.
    pub fn open(&mut self) {
        self.is_open = true;
        self.listing = None;
        self.kinds.clear();
        if self.text.is_empty()
            && let Ok(folder) = std::env::current_dir()
        {
            self.text = format!("{}/", folder.display());
        }
    }

    /// Shows the dialog while it is open; returns the path that was chosen.
    pub fn ui(&mut self, ctx: &Context, recent: &[Recent]) -> Option<PathBuf> {
        if !self.is_open {
            return None;
        }
        let dialog = Dialog::new("open path").title("Open a file or folder").show(ctx, |ui| self.contents(ui, recent));
        self.is_open &= !dialog.is_closed;
        let chosen = dialog.inner?;
        self.is_open = false;
        Some(chosen)
    }

    fn contents(&mut self, ui: &mut Ui, recent: &[Recent]) -> Option<PathBuf> {
        ui.weak("A run folder, a logdir, a log of another tracker, a trace of any supported tool, or a graph");
        ui.add_space(metrics::GAP);
        let (response, is_entered) = self.field(ui);
        ui.add_space(metrics::GAP);
        let mut chosen = self.list(ui);
        if is_entered {
            chosen = self.entered().or(chosen);
            response.request_focus();
        }
        ui.add_space(metrics::PAD);
        ui.horizontal_wrapped(|ui| {
            let can_open = !self.text.trim().is_empty();
            let open = ui.add_enabled(can_open, egui::Button::new("Open"));
            if open.on_hover_text("Open the path in the field, folders as a whole").clicked() {
                chosen = Some(browse::expand_home(self.text.trim()));
            }
            if ui.button("Cancel").clicked() {
                self.is_open = false;
            }
            ui.menu_button("Recent", |ui| {
                if recent.is_empty() {
                    ui.weak("No recent paths");
                }
                for r in recent.iter().take(10) {
                    if ui.button(r.path.display().to_string()).clicked() {
                        chosen = Some(r.path.clone());
                    }
                }
            });
            ui.weak("Files and folders can also be dropped on the window");
        });
        chosen
    }

    /// Shows the text field; returns its response, and whether Enter was pressed in it.
    fn field(&mut self, ui: &mut Ui) -> (egui::Response, bool) {
        let n = self.listing.as_ref().and_then(|l| l.entries.as_ref().ok()).map_or(0, |(e, _)| e.len());
        let (n_rows_down, completes) = ui.input_mut(|i| {
            let down = i.count_and_consume_key(Modifiers::NONE, Key::ArrowDown) as isize;
            let up = i.count_and_consume_key(Modifiers::NONE, Key::ArrowUp) as isize;
            (down - up, i.count_and_consume_key(Modifiers::NONE, Key::Tab) > 0)
        });
        if n_rows_down != 0 && n > 0 {
            let first = if n_rows_down > 0 { 0 } else { n - 1 };
            self.selected =
                Some(self.selected.map_or(first, |selected| selected.saturating_add_signed(n_rows_down).min(n - 1)));
        }
        let mut goes_up = false;
        let response = ui
            .horizontal(|ui| {
                goes_up = ui.button("Up").on_hover_text("The folder above").clicked();
                let field = TextEdit::singleline(&mut self.text).hint_text("Path").desired_width(f32::INFINITY);
                ui.add(field.lock_focus(true))
            })
            .inner;
        if response.changed() {
            self.text = browse::replaced(&self.text).to_owned();
        }
        // Read before `request_focus` below changes it.
        let is_entered = response.lost_focus() && ui.input(|i| i.key_pressed(Key::Enter));
        response.widget_info(|| WidgetInfo::labeled(Role::TextInput, true, "Path to open"));
        if ui.memory(|m| m.focused().is_none()) {
            response.request_focus();
        }
        if goes_up {
            self.text = browse::parent(&self.text);
            response.request_focus();
        }
        if completes {
            self.enter(self.selected.unwrap_or(0));
        }
        (response, is_entered)
    }

    /// Handles Enter: goes into the selected folder, or returns the selected file, or else the typed path.
    fn entered(&mut self) -> Option<PathBuf> {
        match self.selected.take() {
            Some(selected) => self.enter(selected),
            None => Some(browse::expand_home(self.text.trim())).filter(|p| !p.as_os_str().is_empty()),
        }
    }

    /// Puts an entry into the field; returns the path if the entry is a file.
    fn enter(&mut self, selected: usize) -> Option<PathBuf> {
        let (entries, _) = self.listing.as_ref()?.entries.as_ref().ok()?;
        let entry = entries.get(selected)?;
        self.text = browse::completed(&self.text, &entry.name, entry.is_folder);
        self.selected = None;
        (!entry.is_folder).then(|| browse::expand_home(&self.text))
    }

    fn list(&mut self, ui: &mut Ui) -> Option<PathBuf> {
        if self.listing.as_ref().is_none_or(|l| l.text != self.text) {
            let (folder, prefix) = browse::split(&self.text);
            let entries = browse::entries(&folder, prefix).map_err(|e| format!("{}: {e}", folder.display()));
            self.listing = Some(Listing { text: self.text.clone(), entries });
            self.selected = None;
        }
        let Listing { text, entries } = self.listing.as_ref()?;
        let (entries, is_cut) = match entries {
            Ok(listed) => (&listed.0, listed.1),
            Err(error) => {
                ui.colored_label(palette(ui).error, error);
                return None;
            }
        };
        let (folder, _) = browse::split(text);
        let (mut clicked, mut unknown) = (None, Vec::new());
        // Room for the buttons below the list, with their gaps.
        let buttons_height = 2.0 * metrics::ROW_H + metrics::PAD;
        let max_height = metrics::PALETTE_ROWS as f32 * metrics::ROW_H;
        let height =
            (ui.available_height() - buttons_height).clamp(metrics::LIST_ROWS_MIN * metrics::ROW_H, max_height);
        ui.spacing_mut().item_spacing.y = 0.0;
        let scroll = ScrollArea::vertical().max_height(height).min_scrolled_height(height).auto_shrink([false, false]);
        scroll.show_rows(ui, metrics::ROW_H, entries.len(), |ui, rows| {
            for i in rows {
                let entry = &entries[i];
                let path = folder.join(&entry.name);
                let kind = self.kinds.get(&path);
                if kind.is_none() {
                    unknown.push(path);
                }
                let response = row(ui, entry, kind, self.selected == Some(i));
                if response.double_clicked() || (response.clicked() && (entry.is_folder || self.selected == Some(i))) {
                    clicked = Some((i, true));
                } else if response.clicked() {
                    clicked = Some((i, false));
                }
            }
        });
        self.kinds.request(ui.ctx(), unknown);
        if entries.is_empty() {
            ui.weak("No entries");
        }
        if is_cut {
            ui.weak("Not all entries are listed: type the beginning of a name");
        }
        match clicked {
            Some((selected, true)) => self.enter(selected),
            Some((selected, false)) => {
                self.selected = Some(selected);
                None
            }
            None => None,
        }
    }
}

/// Shows an entry, with its kind once that is known: `Some(None)` for a path that cannot be opened.
fn row(ui: &mut Ui, entry: &FolderEntry, kind: Option<Option<&'static str>>, is_selected: bool) -> egui::Response {
    let p = palette(ui);
    let (rect, response) = ui.allocate_exact_size(egui::vec2(ui.available_width(), metrics::ROW_H), Sense::click());
    let is_refused = kind == Some(None) && !entry.is_folder;
    let kind = kind.flatten();
    let what = kind.unwrap_or(match entry.is_folder {
        true => "folder",
        false if is_refused => "cannot be opened",
        false => "file",
    });
    response.widget_info(|| WidgetInfo::selected(Role::Button, true, is_selected, format!("{}, {what}", entry.name)));
    if is_selected || response.hovered() || response.has_focus() {
        ui.painter().rect_filled(rect, f32::from(metrics::RADIUS), if is_selected { p.selected } else { p.hovered });
    }
    let inner = rect.shrink2(egui::vec2(metrics::PAD, 0.0));
    let size = if entry.is_folder { String::new() } else { format::bytes(entry.bytes) };
    let kind_text = kind.unwrap_or(if is_refused { "-" } else { "" });
    let font = egui::FontId::proportional(metrics::TEXT_SMALL);
    let right = ui.painter().layout_no_wrap(format!("{kind_text}   {size}"), font, p.text_weak);
    let left = inner.right() - right.size().x;
    ui.painter().galley(egui::pos2(left, rect.center().y - right.size().y / 2.0), right, p.text_weak);
    let name = if entry.is_folder { format!("{}/", entry.name) } else { entry.name.clone() };
    let color = if is_refused { p.text_weak } else { p.text };
    let room = Rect::from_min_max(inner.min, egui::pos2(left - metrics::PAD, inner.bottom()));
    ui::widgets::text_elided(ui, &name, room, color);
    response
}
