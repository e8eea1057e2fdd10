//! Recognises the kind of a file or folder by its content.

use std::{
    fmt,
    fs::{self, File},
    io::{self, Read},
    path::Path,
};

use flate2::read::MultiGzDecoder;
use prost::Message;

use crate::{
    graph_file,
    proto::GraphDef,
    tfrecord::{RecordScanner, Scan, begins_with_record},
};

/// The number of bytes of a file that are examined.
const PREFIX: usize = 64 << 10;
/// Folder entries that are examined below a logdir: enough to reach the first event file of any real logdir.
const MAX_ENTRIES: usize = 100_000;
/// The deepest level of a logdir that is examined: symbolic links may make the logdir endless.
const MAX_DEPTH: usize = 32;

/// The kind of content at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// TFRecords of `Event`; also an empty file with an event file's name.
    EventFile,
    /// A binary GraphDef, SavedModel (or its folder), meta graph, ONNX model or program of the XLA compiler, perhaps
    /// gzipped, or a gzipped event file (which is read for its graph).
    GraphDef,
    /// A GraphDef in text form, perhaps gzipped.
    GraphDefText,
    /// A folder that the crate `events` records into (control page, names, rings, chunks), or a folder of several such
    /// that a collector gathered.
    TraceFolder,
    /// A run of `demo` or `train`: `run.json`, `trace/`, event files.
    RunFolder,
    /// A folder with event files, or logs of other tools, in it or in its subfolders.
    Logdir,
    /// A log of another tool: Weights & Biases, MLflow, trackio, Lightning, Hugging Face.
    RunLog,
    /// Another tool's trace, perhaps compressed.
    Trace(TraceFormat),
    /// A memory snapshot of PyTorch's CUDA allocator.
    MemorySnapshot,
    /// A file or folder of no supported kind.
    Unknown(Foreign),
}

/// A kind of file that cannot be opened. Reads like the end of a sentence: `not an event file, graph or trace (looks
/// like PNG)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Foreign {
    /// A file of no bytes.
    Empty,
    /// A folder without an event file, graph or trace.
    NothingInFolder,
    /// A known format, recognised by its first bytes.
    LooksLike(&'static str),
    /// Anything else.
    Unrecognised,
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the file is empty"),
            Self::NothingInFolder => f.write_str("no event file, graph or trace in this folder"),
            Self::LooksLike(what) => {
                write!(f, "not an event file, graph or trace (looks like {what})")
            }
            Self::Unrecognised => f.write_str("not an event file, graph or trace"),
        }
    }
}

/// The content of `path`, from the first 64 KiB of a file, or from the names and files below a folder.
///
/// # Errors
/// `path` does not exist or cannot be read.
pub fn sniff(path: &Path) -> io::Result<FileKind> {
    if fs::metadata(path)?.is_dir() { sniff_folder(path) } else { sniff_file(path) }
}

fn sniff_folder(path: &Path) -> io::Result<FileKind> {
    // Fails here, with the reason, if the folder cannot be read.
    fs::read_dir(path)?;
    if path.join("run.json").is_file() || is_trace_folder(&path.join("trace")) {
        return Ok(FileKind::RunFolder);
    }
    if is_trace_folder(path) {
        return Ok(FileKind::TraceFolder);
    }
    if path.join(graph_file::SAVED_MODEL).is_file() {
        return Ok(FileKind::GraphDef);
    }
    let mut n_entries_left = MAX_ENTRIES;
    let has_logs = has_log(path, MAX_DEPTH, &mut n_entries_left);
    Ok(if has_logs { FileKind::Logdir } else { FileKind::Unknown(Foreign::NothingInFolder) })
}

/// Whether a folder is a trace of stepscope: it holds the names, chunks or rings of a recording, or is sealed (holds
/// `slices.parquet`, directly or in `sealed`), or holds traces that a collector gathered.
pub fn is_trace_folder(path: &Path) -> bool {
    let Ok(entries) = fs::read_dir(path) else {
        return false;
    };
    entries.take(MAX_ENTRIES).flatten().any(|entry| {
        let name = entry.file_name();
        let Some(name) = name.to_str() else {
            return false;
        };
        let is_part = ["meta-", "chunks-"].iter().any(|prefix| name.starts_with(prefix)) && name.ends_with(".bin");
        let is_sealed = name == "slices.parquet" || name == "sealed" && entry.path().join("slices.parquet").is_file();
        is_part || is_sealed || name == "gathered.json" || name.starts_with("ring-") && name.ends_with(".ring")
    })
}

/// Whether a file below `path` has an event file's name, or is another tool's log. TensorBoard also decides by the name,
/// and opening each of thousands of files would be slow.
fn has_log(path: &Path, depth: usize, n_entries_left: &mut usize) -> bool {
    let Ok(entries) = fs::read_dir(path) else {
        return false;
    };
    let mut folders = Vec::new();
    for entry in entries.flatten() {
        if *n_entries_left == 0 {
            return false;
        }
        *n_entries_left -= 1;
        let is_folder = entry.path().is_dir();
        if is_folder {
            folders.push(entry.path());
        } else if is_event_file_name(&entry.path()) || is_run_log(&entry.path()) {
            return true;
        }
    }
    depth > 0 && folders.iter().any(|folder| has_log(folder, depth - 1, n_entries_left))
}

/// Whether a file has an event file's name. TensorBoard's rule: `tfevents` is anywhere in the name.
pub fn is_event_file_name(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().contains("tfevents"))
}

fn sniff_file(path: &Path) -> io::Result<FileKind> {
    let mut prefix = Vec::new();
    File::open(path)?.take(PREFIX as u64).read_to_end(&mut prefix)?;
    if prefix.is_empty() {
        let is_new = is_event_file_name(path);
        return Ok(if is_new { FileKind::EventFile } else { FileKind::Unknown(Foreign::Empty) });
    }
    if prefix.starts_with(&graph_file::GZIP_MAGIC) {
        let unpacked = read_prefix(MultiGzDecoder::new(File::open(path)?));
        return Ok(match sniff_bytes(&unpacked) {
            FileKind::EventFile => FileKind::GraphDef,
            kind @ (FileKind::GraphDef | FileKind::GraphDefText | FileKind::Trace(_)) => kind,
            _ => FileKind::Unknown(Foreign::LooksLike("gzip")),
        });
    }
    if prefix.starts_with(ZSTD_MAGIC) {
        let unpacked = zstd::Decoder::new(File::open(path)?).map(read_prefix).unwrap_or_default();
        return Ok(match sniff_bytes(&unpacked) {
            kind @ FileKind::Trace(_) => kind,
            _ => FileKind::Unknown(Foreign::LooksLike("zstd")),
        });
    }
    Ok(match sniff_bytes(&prefix) {
        FileKind::Unknown(_) if may_be_run_log(path, &prefix) => FileKind::RunLog,
        kind => kind,
    })
}

/// Reads the first bytes of `source`. Where a damaged or truncated file ends with an error, the bytes before it count.
fn read_prefix(source: impl Read) -> Vec<u8> {
    let mut prefix = Vec::new();
    let _ = source.take(PREFIX as u64).read_to_end(&mut prefix);
    prefix
}

fn sniff_bytes(prefix: &[u8]) -> FileKind {
    if begins_with_record(prefix) {
        return FileKind::EventFile;
    }
    if let Some(format) = trace::recognise(prefix) {
        return FileKind::Trace(format);
    }
    if let Some(pickle) = torch_dump::recognise(prefix) {
        return match pickle {
            Pickle::Snapshot => FileKind::MemorySnapshot,
            Pickle::Recording => {
                FileKind::Unknown(Foreign::LooksLike("a flight recorder's dump: see `stepscope dumps`"))
            }
            Pickle::Other => FileKind::Unknown(Foreign::LooksLike("a pickle")),
        };
    }
    if let Some((_, name)) = MAGICS.iter().find(|(magic, _)| prefix.starts_with(magic)) {
        return FileKind::Unknown(Foreign::LooksLike(name));
    }
    if begins_with_graph(prefix) {
        return FileKind::GraphDef;
    }
    let is_graph = prefix.first() == Some(&graph_file::NODE_TAG) && GraphDef::decode(prefix).is_ok();
    if !is_graph && graph_file::looks_like_text(prefix) {
        return sniff_text(prefix);
    }
    if has_record(prefix) { FileKind::EventFile } else { FileKind::Unknown(Foreign::Unrecognised) }
}

const ZSTD_MAGIC: &[u8] = b"\x28\xb5\x2f\xfd";

/// First bytes of formats that users open by mistake, with the format's name.
const MAGICS: &[(&[u8], &str)] = &[
    (b"\x89PNG\r\n\x1a\n", "PNG"),
    (b"\xff\xd8\xff", "JPEG"),
    (b"GIF8", "GIF"),
    (b"%PDF", "PDF"),
    (b"PK\x03\x04", "zip"),
    (b"\x7fELF", "an ELF program"),
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ\0", "xz"),
    (ZSTD_MAGIC, "zstd"),
    (b"SQLite format 3\0", "SQLite"),
    (b"\x93NUMPY", "npy"),
    (b"PAR1", "Parquet"),
    (b"\x89HDF\r\n\x1a\n", "HDF5"),
    (b"#!", "a script"),
    (b"<?xml", "XML"),
    (b"<!DOCTYPE", "HTML"),
    (b"<html", "HTML"),
    (b"{", "JSON"),
    (b"[", "JSON"),
];

/// Recognises a text graph: the text begins with the name of a GraphDef's field, followed by `:`, `{` or `<`.
fn sniff_text(prefix: &[u8]) -> FileKind {
    let text = String::from_utf8_lossy(prefix);
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let line = lines.next().unwrap_or("");
    let word = line.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or("");
    // The brace may stand on the next line.
    let rest = line[word.len()..].trim_start();
    let follows = if rest.is_empty() { lines.next().unwrap_or("{") } else { rest };
    let is_field = follows.starts_with([':', '{', '<']);
    match word {
        "node" | "versions" | "version" | "library" | "debug_info" if is_field => FileKind::GraphDefText,
        _ => FileKind::Unknown(Foreign::LooksLike("text")),
    }
}

/// Whether the first field may begin a GraphDef, SavedModel, meta graph or ONNX model, as far as the prefix shows.
fn begins_with_graph(prefix: &[u8]) -> bool {
    if let [0x08, version, next, ..] = prefix {
        // Both a SavedModel and an ONNX model begin with a version. A SavedModel's is 1, followed by a meta graph; an
        // ONNX model's is followed by a text, its graph or its operator sets.
        return *version == 1 && *next == 0x12 || (2..=64).contains(version) && matches!(next, 0x12 | 0x3a | 0x42);
    }
    let Some((field, body)) = first_field(prefix) else {
        return false;
    };
    match field {
        // A GraphDef's node, which begins with its name, or a meta graph's MetaInfoDef: ops, tags, TensorFlow's
        // version.
        1 => first_field(body).is_some_and(|(field, name)| field == 1 && is_name(name) || matches!(field, 2 | 4 | 5)),
        // The library: a function or a gradient.
        2 => first_field(body).is_some_and(|(field, _)| field <= 3),
        // The versions.
        4 => body.len() <= 64 && body.first() == Some(&0x08),
        _ => false,
    }
}

/// Whether the prefix holds an intact record anywhere: an event file whose beginning is damaged.
fn has_record(prefix: &[u8]) -> bool {
    let mut scanner = RecordScanner::default();
    loop {
        match scanner.scan(&prefix[scanner.offset() as usize..]) {
            Scan::Record(_) => return true,
            Scan::Damage(_) => {}
            Scan::More => return false,
        }
    }
}

mod run_log;
mod torch_dump;
mod trace;

use run_log::may_be_run_log;
pub use run_log::{is_database_name, is_run_log};
use torch_dump::Pickle;
pub use trace::TraceFormat;
use trace::{first_field, is_name};

#[cfg(test)]
mod tests;
