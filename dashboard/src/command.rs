//! The window's commands as tables. The list of shortcuts, the command palette and the keys all read them and so agree.

use crate::panels::ViewKind;
use egui::{Key, KeyboardShortcut, Modifiers};

pub use ui::command::Entry;

/// A command of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShellCommand {
    Palette,
    /// Shows the dialog that opens a path.
    Open,
    Shortcuts,
    Settings,
    /// Shows the dialog with sources and warnings.
    Problems,
    /// Switches to the next theme.
    Theme,
    /// Returns to the view before the last change.
    Undo,
    /// Returns to the view after the last undone change.
    Redo,
    /// Copies a command line that opens this view.
    CopyLink,
    /// Saves the panel as pixels.
    SavePng,
    /// Saves the panel as vectors.
    SaveSvg,
    /// Saves the panel's table as CSV.
    SaveCsv,
    /// Enlarges everything.
    Larger,
    /// Shrinks everything.
    Smaller,
    /// Returns to the desktop's size.
    NormalSize,
    /// Puts all panels into one row of tabs.
    ResetLayout,
    /// Brings a panel to the front.
    Panel(ViewKind),
}

/// A command of the window with its keys.
pub struct ShellEntry {
    pub command: ShellCommand,
    /// The command's keys; the list of shortcuts shows the first.
    pub keys: &'static [KeyboardShortcut],
    /// The effect, in the imperative.
    pub what: &'static str,
}

const fn key(modifiers: Modifiers, key: Key) -> KeyboardShortcut {
    KeyboardShortcut::new(modifiers, key)
}

const CTRL: Modifiers = Modifiers::COMMAND;
const CTRL_SHIFT: Modifiers = Modifiers::COMMAND.plus(Modifiers::SHIFT);
const NONE: Modifiers = Modifiers::NONE;

impl ShellEntry {
    const fn new(command: ShellCommand, keys: &'static [KeyboardShortcut], what: &'static str) -> Self {
        Self { command, keys, what }
    }
}

/// Every command of the window, in the order of the list of shortcuts.
pub const SHELL: &[ShellEntry] = &[
    ShellEntry::new(
        ShellCommand::Palette,
        &[key(CTRL, Key::K), key(CTRL_SHIFT, Key::P)],
        "Find a command, tag, node, op or thread",
    ),
    ShellEntry::new(ShellCommand::Open, &[key(CTRL, Key::O)], "Open a file or folder…"),
    ShellEntry::new(ShellCommand::Undo, &[key(CTRL, Key::Z)], "Undo the last change of the view"),
    ShellEntry::new(ShellCommand::Redo, &[key(CTRL_SHIFT, Key::Z), key(CTRL, Key::Y)], "Redo the view"),
    ShellEntry::new(ShellCommand::CopyLink, &[key(CTRL_SHIFT, Key::L)], "Copy a command line that opens this view"),
    ShellEntry::new(ShellCommand::SavePng, &[key(CTRL_SHIFT, Key::S)], "Save this panel as a picture (PNG)"),
    ShellEntry::new(ShellCommand::SaveSvg, &[], "Save this panel as vectors (SVG)"),
    ShellEntry::new(ShellCommand::SaveCsv, &[], "Save what this panel shows as a table (CSV)"),
    ShellEntry::new(ShellCommand::Problems, &[], "Show sources and warnings"),
    ShellEntry::new(ShellCommand::Settings, &[key(CTRL, Key::Comma)], "Settings"),
    ShellEntry::new(
        ShellCommand::Theme,
        &[key(CTRL_SHIFT, Key::D)],
        "Switch between dark, light and the desktop's theme",
    ),
    ShellEntry::new(ShellCommand::Larger, &[key(CTRL, Key::Plus), key(CTRL, Key::Equals)], "Zoom in (UI scale)"),
    ShellEntry::new(ShellCommand::Smaller, &[key(CTRL, Key::Minus)], "Zoom out (UI scale)"),
    ShellEntry::new(ShellCommand::NormalSize, &[key(CTRL, Key::Num0)], "Reset zoom (UI scale)"),
    ShellEntry::new(ShellCommand::ResetLayout, &[], "Put all panels back into one row of tabs"),
    ShellEntry::new(ShellCommand::Shortcuts, &[key(NONE, Key::F1), key(NONE, Key::Questionmark)], "List of shortcuts"),
];

/// Keys and gestures that work in every panel.
pub const GESTURES: &[Entry] = &[
    Entry::gesture("1 … 9", "Bring the panel at that position in the row of tabs to the front"),
    Entry::gesture("Drag a tab", "Put a panel next to another"),
    Entry::gesture("Drag a border", "Resize a list or the details; double-click to reset"),
    Entry::gesture("Esc", "Close a dialog; clear the selection"),
    Entry::gesture("Tab", "The next control"),
];

/// The command whose keys were pressed in this frame. Keys without Ctrl do nothing while a text field has the keyboard.
pub fn pressed(ctx: &egui::Context) -> Option<ShellCommand> {
    let is_typing = ctx.text_edit_focused();
    let hit = |i: &mut egui::InputState, entry: &ShellEntry, with_shift: bool| {
        let usable = entry.keys.iter().filter(|k| k.modifiers.shift == with_shift);
        let usable = usable.filter(|k| !is_typing || k.modifiers.command || k.logical_key == Key::F1);
        // In a text field, undo and redo belong to the field.
        let usable = usable.filter(|k| !(is_typing && matches!(k.logical_key, Key::Z | Key::Y)));
        usable.fold(false, |hit, keys| hit | i.consume_shortcut(keys))
    };
    // egui ignores an additional Shift when it matches a chord: chords with Shift are tried first.
    ctx.input_mut(|i| {
        let found = [true, false].into_iter().find_map(|shift| SHELL.iter().find(|entry| hit(i, entry, shift)));
        found.map(|entry| entry.command)
    })
}

/// The command's keys as text, `Ctrl+K`; empty for none.
pub fn keys_text(ctx: &egui::Context, entry: &ShellEntry) -> String {
    entry.keys.first().map_or_else(String::new, |keys| key_text(ctx, keys))
}

/// A key with its modifiers, written with the desktop's symbols.
pub fn key_text(ctx: &egui::Context, keys: &KeyboardShortcut) -> String {
    let sign = match keys.logical_key {
        Key::Questionmark => "?",
        Key::Comma => ",",
        Key::Equals => "=",
        Key::Plus => "+",
        Key::Minus => "-",
        key => key.name(),
    };
    let held = ctx.format_modifiers(keys.modifiers);
    if held.is_empty() { sign.to_owned() } else { format!("{held}+{sign}") }
}
