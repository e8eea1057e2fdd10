//! The parts of the window around the panels: top bar, tabs, dialogs, start screen, command palette.
//!
//! `panels` arranges the panels in tabs and goes to addresses; `contents` says which panels have something to show;
//! `top_bar` shows `run_facts`; `start` fills the window while nothing is open; `dialogs` are shown over the panels.

mod contents;
mod dialogs;
mod focus;
mod icon;
mod memory;
mod panels;
mod run_facts;
mod start;
mod status;
mod top_bar;

pub use contents::{can_show_panels, default_panel, has_contents, has_contents_now, layout_key};
pub use dialogs::{
    Choice, CommandPalette, OpenDialog, Panels, PendingSaves, ProblemsWindow, SaveDialog, SourceAction, drop_target,
    settings_ui, shortcuts_ui,
};
pub use focus::FocusRing;
pub use icon::app_icon;
pub use memory::Memory;
pub use panels::{Layout, Navigation, Tabs, address, command_line, panel_key};
pub use run_facts::RunFactsCache;
pub use start::{StartAction, start_screen};
pub use top_bar::TopBar;
