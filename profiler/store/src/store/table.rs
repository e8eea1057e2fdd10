//! Rows of named things, each once, found by the ids that each process gives them.

use rustc_hash::FxHashMap;
use trace_model::{NodeInfo, SiteInfo};

/// Rows of named things, found by what they are.
#[derive(Debug)]
pub(crate) struct Table<T> {
    rows: Vec<T>,
    by_key: FxHashMap<String, u32>,
    /// (pid, the process's own id) -> row; dense, because processes number from 0.
    by_local: FxHashMap<u32, Vec<u32>>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Table { rows: Vec::new(), by_key: FxHashMap::default(), by_local: FxHashMap::default() }
    }
}

/// Key of sites.
pub(super) fn site_key(site: &SiteInfo) -> String {
    format!("{}\0{}", site.category_name, site.name)
}

/// Key of nodes.
pub(super) fn node_key(node: &NodeInfo) -> String {
    format!("{}\0{}\0{}", node.name, node.op, node.device)
}

const UNKNOWN: u32 = u32::MAX;

/// Processes number from 0 without gaps; an id this far beyond the last one is damage and must not make the map huge.
const MAX_JUMP: usize = 1 << 16;

impl<T> Table<T> {
    /// A table with these rows, which no process has registered yet.
    pub(crate) fn of_rows(rows: Vec<T>, key: impl Fn(&T) -> String) -> Table<T> {
        let by_key = rows.iter().enumerate().map(|(row, named)| (key(named), row as u32)).collect();
        Table { rows, by_key, by_local: FxHashMap::default() }
    }

    pub(crate) fn rows(&self) -> &[T] {
        &self.rows
    }

    /// Registers `id` of process `pid` as the row with this key, which `make` makes where it is new.
    pub(crate) fn register(&mut self, pid: u32, id: u32, key: String, make: impl FnOnce() -> T) -> u32 {
        let row = match self.by_key.get(&key) {
            Some(row) => *row,
            None => {
                let row = self.rows.len() as u32;
                self.rows.push(make());
                self.by_key.insert(key, row);
                row
            }
        };
        let map = self.by_local.entry(pid).or_default();
        let id = id as usize;
        if id < map.len() + MAX_JUMP {
            if map.len() <= id {
                map.resize(id + 1, UNKNOWN);
            }
            map[id] = row;
        }
        row
    }

    /// The row of `id` of process `pid`, where it is registered.
    pub(crate) fn find(&self, pid: u32, id: u32) -> Option<u32> {
        let row = *self.by_local.get(&pid)?.get(id as usize)?;
        (row != UNKNOWN).then_some(row)
    }
}
