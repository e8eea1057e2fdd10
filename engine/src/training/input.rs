//! Where batches come from: fed by the step's caller, or taken from a queue that a thread of its own fills ahead (white
//! paper section 4.6: "input data can be prefetched from disk files while a previous batch of data is still being
//! processed").

use crate::models::Network;
use engine_core::dtype::DType;
use engine_core::graph::{Attr, Graph, GraphError, NodeId, Output};
use engine_core::shape::PartialShape;

/// Where batches come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InputMode {
    /// Each step is fed its batch.
    #[default]
    Fed,
    /// Steps take batches from a FIFO queue.
    Queue {
        /// How many batches it holds.
        capacity: usize,
    },
    /// Each tower has a queue of its own, on its device, that whoever is there fills ([`tower_queue`]).
    QueuePerTower {
        /// How many batches each holds.
        capacity: usize,
    },
}

/// When the tower's step began on its device, and when it had its batch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Began {
    /// Seconds since 1970.
    pub at: Output,
    /// The node that gives the batch.
    pub batch: NodeId,
    /// What it is taken from.
    pub queue: Output,
}

/// The side of a queue that is filled.
#[derive(Debug, Clone)]
pub struct Enqueue {
    /// What a batch is fed to.
    pub feeds: Vec<Output>,
    /// Puts it into the queue; waits while the queue is full.
    pub op: NodeId,
    /// Ends the queue: steps take what is left, then fail.
    pub close: NodeId,
    /// How many batches the queue holds, an int32 scalar.
    pub size: Output,
}

/// Where a tower's input begins: the number of batches that the tower took before, which whoever fills its queue waits for.
#[derive(Debug, Clone)]
pub struct Position {
    /// What the number is fed to, an int64 scalar.
    pub feed: Output,
    /// Sends it.
    pub send: NodeId,
    /// Waits for it and takes it, an int64 scalar.
    pub received: Output,
}

/// The position of a tower's input, by the tower's number, on the device of `g`. Graphs of other sessions on the same device mean
/// the same one by it.
///
/// # Errors
/// The nodes do not fit.
pub fn tower_position(g: &Graph, tower: usize) -> Result<Position, GraphError> {
    let scope = g.at_scope("").scope(&format!("input{tower}/position"));
    let types = Attr::ListType(vec![DType::I64]);
    let queue = scope.add_node("FIFOQueueV2").name("queue").attr("component_types", types.clone());
    let shared_name = format!("input{tower}/position");
    let queue = queue.attr("capacity", 1i64).attr("shared_name", shared_name.as_str()).value();
    let feed = scope.placeholder("first", DType::I64, PartialShape::scalar()).output();
    let send = scope.add_node("QueueEnqueueV2").name("send").input(queue).input(feed).value().node();
    let received = scope.add_node("QueueDequeueV2").name("received").input(queue).attr("component_types", types);
    Ok(Position { feed, send, received: received.value().try_output()? })
}

/// What towers take their batches from.
pub(super) enum Source {
    Fed,
    Queue { queue: Output, at: Graph, enqueue: Enqueue },
    QueuePerTower { capacity: usize, enqueues: Vec<Enqueue>, positions: Vec<Position> },
}

/// The queue of a tower, by its number, on the device of `g`, and the side that fills it. Graphs of other sessions on the same device
/// mean the same queue by it.
///
/// # Errors
/// The nodes do not fit.
pub fn tower_queue(
    g: &Graph,
    network: &dyn Network,
    tower: usize,
    capacity: usize,
) -> Result<(Output, Enqueue), GraphError> {
    let scope = g.at_scope("").scope(&format!("input{tower}"));
    let queue = queue(&scope, network, &format!("input{tower}/queue"), capacity);
    g.check()?;
    Ok(queue)
}

fn queue(scope: &Graph, network: &dyn Network, shared_name: &str, capacity: usize) -> (Output, Enqueue) {
    let types: Vec<DType> = network.inputs().iter().map(|input| input.dtype).collect();
    let queue = scope.add_node("FIFOQueueV2").name("queue").attr("component_types", Attr::ListType(types));
    let queue = queue.attr("capacity", capacity as i64).attr("shared_name", shared_name).value().output();
    let feeds = placeholders(scope, network);
    let op = scope.add_node("QueueEnqueueV2").name("enqueue").input(queue).inputs(&feeds).value().node();
    let close = scope.add_node("QueueCloseV2").name("close").input(queue).value().node();
    let size = scope.add_node("QueueSizeV2").name("size").input(queue).value().output();
    (queue, Enqueue { feeds, op, close, size })
}

impl Source {
    pub fn new(g: &Graph, network: &dyn Network, mode: InputMode) -> Source {
        match mode {
            InputMode::Fed => Source::Fed,
            InputMode::Queue { capacity } => {
                let (queue, enqueue) = queue(&g.scope("input"), network, "", capacity);
                Source::Queue { queue, at: g.clone(), enqueue }
            }
            InputMode::QueuePerTower { capacity } => {
                Source::QueuePerTower { capacity, enqueues: Vec::new(), positions: Vec::new() }
            }
        }
    }

    /// A batch for the next tower: placeholders, or what the queue gives; of a queue of its own, when its step began, too.
    pub fn batch(&mut self, g: &Graph, network: &dyn Network) -> Result<(Vec<Output>, Option<Began>), GraphError> {
        let mut began = None;
        let (queue, at) = match self {
            Source::Fed => return Ok((placeholders(g, network), None)),
            Source::Queue { queue, at, .. } => (*queue, at.clone()),
            Source::QueuePerTower { capacity, enqueues, positions } => {
                let (queue, enqueue) = tower_queue(g, network, enqueues.len(), *capacity)?;
                positions.push(tower_position(g, enqueues.len())?);
                enqueues.push(enqueue);
                began = Some(g.add_node("Timestamp").name("began").value().output());
                (queue, g.clone())
            }
        };
        let inputs = network.inputs();
        let types: Vec<DType> = inputs.iter().map(|input| input.dtype).collect();
        // Named as the tower's own, on the device that has the queue.
        let dequeue = at.at_scope(g.scope_name());
        let dequeue = dequeue.add_node("QueueDequeueV2").name("dequeue").input(queue);
        let dequeue = dequeue.after(began.map(|at: Output| at.node).as_slice());
        let batch = dequeue.attr("component_types", Attr::ListType(types)).value();
        // A queue without declared shapes says nothing about its values: a placeholder that has a default declares them.
        let ports = inputs.iter().enumerate().map(|(port, input)| {
            let node = g.add_node("PlaceholderWithDefault").name(input.name).input(batch.port(port as u32));
            node.attr("shape", input.shape.clone()).value().output()
        });
        let began = began.map(|at| Began { at, batch: batch.node(), queue });
        Ok((ports.collect(), began))
    }

    pub fn into_ends(self) -> (Vec<Enqueue>, Vec<Position>) {
        match self {
            Source::Fed => (Vec::new(), Vec::new()),
            Source::Queue { enqueue, .. } => (vec![enqueue], Vec::new()),
            Source::QueuePerTower { enqueues, positions, .. } => (enqueues, positions),
        }
    }
}

pub(super) fn placeholders(g: &Graph, network: &dyn Network) -> Vec<Output> {
    network.inputs().into_iter().map(|input| g.placeholder(input.name, input.dtype, input.shape).output()).collect()
}
