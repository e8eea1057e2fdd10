//! The nodes that summary ops record: `layer1/weights` for the op `summaries/layer1/weights`. With them a variable's or
//! a layer's summaries are found although their ops are elsewhere in the graph. No egui here.

use crate::{Data, selection::is_at_or_below};
use formats::proto::{GraphDef, NodeDef};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The nodes that summary ops record, of all open graphs.
#[derive(Clone, Debug, Default)]
pub struct SummaryTargets {
    graphs: Vec<Arc<GraphDef>>,
    by_summary: FxHashMap<Arc<str>, Arc<str>>,
}

impl SummaryTargets {
    /// Updates the nodes; returns whether they changed.
    pub fn update(&mut self, data: &Data) -> bool {
        let is_same = self.graphs.len() == data.graphs.len()
            && self.graphs.iter().zip(&data.graphs).all(|(known, graph)| Arc::ptr_eq(known, &graph.def));
        if is_same {
            return false;
        }
        self.graphs = data.graphs.iter().map(|graph| Arc::clone(&graph.def)).collect();
        self.by_summary.clear();
        for node in self.graphs.iter().flat_map(|def| &def.node) {
            if let Some(source) = recorded_by(node) {
                self.by_summary.insert(node.name.as_str().into(), source.into());
            }
        }
        true
    }

    /// The node whose values the summary op `summary` records.
    pub fn get(&self, summary: &str) -> Option<&Arc<str>> {
        self.by_summary.get(summary)
    }

    /// Whether the summary op, or the node that it records, is `scope` or is below it.
    pub fn belongs_to(&self, summary: &str, scope: &str) -> bool {
        is_at_or_below(scope, summary) || self.get(summary).is_some_and(|source| is_at_or_below(scope, source))
    }
}

/// The last data input of an op such as `ScalarSummary(tag, value)`; a merged summary records no value of its own.
fn recorded_by(node: &NodeDef) -> Option<&str> {
    if !node.op.ends_with("Summary") || node.op == "MergeSummary" {
        return None;
    }
    let value = node.input.iter().rfind(|input| !input.starts_with('^'))?;
    Some(value.split_once(':').map_or(value, |(name, _)| name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layer_has_the_summaries_of_its_variables() {
        let node = |name: &str, op: &str, input: &[&str]| NodeDef {
            name: name.to_owned(),
            op: op.to_owned(),
            input: input.iter().map(|i| (*i).to_owned()).collect(),
            ..NodeDef::default()
        };
        let nodes = vec![
            node("layer1/w", "VariableV2", &[]),
            node("s/w", "HistogramSummary", &["s/w/tag", "layer1/w:0", "^layer2/x"]),
            node("s/all", "MergeSummary", &["s/w"]),
        ];
        let data = Data::default().with_graph("g", GraphDef { node: nodes, ..GraphDef::default() });
        let mut recorded = SummaryTargets::default();
        assert!(recorded.update(&data));
        assert!(!recorded.update(&data), "nothing changed");
        assert_eq!(recorded.get("s/w").map(|s| &**s), Some("layer1/w"));
        assert_eq!(recorded.get("s/all"), None);
        assert!(recorded.belongs_to("s/w", "layer1") && recorded.belongs_to("s/w", "s"));
        assert!(!recorded.belongs_to("s/w", "layer2"), "a control input is not recorded");
        assert!(!recorded.belongs_to("s/w", "lay"), "scopes are whole words");
    }
}
