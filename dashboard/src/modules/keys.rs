//! Keys that move the selection in the tree, and commands that need the report.

use super::{ModulesView, analysis::Report};
use crate::Selection;
use egui::{Key, Rect, Ui};
use ui::widgets::is_keyboard_free;

impl ModulesView {
    /// Carries out the keys of this frame, if they belong to the panel, which covers `panel`.
    pub(super) fn keys(&mut self, ui: &Ui, panel: Rect, report: &Report, selection: &mut Selection) {
        let is_elsewhere = ui.input(|i| i.pointer.latest_pos()).is_some_and(|at| !panel.contains(at));
        if is_keyboard_free(ui) && !is_elsewhere {
            let keys = [Key::ArrowUp, Key::ArrowDown, Key::ArrowLeft, Key::ArrowRight, Key::Enter];
            let pressed = |key: &Key| ui.input(|i| i.modifiers.is_none() && i.key_pressed(*key));
            for key in keys.into_iter().filter(pressed) {
                self.key(key, report, selection);
                ui.ctx().request_repaint();
            }
        }
        match self.pending.take() {
            Some("copy") => ui.ctx().copy_text(super::model::text(&report.tree, &self.arranged.rows.shown)),
            Some("timeline") => self.key(Key::Enter, report, selection),
            _ => {}
        }
    }

    fn key(&mut self, key: Key, report: &Report, selection: &mut Selection) {
        let tree = &report.tree;
        let shown = self.arranged.rows.shown.clone();
        let selected = self.settings.selected.as_deref().and_then(|path| tree.find(path));
        let position = shown.iter().position(|i| Some(*i) == selected);
        let (Some(position), Some(selected)) = (position, selected) else {
            // Nothing is selected, or it is folded away.
            return self.move_to(shown.first().copied(), report, selection);
        };
        let module = &tree.modules[selected];
        let is_open = tree.is_open(module, &self.folding);
        match key {
            Key::ArrowUp => self.move_to(position.checked_sub(1).map(|i| shown[i]), report, selection),
            Key::ArrowDown => self.move_to(shown.get(position + 1).copied(), report, selection),
            Key::ArrowLeft if is_open => self.folding.toggle(&module.path),
            Key::ArrowLeft => self.move_to(module.row.parent, report, selection),
            Key::ArrowRight if is_open => self.move_to(shown.get(position + 1).copied(), report, selection),
            Key::ArrowRight if !module.children.is_empty() => self.folding.toggle(&module.path),
            Key::Enter => self.show_longest(report, module, selection),
            _ => {}
        }
    }

    fn move_to(&mut self, row: Option<usize>, report: &Report, selection: &mut Selection) {
        if let Some(module) = row.and_then(|row| report.tree.modules.get(row)) {
            self.select(Some(module), report, selection);
            self.follows = true;
        }
    }
}
