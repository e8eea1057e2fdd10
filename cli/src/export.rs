//! `stepscope export`: reads a trace and writes it as another tool's.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::Context;
use flate2::{Compression, write::GzEncoder};
use profiler::export::{self, ExportFormat};

use crate::args::{Export, TraceFormat, Verbosity};
use crate::outcome::{Failure, Outcome};
use crate::told::Told;
use crate::trace_file;

/// Reads, converts, writes.
pub fn run(args: &Export, verbosity: Verbosity) -> Outcome {
    let format = match args.format.or_else(|| by_name(args.out.as_deref()?)) {
        None | Some(TraceFormat::Chrome) => ExportFormat::Chrome,
    };
    if let Some(out) = &args.out
        && out.exists()
        && !args.force
    {
        return Err(Failure::wrong_use(format_args!("{} exists; --force writes over it", out.display())));
    }
    let store = trace_file::open_all(&args.traces, verbosity)?;
    let mut told = Told::new("writing", verbosity);
    let mut progress = |share| told.share(share);
    match &args.out {
        None => {
            let mut out = BufWriter::new(io::stdout().lock());
            export::export(&store, format, &mut out, &mut progress).and_then(|()| out.flush()).or_else(reader_left)
        }
        Some(path) => write(path, &store, format, &mut progress),
    }
    .context("writing the trace")?;
    for warning in store.warnings() {
        eprintln!("warning: {}: {}", warning.source, warning.text);
    }
    Ok(())
}

/// Writes beside the file first: what is there stays whole until the new one is.
fn write(path: &Path, store: &profiler::Store, format: ExportFormat, progress: &mut dyn FnMut(f64)) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".partial");
    let partial = path.with_file_name(name);
    let written = (|| {
        let file = BufWriter::with_capacity(1 << 20, File::create(&partial)?);
        if path.extension().is_some_and(|ext| ext == "gz") {
            let mut out = GzEncoder::new(file, Compression::fast());
            export::export(store, format, &mut out, progress)?;
            out.finish()?.flush()
        } else {
            let mut out = file;
            export::export(store, format, &mut out, progress)?;
            out.flush()
        }
    })();
    match written {
        Ok(()) => std::fs::rename(&partial, path),
        Err(error) => {
            let _ = std::fs::remove_file(&partial);
            Err(error)
        }
    }
}

/// `stepscope export ... | head` is no failure.
fn reader_left(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::BrokenPipe { Ok(()) } else { Err(error) }
}

/// The format that a file's name asks for.
fn by_name(path: &Path) -> Option<TraceFormat> {
    let name = path.file_name()?.to_str()?;
    let name = name.strip_suffix(".gz").unwrap_or(name);
    name.ends_with(".json").then_some(TraceFormat::Chrome)
}
