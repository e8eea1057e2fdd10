//! A [`WorkGraph`] as a `GraphDef`: what the graph view opens, before and after each pass.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use formats::proto::attr_value::Value;
use formats::proto::{AttrValue, GraphDef, NodeDef, VersionDef};
use prost::Message;

use super::{Source, WorkFeed, WorkGraph, WorkId};
use engine_core::tensor_proto;

impl WorkGraph {
    /// The graph's definition. Feeds are placeholders named `feed/NAME` where the name they stand for is a node's.
    pub fn to_def(&self) -> GraphDef {
        let feeds = self.feed_names();
        let name = |id: WorkId| self.get(id).map(|n| n.name().to_string()).unwrap_or_default();
        let edge = |source: &Source| match *source {
            Source::Port(id, 0) => name(id),
            Source::Port(id, port) => format!("{}:{port}", name(id)),
            Source::Feed(i) => feeds.get(i as usize).cloned().unwrap_or_default(),
        };
        let placeholders = self.feeds.iter().zip(&feeds).map(|(feed, name)| placeholder(feed, name));
        let nodes = self.iter().map(|(_, node)| {
            let control = node.control_inputs.iter().map(|id| format!("^{}", name(*id)));
            node.def.to_def(node.inputs.iter().map(edge).chain(control).collect())
        });
        GraphDef {
            node: placeholders.chain(nodes).collect(),
            versions: Some(VersionDef { producer: 1882, min_consumer: 0, bad_consumers: Vec::new() }),
            ..Default::default()
        }
    }

    /// The names of the placeholders that stand for the feeds.
    pub(crate) fn feed_names(&self) -> Vec<String> {
        self.feeds.iter().map(|feed| self.feed_name(&feed.name)).collect()
    }

    /// A name for the placeholder of the feed of `output` (`name:port`).
    fn feed_name(&self, output: &str) -> String {
        let node = output.strip_suffix(":0").map_or_else(|| output.replace(':', "_"), str::to_owned);
        if self.find(&node).is_some() { self.free_name(&format!("feed/{node}")).to_string() } else { node }
    }
}

/// What stands for a feed.
pub(crate) fn placeholder(feed: &WorkFeed, name: &str) -> NodeDef {
    let dtype = Value::Type(tensor_proto::dtype_to_proto(feed.dtype));
    let shape = Value::Shape(tensor_proto::shape_to_proto(&feed.shape));
    let attr = [("dtype", dtype), ("shape", shape)].map(|(k, v)| (k.to_owned(), AttrValue { value: Some(v) }));
    NodeDef { name: name.to_owned(), op: "Placeholder".into(), attr: BTreeMap::from(attr), ..Default::default() }
}

/// A folder that gets the graph before the first pass and after each, as `NAME-NN-PASS.pb`.
pub(in crate::compile) struct Dump {
    folder: PathBuf,
    prefix: String,
    n_written: usize,
}

impl Dump {
    pub fn new(folder: &Path, prefix: String) -> Dump {
        Dump { folder: folder.to_owned(), prefix, n_written: 0 }
    }

    /// Writes the graph as it is.
    pub fn write(&mut self, graph: &WorkGraph, pass: &str) -> std::io::Result<()> {
        std::fs::create_dir_all(&self.folder)?;
        let name = format!("{}-{:02}-{pass}.pb", self.prefix, self.n_written);
        self.n_written += 1;
        std::fs::write(self.folder.join(name), graph.to_def().encode_to_vec())
    }
}
