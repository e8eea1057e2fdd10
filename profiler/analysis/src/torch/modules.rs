//! The tree of a model's modules.

use rustc_hash::FxHashMap;
use trace_model::SiteInfo;

/// The name of a module's slice, in PyTorch's profiler.
const MODULE: &str = "nn.Module: ";

/// The module whose forward passes are the slices of a site, as [`ModuleRow::name`] has it.
#[must_use]
pub fn module_of_site(site: &SiteInfo) -> Option<&str> {
    match site.category_name.as_str() {
        "python" => site.name.strip_prefix(MODULE),
        "module.forward" => Some(&site.name),
        _ => None,
    }
}

/// What a module took, in its forward passes or in its gradients.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ModuleCost {
    /// Time on the host, ns.
    pub host_ns: i64,
    /// Time of the device's work that was enqueued, ns.
    pub device_ns: i64,
    /// Floating-point operations of the counted kinds (docs/use/analysis.md).
    pub flop: f64,
    /// Bytes allocated, whatever was freed again.
    pub allocated_bytes: i64,
    /// Bytes allocated less bytes freed: of forward passes what is left for the gradients.
    pub net_bytes: i64,
}

impl ModuleCost {
    pub(super) fn add(&mut self, other: &ModuleCost) {
        self.host_ns += other.host_ns;
        self.device_ns += other.device_ns;
        self.flop += other.flop;
        self.allocated_bytes += other.allocated_bytes;
        self.net_bytes += other.net_bytes;
    }
}

/// A module at one place of the tree.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModuleRow {
    /// The module's class and number, `Linear_3`, or its path in the model, `blocks.0.up`. Empty: ops outside all
    /// modules, such as the optimizer's.
    pub name: String,
    /// The row of the module that contains it.
    pub parent: Option<usize>,
    /// The number of modules that contain it.
    pub depth: usize,
    /// Forward passes that began in the range.
    pub calls: u64,
    /// Of the forward passes, inner modules included.
    pub forward: ModuleCost,
    /// Of the gradients, inner modules included, with forward passes that were repeated for them.
    pub backward: ModuleCost,
    /// Of the forward passes, without inner modules.
    pub own_forward: ModuleCost,
    /// Of the gradients, without inner modules.
    pub own_backward: ModuleCost,
}

/// The tree while it grows; rows are in the order in which they were first entered.
#[derive(Default)]
pub(super) struct Modules {
    pub(super) rows: Vec<ModuleRow>,
    by_place: FxHashMap<(Option<u32>, String), u32>,
    by_name: FxHashMap<String, u32>,
}

impl Modules {
    /// The row of a module in another.
    pub(super) fn row(&mut self, parent: Option<u32>, name: &str) -> u32 {
        let key = (parent, name.to_owned());
        if let Some(row) = self.by_place.get(&key) {
            return *row;
        }
        let row = self.rows.len() as u32;
        self.by_place.insert(key, row);
        self.by_name.entry(name.to_owned()).or_insert(row);
        let depth = parent.map_or(0, |parent| self.rows[parent as usize].depth + 1);
        let parent = parent.map(|parent| parent as usize);
        self.rows.push(ModuleRow { name: name.to_owned(), parent, depth, ..ModuleRow::default() });
        row
    }

    /// The row of a module wherever it is.
    pub(super) fn named(&mut self, name: &str) -> u32 {
        self.by_name.get(name).copied().unwrap_or_else(|| self.row(None, name))
    }

    /// The rows with the costs of inner modules added, each after the module that contains it.
    pub(super) fn into_rows(mut self) -> Vec<ModuleRow> {
        for row in &mut self.rows {
            (row.forward, row.backward) = (row.own_forward, row.own_backward);
        }
        // A module is entered after the one that contains it.
        for index in (0..self.rows.len()).rev() {
            let (forward, backward, parent) =
                (self.rows[index].forward, self.rows[index].backward, self.rows[index].parent);
            if let Some(parent) = parent {
                self.rows[parent].forward.add(&forward);
                self.rows[parent].backward.add(&backward);
            }
        }
        in_tree_order(&self.rows)
    }
}

/// Sorts the rows so that each is followed by those that it contains.
fn in_tree_order(rows: &[ModuleRow]) -> Vec<ModuleRow> {
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); rows.len()];
    let mut next: Vec<usize> = Vec::new();
    for (index, row) in rows.iter().enumerate() {
        match row.parent {
            Some(parent) => children[parent].push(index),
            None => next.push(index),
        }
    }
    next.reverse();
    let (mut sorted, mut new_index) = (Vec::with_capacity(rows.len()), vec![0; rows.len()]);
    while let Some(index) = next.pop() {
        new_index[index] = sorted.len();
        let mut row = rows[index].clone();
        row.parent = row.parent.map(|parent| new_index[parent]);
        sorted.push(row);
        next.extend(children[index].iter().rev());
    }
    sorted
}
