//! What nodes cost: measured, loaded from a file, or estimated (white paper section 3.2.1).
//!
//! ```json
//! {"version": 1, "steps": 100,
//!  "nodes": [{"name": "layer1/MatMul", "op": "MatMul", "device": "CPU", "count": 100, "total_ns": 4.2e6, "bytes": [262144]}]}
//! ```
//!
//! A node's own record comes first, then the mean of its op on that device type where the op was measured often, then the
//! static estimate.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// What was measured of one node on one device type.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeRecord {
    /// The node's full name.
    pub name: String,
    /// Its op.
    pub op: String,
    /// The device type that ran it.
    pub device: String,
    /// Executions that were measured.
    pub count: u64,
    /// Their time together, nanoseconds.
    pub total_ns: f64,
    /// Bytes of each output, the mean; empty where it was not measured.
    #[serde(default)]
    pub bytes: Vec<u64>,
}

/// Sums over the nodes of an op.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct OpSum {
    count: u64,
    total_ns: f64,
}

/// Why a cost model could not be loaded or saved.
#[derive(Debug, thiserror::Error)]
pub enum CostModelError {
    /// The file cannot be read or written.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is not a cost model.
    #[error("{path} is not a cost model: {problem}", path = path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
}

/// The version of the file.
const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct File {
    version: u32,
    steps: u64,
    nodes: Vec<NodeRecord>,
}

/// Measured costs, by node and by op.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CostModel {
    n_steps: u64,
    /// By name and device type.
    nodes: BTreeMap<(String, String), NodeRecord>,
    ops: FxHashMap<(String, String), OpSum>,
}

impl CostModel {
    /// Without any measurement.
    pub fn new() -> CostModel {
        CostModel::default()
    }

    /// Counts steps that were measured: a node that was measured more often runs several times a step.
    pub fn add_steps(&mut self, n: u64) {
        self.n_steps += n;
    }

    /// Steps that were measured.
    pub fn n_steps(&self) -> u64 {
        self.n_steps
    }

    /// Adds measurements. A record of the same node and device type grows; sizes are the last ones.
    pub fn add(&mut self, record: NodeRecord) {
        if record.count == 0 || !record.total_ns.is_finite() || record.total_ns < 0.0 {
            return;
        }
        let sum = self.ops.entry((record.op.clone(), record.device.clone())).or_default();
        sum.count += record.count;
        sum.total_ns += record.total_ns;
        match self.nodes.entry((record.name.clone(), record.device.clone())) {
            std::collections::btree_map::Entry::Vacant(free) => drop(free.insert(record)),
            std::collections::btree_map::Entry::Occupied(mut known) => {
                let known = known.get_mut();
                known.count += record.count;
                known.total_ns += record.total_ns;
                if !record.bytes.is_empty() {
                    known.bytes = record.bytes;
                }
            }
        }
    }

    /// The record of a node on a device type.
    pub fn node(&self, name: &str, device: &str) -> Option<&NodeRecord> {
        self.nodes.get(&(name.to_owned(), device.to_owned()))
    }

    /// All records, by name and device type.
    pub fn records(&self) -> impl ExactSizeIterator<Item = &NodeRecord> {
        self.nodes.values()
    }

    /// Whether nothing was measured.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Mean nanoseconds of one execution of a node; `None` where it was not measured.
    pub fn node_ns(&self, name: &str, device: &str) -> Option<f64> {
        self.node(name, device).map(|record| record.total_ns / record.count as f64)
    }

    /// Mean nanoseconds of one execution of an op on a device type, where that was measured at least `MIN_COUNT` times.
    pub fn op_ns(&self, op: &str, device: &str) -> Option<f64> {
        const MIN_COUNT: u64 = 8;
        let sum = self.ops.get(&(op.to_owned(), device.to_owned())).filter(|sum| sum.count >= MIN_COUNT)?;
        Some(sum.total_ns / sum.count as f64)
    }

    /// How often a node runs in a step, at least once: the mean over what was measured.
    pub fn executions(&self, name: &str, device: &str) -> f64 {
        let count = self.node(name, device).map_or(0, |record| record.count);
        if self.n_steps == 0 { 1.0 } else { (count as f64 / self.n_steps as f64).max(1.0) }
    }

    /// Bytes of an output, where they were measured on any device type.
    pub fn bytes(&self, name: &str, port: usize) -> Option<u64> {
        let of_name = self.nodes.range((name.to_owned(), String::new())..).take_while(|((n, _), _)| n == name);
        of_name.filter_map(|(_, record)| record.bytes.get(port).copied()).next()
    }

    /// Writes the model to a file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), CostModelError> {
        let file = File { version: VERSION, steps: self.n_steps, nodes: self.nodes.values().cloned().collect() };
        let io = |source| CostModelError::Io { path: path.to_owned(), source };
        let text = serde_json::to_vec_pretty(&file).map_err(|e| io(e.into()))?;
        std::fs::write(path, text).map_err(io)
    }

    /// Reads a model from a file.
    ///
    /// # Errors
    /// The file cannot be read, or is not a cost model.
    pub fn load(path: &Path) -> Result<CostModel, CostModelError> {
        let text = std::fs::read(path).map_err(|source| CostModelError::Io { path: path.to_owned(), source })?;
        let format = |problem: String| CostModelError::Format { path: path.to_owned(), problem };
        let file: File = serde_json::from_slice(&text).map_err(|e| format(e.to_string()))?;
        if file.version != VERSION {
            return Err(format(format!("version {}, expected {VERSION}", file.version)));
        }
        let mut model = CostModel::new();
        model.add_steps(file.steps);
        for record in file.nodes {
            if !record.total_ns.is_finite() || record.total_ns < 0.0 {
                return Err(format(format!("node {}: total_ns is {}", record.name, record.total_ns)));
            }
            model.add(record);
        }
        Ok(model)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(name: &str, op: &str, count: u64, total_ns: f64, bytes: &[u64]) -> NodeRecord {
        let (name, op, bytes) = (name.to_owned(), op.to_owned(), bytes.to_vec());
        NodeRecord { name, op, device: "CPU".into(), count, total_ns, bytes }
    }

    #[test]
    fn means_come_from_counts_and_totals_and_survive_a_file() {
        let mut model = CostModel::new();
        model.add_steps(10);
        model.add(record("a", "MatMul", 10, 5000.0, &[64]));
        model.add(record("a", "MatMul", 10, 7000.0, &[]));
        model.add(record("b", "MatMul", 10, 28000.0, &[32, 16]));
        model.add(record("never", "MatMul", 0, 1.0, &[]));
        assert_eq!(model.node_ns("a", "CPU"), Some(600.0));
        assert_eq!(model.op_ns("MatMul", "CPU"), Some(40000.0 / 30.0));
        assert_eq!(
            (model.node_ns("a", "GPU"), model.op_ns("Add", "CPU"), model.node_ns("never", "CPU")),
            (None, None, None)
        );
        assert_eq!((model.executions("a", "CPU"), model.executions("new", "CPU")), (2.0, 1.0));
        assert_eq!((model.bytes("a", 0), model.bytes("b", 1), model.bytes("b", 2)), (Some(64), Some(16), None));
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("costs.json");
        model.save(&path).unwrap();
        assert_eq!(CostModel::load(&path).unwrap(), model);
    }

    #[test]
    fn other_files_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("costs.json");
        assert!(matches!(CostModel::load(&path), Err(CostModelError::Io { .. })));
        let negative =
            r#"{"version":1,"steps":1,"nodes":[{"name":"a","op":"b","device":"CPU","count":1,"total_ns":-1}]}"#;
        for text in ["", "{}", "[1]", r#"{"version":2,"steps":1,"nodes":[]}"#, negative] {
            std::fs::write(&path, text).unwrap();
            let error = CostModel::load(&path).unwrap_err();
            assert!(error.to_string().contains("is not a cost model"), "{text}: {error}");
        }
    }
}
