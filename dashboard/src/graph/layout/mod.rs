//! The geometry of open scopes. Each one is laid out by itself, innermost first, and cached by its expansion state: a
//! click lays out one scope and those around it, and closing and opening again lays out nothing; scopes with the same
//! wiring share one drawing. The result is flattened into a [`Picture`] in absolute coordinates, y downwards, flow
//! upwards.
//!
//! `layered` draws, `pack` arranges parts, `bridge` connects edges across borders; `draft` chooses what a scope shows
//! and `scope` lays it out as a `scope_layout`; `cache` lays out all open scopes and `picture` flattens
//! them; `worker` does all of this, and builds models, in a thread.

mod bridge;
mod cache;
mod draft;
mod layered;
mod pack;
mod picture;
mod scope;
mod scope_layout;
mod worker;

#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use cache::LayoutCache;
pub(crate) use picture::{BoxLayout, Picture};
pub(crate) use scope_layout::{EdgeLayout, Expansion, MAX_CHILDREN, Note, NoteKind};
pub(crate) use worker::{Update, Worker};
