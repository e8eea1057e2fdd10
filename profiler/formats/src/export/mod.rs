//! Writes a store as other tools' traces.
//!
//! [`chrome`] is read by most tools, and [`mod@crate::import`] reads it back without loss; [`perfetto`] lacks the
//! meaning of numbers only; [`firefox`] shows markers and call stacks. Each module says what its format cannot express.

mod chrome;
mod firefox;
mod perfetto;
mod rows;

pub(crate) use chrome::TRACK_EVENT;
pub(crate) use perfetto::ExtraProperties;

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

/// Writes a store in a format; `progress` is called with the share that is written, 0 to 1.
///
/// # Errors
/// Fails if `out` does.
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
