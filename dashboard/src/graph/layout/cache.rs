//! Layouts of open scopes, cached by the expansion state below them.

use super::{
    draft::OpenScope,
    layered::{Cancelled, DrawingCache},
    picture::Picture,
    scope,
    scope_layout::{Expansion, ScopeLayout},
};
use crate::graph::model::{ItemId, Model};
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use std::{
    hash::{Hash, Hasher},
    sync::{Arc, atomic::AtomicBool},
};

/// Boxes in cached layouts, over all scopes.
const BOXES_MAX: usize = 300_000;

/// Layouts of a picture's open scopes with their signatures.
type Ready = FxHashMap<ItemId, (u64, Arc<ScopeLayout>)>;

#[derive(Default)]
pub(crate) struct LayoutCache {
    pub(super) layouts: FxHashMap<(ItemId, u64), Arc<ScopeLayout>>,
    n_boxes: usize,
    drawings: DrawingCache,
}

impl LayoutCache {
    /// Lays out what is open and not cached. One cache serves one model.
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
                match self.layouts.get(&(scope, key)) {
                    Some(cached) => {
                        ready.insert(scope, (key, Arc::clone(cached)));
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
                let request = OpenScope { model, scope, is_unlimited: open.unlimited.contains(&scope), inner };
                Ok((scope, key, Arc::new(scope::lay_out(&request, drawings, cancel)?)))
            };
            let made = missing.into_par_iter().map(make).collect::<Result<Vec<_>, Cancelled>>()?;
            for (scope, key, layout) in made {
                self.n_boxes += layout.boxes.len();
                self.layouts.insert((scope, key), Arc::clone(&layout));
                ready.insert(scope, (key, layout));
            }
        }
        self.evict(&ready);
        let root = ready.remove(&ItemId::ROOT).map(|(_, layout)| layout).unwrap_or_default();
        Ok(Picture::flatten(model, root))
    }

    /// Drops layouts that are not in use once there are too many.
    fn evict(&mut self, used: &Ready) {
        if self.n_boxes > BOXES_MAX {
            self.layouts.retain(|(scope, key), _| used.get(scope).is_some_and(|(k, _)| k == key));
            self.n_boxes = self.layouts.values().map(|layout| layout.boxes.len()).sum();
        }
    }
}

/// Open scopes all of whose ancestors are open, in pre-order.
pub(super) fn visible_scopes(model: &Model, open: &Expansion) -> Vec<ItemId> {
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
