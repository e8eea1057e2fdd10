//! Queues: rows of tensors between steps (white paper, section 4.6).
//!
//! The first versions of the ops, whose handles TensorFlow passes as references to strings, take resources here too.

use super::shapes::{Inferred, none, scalar};
use engine_core::dtype::DType;
use engine_core::ops::{Attr, InferContext, OP_TABLES, OpSpec, stateful};
use engine_core::shape::PartialShape;

const FIFO: &str = "component_types: list(type); shapes: list(shape) = []; capacity: int = -1; \
                    container: string = ''; shared_name: string = ''";
const SHUFFLE: &str = "component_types: list(type); shapes: list(shape) = []; capacity: int = -1; \
                       min_after_dequeue: int = 0; seed: int = 0; seed2: int = 0; container: string = ''; \
                       shared_name: string = ''";
const PRIORITY: &str = "component_types: list(type) = []; shapes: list(shape); capacity: int = -1; \
                        container: string = ''; shared_name: string = ''";
const MAKE: &str = "-> handle: resource";
const ENQUEUE: &str = "handle: resource, components: Tcomponents ->";
const IN: &str = "Tcomponents: list(type); timeout_ms: int = -1";
const DEQUEUE: &str = "handle: resource -> components: component_types";
const DEQUEUE_N: &str = "handle: resource, n: int32 -> components: component_types";
const OUT: &str = "component_types: list(type); timeout_ms: int = -1";
const CLOSE: &str = "cancel_pending_enqueues: bool = false";

#[linkme::distributed_slice(OP_TABLES)]
static QUEUES: &[OpSpec] = &[
    stateful("FIFOQueue", MAKE, FIFO, scalar),
    stateful("FIFOQueueV2", MAKE, FIFO, scalar),
    stateful("PaddingFIFOQueue", MAKE, FIFO, scalar),
    stateful("PaddingFIFOQueueV2", MAKE, FIFO, scalar),
    stateful("RandomShuffleQueue", MAKE, SHUFFLE, scalar),
    stateful("RandomShuffleQueueV2", MAKE, SHUFFLE, scalar),
    stateful("PriorityQueue", MAKE, PRIORITY, scalar),
    stateful("PriorityQueueV2", MAKE, PRIORITY, scalar),
    stateful("QueueEnqueue", ENQUEUE, IN, none),
    stateful("QueueEnqueueV2", ENQUEUE, IN, none),
    stateful("QueueEnqueueMany", ENQUEUE, IN, none),
    stateful("QueueEnqueueManyV2", ENQUEUE, IN, none),
    stateful("QueueDequeue", DEQUEUE, OUT, one),
    stateful("QueueDequeueV2", DEQUEUE, OUT, one),
    stateful("QueueDequeueMany", DEQUEUE_N, OUT, exactly),
    stateful("QueueDequeueManyV2", DEQUEUE_N, OUT, exactly),
    stateful("QueueDequeueUpTo", DEQUEUE_N, OUT, up_to),
    stateful("QueueDequeueUpToV2", DEQUEUE_N, OUT, up_to),
    stateful("QueueClose", "handle: resource ->", CLOSE, none),
    stateful("QueueCloseV2", "handle: resource ->", CLOSE, none),
    stateful("QueueIsClosed", "handle: resource -> is_closed: bool", "", scalar),
    stateful("QueueIsClosedV2", "handle: resource -> is_closed: bool", "", scalar),
    stateful("QueueSize", "handle: resource -> size: int32", "", scalar),
    stateful("QueueSizeV2", "handle: resource -> size: int32", "", scalar),
];

/// The components' shapes, where the handle comes straight from the queue's node.
fn component_shapes(c: &InferContext<'_>) -> Vec<PartialShape> {
    let Some(Attr::ListShape(shapes)) = c.source_attr(0, "shapes") else { return Vec::new() };
    let mut shapes = shapes.clone();
    // The priority comes before what the attributes list.
    if c.source_op(0).is_some_and(|op| matches!(op, "PriorityQueue" | "PriorityQueueV2")) && !shapes.is_empty() {
        shapes.insert(0, PartialShape::scalar());
    }
    shapes
}

fn one(c: &mut InferContext<'_>) -> Inferred {
    let shapes = component_shapes(c);
    for (i, shape) in shapes.into_iter().enumerate().take(c.n_outputs()) {
        c.set(i, shape);
    }
    Ok(())
}

fn batches(c: &mut InferContext<'_>, n: Option<usize>) -> Inferred {
    for (i, shape) in component_shapes(c).into_iter().enumerate().take(c.n_outputs()) {
        if let Some(dims) = shape.dims() {
            let mut batch = vec![n];
            batch.extend_from_slice(dims);
            c.set(i, PartialShape::new(&batch));
        }
    }
    Ok(())
}

fn exactly(c: &mut InferContext<'_>) -> Inferred {
    let n = c.value(1).filter(|n| n.dtype() == DType::I32).and_then(|n| n.item::<i32>().ok());
    batches(c, n.and_then(|n| usize::try_from(n).ok()))
}

fn up_to(c: &mut InferContext<'_>) -> Inferred {
    batches(c, None)
}
