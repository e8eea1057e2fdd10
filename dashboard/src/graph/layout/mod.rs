//! Geometry of what is expanded: each open scope is laid out by itself, innermost first, and kept with the expansion
//! state below it, so that a click lays out one scope and those around it, and closing and opening again lays out
//! nothing; what is wired like something that was drawn takes its drawing. The result is flattened into a [`Picture`] in absolute coordinates, y downwards, flow upwards.

mod bridge;
mod pack;
mod picture;
mod scope;

#[cfg(test)]
mod tests;

pub use picture::{PicBox, PicEdge, Picture};

use super::{
    layered::{Cancelled, Drawings},
    model::{ItemId, MetaEdge, Model},
};
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::{
    hash::{Hash, Hasher},
    sync::{Arc, atomic::AtomicBool},
};

/// Children of one scope that are drawn before the rest waits behind "and N more".
pub const CHILDREN_MAX: usize = 1_500;
/// Boxes in kept layouts, over all scopes.
const KEPT_BOXES_MAX: usize = 300_000;
/// Annotations on one side of a box before the rest is counted.
pub const NOTES_MAX: usize = 5;

/// Which scopes are open. The root always is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expansion {
    /// Open scopes.
    pub open: FxHashSet<ItemId>,
    /// Scopes whose children are all drawn, however many.
    pub unlimited: FxHashSet<ItemId>,
}

/// What an annotation stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoteKind {
    /// A constant that feeds the node.
    Constant,
    /// A summary op that records it.
    Summary,
    /// The other end of an edge that is not drawn.
    Shortcut,
    /// The same for a control edge.
    Control,
    /// So many more annotations.
    More(u32),
}

/// A small mark beside a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    /// What it refers to.
    pub item: ItemId,
    /// What kind of reference.
    pub kind: NoteKind,
}

/// A stretch of a list of points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub start: u32,
    pub end: u32,
}

impl Span {
    /// The stretch of `points` since `start`.
    pub fn since(start: usize, points: &[[f32; 2]]) -> Self {
        Self { start: start as u32, end: points.len() as u32 }
    }

    pub fn of(self, points: &[[f32; 2]]) -> &[[f32; 2]] {
        &points[self.start as usize..self.end as usize]
    }
}

/// A child in its scope's layout.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BoxLayout {
    pub item: ItemId,
    /// Middle of the box, from the scope's top left corner.
    pub center: [f32; 2],
    pub size: [f32; 2],
    pub inner: Option<Arc<ScopeLayout>>,
    pub side: bool,
    pub notes_in: Arc<[Note]>,
    pub notes_out: Arc<[Note]>,
}

/// An edge in its scope's layout: between two children, or a bridge from the border to a child.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EdgeLayout {
    pub edge: MetaEdge,
    /// Among the scope's points.
    pub span: Span,
    /// Left, top, right, bottom of these points.
    pub bounds: [f32; 4],
    /// Its width at zoom 1.
    pub width: f32,
    /// Whether it has its head in this scope (a bridge outwards has not).
    pub has_head: bool,
}

/// An open scope laid out.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ScopeLayout {
    pub size: [f32; 2],
    pub boxes: Vec<BoxLayout>,
    pub edges: Vec<EdgeLayout>,
    pub points: Vec<[f32; 2]>,
    /// Where edges from an outside item enter: offset from the middle of the lower border.
    pub in_ports: FxHashMap<ItemId, f32>,
    /// Where edges to an outside item leave: offset from the middle of the upper border.
    pub out_ports: FxHashMap<ItemId, f32>,
    /// Left border of the side area, if there is one.
    pub side_x: Option<f32>,
    /// Children that are not drawn.
    pub n_more: u32,
}

/// Layouts of a picture's open scopes with their signatures.
type Ready = FxHashMap<ItemId, (u64, Arc<ScopeLayout>)>;

/// Layouts of open scopes, kept.
#[derive(Default)]
pub struct Layouts {
    kept: FxHashMap<(ItemId, u64), Arc<ScopeLayout>>,
    n_kept_boxes: usize,
    drawings: Drawings,
}

impl Layouts {
    /// Lays out what is open and not kept. Give one `Layouts` one model only.
    pub fn picture(&mut self, model: &Model, open: &Expansion, cancel: &AtomicBool) -> Result<Picture, Cancelled> {
        let mut scopes = visible_scopes(model, open);
        // A scope needs the layouts of those in it; scopes of one depth need nothing of each other.
        scopes.sort_by_key(|&scope| std::cmp::Reverse(model.depth(scope)));
        let mut ready: Ready = FxHashMap::default();
        let mut inner: FxHashMap<ItemId, Vec<ItemId>> = FxHashMap::default();
        for level in scopes.chunk_by(|&a, &b| model.depth(a) == model.depth(b)) {
            let mut missing: Vec<(ItemId, u64, Vec<ItemId>)> = Vec::new();
            for &scope in level {
                let mut opened = inner.remove(&scope).unwrap_or_default();
                opened.sort_unstable();
                let key = signature(scope, open, &opened, &ready);
                match self.kept.get(&(scope, key)) {
                    Some(kept) => {
                        ready.insert(scope, (key, Arc::clone(kept)));
                    }
                    None => missing.push((scope, key, opened)),
                }
                if scope != ItemId::ROOT {
                    inner.entry(model.parent(scope)).or_default().push(scope);
                }
            }
            let drawings = &self.drawings;
            let make = |(scope, key, opened): (ItemId, u64, Vec<ItemId>)| {
                let inner = opened.iter().map(|o| (*o, Arc::clone(&ready[o].1))).collect();
                let unlimited = open.unlimited.contains(&scope);
                let made = scope::lay_out(model, scope, unlimited, &inner, drawings, cancel)?;
                Ok((scope, key, Arc::new(made)))
            };
            let made = missing.into_par_iter().map(make).collect::<Result<Vec<_>, Cancelled>>()?;
            for (scope, key, layout) in made {
                self.n_kept_boxes += layout.boxes.len();
                self.kept.insert((scope, key), Arc::clone(&layout));
                ready.insert(scope, (key, layout));
            }
        }
        self.forget(&ready);
        let root = ready.remove(&ItemId::ROOT).map(|(_, layout)| layout).unwrap_or_default();
        Ok(Picture::flatten(model, root))
    }

    /// Drops what is not in use once too much is kept.
    fn forget(&mut self, used: &Ready) {
        if self.n_kept_boxes > KEPT_BOXES_MAX {
            self.kept.retain(|(scope, key), _| used.get(scope).is_some_and(|(k, _)| k == key));
            self.n_kept_boxes = self.kept.values().map(|layout| layout.boxes.len()).sum();
        }
    }
}

/// Open scopes all of whose ancestors are open, in pre-order.
fn visible_scopes(model: &Model, open: &Expansion) -> Vec<ItemId> {
    let mut scopes: Vec<ItemId> = open.open.iter().copied().filter(|&s| model.is_expandable(s)).collect();
    scopes.push(ItemId::ROOT);
    scopes.sort_unstable();
    scopes.dedup();
    let mut visible = FxHashSet::default();
    scopes.retain(|&scope| {
        let shown = scope == ItemId::ROOT || visible.contains(&model.parent(scope));
        if shown {
            visible.insert(scope);
        }
        shown
    });
    scopes
}

/// Equal for equal expansion states of a scope.
fn signature(scope: ItemId, open: &Expansion, opened: &[ItemId], ready: &Ready) -> u64 {
    let mut hasher = rustc_hash::FxHasher::default();
    (scope, open.unlimited.contains(&scope)).hash(&mut hasher);
    for item in opened {
        (item, ready[item].0).hash(&mut hasher);
    }
    hasher.finish()
}
