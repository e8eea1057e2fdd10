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

/// Boxes in all cached layouts above which unused layouts are evicted.
const MAX_BOXES: usize = 300_000;

/// The layouts of a picture's open scopes, each with its `expansion_key`.
type ScopeLayouts = FxHashMap<ItemId, (u64, Arc<ScopeLayout>)>;

/// Layouts of open scopes by scope and `expansion_key`.
#[derive(Default)]
pub(crate) struct LayoutCache {
    pub(super) layouts: FxHashMap<(ItemId, u64), Arc<ScopeLayout>>,
    n_boxes: usize,
    drawings: DrawingCache,
}

impl LayoutCache {
    /// Returns the picture of the open scopes; lays out those that are not cached. One cache serves one model.
    pub fn picture(&mut self, model: &Model, open: &Expansion, cancel: &AtomicBool) -> Result<Picture, Cancelled> {
        let mut scopes = visible_scopes(model, open);
        // A scope needs the layouts of the scopes in it; scopes of one depth are independent of each other.
        scopes.sort_by_key(|&scope| std::cmp::Reverse(model.depth(scope)));
        let mut layouts: ScopeLayouts = FxHashMap::default();
        let mut open_children: FxHashMap<ItemId, Vec<ItemId>> = FxHashMap::default();
        for level in scopes.chunk_by(|&a, &b| model.depth(a) == model.depth(b)) {
            let mut missing: Vec<(ItemId, u64, Vec<ItemId>)> = Vec::new();
            for &scope in level {
                let mut children = open_children.remove(&scope).unwrap_or_default();
                children.sort_unstable();
                let key = expansion_key(scope, open, &children, &layouts);
                match self.layouts.get(&(scope, key)) {
                    Some(cached) => {
                        layouts.insert(scope, (key, Arc::clone(cached)));
                    }
                    None => missing.push((scope, key, children)),
                }
                if scope != ItemId::ROOT {
                    open_children.entry(model.parent(scope)).or_default().push(scope);
                }
            }
            let drawings = &self.drawings;
            let lay_out = |(scope, key, children): (ItemId, u64, Vec<ItemId>)| {
                let inner = children.iter().map(|child| (*child, Arc::clone(&layouts[child].1))).collect();
                let request = OpenScope { model, scope, is_unlimited: open.unlimited.contains(&scope), inner };
                Ok((scope, key, Arc::new(scope::lay_out(&request, drawings, cancel)?)))
            };
            let new_layouts = missing.into_par_iter().map(lay_out).collect::<Result<Vec<_>, Cancelled>>()?;
            for (scope, key, layout) in new_layouts {
                self.n_boxes += layout.boxes.len();
                self.layouts.insert((scope, key), Arc::clone(&layout));
                layouts.insert(scope, (key, layout));
            }
        }
        self.evict(&layouts);
        let root = layouts.remove(&ItemId::ROOT).map(|(_, layout)| layout).unwrap_or_default();
        Ok(Picture::flatten(model, root))
    }

    /// Evicts the layouts that are not in use once there are too many.
    fn evict(&mut self, used: &ScopeLayouts) {
        if self.n_boxes > MAX_BOXES {
            self.layouts.retain(|(scope, key), _| used.get(scope).is_some_and(|(k, _)| k == key));
            self.n_boxes = self.layouts.values().map(|layout| layout.boxes.len()).sum();
        }
    }
}

/// Returns the open scopes whose ancestors are all open, in pre-order.
pub(super) fn visible_scopes(model: &Model, open: &Expansion) -> Vec<ItemId> {
    let mut scopes: Vec<ItemId> = open.open.iter().copied().filter(|&s| model.is_expandable(s)).collect();
    scopes.push(ItemId::ROOT);
    scopes.sort_unstable();
    scopes.dedup();
    let mut visible = FxHashSet::default();
    scopes.retain(|&scope| {
        let is_visible = scope == ItemId::ROOT || visible.contains(&model.parent(scope));
        if is_visible {
            visible.insert(scope);
        }
        is_visible
    });
    scopes
}

/// Hashes the expansion state of a scope, with that of its open `children`.
fn expansion_key(scope: ItemId, open: &Expansion, children: &[ItemId], layouts: &ScopeLayouts) -> u64 {
    let mut hasher = rustc_hash::FxHasher::default();
    (scope, open.unlimited.contains(&scope)).hash(&mut hasher);
    for child in children {
        (child, layouts[child].0).hash(&mut hasher);
    }
    hasher.finish()
}
