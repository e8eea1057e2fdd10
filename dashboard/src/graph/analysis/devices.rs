//! Devices of nodes: as the graph assigns them, or else as the open traces record them.

use crate::graph::model::{ItemId, Model};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use trace_store::Store;

/// The devices of a model's nodes. Empty if no trace adds any to those of the graph.
#[derive(Default)]
pub(super) struct Devices {
    names: Vec<Arc<str>>,
    /// By item: the index of the device's name plus one; 0 for items that are no nodes.
    rows: Vec<u32>,
    /// The number of nodes of a scope on each device, the most frequent first.
    counts: FxHashMap<ItemId, Vec<(u32, u32)>>,
}

/// Devices that traces record for nodes to which the graph assigns none.
#[derive(Default)]
pub(super) struct TracedDevices(FxHashMap<ItemId, Arc<str>>);

impl TracedDevices {
    /// Adds a trace. A node that ran on several devices counts as on the first one recorded.
    pub fn add(&mut self, model: &Model, store: &Store) {
        for node in store.nodes().iter().filter(|node| !node.device.is_empty()) {
            let item = model.find(&node.name).filter(|item| model.is_op(*item) && model.device(*item).is_empty());
            if let Some(item) = item {
                self.0.entry(item).or_insert_with(|| node.device.as_str().into());
            }
        }
    }
}

impl Devices {
    /// The devices of all nodes.
    pub fn new(model: &Model, TracedDevices(traced): &TracedDevices) -> Self {
        if traced.is_empty() {
            return Self::default();
        }
        let mut devices = Self { rows: vec![0; model.n_items()], ..Self::default() };
        let mut rows: FxHashMap<&str, u32> = FxHashMap::default();
        let mut counts: Vec<FxHashMap<u32, u32>> = vec![FxHashMap::default(); model.n_items()];
        for item in model.items().filter(|item| model.is_op(*item)) {
            let name = traced.get(&item).map_or_else(|| model.device(item), |name| &**name);
            let row = *rows.entry(name).or_insert_with(|| {
                devices.names.push(name.into());
                devices.names.len() as u32 - 1
            });
            devices.rows[item.idx()] = row + 1;
            counts[item.idx()].insert(row, 1);
        }
        // Items come after the scopes that they are in.
        for item in (1..model.n_items() as u32).rev().map(ItemId) {
            let item_counts = std::mem::take(&mut counts[item.idx()]);
            let scope_counts = &mut counts[model.parent(item).idx()];
            item_counts.iter().for_each(|(row, n)| *scope_counts.entry(*row).or_default() += n);
            if !model.is_op(item) {
                devices.counts.insert(item, most_frequent_first(item_counts));
            }
        }
        devices.counts.insert(ItemId::ROOT, most_frequent_first(std::mem::take(&mut counts[0])));
        devices
    }

    /// Returns the device of a node; empty if it is unknown.
    pub fn device<'a>(&'a self, model: &'a Model, item: ItemId) -> &'a str {
        let row = self.rows.get(item.idx()).and_then(|row| row.checked_sub(1));
        row.map_or_else(|| model.device(item), |row| &self.names[row as usize])
    }

    /// Whether a node's device is known from a trace, not from the graph.
    pub fn is_traced(&self, model: &Model, item: ItemId) -> bool {
        model.device(item).is_empty() && !self.device(model, item).is_empty()
    }

    /// Returns the devices of a scope's nodes with the number of nodes on each, most frequent first.
    pub fn nodes_by_device<'a>(&'a self, model: &'a Model, scope: ItemId) -> Vec<(&'a str, u32)> {
        match self.counts.get(&scope) {
            Some(counts) => counts.iter().map(|(row, n)| (&*self.names[*row as usize], *n)).collect(),
            None => model.device_counts(scope).collect(),
        }
    }
}

fn most_frequent_first(counts: FxHashMap<u32, u32>) -> Vec<(u32, u32)> {
    let mut counts: Vec<(u32, u32)> = counts.into_iter().collect();
    counts.sort_unstable_by_key(|(row, n)| (std::cmp::Reverse(*n), *row));
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use formats::proto::{GraphDef, NodeDef};
    use trace_model::{Batch, Name};

    #[test]
    fn a_trace_tells_where_the_graph_says_nothing() {
        let node = |name: &str, device: &str| NodeDef {
            name: name.into(),
            op: "MatMul".into(),
            device: device.into(),
            ..NodeDef::default()
        };
        let nodes = vec![node("a/x", ""), node("a/y", ""), node("a/z", "/cpu:0"), node("b", "")];
        let model = Model::build(Arc::new(GraphDef { node: nodes, ..GraphDef::default() }));
        let mut batch = Batch::new();
        batch.set_origin(0);
        for (id, (name, device)) in
            (0..).zip([("a/x", "/gpu:0"), ("a/y", "/gpu:0"), ("a/z", "/gpu:1"), ("gone", "/gpu:0"), ("b", "")])
        {
            batch.name(Name::Node { pid: 1, id, name: name.into(), op: "MatMul".into(), device: device.into() });
        }
        let store = crate::timeline::testing::store_of(batch);
        let check = |devices: &Devices| {
            let of = |name: &str| {
                let item = model.find(name).unwrap();
                (devices.device(&model, item).to_owned(), devices.is_traced(&model, item))
            };
            let counts =
                |name: &str| format!("{:?}", devices.nodes_by_device(&model, model.find(name).unwrap_or(ItemId::ROOT)));
            (["a/x", "a/z", "b"].map(of), counts("a"), counts("-"))
        };
        let own = |device: &str, is_traced| (device.to_owned(), is_traced);
        let mut traced = TracedDevices::default();
        traced.add(&model, &store);
        let (of, in_a, all) = check(&Devices::new(&model, &traced));
        assert_eq!(of, [own("/gpu:0", true), own("/cpu:0", false), own("", false)], "the graph's own word counts");
        assert_eq!(in_a, r#"[("/gpu:0", 2), ("/cpu:0", 1)]"#);
        assert_eq!(all, r#"[("/gpu:0", 2), ("/cpu:0", 1), ("", 1)]"#);
        let (of, in_a, _) = check(&Devices::new(&model, &TracedDevices::default()));
        assert_eq!(of, [own("", false), own("/cpu:0", false), own("", false)]);
        assert_eq!(in_a, r#"[("", 2), ("/cpu:0", 1)]"#);
    }
}
