//! Collectives become additions and copies on the members' devices, whose values then travel as all others do: through memory, over
//! Unix sockets and TCP, between the tasks of a cluster or the devices of a process, and as arrows in the timeline.
//!
//! A group's members are the nodes with the same group key and instance key. They are numbered by the devices that they ask for (job,
//! replica, task, type, index), each another one. What they do:
//!
//! | op | how |
//! |---|---|
//! | all-reduce | the value is dealt out in N pieces; piece c goes around the ring from member c + 1 on, each adding its own, and is whole at member c; then it goes around once more (Patarasuk and Yuan 2009). Each link carries 2 (N - 1) / N of the value. Up to [`SMALL_BYTES`] the members exchange the whole values instead, which takes one hop |
//! | reduce-scatter | the first half of that |
//! | all-gather | the second half, of whole values |
//! | broadcast | a binary tree |
//!
//! The order in which values are added is the same in every step, so sums are the same to the bit.

mod build;
mod groups;

pub use build::SMALL_BYTES;
use build::{Builder, Piece};
use groups::{Collective, Group};

use super::{PassContext, WorkGraph};
use crate::compile::CompileError;

/// The pass: gives the number of collectives.
///
/// # Errors
/// Members are missing, or do not fit to each other.
pub(in crate::compile) fn run(graph: &mut WorkGraph, _: &PassContext<'_>) -> Result<usize, CompileError> {
    let groups = groups::find(graph)?;
    if groups.is_empty() {
        return Ok(0);
    }
    for group in &groups {
        lower(graph, group)?;
    }
    // Removes what only gave groups and sizes. Where a whole graph is looked at, without a step, nothing is needed.
    if !graph.fetches.is_empty() || !graph.targets.is_empty() {
        graph.sweep();
    }
    Ok(groups.len())
}

fn lower(graph: &mut WorkGraph, group: &Group) -> Result<(), CompileError> {
    let mut builder = Builder::new(graph, group);
    match &group.collective {
        Collective::Reduce { merge, divides } if builder.is_small() => {
            for member in 0..group.len() {
                let all: Vec<Piece> = (0..group.len()).map(|from| builder.input(from)).collect();
                let sum = builder.merge_all(member, merge, &all)?;
                let mean = if *divides { builder.divide(&sum)? } else { sum };
                builder.finish(member, mean.source)?;
            }
        }
        Collective::Reduce { merge, divides } => {
            let shapes = (0..group.len()).map(|member| builder.shape(member)).collect::<Result<Vec<_>, _>>()?;
            let pieces = (0..group.len()).map(|member| builder.split_flat(member)).collect::<Result<Vec<_>, _>>()?;
            let whole = builder.reduce_ring(merge, *divides, &pieces)?;
            for (member, (pieces, shape)) in builder.gather_ring(&whole)?.iter().zip(&shapes).enumerate() {
                let flat = builder.concat(member, pieces)?;
                let value = builder.reshape(member, flat, *shape)?;
                builder.finish(member, value)?;
            }
        }
        Collective::ReduceScatter { merge, divides } => {
            let pieces = (0..group.len()).map(|member| builder.split_rows(member)).collect::<Result<Vec<_>, _>>()?;
            for (member, piece) in builder.reduce_ring(merge, *divides, &pieces)?.iter().enumerate() {
                builder.finish(member, piece.source)?;
            }
        }
        Collective::Gather => {
            let own: Vec<Piece> = (0..group.len()).map(|member| builder.input(member)).collect();
            for (member, values) in builder.gather_ring(&own)?.iter().enumerate() {
                let value = builder.concat(member, values)?;
                builder.finish(member, value)?;
            }
        }
        Collective::Broadcast { from } => {
            for (member, value) in builder.broadcast(*from)?.iter().enumerate() {
                builder.finish(member, *value)?;
            }
        }
    }
    Ok(())
}
