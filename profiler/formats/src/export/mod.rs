//! Writes a store as other tools' traces.
//!
//! [`chrome`] is read by everything and loses nothing that comes back through [`mod@crate::import`]; [`perfetto`] has all but
//! the meaning of numbers; [`firefox`] shows markers and call stacks. Each module says what its format has no place for.

mod chrome;
mod firefox;
mod perfetto;
mod rows;

pub(crate) use chrome::TRACK_EVENT;
pub(crate) use perfetto::About;

use std::io::{self, Write};
use trace_store::Store;

/// Formats that can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// Chrome's trace events in JSON.
    Chrome,
    /// Perfetto's protobuf.
    Perfetto,
    /// The Firefox profiler's JSON.
    Firefox,
}

/// Writes a store; `progress` gets the share that is written, 0 to 1, now and then.
///
/// # Errors
/// Of `out`.
pub fn export(
    store: &Store,
    format: ExportFormat,
    out: &mut dyn Write,
    progress: &mut dyn FnMut(f64),
) -> io::Result<()> {
    match format {
        ExportFormat::Chrome => chrome::write(store, out, progress),
        ExportFormat::Perfetto => perfetto::write(store, out, progress),
        ExportFormat::Firefox => firefox::write(store, out, progress),
    }
}
