//! `stepscope freeze`: a trained graph as one file, its variables constants.

use std::fs::File;
use std::io::Write;

use anyhow::Context;
use prost::Message;
use serde_json::json;

use crate::args;
use crate::graph;
use crate::out;
use crate::outcome::{Failure, Outcome};

/// Reads, freezes, writes.
pub fn run(args: &args::Freeze) -> Outcome {
    if args.out.exists() {
        return Err(graph::fault(&args.out, "it exists already; give a new file, or remove it first"));
    }
    let def = graph::read(&args.graph)?;
    let checkpoint = graph::checkpoint(&args.checkpoint)?;
    let frozen = engine::freeze::freeze(&def, &checkpoint, &args.fetch).map_err(Failure::wrong_use)?;
    let writing = || format!("writing {}", args.out.display());
    let mut file = File::create_new(&args.out).with_context(writing)?;
    file.write_all(&frozen.graph.encode_to_vec()).with_context(writing)?;
    let (n_nodes, n_variables) = (frozen.graph.node.len(), frozen.n_variables);
    if args.json {
        let bytes = frozen.n_bytes;
        out::object(1, json!({ "nodes": n_nodes, "variables": n_variables, "bytes": bytes, "out": args.out }));
    } else {
        let (out, bytes) = (args.out.display(), text::bytes(frozen.n_bytes));
        say!("{out}: {} nodes, {} variables of {bytes}", text::count(n_nodes as u64), text::count(n_variables as u64));
    }
    Ok(())
}
