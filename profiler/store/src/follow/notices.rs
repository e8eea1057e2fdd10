//! Notices about files.

use std::path::Path;
use trace_model::{Notice, WarningKind};

pub(super) fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

pub(super) fn notice(kind: WarningKind, source: String, count: u64, text: String) -> Notice {
    Notice { kind, source, count, text }
}

pub(super) fn io_notice(path: &Path, error: &str) -> Notice {
    let name = file_name(path);
    let text = format!("{name}: {error}");
    notice(WarningKind::Io, name, 1, text)
}
