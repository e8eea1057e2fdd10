//! Tables of sites and nodes. Equal entries share one row, which is found by
//! its key, or by a pid and the id that this process gives the entry.

use rustc_hash::FxHashMap;
use trace_model::{NodeInfo, SiteInfo};

/// Rows that are found by key, or by a process's id.
#[derive(Debug)]
pub(crate) struct Table<T> {
    rows: Vec<T>,
    by_key: FxHashMap<String, u32>,
    /// For each pid the rows of its ids: a dense array, since processes count ids from 0.
    rows_by_pid: FxHashMap<u32, Vec<u32>>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Table { rows: Vec::new(), by_key: FxHashMap::default(), rows_by_pid: FxHashMap::default() }
    }
}

/// Returns the key of a site, which equal sites share.
pub(super) fn site_key(site: &SiteInfo) -> String {
    format!("{}\0{}", site.category_name, site.name)
}

/// Returns the key of a node, which equal nodes share.
pub(super) fn node_key(node: &NodeInfo) -> String {
    format!("{}\0{}\0{}", node.name, node.op, node.device)
}

/// The row of an id that is not registered.
const UNREGISTERED: u32 = u32::MAX;

/// Ids of a process have no gaps: an id this far beyond the largest one is damage, and must not make the array huge.
const MAX_ID_GAP: usize = 1 << 16;

impl<T> Table<T> {
    /// Returns a table of these rows, which no process has registered yet.
    pub(crate) fn from_rows(rows: Vec<T>, key_of: impl Fn(&T) -> String) -> Table<T> {
        let by_key = rows.iter().enumerate().map(|(row, entry)| (key_of(entry), row as u32)).collect();
        Table { rows, by_key, rows_by_pid: FxHashMap::default() }
    }

    pub(crate) fn rows(&self) -> &[T] {
        &self.rows
    }

    /// Registers `id` of process `pid` for the row with this key; `new_row` makes a missing row. Returns the row.
    pub(crate) fn register(&mut self, pid: u32, id: u32, key: String, new_row: impl FnOnce() -> T) -> u32 {
        let row = match self.by_key.get(&key) {
            Some(row) => *row,
            None => {
                let row = self.rows.len() as u32;
                self.rows.push(new_row());
                self.by_key.insert(key, row);
                row
            }
        };
        let rows_by_id = self.rows_by_pid.entry(pid).or_default();
        let id = id as usize;
        if id < rows_by_id.len() + MAX_ID_GAP {
            if rows_by_id.len() <= id {
                rows_by_id.resize(id + 1, UNREGISTERED);
            }
            rows_by_id[id] = row;
        }
        row
    }

    /// The row of `id` of process `pid`; `None` if it is not registered.
    pub(crate) fn find(&self, pid: u32, id: u32) -> Option<u32> {
        let row = *self.rows_by_pid.get(&pid)?.get(id as usize)?;
        (row != UNREGISTERED).then_some(row)
    }
}
