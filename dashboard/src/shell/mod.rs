//! What surrounds the panels: top bar, tabs, dialogs, start screen.

mod about;
mod icon;
mod open;
mod problems;
mod shortcuts;
mod start;
mod tabs;
mod top_bar;

pub use about::{RunFacts, first_panel};
pub use icon::app_icon;
pub use open::OpenDialog;
pub use problems::{ProblemsWindow, drop_target, n_problems};
pub use shortcuts::ShortcutsWindow;
pub use start::start_screen;
pub use tabs::{Tabs, panel_key};
pub use top_bar::{TopBar, TopBarAction};
