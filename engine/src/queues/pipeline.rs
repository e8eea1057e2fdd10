//! Input pipelines: batches of what some node produces, prepared by other threads while steps compute (prefetching).
//!
//! Each function adds a queue, ops that fill it, and an op that takes a batch out; the [`QueueRunner`]
//! that it gives back must be started.

use super::runner::QueueRunner;
use engine_core::dtype::DType;
use engine_core::graph::{Attr, Graph, GraphError, NodeId, Output};
use engine_core::shape::PartialShape;
use engine_core::tensor::Tensor;

/// How batches are made.
#[derive(Debug, Clone)]
pub struct BatchOptions {
    /// Rows of a batch.
    pub size: usize,
    /// Rows that wait at most.
    pub capacity: usize,
    /// Threads that fill the queue.
    pub n_threads: usize,
    /// Inputs are batches already: their rows go in one by one.
    pub enqueue_many: bool,
    /// The last batch, after the data's end, may be smaller.
    pub allow_smaller_final_batch: bool,
    /// Rows of different shapes are padded with zeros to the largest of their batch.
    pub dynamic_pad: bool,
}

impl BatchOptions {
    /// Batches of so many rows, two of which may wait.
    pub fn new(size: usize) -> BatchOptions {
        BatchOptions {
            size,
            capacity: 2 * size,
            n_threads: 1,
            enqueue_many: false,
            allow_smaller_final_batch: false,
            dynamic_pad: false,
        }
    }
}

/// Batches that come out of a queue.
#[derive(Debug, Clone)]
pub struct Batches {
    /// One batch for each component.
    pub outputs: Vec<Output>,
    /// Keeps the queue filled.
    pub runner: QueueRunner,
}

/// A queue of the rows of `tensors`.
fn queue(
    graph: &Graph,
    op: &str,
    tensors: &[Output],
    options: &BatchOptions,
    extra: &[(&str, i64)],
) -> Result<Output, GraphError> {
    graph.check()?;
    let mut types: Vec<DType> = Vec::new();
    let mut shapes: Vec<PartialShape> = Vec::new();
    for t in tensors {
        types.push(graph.dtype(*t)?);
        let shape = graph.shape(*t)?;
        shapes.push(match (options.enqueue_many, shape.dims()) {
            (true, Some([_, row @ ..])) => PartialShape::new(row),
            _ => shape,
        });
    }
    let node = graph.add_node(op).name("queue").attr("component_types", types).attr("shapes", Attr::ListShape(shapes));
    let node = node.attr("capacity", options.capacity as i64);
    extra.iter().fold(node, |node, (name, value)| node.attr(name, *value)).output()
}

fn enqueue(graph: &Graph, queue: Output, tensors: &[Output], options: &BatchOptions) -> NodeId {
    let op = if options.enqueue_many { "QueueEnqueueManyV2" } else { "QueueEnqueueV2" };
    graph.add_node(op).name("enqueue").input(queue).inputs(tensors).value().node()
}

fn dequeue(graph: &Graph, queue: Output, tensors: &[Output], options: &BatchOptions) -> Vec<Output> {
    let op = if options.allow_smaller_final_batch { "QueueDequeueUpToV2" } else { "QueueDequeueManyV2" };
    let n = graph.constant(Tensor::scalar(i32::try_from(options.size).unwrap_or(i32::MAX)));
    let types: Vec<DType> = tensors.iter().map(|t| graph.value(*t).dtype()).collect();
    let first = graph.add_node(op).name("dequeue").input(queue).input(n).attr("component_types", types).value();
    (0..tensors.len() as u32).map(|port| first.port(port).output()).collect()
}

/// Batches of `tensors`, in the order in which they are produced (with one thread).
///
/// # Errors
/// A tensor's shape is not known (with `dynamic_pad`: its rank).
pub fn batch(graph: &Graph, tensors: &[Output], options: &BatchOptions) -> Result<Batches, GraphError> {
    let sources = vec![tensors; options.n_threads.max(1)];
    batch_join(graph, &sources, options)
}

/// Batches of what several producers produce, a thread for each.
///
/// # Errors
/// As [`batch`]; all must produce the same number of tensors of the same types.
pub fn batch_join(graph: &Graph, sources: &[&[Output]], options: &BatchOptions) -> Result<Batches, GraphError> {
    let op = if options.dynamic_pad { "PaddingFIFOQueueV2" } else { "FIFOQueueV2" };
    join(&graph.scope("batch"), op, sources, options, &[])
}

/// Batches of rows drawn at random from those that wait, of which `min_after_dequeue` always stay.
///
/// # Errors
/// As [`batch`].
pub fn shuffle_batch(
    graph: &Graph,
    tensors: &[Output],
    options: &BatchOptions,
    min_after_dequeue: usize,
    seeds: (i64, i64),
) -> Result<Batches, GraphError> {
    let sources = vec![tensors; options.n_threads.max(1)];
    let extra = [("min_after_dequeue", min_after_dequeue as i64), ("seed", seeds.0), ("seed2", seeds.1)];
    join(&graph.scope("shuffle_batch"), "RandomShuffleQueueV2", &sources, options, &extra)
}

fn join(
    graph: &Graph,
    op: &str,
    sources: &[&[Output]],
    options: &BatchOptions,
    extra: &[(&str, i64)],
) -> Result<Batches, GraphError> {
    let first = sources.first().copied().unwrap_or_default();
    let queue = queue(graph, op, first, options, extra)?;
    let enqueues = sources.iter().map(|s| enqueue(graph, queue, s, options)).collect();
    let outputs = dequeue(graph, queue, first, options);
    Ok(Batches { outputs, runner: QueueRunner::new(graph, &[queue], enqueues)? })
}

/// Batches of sequences of like length: one queue for each bucket, its rows padded; a row goes to the first bucket whose
/// boundary its length is below, the last bucket takes the rest. Each queue gives its batches to one that is
/// common to all. Gives the runners of all of them, and with the batches the lengths of their rows, which come first.
///
/// # Errors
/// As [`batch`]; `length` is an int32 scalar.
pub fn bucket_by_sequence_length(
    graph: &Graph,
    length: impl Into<Output>,
    tensors: &[Output],
    boundaries: &[i32],
    options: &BatchOptions,
) -> Result<(Vec<Output>, Vec<QueueRunner>), GraphError> {
    let graph = graph.scope("bucket");
    let all: Vec<Output> = std::iter::once(length.into()).chain(tensors.iter().copied()).collect();
    let types: Vec<DType> = all.iter().map(|t| graph.value(*t).dtype()).collect();
    let (mut queues, mut enqueues) = (Vec::new(), Vec::new());
    let mut up = Vec::new();
    for _ in 0..=boundaries.len() {
        queues.push(queue(&graph, "PaddingFIFOQueueV2", &all, options, &[])?);
    }
    // The batches' shapes differ from bucket to bucket, so that the common queue knows none.
    let top = graph.add_node("FIFOQueueV2").name("batches").attr("component_types", types.clone());
    let top = top.attr("capacity", (boundaries.len() as i64 + 1) * 2).output()?;
    let bounds = graph.ints(boundaries).output();
    for (i, bucket) in queues.iter().enumerate() {
        enqueues.push(into_bucket(&graph, *bucket, i, bounds, &all));
        let out = dequeue(&graph, *bucket, &all, options);
        up.push(graph.add_node("QueueEnqueueV2").name("enqueue_batch").input(top).inputs(&out).value().node());
    }
    let step = graph.group("enqueue_row", &enqueues);
    let runners = vec![QueueRunner::new(&graph, &[top], up)?, QueueRunner::new(&graph, &queues, vec![step])?];
    let first = graph.add_node("QueueDequeueV2").name("take").input(top).attr("component_types", types).value();
    graph.check()?;
    Ok(((0..all.len() as u32).map(|port| first.port(port).output()).collect(), runners))
}

/// Puts the row into bucket `i` where it belongs there, by as many rows of it as there are bounds that agree: 1 or 0.
fn into_bucket(graph: &Graph, bucket: Output, i: usize, bounds: Output, row: &[Output]) -> NodeId {
    // The number of bounds that the length is not below is the bucket's number.
    let number = graph.value(row[0]).greater_equal(bounds).cast(DType::I32).sum([0]);
    let count = number.equal(i as f64).cast(DType::I32);
    let int = |value: i32| graph.constant(Tensor::scalar(value));
    let mut parts = Vec::new();
    for t in row {
        // Zero rows or one: enqueuing none does nothing.
        let batch = graph.value(*t).expand_dims(0);
        let rows = graph.add_node("Range").input(int(0)).input(count).input(int(1)).value();
        parts.push(graph.add_node("GatherV2").input(batch).input(rows).input(int(0)).value());
    }
    graph.add_node("QueueEnqueueManyV2").name("enqueue").input(bucket).inputs(&parts).value().node()
}
