//! Tables of sites and nodes: equal ones have one row, which is found by the id that each process gives it.

use rustc_hash::FxHashMap;
use trace_model::{NodeInfo, SiteInfo};

/// Rows that are found by key, or by a process's id.
#[derive(Debug)]
pub(crate) struct Table<T> {
    rows: Vec<T>,
    by_key: FxHashMap<String, u32>,
    /// By pid, the row of each id of the process; dense, since processes number from 0.
    by_local: FxHashMap<u32, Vec<u32>>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Table { rows: Vec::new(), by_key: FxHashMap::default(), by_local: FxHashMap::default() }
    }
}

/// Key of a site.
pub(super) fn site_key(site: &SiteInfo) -> String {
    format!("{}\0{}", site.category_name, site.name)
}

/// Key of a node.
pub(super) fn node_key(node: &NodeInfo) -> String {
    format!("{}\0{}\0{}", node.name, node.op, node.device)
}

/// The row of an id that is not registered.
const UNKNOWN: u32 = u32::MAX;

/// Ids of a process have no gaps; an id this far beyond the largest is damage, and must not make the map huge.
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

    /// Registers `id` of process `pid` for the row with this key; `make` makes the row if it is new.
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

    /// The row of `id` of process `pid`; `None` if it is not registered.
    pub(crate) fn find(&self, pid: u32, id: u32) -> Option<u32> {
        let row = *self.by_local.get(&pid)?.get(id as usize)?;
        (row != UNKNOWN).then_some(row)
    }
}
