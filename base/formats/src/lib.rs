//! File formats that several members read and write.
//!
//! - [`proto`]: TensorFlow's GraphDef, Event and Summary messages, with the published field numbers.
//! - [`plugins`]: messages of TensorBoard's plugins: hyperparameters, chart layouts, meshes, embeddings.
//! - [`onnx`]: ONNX models and tensors.
//! - [`hlo`]: programs of the XLA compiler.
//! - [`perfetto`], [`profile`]: traces of Perfetto, of XLA's profilers and of TensorFlow.
//! - [`tfrecord`]: the framing of event files, with a scanner that follows growing files and survives damage.
//! - [`event_file`]: writing event files.
//! - [`graph_file`]: graphs from `.pb`, `.pbtxt`, event files, SavedModels, meta graphs, ONNX models and HLO programs.
//! - [`histogram`]: TensorFlow's histogram buckets.
//! - [`npy`]: NumPy's arrays and archives.
//! - [`wire`]: protobuf fields without generated messages, for readers of millions of records.
//! - [`mod@sniff`]: the kind of a file or folder, from its content.
//! - [`all_causes`]: the text of an error with its causes, for readers of remote files.

mod causes;
pub mod event_file;
pub mod graph_file;
pub mod histogram;
pub mod hlo;
mod hlo_graph;
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
pub use sniff::{
    FileKind, Foreign, TraceFormat, is_database_name, is_event_file_name, is_run_log, is_trace_folder, sniff,
};
