//! Element-wise fusion: element-wise nodes of one shape become one node, whose kernel touches memory once.
//!
//! Clusters grow along edges ([`cluster`]). Values that others need are further outputs of the fused node; what `Split` or
//! `Slice` cut out for a cluster alone is read where it lies, and what `ConcatV2` puts together of a cluster's values alone
//! is written there ([`parts`]). The fused node keeps the name of the last one, and lists all in attribute `originals`.

mod cluster;
mod liveness;
mod parts;
mod program;
mod rules;

use super::{PassContext, Redirects, WorkGraph};
use crate::compile::CompileError;
use cluster::Clusters;
use parts::Parts;

/// The pass.
pub(in crate::compile) fn run(graph: &mut WorkGraph, context: &PassContext<'_>) -> Result<usize, CompileError> {
    let uses = graph.uses();
    let clusters = Clusters::of(graph, &uses, context)?;
    let parts = Parts::of(graph, &uses, &clusters);
    let n_before = graph.len();
    let mut redirects = Redirects::default();
    for members in clusters.iter() {
        program::replace(graph, &uses, &parts, members, &mut redirects)?;
    }
    parts.gone().for_each(|id| drop(graph.remove(id)));
    graph.redirect(&redirects);
    Ok(n_before - graph.len())
}
