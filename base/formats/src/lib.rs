//! File formats that several members read and write.
//!
//! - [`proto`]: TensorFlow's GraphDef, Event and Summary messages, with the published field numbers.
//! - [`plugins`]: what TensorBoard's plugins keep: hyperparameters, chart layouts, meshes, embeddings.
//! - [`onnx`]: ONNX models and tensors.
//! - [`perfetto`], [`profile`]: traces of Perfetto, of XLA's profilers and of TensorFlow.
//! - [`tfrecord`]: the framing of event files, with a scanner that follows growing files and survives damage.
//! - [`event_file`]: event files as they are written.
//! - [`graph_file`]: graphs from `.pb`, `.pbtxt`, gzip of either, and event files.
//! - [`histogram`]: TensorFlow's histogram buckets.
//! - [`npy`]: NumPy's arrays and archives.
//! - [`wire`]: protobuf fields without messages, for the readers of millions of records.
//! - [`mod@sniff`]: what a file or folder is, from its content.
//! - [`all_causes`]: an error's text with those behind it, for readers of remote files.

mod causes;
pub mod event_file;
pub mod graph_file;
pub mod histogram;
pub mod npy;
pub mod onnx;
mod onnx_graph;
pub mod perfetto;
pub mod plugins;
pub mod profile;
pub mod proto;
mod sniff;
pub mod tfrecord;
pub mod wire;

pub use causes::all_causes;
pub use sniff::{FileKind, Foreign, TraceFormat, is_event_file_name, is_trace_folder, sniff};
