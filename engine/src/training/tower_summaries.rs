//! Summaries of the towers of a cluster, in event files that their tasks write: no value passes through the client.

use super::input::Began;
use super::tower::Built;
use crate::layers::Variables;
use crate::slices::IndexedSlices;
use engine_core::dtype::DType;
use engine_core::graph::{Graph, GraphError, NodeId, Output, Value};
use engine_core::shape::PartialShape;
use engine_core::tensor::Tensor;

/// A tower's own summaries. What is fed and run is on its device.
#[derive(Debug, Clone)]
pub struct TowerSummaries {
    /// What the folder of the event file is fed to, a string.
    pub logdir: Output,
    /// Opens a file there.
    pub open: NodeId,
    /// What a serialised `Event` is fed to.
    pub event: Output,
    /// Writes that event.
    pub import: NodeId,
    /// What the number of the step that `scalars` and `histograms` describe is fed to, an int64 scalar.
    pub step: Output,
    /// Run with a step of the tower: writes its loss, its accuracy where it has one, and what it took (seconds, examples per second,
    /// batches left in the queue).
    pub scalars: NodeId,
    /// Run with a step of the tower: writes histograms of its own gradients.
    pub histograms: NodeId,
    /// Ends the file; fails where anything is missing in it.
    pub close: NodeId,
}

/// Writes values of a tower.
struct Writing<'a> {
    g: &'a Graph,
    writer: Value<'a>,
    step: Value<'a>,
}

impl Writing<'_> {
    fn add(&self, op: &str, tag: &str, value: impl Into<Output>) -> NodeId {
        let named = self.g.named_constant(&format!("{tag}/tag"), Tensor::string(tag));
        self.g.add_node(op).name(tag).input(self.writer).input(self.step).input(named).input(value).value().node()
    }
}

/// Adds them for the tower of this number, in the scope and on the device of `g`.
pub(super) fn of_tower(
    g: &Graph,
    tower: usize,
    built: &Built,
    began: &Began,
    variables: &Variables,
) -> Result<TowerSummaries, GraphError> {
    let writer =
        g.add_node("SummaryWriter").name("writer").attr("shared_name", format!("tower{tower}/summaries").as_str());
    let writer = writer.value();
    let logdir = g.placeholder("logdir", DType::String, PartialShape::scalar()).output();
    let open = g.add_node("CreateSummaryFileWriter").name("open").input(writer).input(logdir);
    // There are few, and who looks on wants them at once.
    let open = open.input(g.constant(Tensor::scalar(0i32))).input(g.constant(Tensor::scalar(0i32)));
    let open = open.input(g.constant(Tensor::string(""))).value().node();
    let event = g.placeholder("event", DType::String, PartialShape::scalar()).output();
    let import = g.add_node("ImportEvent").name("import").input(writer).input(event).value().node();
    let step = g.placeholder("step", DType::I64, PartialShape::scalar());
    let writing = Writing { g, writer, step };
    let mut scalars = vec![writing.add("WriteScalarSummary", "loss", built.tower.loss)];
    if let Some(accuracy) = built.tower.accuracy {
        scalars.push(writing.add("WriteScalarSummary", "accuracy", accuracy));
    }
    for (tag, value) in times(g, built, began, variables)? {
        scalars.push(writing.add("WriteScalarSummary", tag, value));
    }
    let trained = variables.all().iter().filter(|v| v.is_trained);
    let mut histograms = Vec::new();
    for (v, gradient) in trained.zip(&built.gradients) {
        histograms.push(writing.add("WriteHistogramSummary", &format!("{}/gradient", v.name), *gradient));
    }
    Ok(TowerSummaries {
        logdir,
        open,
        event,
        import,
        step: step.output(),
        scalars: g.group("scalars", &scalars),
        histograms: g.group("histograms", &histograms),
        close: g.add_node("CloseSummaryWriter").name("close").input(writer).value().node(),
    })
}

/// What the step took, by tag.
fn times<'g>(
    g: &'g Graph,
    built: &Built,
    began: &Began,
    variables: &Variables,
) -> Result<[(&'static str, Value<'g>); 4], GraphError> {
    let now = |name: &str, after: &[NodeId]| g.add_node("Timestamp").name(name).after(after).value();
    let mut ends = vec![built.tower.loss.node];
    for (var, gradient) in variables.trained().into_iter().zip(&built.gradients) {
        // Of slices the whole gradient is made nowhere, and not for this.
        match IndexedSlices::of(g, *gradient, var)? {
            Some(slices) => ends.extend([slices.values.node, slices.indices.node]),
            None => ends.push(gradient.node),
        }
    }
    let waited = now("has_batch", &[began.batch]) - began.at;
    let took = now("has_gradients", &ends) - began.at;
    let queued = g.add_node("QueueSizeV2").name("queued").input(began.queue).after(&[began.batch]).value();
    let first = g.constant(Tensor::scalar(0i32));
    let shape = g.value(built.feeds[0]).shape_tensor();
    let n = g.add_node("GatherV2").input(shape).input(first).input(first).value().cast(DType::F64);
    Ok([
        ("seconds/input", waited),
        ("seconds/gradients", took),
        ("examples_per_second", n / took),
        ("input/queued", queued),
    ])
}
