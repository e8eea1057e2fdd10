//! Reads graphs from files: `.pb`, `.pbtxt`, event files that hold a graph, SavedModels (the file or its folder), meta
//! graphs (`.meta`), ONNX models, programs of the XLA compiler (`.hlo.pb`, and those in `.xplane.pb`); each may be gzipped.
//!
//! The content decides the kind. The function library stays in the graph.

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
    hlo_graph, onnx_graph,
    proto::{DESCRIPTORS, Event, GraphDef, MetaGraphDef, SavedModel, event::What},
    tfrecord::{RecordStream, Scan, begins_with_record},
};

/// The largest graph that is read, in bytes: protobuf's limit for a message.
const MAX_GRAPH: u64 = 1 << 31;
/// A gzipped file may unpack to this many bytes plus [`MAX_RATIO`] times its size: ten times as much as real graphs
/// need, and far less than a decompression bomb unpacks to.
const MAX_UNPACKED: u64 = 64 << 20;
const MAX_RATIO: u64 = 200;
/// The deepest nesting of a text graph. The deepest real ones, function attributes in lists, have about ten levels.
const MAX_TEXT_DEPTH: usize = 100;

/// The name of the graph's file in a SavedModel's folder.
pub const SAVED_MODEL: &str = "saved_model.pb";

pub(crate) const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// The first byte of a binary GraphDef that begins with a node: the tag of field 1. In a text it is a line feed.
pub(crate) const NODE_TAG: u8 = 0x0a;

/// Why a file gives no graph. Each message is one line and does not name the file.
#[derive(Debug, thiserror::Error)]
pub enum GraphFileError {
    /// The file cannot be opened or read.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    /// A folder that is not a SavedModel's.
    #[error("a folder without {SAVED_MODEL}: give the graph's file")]
    Folder,
    /// The file has no bytes.
    #[error("the file is empty")]
    Empty,
    /// The file is larger, or unpacks to more, than a graph can be.
    #[error("larger than a graph can be (limit {limit} bytes)")]
    TooLarge {
        /// The limit, bytes.
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

/// Why a text is not a GraphDef.
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

/// Reads `source` to its end; returns an error where it has more than `limit` bytes.
fn read_within(source: impl Read, limit: u64, out: &mut Vec<u8>) -> Result<(), GraphFileError> {
    if source.take(limit + 1).read_to_end(out)? as u64 > limit {
        return Err(GraphFileError::TooLarge { limit });
    }
    Ok(())
}

/// Decodes the graph in `bytes`, which are not gzipped, in any other form that [`read`] accepts.
///
/// # Errors
/// As [`read`], except for the errors of reading a file.
pub fn decode(bytes: &[u8]) -> Result<GraphDef, GraphFileError> {
    if bytes.is_empty() {
        return Err(GraphFileError::Empty);
    }
    let graph = if begins_with_record(bytes) {
        from_events(bytes)?
    } else if bytes[0] != NODE_TAG && looks_like_text(bytes) {
        from_text(bytes)?
    } else {
        match GraphDef::decode(bytes) {
            // A text that begins with a line feed.
            Err(_) if looks_like_text(bytes) => from_text(bytes)?,
            graph_def => from_message(bytes, graph_def)?,
        }
    };
    let n_functions = graph.library.as_ref().map_or(0, |library| library.function.len());
    if graph.node.is_empty() && n_functions == 0 {
        return Err(GraphFileError::NoNodes);
    }
    Ok(graph)
}

/// Whether a graph has a node with an op, or a function. A message of another type that happens to decode as a GraphDef
/// has neither.
fn has_graph(graph: &GraphDef) -> bool {
    graph.node.iter().any(|n| !n.op.is_empty()) || graph.library.as_ref().is_some_and(|l| !l.function.is_empty())
}

/// Returns the graph of a message: a GraphDef, decoded as `graph_def`, or a SavedModel, meta graph or ONNX model that
/// holds a graph, or a program of the XLA compiler. Protobuf has no magic number, and bytes of one message type may also decode as another type: the
/// first type that yields a graph counts.
fn from_message(bytes: &[u8], graph_def: Result<GraphDef, prost::DecodeError>) -> Result<GraphDef, GraphFileError> {
    // Before a GraphDef: the beginning of a program has the fields of a node.
    if let Some(program) = hlo_graph::decode(bytes) {
        return Ok(program);
    }
    if let Ok(graph) = &graph_def
        && has_graph(graph)
    {
        return Ok(graph_def?);
    }
    let saved = || SavedModel::decode(bytes).ok()?.meta_graphs.into_iter().find_map(|meta| meta.graph_def);
    let meta = || MetaGraphDef::decode(bytes).ok()?.graph_def;
    let onnx = || crate::onnx::ModelProto::decode(bytes).ok()?.graph.map(|graph| onnx_graph::to_graph_def(&graph));
    match saved().filter(has_graph).or_else(|| meta().filter(has_graph)).or_else(|| onnx().filter(has_graph)) {
        Some(graph) => Ok(graph),
        None => Ok(graph_def?),
    }
}

/// Whether the first bytes have no control characters other than white space. The tags and lengths of a binary message
/// are such characters; only a message that begins with [`NODE_TAG`] may have none in its first bytes.
pub(crate) fn looks_like_text(bytes: &[u8]) -> bool {
    bytes.iter().take(1024).all(|b| *b >= 0x20 || b.is_ascii_whitespace())
}

/// Returns the last graph of an event file, or where it has none, the graph in the last meta graph.
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

/// Checks the nesting of a text before it is parsed: the parser recurses once per level.
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

/// Advances `bytes` past the end of a quoted string, or of the line.
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
