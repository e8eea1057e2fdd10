//! The native window of stepscope: scalars, histograms, hyperparameters, embeddings, graph, timeline, ops and media of
//! a run, live.
//!
//! In reading order: [`run`] opens the window ([`app`]) on paths; loader threads ([`loader`]) follow the files and
//! commit their contents to shared snapshots; each frame sees one [`Data`], which does not change during the frame;
//! each panel is a [`View`] that reads it; [`Selection`] shares what the user picks in one panel with the others.
//!
//! A view is `model` (contents, no egui) -> `layout` (geometry) -> `paint` (shapes) -> `input` (events to commands).
//! Colours and sizes come from [`ui::theme`] only. The engine is never linked: all data comes from files.

mod address;
pub mod app;
pub mod bottlenecks;
mod cards;
mod catalogue;
mod command;
pub mod config;
mod data;
pub mod embeddings;
mod far;
pub mod graph;
mod histograms;
pub mod hparams;
mod lenient;
pub mod loader;
mod media;
pub mod memory;
pub mod modules;
mod notes;
pub mod ops;
#[cfg(test)]
mod panel_test;
mod panels;
mod recorded;
mod runs;
mod scalars;
mod selection;
mod shell;
pub mod sql;
pub mod timeline;
mod view;

pub use address::Address;
pub use app::{Error, Options, Renderer, run};
pub use data::Data;
pub use loader::{OpenRemote, RemoteSource, RemoteSources};
pub use panels::ViewKind;
pub use selection::Selection;
pub use ui::theme::Theme;
pub use view::View;
