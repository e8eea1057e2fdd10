//! Builds the tree of scopes from names, folds series, and numbers the items in pre-order.
//!
//! A node `A` that is also a scope (`A/B` exists) becomes the scope's child `(A)`. Everything is iterative: a name may
//! have a hundred thousand components.

use super::{
    columns::{Item, NameSpan},
    items::{ItemId, Kind, Role},
    series,
};
use rustc_hash::FxHashMap;

/// A node before the tree is built. `start` and `end` are the place of its full name in the text.
#[derive(Clone, Copy)]
pub(super) struct RawNode {
    pub start: u32,
    pub end: u32,
    pub op: u32,
    pub role: Role,
}

/// An item before it has its number.
struct Draft {
    name: NameSpan,
    kind: Kind,
    role: Role,
    node: u32,
    children: Vec<u32>,
}

/// A series of all children of a scope is folded only if it has more members than this.
const MAX_PLAIN_SERIES: usize = 12;
/// Path prefix of function bodies, as in TensorBoard.
pub(super) const LIBRARY: &str = "__function_library__";

/// Builds the tree. `text` holds the names; labels of series are added to it.
pub(super) fn build(text: &mut String, nodes: &[RawNode]) -> Vec<Item> {
    let mut drafts = scopes_and_nodes(text, nodes);
    fold_series(text, &mut drafts, nodes);
    mark_empty(&mut drafts);
    number_items(&drafts)
}

fn scopes_and_nodes(text: &str, nodes: &[RawNode]) -> Vec<Draft> {
    let root =
        Draft { name: NameSpan::default(), kind: Kind::Root, role: Role::Shown, node: u32::MAX, children: vec![] };
    let mut drafts = vec![root];
    let mut scope_of: FxHashMap<(u32, &str), u32> = FxHashMap::default();
    let parents: Vec<u32> = nodes.iter().map(|node| intern_scopes(text, node, &mut drafts, &mut scope_of)).collect();
    for (idx, (node, parent)) in nodes.iter().zip(parents).enumerate() {
        let name = name_span(text, node.start, node.end);
        let leaf = &text[name.leaf as usize..name.end as usize];
        let parent = scope_of.get(&(parent, leaf)).copied().unwrap_or(parent);
        let draft = drafts.len() as u32;
        drafts.push(Draft { name, kind: Kind::Op, role: node.role, node: idx as u32, children: vec![] });
        drafts[parent as usize].children.push(draft);
    }
    drafts
}

/// Adds the missing scopes of a node's name; returns the innermost one.
fn intern_scopes<'t>(
    text: &'t str,
    node: &RawNode,
    drafts: &mut Vec<Draft>,
    scope_of: &mut FxHashMap<(u32, &'t str), u32>,
) -> u32 {
    let name = &text[node.start as usize..node.end as usize];
    let (mut scope, mut start) = (0_u32, 0_usize);
    while let Some(len) = name[start..].find('/') {
        let part = &name[start..start + len];
        let next = *scope_of.entry((scope, part)).or_insert_with(|| {
            let position = |offset: usize| node.start + offset as u32;
            let kind = match (scope, part, drafts[scope as usize].kind) {
                (0, LIBRARY, _) => Kind::Library,
                (_, _, Kind::Library) => Kind::Function,
                _ => Kind::Scope,
            };
            let name = NameSpan { start: node.start, leaf: position(start), end: position(start + len) };
            drafts.push(Draft { name, kind, role: Role::Shown, node: u32::MAX, children: vec![] });
            let draft_idx = drafts.len() as u32 - 1;
            drafts[scope as usize].children.push(draft_idx);
            draft_idx
        });
        (scope, start) = (next, start + len + 1);
    }
    scope
}

fn name_span(text: &str, start: u32, end: u32) -> NameSpan {
    let name = &text[start as usize..end as usize];
    let leaf = name.rfind('/').map_or(0, |at| at as u32 + 1);
    NameSpan { start, leaf: start + leaf, end }
}

/// Folds the series of every scope.
fn fold_series(text: &mut String, drafts: &mut Vec<Draft>, nodes: &[RawNode]) {
    for scope in 0..drafts.len() {
        let ops: Vec<u32> = drafts[scope]
            .children
            .iter()
            .copied()
            .filter(|&c| drafts[c as usize].kind == Kind::Op && drafts[c as usize].role == Role::Shown)
            .collect();
        if ops.len() < series::MIN_MEMBERS {
            continue;
        }
        let labels: Vec<(&str, u32)> = ops
            .iter()
            .map(|&c| {
                let draft = &drafts[c as usize];
                (&text[draft.name.leaf as usize..draft.name.end as usize], nodes[draft.node as usize].op)
            })
            .collect();
        for fold in series::fold(&labels) {
            let members: Vec<u32> = fold.members.iter().map(|&idx| ops[idx]).collect();
            // Folding a small scope that has no other children would only cost another click.
            if members.len() == drafts[scope].children.len() && members.len() <= MAX_PLAIN_SERIES {
                continue;
            }
            add_series(text, drafts, scope, &fold.label, members);
        }
    }
}

/// Replaces the members of a series among a scope's children by the series.
fn add_series(text: &mut String, drafts: &mut Vec<Draft>, scope: usize, label: &str, members: Vec<u32>) {
    let start = text.len() as u32;
    let parent = drafts[scope].name;
    if parent.end > parent.start {
        text.extend_from_within(parent.start as usize..parent.end as usize);
        text.push('/');
    }
    let leaf = text.len() as u32;
    text.push_str(label);
    let name = NameSpan { start, leaf, end: text.len() as u32 };
    let draft_idx = drafts.len() as u32;
    let mut sorted_members = members.clone();
    sorted_members.sort_unstable();
    let first = drafts[scope].children.iter().position(|c| sorted_members.binary_search(c).is_ok()).unwrap_or(0);
    drafts[scope].children[first] = draft_idx;
    drafts[scope].children.retain(|c| sorted_members.binary_search(c).is_err());
    drafts.push(Draft { name, kind: Kind::Series, role: Role::Shown, node: u32::MAX, children: members });
}

/// Marks scopes that have only annotations below, which are not drawn. Children have larger numbers than their parents,
/// except the members of series, which are always shown.
fn mark_empty(drafts: &mut [Draft]) {
    for draft in (1..drafts.len()).rev() {
        let is_shown = |&c: &u32| drafts[c as usize].role == Role::Shown;
        if drafts[draft].kind != Kind::Op && !drafts[draft].children.iter().any(is_shown) {
            drafts[draft].role = Role::Empty;
        }
    }
}

/// Numbers the drafts in pre-order.
fn number_items(drafts: &[Draft]) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::with_capacity(drafts.len());
    // (draft, its item, next child)
    let mut stack = vec![(0_u32, push_item(&mut items, drafts, 0, None), 0_usize)];
    while let Some((draft, item, next)) = stack.last_mut() {
        if let Some(&child) = drafts[*draft as usize].children.get(*next) {
            *next += 1;
            let parent = *item;
            let child_item = push_item(&mut items, drafts, child, Some(parent));
            stack.push((child, child_item, 0));
        } else {
            let end = ItemId(items.len() as u32);
            items[item.idx()].end = end;
            stack.pop();
        }
    }
    items
}

fn push_item(items: &mut Vec<Item>, drafts: &[Draft], draft: u32, parent: Option<ItemId>) -> ItemId {
    let Draft { name, kind, role, node, .. } = drafts[draft as usize];
    let id = ItemId(items.len() as u32);
    let depth = parent.map_or(0, |p| items[p.idx()].depth + 1);
    items.push(Item { name, kind, role, parent: parent.unwrap_or(ItemId::ROOT), end: id, depth, node });
    id
}
