//! Warnings about files that cannot be read.

use std::path::Path;
use trace_model::{Warning, WarningKind};

/// Returns the last part of a path, for texts.
pub(super) fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Returns a warning about a file that cannot be read.
pub(super) fn io_warning(path: &Path, error: &str) -> Warning {
    let name = file_name(path);
    let text = format!("{name}: {error}");
    Warning::new(WarningKind::Io, name, 1, text)
}
