//! Names to a tree of scopes, series folded, numbered in pre-order.
//!
//! A node `A` that is also a scope (`A/B` exists) becomes the scope's child `(A)`. Everything is iterative: a name may
//! have a hundred thousand components.

use super::{
    columns::{Item, NameSpan},
    items::{ItemId, Kind, Role},
    series,
};
use rustc_hash::FxHashMap;

/// A node before it has its place: name and op.
#[derive(Clone, Copy)]
pub(super) struct RawNode {
    pub start: u32,
    pub end: u32,
    pub op: u32,
    pub role: Role,
}

struct Draft {
    name: NameSpan,
    kind: Kind,
    role: Role,
    node: u32,
    children: Vec<u32>,
}

/// Children of a scope up to which a series of all of them is not folded.
const MAX_PLAIN_SERIES: usize = 12;
/// Path prefix of function bodies, as in TensorBoard.
pub(super) const LIBRARY: &str = "__function_library__";

/// Builds the tree. `text` holds the names; labels of series are added to it.
pub(super) fn build(text: &mut String, nodes: &[RawNode]) -> Vec<Item> {
    let mut drafts = scopes_and_nodes(text, nodes);
    fold_series(text, &mut drafts, nodes);
    mark_empty(&mut drafts);
    number(&drafts)
}

fn scopes_and_nodes(text: &str, nodes: &[RawNode]) -> Vec<Draft> {
    let root =
        Draft { name: NameSpan::default(), kind: Kind::Root, role: Role::Shown, node: u32::MAX, children: vec![] };
    let mut drafts = vec![root];
    let mut scope_of: FxHashMap<(u32, &str), u32> = FxHashMap::default();
    let parents: Vec<u32> = nodes.iter().map(|node| scopes_of(text, node, &mut drafts, &mut scope_of)).collect();
    for (idx, (node, parent)) in nodes.iter().zip(parents).enumerate() {
        let name = span(text, node.start, node.end);
        let leaf = &text[name.leaf as usize..name.end as usize];
        let parent = scope_of.get(&(parent, leaf)).copied().unwrap_or(parent);
        let draft = drafts.len() as u32;
        drafts.push(Draft { name, kind: Kind::Op, role: node.role, node: idx as u32, children: vec![] });
        drafts[parent as usize].children.push(draft);
    }
    drafts
}

/// Adds the missing scopes of a node's name; returns the innermost one.
fn scopes_of<'t>(
    text: &'t str,
    node: &RawNode,
    drafts: &mut Vec<Draft>,
    scope_of: &mut FxHashMap<(u32, &'t str), u32>,
) -> u32 {
    let name = &text[node.start as usize..node.end as usize];
    let (mut scope, mut from) = (0_u32, 0_usize);
    while let Some(len) = name[from..].find('/') {
        let part = &name[from..from + len];
        let next = *scope_of.entry((scope, part)).or_insert_with(|| {
            let at = |offset: usize| node.start + offset as u32;
            let kind = match (scope, part, drafts[scope as usize].kind) {
                (0, LIBRARY, _) => Kind::Library,
                (_, _, Kind::Library) => Kind::Function,
                _ => Kind::Scope,
            };
            let name = NameSpan { start: node.start, leaf: at(from), end: at(from + len) };
            drafts.push(Draft { name, kind, role: Role::Shown, node: u32::MAX, children: vec![] });
            let draft_idx = drafts.len() as u32 - 1;
            drafts[scope as usize].children.push(draft_idx);
            draft_idx
        });
        (scope, from) = (next, from + len + 1);
    }
    scope
}

fn span(text: &str, start: u32, end: u32) -> NameSpan {
    let name = &text[start as usize..end as usize];
    let leaf = name.rfind('/').map_or(0, |at| at as u32 + 1);
    NameSpan { start, leaf: start + leaf, end }
}

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
    let mut is_member = members.clone();
    is_member.sort_unstable();
    let first = drafts[scope].children.iter().position(|c| is_member.binary_search(c).is_ok()).unwrap_or(0);
    drafts[scope].children[first] = draft_idx;
    drafts[scope].children.retain(|c| is_member.binary_search(c).is_err());
    drafts.push(Draft { name, kind: Kind::Series, role: Role::Shown, node: u32::MAX, children: members });
}

/// Scopes with nothing but annotations below are not drawn. Children have larger numbers than their parents, except
/// the members of series, which are shown themselves.
fn mark_empty(drafts: &mut [Draft]) {
    for draft in (1..drafts.len()).rev() {
        let shows = |&c: &u32| drafts[c as usize].role == Role::Shown;
        if drafts[draft].kind != Kind::Op && !drafts[draft].children.iter().any(shows) {
            drafts[draft].role = Role::Empty;
        }
    }
}

fn number(drafts: &[Draft]) -> Vec<Item> {
    let mut items: Vec<Item> = Vec::with_capacity(drafts.len());
    // (draft, its item, next child)
    let mut stack = vec![(0_u32, open(&mut items, drafts, 0, None), 0_usize)];
    while let Some((draft, item, next)) = stack.last_mut() {
        if let Some(&child) = drafts[*draft as usize].children.get(*next) {
            *next += 1;
            let parent = *item;
            let child_item = open(&mut items, drafts, child, Some(parent));
            stack.push((child, child_item, 0));
        } else {
            let end = ItemId(items.len() as u32);
            items[item.idx()].end = end;
            stack.pop();
        }
    }
    items
}

fn open(items: &mut Vec<Item>, drafts: &[Draft], draft: u32, parent: Option<ItemId>) -> ItemId {
    let Draft { name, kind, role, node, .. } = drafts[draft as usize];
    let id = ItemId(items.len() as u32);
    let depth = parent.map_or(0, |p| items[p.idx()].depth + 1);
    items.push(Item { name, kind, role, parent: parent.unwrap_or(ItemId::ROOT), end: id, depth, node });
    id
}
