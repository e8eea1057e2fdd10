//! What surrounds the panels: top bar, tabs, dialogs, start screen, command palette.

mod about;
mod arrangement;
pub mod browse;
mod focus;
mod icon;
mod kinds;
mod memory;
mod navigation;
mod open;
mod palette;
mod problems;
mod save;
mod saving;
mod settings;
mod shortcuts;
mod start;
mod tabs;
mod top_bar;

pub use self::palette::{Choice, CommandPalette, Panels};
pub use about::{KnownFacts, RunFacts, first_panel, has_something, has_something_now, kind_of, shows_anything};
pub use arrangement::Layout;
pub use focus::FocusRing;
pub use icon::app_icon;
pub use memory::Memory;
pub use navigation::{Navigation, address, command_line};
pub use open::OpenDialog;
pub use problems::{ProblemsWindow, SourceAct, drop_target, n_problems};
pub use save::SaveDialog;
pub use saving::Saving;
pub use settings::SettingsWindow;
pub use shortcuts::ShortcutsWindow;
pub use start::{StartAct, start_screen};
pub use tabs::{Tabs, panel_key};
pub use top_bar::{TopBar, TopBarAction};
