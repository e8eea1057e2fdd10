//! The files of `stepscope export`: recognises the input, and writes the output.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use flate2::{Compression, write::GzEncoder};
use formats::FileKind;

use crate::source;

/// Whether the input is one logdir: an event file or a log of another tool, a folder of them that is no run folder with
/// a trace, or a bucket.
pub fn is_logdir(paths: &[PathBuf]) -> bool {
    let is_logdir =
        |path| matches!(formats::sniff(path), Ok(FileKind::EventFile | FileKind::Logdir | FileKind::RunLog));
    matches!(paths, [path] if source::is_url(path) || is_logdir(path))
}

/// Whether the rows of a path are scalars, as for a logdir or a run's folder, rather than slices of a trace.
pub fn has_scalars(path: &Path) -> bool {
    let is_trace = |path| matches!(formats::sniff(path), Ok(FileKind::TraceFolder | FileKind::Trace(_)));
    source::is_url(path) || !is_trace(path)
}

/// Writes a temporary file and renames it to `path`, so that an existing file stays complete until the new one is.
pub fn write_file(path: &Path, write: impl FnOnce(&mut (dyn Write + Send)) -> io::Result<()>) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".partial");
    let partial = path.with_file_name(name);
    let written = (|| {
        let mut file = BufWriter::with_capacity(1 << 20, File::create(&partial)?);
        if path.extension().is_some_and(|ext| ext == "gz") {
            let mut out = GzEncoder::new(file, Compression::fast());
            write(&mut out)?;
            out.finish()?.flush()
        } else {
            write(&mut file)?;
            file.flush()
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
