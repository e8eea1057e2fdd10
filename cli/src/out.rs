//! The terminal: results on standard output, everything else on standard error. No other module of this member
//! writes to either; clippy enforces that (`print_stdout`, `print_stderr`, and `disallowed_methods` for the streams).
//!
//! A result that could not be written is an error of the command. The first failure is stored, later results are
//! dropped, and [`failure`] returns the failure when the command ends. A reader who has left (`| head`) is no error:
//! the command ends quietly.

use std::fmt::{Arguments, Display};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::sync::OnceLock;

use parking_lot::Mutex;

use crate::outcome::Failure;

/// The first error of writing to standard output.
static FIRST_ERROR: OnceLock<io::Error> = OnceLock::new();
/// Whether the terminal shows a line of progress, which must be wiped before anything else is written.
static HAS_PROGRESS: Mutex<bool> = Mutex::new(false);
/// Moves the cursor to the beginning of the line and erases the line.
const WIPE: &str = "\r\x1b[K";

/// Prints a line of results, formatted as by `println!`.
macro_rules! say {
    () => { $crate::out::line("") };
    ($($arg:tt)*) => { $crate::out::line(format_args!($($arg)*)) };
}

/// Prints a line on standard error, formatted as by `eprintln!`.
macro_rules! note {
    ($($arg:tt)*) => { $crate::out::note(format_args!($($arg)*)) };
}

/// Standard output, for results in many pieces: wrap it in a `BufWriter`, and flush that.
pub struct Results;

impl Write for Results {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        wipe();
        write_stdout(|stdout| stdout.write_all(bytes)).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        write_stdout(|stdout| stdout.flush())
    }
}

/// Writes, unless a write has failed before; stores the first error.
fn write_stdout(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    if let Some(error) = FIRST_ERROR.get() {
        return Err(error.kind().into());
    }
    #[expect(clippy::disallowed_methods, reason = "the one place that writes there")]
    let written = write(&mut io::stdout().lock());
    written.map_err(|error| {
        let kind = error.kind();
        // `set` fails where another thread's error came first.
        let _ = FIRST_ERROR.set(error);
        kind.into()
    })
}

/// Writes rows to standard output, until writing fails.
///
/// # Errors
/// `Failure::Output` when writing failed.
pub fn rows(write: impl FnOnce(&mut BufWriter<Results>) -> io::Result<()>) -> Result<(), Failure> {
    let mut out = BufWriter::new(Results);
    let written = write(&mut out).and_then(|()| out.flush());
    // `into_parts` drops the buffered rows; dropping the writer would try to write them again.
    drop(out.into_parts());
    match (written, FIRST_ERROR.get()) {
        (Ok(()), _) => Ok(()),
        (Err(_), Some(_)) => Err(Failure::Output),
        (Err(error), None) => Err(Failure::Work(error.into())),
    }
}

/// Prints a line of results.
pub fn line(text: impl Display) {
    // `write_stdout` stores the failure.
    let _ = Results.write_all(format!("{text}\n").as_bytes());
}

/// Prints a table after an empty line; nothing without rows.
pub fn table(table: &text::Table) {
    if !table.is_empty() {
        line(format_args!("\n{table}"));
    }
}

/// Prints an object of results on one line. The fields are documented in `docs/formats/json.md`; the version grows when
/// a key is removed or changes its meaning.
pub fn object(schema_version: u32, object: serde_json::Value) {
    line(versioned(schema_version, object));
}

/// Adds the version to an object.
pub fn versioned(schema_version: u32, mut object: serde_json::Value) -> serde_json::Value {
    object["schema_version"] = schema_version.into();
    object
}

/// Prints an object at once, for a command that continues, even where the reader of standard output has left.
///
/// # Errors
/// `Failure::Output` when writing failed for another reason.
pub fn announce(schema_version: u32, value: serde_json::Value) -> Result<(), Failure> {
    object(schema_version, value);
    let is_lost = FIRST_ERROR.get().is_some_and(|error| error.kind() != io::ErrorKind::BrokenPipe);
    if is_lost { Err(Failure::Output) } else { Ok(()) }
}

/// Whether standard output is a terminal.
#[cfg(feature = "query")]
pub fn is_stdout_terminal() -> bool {
    #[expect(clippy::disallowed_methods, reason = "only asked what it is")]
    io::stdout().is_terminal()
}

/// Flushes the results; returns the error if any of them could not be written.
pub fn failure() -> Option<&'static io::Error> {
    // `write_stdout` stores the failure.
    let _ = Results.flush();
    FIRST_ERROR.get()
}

/// Prints a line on standard error. A failure is ignored, because there is nowhere to report it.
pub fn note(text: Arguments<'_>) {
    wipe();
    stderr(&format!("{text}\n"));
}

/// Replaces the line of progress on the terminal.
pub fn progress(line: &str) {
    let mut has_progress = HAS_PROGRESS.lock();
    stderr(&format!("{WIPE}{line}"));
    *has_progress = true;
}

/// Erases the line of progress.
pub fn wipe() {
    let mut has_progress = HAS_PROGRESS.lock();
    if std::mem::take(&mut *has_progress) {
        stderr(WIPE);
    }
}

/// Whether standard error is a terminal.
pub fn is_stderr_terminal() -> bool {
    #[expect(clippy::disallowed_methods, reason = "only asked what it is")]
    io::stderr().is_terminal()
}

fn stderr(text: &str) {
    #[expect(clippy::disallowed_methods, reason = "the one place that writes there")]
    let mut stderr = io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}
