//! Graphs from files: `.pb`, `.pbtxt`, event files that hold a graph, SavedModels (the file or its folder), meta graphs
//! (`.meta`), ONNX models; any of the files gzipped.
//!
//! The kind is found from the content. The function library stays in the graph.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
    sync::LazyLock,
};

use flate2::read::MultiGzDecoder;
use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage};

use crate::{
    onnx_graph,
    proto::{DESCRIPTORS, Event, GraphDef, MetaGraphDef, SavedModel, event::What},
    tfrecord::{RecordStream, Scan, begins_with_record},
};

/// The largest graph that is read, in bytes: what protobuf can decode.
const MAX_GRAPH: u64 = 1 << 31;
/// A gzipped file may unpack to this many bytes plus [`MAX_RATIO`] times its size: ten times what real graphs need, and
/// far below what a file made to exhaust memory unpacks to.
const MAX_UNPACKED: u64 = 64 << 20;
const MAX_RATIO: u64 = 200;
/// The deepest nesting of a text graph. The deepest real ones, function attributes in lists, have about ten levels.
const MAX_TEXT_DEPTH: usize = 100;

/// The graph of a SavedModel's folder.
pub const SAVED_MODEL: &str = "saved_model.pb";

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Why a file gives no graph. Each message is one line and does not name the file.
#[derive(Debug, thiserror::Error)]
pub enum GraphFileError {
    /// The file cannot be opened or read.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    /// A folder that is no SavedModel.
    #[error("a folder without {SAVED_MODEL}: give the graph's file")]
    Folder,
    /// There is nothing in it.
    #[error("the file is empty")]
    Empty,
    /// It is larger, or unpacks to more, than any graph.
    #[error("larger than a graph can be (limit {limit} bytes)")]
    TooLarge {
        /// The limit that it is over.
        limit: u64,
    },
    /// Neither a binary nor a text graph.
    #[error("not a GraphDef: {0}")]
    Decode(#[from] prost::DecodeError),
    /// Text that is not a GraphDef in protobuf's text format.
    #[error("not a GraphDef in text form: {0}")]
    Text(#[from] TextError),
    /// A valid message, but with no node and no function.
    #[error("no graph in it: no node and no function")]
    NoNodes,
    /// An event file without a graph.
    #[error("an event file without a graph")]
    NoGraphEvent,
}

/// Why text is no GraphDef.
#[derive(Debug, thiserror::Error)]
pub enum TextError {
    /// Bytes that are not UTF-8.
    #[error(transparent)]
    Utf8(#[from] std::str::Utf8Error),
    /// The parser's message, with line and column.
    #[error("{0}")]
    Parse(String),
    /// Messages nested too deeply.
    #[error("nested deeper than {MAX_TEXT_DEPTH} levels")]
    TooDeep,
}

/// Reads the graph of a file.
///
/// # Errors
/// Any [`GraphFileError`]; nothing of a damaged graph is returned.
pub fn read(path: &Path) -> Result<GraphDef, GraphFileError> {
    decode(&read_bytes(path)?)
}

/// The file's bytes, unpacked if it is gzipped.
fn read_bytes(path: &Path) -> Result<Vec<u8>, GraphFileError> {
    let in_folder = path.is_dir().then(|| path.join(SAVED_MODEL));
    if in_folder.as_ref().is_some_and(|model| !model.exists()) {
        return Err(GraphFileError::Folder);
    }
    let file = File::open(in_folder.as_deref().unwrap_or(path))?;
    let size = file.metadata()?.len();
    let mut bytes = Vec::new();
    read_within(file, MAX_GRAPH, &mut bytes)?;
    if !bytes.starts_with(&GZIP_MAGIC) {
        return Ok(bytes);
    }
    let mut unpacked = Vec::new();
    let limit = MAX_GRAPH.min(MAX_UNPACKED + MAX_RATIO * size);
    read_within(MultiGzDecoder::new(&bytes[..]), limit, &mut unpacked)?;
    Ok(unpacked)
}

fn read_within(source: impl Read, limit: u64, out: &mut Vec<u8>) -> Result<(), GraphFileError> {
    if source.take(limit + 1).read_to_end(out)? as u64 > limit {
        return Err(GraphFileError::TooLarge { limit });
    }
    Ok(())
}

/// The graph in `bytes`, in any of the forms that [`read`] knows, unpacked.
///
/// # Errors
/// As [`read`], without those of reading.
pub fn decode(bytes: &[u8]) -> Result<GraphDef, GraphFileError> {
    if bytes.is_empty() {
        return Err(GraphFileError::Empty);
    }
    let graph = if begins_with_record(bytes) {
        from_events(bytes)?
    } else if looks_like_text(bytes) {
        from_text(bytes)?
    } else {
        from_message(bytes)?
    };
    let n_functions = graph.library.as_ref().map_or(0, |library| library.function.len());
    if graph.node.is_empty() && n_functions == 0 {
        return Err(GraphFileError::NoNodes);
    }
    Ok(graph)
}

/// Whether there is a node with an op, or a function.
fn has_graph(graph: &GraphDef) -> bool {
    graph.node.iter().any(|n| !n.op.is_empty()) || graph.library.as_ref().is_some_and(|l| !l.function.is_empty())
}

/// A graph in binary form, alone or in a message that holds one. Protobuf has no magic number, and one message may
/// decode as another with its fields in the wrong places: the first that has a graph counts.
fn from_message(bytes: &[u8]) -> Result<GraphDef, GraphFileError> {
    let plain = GraphDef::decode(bytes);
    if let Ok(graph) = &plain
        && has_graph(graph)
    {
        return Ok(plain?);
    }
    let saved = || SavedModel::decode(bytes).ok()?.meta_graphs.into_iter().find_map(|meta| meta.graph_def);
    let meta = || MetaGraphDef::decode(bytes).ok()?.graph_def;
    let onnx = || crate::onnx::ModelProto::decode(bytes).ok()?.graph.map(|graph| onnx_graph::to_graph_def(&graph));
    match saved().filter(has_graph).or_else(|| meta().filter(has_graph)).or_else(|| onnx().filter(has_graph)) {
        Some(graph) => Ok(graph),
        None => Ok(plain?),
    }
}

/// Whether `bytes` are text: no control characters but white space in their first part. A binary graph begins with a
/// tag, a length and a tag, and the length or the tag is such a character.
pub(crate) fn looks_like_text(bytes: &[u8]) -> bool {
    let first = &bytes[..bytes.len().min(1024)];
    // A line feed is also the tag of a GraphDef's first node; then the name's tag follows the length.
    let is_node = first.first() == Some(&0x0a) && GraphDef::decode(bytes).is_ok();
    !is_node && first.iter().all(|b| *b >= 0x20 || b.is_ascii_whitespace())
}

/// The last graph of an event file; a graph inside a meta graph counts if there is no plain one.
fn from_events(mut bytes: &[u8]) -> Result<GraphDef, GraphFileError> {
    let mut stream = RecordStream::default();
    let mut graph = None;
    let mut meta = None;
    loop {
        match stream.next(&mut bytes)? {
            Scan::More => break,
            Scan::Damage(_) => {}
            Scan::Record(record) => match Event::decode(record.data).map(|event| event.what) {
                Ok(Some(What::GraphDef(bytes))) => graph = Some(bytes),
                Ok(Some(What::MetaGraphDef(bytes))) => meta = Some(bytes),
                _ => {}
            },
        }
    }
    match (graph, meta) {
        (Some(graph), _) => Ok(GraphDef::decode(&graph[..])?),
        (None, Some(meta)) => MetaGraphDef::decode(&meta[..])?.graph_def.ok_or(GraphFileError::NoGraphEvent),
        (None, None) => Err(GraphFileError::NoGraphEvent),
    }
}

/// Every message of [`crate::proto`] and [`crate::plugins`].
pub(crate) static DESCRIPTOR_POOL: LazyLock<DescriptorPool> =
    LazyLock::new(|| DescriptorPool::decode(DESCRIPTORS).expect("the build script wrote a valid descriptor set"));

fn from_text(bytes: &[u8]) -> Result<GraphDef, GraphFileError> {
    let text = std::str::from_utf8(bytes).map_err(TextError::from)?;
    check_depth(text)?;
    let descriptor = DESCRIPTOR_POOL.get_message_by_name("tensorflow.GraphDef").expect("graph.proto defines GraphDef");
    let message = DynamicMessage::parse_text_format(descriptor, text).map_err(|e| TextError::Parse(e.to_string()))?;
    message.transcode_to().map_err(GraphFileError::Decode)
}

/// The text parser recurses once per level, so the depth is bounded before it runs.
pub(crate) fn check_depth(text: &str) -> Result<(), TextError> {
    let mut depth = 0_usize;
    let mut bytes = text.bytes();
    while let Some(b) = bytes.next() {
        match b {
            b'{' | b'<' | b'[' => depth += 1,
            b'}' | b'>' | b']' => depth = depth.saturating_sub(1),
            b'#' => while bytes.next().is_some_and(|b| b != b'\n') {},
            b'"' | b'\'' => skip_string(&mut bytes, b),
            _ => {}
        }
        if depth > MAX_TEXT_DEPTH {
            return Err(TextError::TooDeep);
        }
    }
    Ok(())
}

fn skip_string(bytes: &mut std::str::Bytes<'_>, quote: u8) {
    while let Some(b) = bytes.next() {
        match b {
            b'\\' => {
                bytes.next();
            }
            b if b == quote || b == b'\n' => return,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
