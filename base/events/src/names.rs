//! Names and their ids: call sites (category and name) and graph nodes (name, op, device).
//!
//! Records hold ids; the names are written once to the meta file of each trace folder that the process records into.
//! The tables have fixed limits: beyond them a site becomes [`SiteId::OTHER`] and a node [`NodeId::NONE`].

use crate::lock::lock;
use crate::meta::{self, Entry};
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, MutexGuard};

/// The id of a call site, unique in the process: 24 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SiteId(u32);

impl SiteId {
    /// The site of events whose own site did not fit into the table.
    pub const OTHER: Self = Self(0);

    /// The id in the low 24 bits of a site word.
    #[must_use]
    pub const fn from_bits(word: u32) -> Self {
        Self(word & 0xff_ffff)
    }

    /// The number, below 2^24.
    #[inline]
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

/// The id of a graph node, unique in the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(u32);

impl NodeId {
    /// No node.
    pub const NONE: Self = Self(u32::MAX);

    /// The id with this number.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// The number; `u32::MAX` is [`NodeId::NONE`].
    #[inline]
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }
}

/// The number of different sites that a process may name.
pub const MAX_SITES: usize = 1 << 20;
/// The number of different nodes that a process may name.
pub const MAX_NODES: usize = 1 << 22;

/// Interned items in the order of their ids.
struct Table<T> {
    items: Vec<T>,
    ids: HashMap<T, u32>,
}

impl<T: Clone + Eq + Hash> Table<T> {
    /// The id of `item` and whether it is new; `None` when it is new and the table is full.
    fn intern(&mut self, item: T, limit: usize) -> Option<(u32, bool)> {
        if let Some(&id) = self.ids.get(&item) {
            return Some((id, false));
        }
        let id = u32::try_from(self.items.len()).ok().filter(|_| self.items.len() < limit)?;
        self.items.push(item.clone());
        self.ids.insert(item, id);
        Some((id, true))
    }
}

/// Category and name.
type Site = (String, String);
/// Name, op and device.
type Node = (String, String, String);

/// Every name of the process, and the file to which new ones are written.
pub(crate) struct Names {
    sites: Table<Site>,
    nodes: Table<Node>,
    /// The meta file of the running session. Under the same lock as the tables, so that every name reaches every
    /// session before a record with its id does.
    meta: Option<meta::Writer>,
}

static NAMES: Mutex<Option<Names>> = Mutex::new(None);

pub(crate) type NamesGuard = MutexGuard<'static, Option<Names>>;

pub(crate) fn lock_names() -> NamesGuard {
    lock(&NAMES)
}

/// Runs `f` on the names of the process, under their lock. `f` calls no code of the traced program.
fn with_names<R>(f: impl FnOnce(&mut Names) -> R) -> R {
    f(lock_names().get_or_insert_with(|| {
        let mut names = Names {
            sites: Table { items: Vec::new(), ids: HashMap::new() },
            nodes: Table { items: Vec::new(), ids: HashMap::new() },
            meta: None,
        };
        names.sites.intern((String::new(), "(further sites)".to_owned()), MAX_SITES);
        names
    }))
}

/// The id of a call site; the same category and name give the same id. Takes a lock, so the caller stores the id, or
/// uses [`site!`](macro@crate::site).
#[must_use]
pub fn site(category: &str, name: &str) -> SiteId {
    with_names(|names| match names.sites.intern((category.to_owned(), name.to_owned()), MAX_SITES) {
        None => SiteId::OTHER,
        Some((id, is_new)) => {
            if let Some(meta) = names.meta.as_mut().filter(|_| is_new) {
                meta.append(&Entry::Site { id, category: category.to_owned(), name: name.to_owned() });
            }
            SiteId(id)
        }
    })
}

/// The id of a graph node, by its full name (with scopes), op and device; the same three give the same id. Takes a
/// lock, so the caller stores the id.
#[must_use]
pub fn node(name: &str, op: &str, device: &str) -> NodeId {
    let item = (name.to_owned(), op.to_owned(), device.to_owned());
    with_names(|names| match names.nodes.intern(item, MAX_NODES) {
        None => NodeId::NONE,
        Some((id, is_new)) => {
            if let Some(meta) = names.meta.as_mut().filter(|_| is_new) {
                let entry = Entry::Node { id, name: name.to_owned(), op: op.to_owned(), device: device.to_owned() };
                meta.append(&entry);
            }
            NodeId(id)
        }
    })
}

/// The id of a call site, looked up once per place in the program.
///
/// ```
/// let id = events::site!("app", "load");
/// assert_eq!(id, events::site("app", "load"));
/// ```
#[macro_export]
macro_rules! site {
    ($category:expr, $name:expr) => {{
        static ID: ::std::sync::OnceLock<$crate::SiteId> = ::std::sync::OnceLock::new();
        *ID.get_or_init(|| $crate::names::site($category, $name))
    }};
}

/// Starts writing names to `meta`: all existing names now, and each new name when it is interned.
pub(crate) fn write_to(mut meta: meta::Writer) {
    with_names(|names| {
        let sites = names.sites.items.iter().zip(0..);
        let sites =
            sites.map(|((category, name), id)| Entry::Site { id, category: category.clone(), name: name.clone() });
        let nodes = names.nodes.items.iter().zip(0..);
        let nodes = nodes.map(|((name, op, device), id)| Entry::Node {
            id,
            name: name.clone(),
            op: op.clone(),
            device: device.clone(),
        });
        meta.append_all(sites.chain(nodes));
        names.meta = Some(meta);
    });
}

/// Appends another kind of entry to the running session's meta file, if there is one.
pub(crate) fn append(entry: &Entry) {
    with_names(|names| {
        if let Some(meta) = &mut names.meta {
            meta.append(entry);
        }
    });
}

/// Stops writing names; returns the number of writes that failed.
pub(crate) fn stop_writing() -> u64 {
    with_names(|names| names.meta.take().map_or(0, |meta| meta.lost()))
}

/// Gives up the meta file of a parent process without writing to it.
pub(crate) fn forget_meta() {
    with_names(|names| std::mem::forget(names.meta.take()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_names_same_ids() {
        assert_eq!(site("names", "a"), site("names", "a"));
        assert_ne!(site("names", "a"), site("names", "b"));
        assert_ne!(site("names", "ab"), site("namesa", "b"));
        assert_eq!(node("x/y", "Add", "cpu:0"), node("x/y", "Add", "cpu:0"));
        assert_ne!(node("x/y", "Add", "cpu:0"), node("x/y", "Add", "cpu:1"));
        assert_eq!(crate::site!("names", "a"), site("names", "a"));
    }

    #[test]
    fn a_full_table_says_so() {
        let mut table = Table { items: Vec::new(), ids: HashMap::new() };
        assert_eq!(table.intern("a", 1), Some((0, true)));
        assert_eq!(table.intern("b", 1), None);
        assert_eq!(table.intern("a", 1), Some((0, false)));
    }
}
