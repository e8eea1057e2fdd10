//! The native window of stepscope: scalars, histograms, hyperparameters, embeddings, graph, timeline, ops and media of a
//! run, live.
//!
//! In reading order: [`run`] opens the window ([`app`]) on paths; loader threads ([`loader`]) follow the files and
//! commit what they read to shared snapshots; each frame sees one [`Data`] that holds still until the frame ends; each
//! panel is a [`View`] that reads it; what the user picks in one panel reaches the others through [`Selection`].
//!
//! A view is `model` (what to show, no egui) -> `layout` (geometry) -> `paint` (shapes) -> `input` (events to
//! commands). Colours and sizes come from [`ui::theme`] only. The engine is never linked: everything comes from files.

pub mod address;
pub mod app;
pub mod bottlenecks;
pub mod cards;
pub mod catalogue;
pub mod command;
pub mod config;
pub mod data;
pub mod embeddings;
mod far;
pub mod graph;
pub mod histograms;
pub mod hparams;
pub mod loader;
pub mod media;
pub mod notes;
pub mod ops;
#[cfg(test)]
mod panel_test;
pub mod panels;
pub mod recorded;
pub mod runs;
pub mod scalars;
pub mod selection;
pub mod shell;
pub mod sql;
pub mod timeline;
pub mod view;

pub use address::Address;
pub use app::{Error, Options, Renderer, run};
pub use data::Data;
pub use loader::{OpenRemote, RemoteSource, RemoteSources};
pub use panels::ViewKind;
pub use selection::Selection;
pub use ui::theme::Theme;
pub use view::View;
