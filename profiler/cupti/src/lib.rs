//! Records CUDA activity as tracks of a trace, through CUPTI: calls, kernels, copies, waits and NVTX ranges.
//!
//! [`Recorder::start`] switches CUPTI on in the process that runs CUDA, while an events session runs; the records
//! become rings of that session ([`events::Track`]), so that collectors and viewers treat them as any other ring, and a
//! `kill -9` loses no more of them. Without CUDA the trace gets a note with the reason and a remedy.
//!
//! Reading order: [`layout`] (kinds and lengths of records), [`record`] (decodes a record), [`buffer`] (a buffer of
//! records), `translate` (tracks), [`library`] (CUPTI's functions), `find` (its file), `pool` (buffers for it),
//! `session`.
//!
//! **Never run on hardware so far.** Decoder and translation are tested on buffers made after `cudarc`'s bindings, the
//! live part against a stand-in for the library's functions.

pub mod buffer;
mod find;
pub mod layout;
pub mod library;
mod pool;
mod recent;
pub mod record;
mod session;
mod translate;
mod words;

pub use library::{CuptiLibrary, Library};
pub use session::{Recorder, Unavailable, probe};
pub use translate::Report;
