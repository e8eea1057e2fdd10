//! Synchronous training with backup workers: there are more towers than gradients a step needs, and those that come first count
//! (Abadi et al. 2016, section 4.4; Chen et al. 2016, "Revisiting Distributed Synchronous SGD").
//!
//! Each tower has a step of its own that gives its gradients to accumulators where the variables are; the training step takes their
//! mean when there are enough. A gradient carries the number of the training step whose variables it was computed with, and accumulators
//! drop those of steps that are over: a tower that is late delays nobody, and spoils nothing.

use super::options::TrainingOptions;
use super::tower::{Built, Pushes, Updates, clipped};
use crate::layers::Variables;
use crate::optimizer::Slots;
use crate::slices::IndexedSlices;
use engine_core::dtype::DType;
use engine_core::graph::{Graph, GraphError, NodeId, Output, Var};
use engine_core::shape::PartialShape;
use engine_core::tensor::Tensor;

/// What a value is accumulated in, where the variables are.
struct Accumulator {
    handle: Output,
    dtype: DType,
}

impl Accumulator {
    fn new(g: &Graph, dtype: DType, shape: PartialShape, shared_name: &str) -> Accumulator {
        let node = g.add_node("ResourceConditionalAccumulator").name("accumulator").attr("dtype", dtype);
        let node = node.attr("shape", shape).attr("reduction_type", "MEAN");
        Accumulator { handle: node.attr("shared_name", shared_name).value().output(), dtype }
    }

    fn give(&self, g: &Graph, done: Output, value: Output) -> NodeId {
        let node = g.add_node("ResourceAccumulatorApplyGradient").name("give").input(self.handle).input(done);
        node.input(value).attr("dtype", self.dtype).value().node()
    }

    fn take(&self, g: &Graph, n: Output) -> Output {
        let node = g.add_node("ResourceAccumulatorTakeGradient").name("take").input(self.handle).input(n);
        node.attr("dtype", self.dtype).value().output()
    }

    fn begin(&self, g: &Graph, done: Output) -> NodeId {
        g.add_node("ResourceAccumulatorSetGlobalStep").name("begin").input(self.handle).input(done).value().node()
    }
}

/// What towers give: a value of each, and where it is accumulated.
struct TowerValues {
    accumulator: Accumulator,
    of_towers: Vec<Output>,
}

/// What all towers give: the gradients of the variables, loss, and accuracy where there is one.
fn tower_values(
    home: &Graph,
    g: &Graph,
    variables: &Variables,
    built: &[Built],
) -> Result<Vec<TowerValues>, GraphError> {
    let mut all = Vec::new();
    let mut add = |name: &str, shape: PartialShape, of_towers: Vec<Output>| {
        let Some(first) = of_towers.first() else { return };
        let dtype = home.value(*first).dtype();
        let accumulator = Accumulator::new(g, dtype, shape, &format!("{}/{name}", g.scope_name()));
        all.push(TowerValues { accumulator, of_towers });
    };
    for (i, var) in variables.trained().into_iter().enumerate() {
        let of = |tower: &Built| whole(g, tower.gradients[i], var);
        add(&format!("gradient{i}"), g.shape(var.value)?, built.iter().map(of).collect::<Result<_, _>>()?);
    }
    add("loss", PartialShape::scalar(), built.iter().map(|built| built.tower.loss).collect());
    add("accuracy", PartialShape::scalar(), built.iter().filter_map(|built| built.tower.accuracy).collect());
    Ok(all)
}

/// A gradient as accumulators want it. Slices cross as such, and become a whole gradient only where the variable is.
fn whole(g: &Graph, gradient: Output, var: Var) -> Result<Output, GraphError> {
    match IndexedSlices::of(g, gradient, var)? {
        Some(slices) => slices.to_dense(g).try_output(),
        None => Ok(gradient),
    }
}

/// The training step, which takes the first gradients of all towers but `spare`, and the towers' own.
pub(super) fn updates(
    home: &Graph,
    variables: &Variables,
    built: &[Built],
    rate: Output,
    options: &TrainingOptions,
    spare: usize,
) -> Result<Updates, GraphError> {
    let g = home.scope("backup");
    let n_required = built.len().saturating_sub(spare).max(1);
    let done = g.placeholder("done", DType::I64, PartialShape::scalar()).output();
    let values = tower_values(home, &g, variables, built)?;
    let mut ops = Vec::new();
    for (i, tower) in built.iter().enumerate() {
        let scope = g.scope(&format!("tower{i}"));
        let gives = values.iter().map(|value| value.accumulator.give(&scope, done, value.of_towers[i]));
        let all: Vec<NodeId> = gives.chain(tower.tower.updates.iter().copied()).collect();
        ops.push(scope.group("gradients", &all));
    }
    let begins: Vec<NodeId> = values.iter().map(|value| value.accumulator.begin(&g, done)).collect();
    let n = g.named_constant("required", Tensor::scalar(i32::try_from(n_required).unwrap_or(i32::MAX))).output();
    let taken: Vec<Output> = values.iter().map(|value| value.accumulator.take(&g, n)).collect();
    let trained = variables.trained();
    let (means, judged) = taken.split_at(trained.len());
    let gradients = clipped(home, options, &trained, means)?;
    let training = options.optimizer.apply(home, &trained, &gradients, rate, &mut Slots::default())?;
    // What nobody fetches is taken, too: else it would be there in the next step.
    let all: Vec<NodeId> = judged.iter().map(|output| output.node).chain([training.op]).collect();
    let begin = g.group("begin", &begins);
    Ok(Updates {
        train_ops: vec![home.group("train_step", &all)],
        losses: vec![judged[0]],
        accuracy: judged.get(1).copied(),
        gradients,
        init: training.init,
        alike: None,
        pushes: Some(Pushes { done, begin, ops, n_required }),
    })
}
