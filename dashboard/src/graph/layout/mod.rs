//! Geometry of what is expanded: each open scope is laid out by itself, innermost first, and cached with the expansion
//! state below it, so that a click lays out one scope and those around it, and closing and opening again lays out
//! nothing; scopes wired alike share one drawing. The result is flattened into a [`Picture`] in absolute coordinates,
//! y downwards, flow upwards.
//!
//! `layered` draws, `pack` puts parts next to each other, `bridge` takes edges across borders; `draft` chooses what a
//! scope shows and `scope` lays it out as a `scope_layout`; `cache` lays out all open scopes and `picture` flattens
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
pub(crate) use picture::{PicBox, Picture};
pub(crate) use scope_layout::{CHILDREN_MAX, Expansion, Note, NoteKind, PicEdge};
pub(crate) use worker::{Update, Worker};
