//! Dialogs over the window: `open` (with `browse` and `entry_kinds`), `save` and `saving`, `settings`, `shortcuts`,
//! `sources`, and the command palette in `palette`.

pub(super) mod browse;
mod entry_kinds;
mod open;
mod palette;
mod save;
mod saving;
mod settings;
mod shortcuts;
pub(super) mod sources;

pub use open::OpenDialog;
pub use palette::{Choice, CommandPalette, Panels};
pub use save::SaveDialog;
pub use saving::PendingSaves;
pub use settings::settings_ui;
pub use shortcuts::shortcuts_ui;
pub use sources::{ProblemsWindow, SourceAction, drop_target, n_problems};
