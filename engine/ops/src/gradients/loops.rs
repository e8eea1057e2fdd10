//! Through a loop as a whole: its gradients are computed by a second loop, which goes back over the iterations.
//!
//! Each variable of the loop that a gradient can come through has a variable there, which begins with the gradient of
//! the loop's result (zeros where nobody uses it) and is, from one iteration to the next, the gradient of what the body
//! was given from that of what it made. Values from outside that do not change have one too, which adds up what the
//! iterations give.

use rustc_hash::{FxHashMap, FxHashSet};

use super::back_loop::{BackLoop, BackVar};
use super::error::GradientError;
use super::place::{GradientLocation, variable};
use super::rule::{GRADIENT_TABLES, GradientSpec, Rule};
use super::walk::{Walk, is_trainable};
use engine_core::dtype::DType;
use engine_core::graph::{ContextId, GraphError, LoopVar, NodeId, Output};

#[linkme::distributed_slice(GRADIENT_TABLES)]
static LOOPS: &[GradientSpec] = &[
    ("Enter", Rule::Loop),
    ("Exit", Rule::Loop),
    ("NextIteration", Rule::Loop),
    ("RefEnter", Rule::Loop),
    ("RefExit", Rule::Loop),
    ("RefNextIteration", Rule::Loop),
    ("LoopCond", Rule::Zero),
    ("ControlTrigger", Rule::Zero),
];

/// A variable of the forward loop and the one that carries its gradient.
struct Pair {
    forward: LoopVar,
    switch: NodeId,
    back: BackVar,
}

impl Walk<'_> {
    /// The gradients of what enters a loop, from those of its exits.
    pub(super) fn through_loop(
        &self,
        place: &GradientLocation,
        context: ContextId,
        of_exits: &FxHashMap<NodeId, Output>,
    ) -> Result<Vec<(Output, Output)>, GradientError> {
        let Some(of) = self.scope.nodes().while_context(context).cloned() else { return Ok(Vec::new()) };
        let is_on_the_way = |id: &NodeId| -> Result<bool, GraphError> {
            let dtype = self.scope.dtype((*id).into())?;
            // Of all handles those of variables stand for values.
            let is_value = dtype != DType::Resource || variable(self.scope, (*id).into()).is_some();
            Ok(self.between.contains(id) && is_trainable(dtype) && is_value)
        };
        let back = std::sync::Arc::new(BackLoop::begin(
            self.scope,
            &place.graph,
            (place.back.as_ref(), &place.mirrors),
            context,
            &of.vars,
        )?);
        let mut pairs = Vec::new();
        for var in &of.vars {
            let (true, Some(switch)) = (is_on_the_way(&var.merge)?, var.switch) else { continue };
            let result = result_of(self, var, switch)?;
            let grads = self.exits.get(&switch).into_iter().flatten().filter_map(|exit| of_exits.get(exit)).copied();
            let begin = match grads.collect::<Vec<_>>().as_slice() {
                [] => place.zeros(result).try_output()?,
                [one] => *one,
                many => place.graph.add_node("AddN").inputs(many).output()?,
            };
            let back = back.variable("b_exit", begin, var.merge.into())?;
            pairs.push(Pair { forward: *var, switch, back });
        }
        let mut sums = Vec::new();
        for enter in &of.invariants {
            if is_on_the_way(enter)? {
                let outside = self.scope.node(*enter)?.inputs[0];
                let begin = place.zeros(outside).try_output()?;
                let like = begin;
                sums.push((*enter, outside, back.variable("b_acc", begin, like)?));
            }
        }
        body(self, place, &back, &pairs, &sums)?;
        back.finish(&place.mirrors)?;
        let of_vars = pairs.iter().map(|pair| Ok((self.scope.node(pair.forward.enter)?.inputs[0], pair.back.exit)));
        let of_invariants = sums.iter().map(|(_, outside, sum)| Ok((*outside, sum.exit)));
        of_vars.chain(of_invariants).collect()
    }
}

/// What a variable is after the loop, for its shape; where nobody uses it, the graph may not have it.
fn result_of(walk: &Walk<'_>, var: &LoopVar, switch: NodeId) -> Result<Output, GradientError> {
    match var.exit {
        Some(exit) => Ok(exit.into()),
        None => Ok(walk.scope.add_node("Exit").input(switch).output()?),
    }
}

/// The body of the loop that goes back: the gradients of the body of the loop.
fn body(
    walk: &Walk<'_>,
    place: &GradientLocation,
    back: &std::sync::Arc<BackLoop>,
    pairs: &[Pair],
    sums: &[(NodeId, Output, BackVar)],
) -> Result<(), GradientError> {
    let inside = place.in_loop(walk.scope, back.clone());
    let mut seeds = Vec::with_capacity(pairs.len());
    let mut wanted: FxHashSet<Output> = FxHashSet::default();
    for pair in pairs {
        let next = pair.forward.next.map(|next| walk.scope.node(next)).transpose()?;
        if let Some(next) = next {
            seeds.push((next.inputs[0], pair.back.value));
        }
        wanted.insert(Output { node: pair.switch, port: 1 });
    }
    for push in walk.pushes_in(back.forward) {
        let mirror = place.mirrors.lock().stacks.get(&push.stack).copied();
        if let Some(mirror) = mirror {
            seeds.push((push.value, back.pop(mirror, push.value)?));
        }
    }
    wanted.extend(sums.iter().map(|(enter, ..)| Output::from(*enter)));
    let grads = walk.region(&inside, &seeds, &wanted)?;
    for pair in pairs {
        let given = Output { node: pair.switch, port: 1 };
        let grad = match grads.get(&given) {
            Some(grad) => *grad,
            None => inside.zeros(given).try_output()?,
        };
        back.set_next(pair.back.merge, grad)?;
    }
    for (enter, _, sum) in sums {
        let next = match grads.get(&Output::from(*enter)) {
            Some(grad) => inside.graph.add_node("AddN").name("b_acc").inputs(&[sum.value, *grad]).output()?,
            None => sum.value,
        };
        back.set_next(sum.merge, next)?;
    }
    Ok(())
}
