//! Back over the nodes of one region: what lies outside of loops, or the body of one loop.
//!
//! A loop inside of the region counts as one node: its inputs are those of its `Enter`s, its outputs its `Exit`s.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::back_loop::stack_of;
use super::context::GradientContext;
use super::error::GradientError;
use super::place::GradientLocation;
use super::rule::rule;
use engine_core::dtype::DType;
use engine_core::graph::{ContextId, Graph, Node, NodeId, Nodes, Output};
use engine_core::ops::OpKind as K;

/// What all regions of one call of [`super::gradients`] share.
pub(super) struct Walk<'g> {
    /// Adds to the scope of the gradients, outside of all loops.
    pub scope: &'g Graph,
    /// The nodes on paths from `xs` to `ys`.
    pub between: FxHashSet<NodeId>,
    /// The exits of each loop variable, by its `Switch`.
    pub exits: FxHashMap<NodeId, Vec<NodeId>>,
    /// What goes from one loop to another by way of stacks.
    stacks: Stacks,
}

/// The uses of stacks among the nodes between `xs` and `ys`.
#[derive(Default)]
pub(super) struct Stacks {
    pub pushes: Vec<StackUse>,
    pub pops: Vec<StackUse>,
}

/// A push or a pop.
#[derive(Clone, Copy)]
pub(super) struct StackUse {
    pub stack: NodeId,
    /// The output of the push or the pop.
    pub value: Output,
    /// The loop that it is in.
    frame: ContextId,
}

impl Stacks {
    /// All uses in a graph.
    pub fn of(nodes: &Nodes) -> Stacks {
        let mut stacks = Stacks::default();
        for node in nodes.iter().filter(|n| matches!(n.op.kind, K::StackPush | K::StackPop)) {
            let Some(stack) = stack_of(nodes, node.inputs[0]) else { continue };
            let one = StackUse { stack, value: node.id.into(), frame: nodes.frame_of(nodes.context_of(node.id)) };
            if node.op.kind == K::StackPush { &mut stacks.pushes } else { &mut stacks.pops }.push(one);
        }
        stacks
    }

    /// What was pushed to the stack that a node pops from.
    pub fn pushed_to(&self, pop: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let stack = self.pops.iter().find(|p| p.value.node == pop).map(|p| p.stack);
        self.pushes.iter().filter(move |push| Some(push.stack) == stack).map(|push| push.value.node)
    }
}

/// What a region is made of.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Unit {
    Node(NodeId),
    /// A loop, by its context.
    Loop(ContextId),
}

/// Gradients on their way back, by the output that they are of.
type Arrived = FxHashMap<Output, Vec<Output>>;

/// Whether values of the type can have gradients: variables' handles stand for their values, lists for their elements.
pub(super) fn is_trainable(dtype: DType) -> bool {
    dtype.has_gradient() || matches!(dtype, DType::Resource | DType::Variant)
}

impl<'g> Walk<'g> {
    pub fn new(scope: &'g Graph, between: FxHashSet<NodeId>) -> Walk<'g> {
        let mut exits: FxHashMap<NodeId, Vec<NodeId>> = FxHashMap::default();
        let nodes = scope.nodes();
        let mut sorted: Vec<&NodeId> = between.iter().collect();
        sorted.sort_unstable();
        for node in sorted.into_iter().filter_map(|id| nodes.get(*id)) {
            if node.op.kind == K::Exit {
                exits.entry(node.inputs[0].node).or_default().push(node.id);
            }
        }
        let has_pops = between.iter().any(|id| nodes.get(*id).is_some_and(|n| n.op.kind == K::StackPop));
        let mut stacks = if has_pops { Stacks::of(&nodes) } else { Stacks::default() };
        stacks.pushes.retain(|push| between.contains(&push.value.node));
        stacks.pops.retain(|pop| between.contains(&pop.value.node));
        drop(nodes);
        Walk { scope, between, exits, stacks }
    }

    /// The pushes in the body of a loop, those of loops in it aside.
    pub fn pushes_in(&self, frame: ContextId) -> impl Iterator<Item = &StackUse> {
        self.stacks.pushes.iter().filter(move |push| push.frame == frame)
    }

    /// Whether gradients of what a loop (or one in it) pushed wait on stacks.
    fn has_mirrored(&self, place: &GradientLocation, context: ContextId) -> bool {
        let nodes = self.scope.nodes();
        let mirrors = place.mirrors.lock();
        let mut pushes = self.stacks.pushes.iter().filter(|push| mirrors.stacks.contains_key(&push.stack));
        pushes.any(|push| is_within(&nodes, push.frame, context))
    }

    /// Goes back from the seeds (outputs, and their gradients) and gives the gradients of the wanted outputs that any
    /// gradient arrives at.
    pub fn region(
        &self,
        place: &GradientLocation,
        seeds: &[(Output, Output)],
        wanted: &FxHashSet<Output>,
    ) -> Result<FxHashMap<Output, Output>, GradientError> {
        let order = self.order(place.frame, seeds);
        let mut arrived = Arrived::default();
        for (output, grad) in seeds {
            arrived.entry(*output).or_default().push(*grad);
        }
        let mut of_wanted = FxHashMap::default();
        for unit in order.into_iter().rev() {
            let outputs = self.outputs(unit)?;
            let mut sums = Vec::with_capacity(outputs.len());
            for output in outputs {
                let sum = self.sum(place, output, &arrived.remove(&output).unwrap_or_default())?;
                if let Some(sum) = sum.filter(|_| wanted.contains(&output)) {
                    of_wanted.insert(output, sum);
                }
                sums.push((output, sum));
            }
            for (input, grad) in self.through(place, unit, &sums)? {
                let is_of_use = self.between.contains(&input.node) || wanted.contains(&input);
                if is_of_use && is_trainable(self.scope.dtype(input)?) {
                    arrived.entry(input).or_default().push(grad);
                }
            }
        }
        Ok(of_wanted)
    }

    /// The gradients of a unit's inputs from those of its outputs.
    fn through(
        &self,
        place: &GradientLocation,
        unit: Unit,
        sums: &[(Output, Option<Output>)],
    ) -> Result<Vec<(Output, Output)>, GradientError> {
        let is_reached = match unit {
            Unit::Loop(context) if self.has_mirrored(place, context) => true,
            _ => sums.iter().any(|(_, sum)| sum.is_some()),
        };
        if !is_reached {
            return Ok(Vec::new());
        }
        let id = match unit {
            Unit::Node(id) if self.between.contains(&id) => id,
            Unit::Node(_) => return Ok(Vec::new()),
            Unit::Loop(context) => {
                let of_exits = sums.iter().filter_map(|(exit, sum)| Some((exit.node, (*sum)?))).collect();
                return self.through_loop(place, context, &of_exits);
            }
        };
        let node = self.scope.node(id)?;
        if node.inputs.is_empty() || is_boundary(&self.scope.nodes(), &node) {
            return Ok(Vec::new());
        }
        let rule = rule(node.op.name);
        let rule = rule.ok_or_else(|| GradientError::NoRule { node: node.name.to_string(), op: node.op.name })?;
        let at = self.place_of(place, &node.name);
        let sums: Vec<Option<Output>> = sums.iter().map(|(_, sum)| *sum).collect();
        let context = GradientContext::new(&at, &node, &sums);
        rule.apply(&context)?;
        Ok(context.finish().collect())
    }

    /// The place where the gradient of a node is added.
    fn place_of(&self, place: &GradientLocation, node: &str) -> GradientLocation {
        place.at_scope(&format!("{}/{node}_grad", self.scope.scope_name()))
    }

    /// One gradient for an output: what arrived, added up.
    fn sum(&self, place: &GradientLocation, of: Output, grads: &[Output]) -> Result<Option<Output>, GradientError> {
        Ok(match grads {
            [] => None,
            [one] => Some(*one),
            many => {
                let node = self.scope.node(of.node)?;
                Some(self.place_of(place, &node.name).graph.add_node("AddN").inputs(many).output()?)
            }
        })
    }

    fn outputs(&self, unit: Unit) -> Result<Vec<Output>, GradientError> {
        match unit {
            Unit::Node(id) => {
                let n_outputs = self.scope.node(id)?.outputs.len() as u32;
                Ok((0..n_outputs).map(|port| Output { node: id, port }).collect())
            }
            Unit::Loop(context) => {
                let nodes = self.scope.nodes();
                let vars = nodes.while_context(context).map(|of| of.vars.clone()).unwrap_or_default();
                let switches = vars.iter().filter_map(|var| var.switch);
                let exits = switches.filter_map(|switch| self.exits.get(&switch)).flatten();
                Ok(exits.map(|exit| Output::from(*exit)).collect())
            }
        }
    }

    /// The region's units that lead to the seeds, each after those that it takes values from.
    fn order(&self, frame: ContextId, seeds: &[(Output, Output)]) -> Vec<Unit> {
        let nodes = self.scope.nodes();
        let mut done: FxHashMap<Unit, bool> = FxHashMap::default();
        let mut order = Vec::new();
        let pushed = self.stacks.pushes.iter().map(|push| push.value.node);
        // What reaches the seeds only by way of stacks counts too, within loops; outside the pops lead to it.
        let pushed = pushed.filter(|_| frame != ContextId::ROOT);
        let ends = pushed.chain(seeds.iter().map(|(o, _)| o.node));
        let mut stack: Vec<Unit> = ends.filter_map(|id| unit_of(&nodes, id, frame)).collect();
        while let Some(unit) = stack.last().copied() {
            match done.get(&unit) {
                None => {
                    done.insert(unit, false);
                    for input in self.inputs(&nodes, unit) {
                        let before = unit_of(&nodes, input.node, frame);
                        stack.extend(before.filter(|unit| !done.contains_key(unit)));
                    }
                }
                Some(false) => {
                    done.insert(unit, true);
                    order.push(unit);
                    stack.pop();
                }
                Some(true) => {
                    stack.pop();
                }
            }
        }
        order
    }

    /// What was pushed, in other loops, to the stacks that a loop pops from.
    fn popped_in(&self, nodes: &Nodes, context: ContextId) -> Vec<Output> {
        let pops = self.stacks.pops.iter().filter(|pop| is_within(nodes, pop.frame, context));
        let pushes = pops.flat_map(|pop| self.stacks.pushes.iter().filter(move |push| push.stack == pop.stack));
        pushes.map(|push| push.value).collect()
    }

    /// What a unit takes from nodes that gradients may go to.
    fn inputs(&self, nodes: &Nodes, unit: Unit) -> Vec<Output> {
        let is_between = |o: &Output| self.between.contains(&o.node);
        let of_node = |id: NodeId| nodes.get(id).map(|node| node.inputs.clone()).unwrap_or_default();
        let inputs: Vec<Output> = match unit {
            Unit::Node(id) => match nodes.get(id) {
                Some(node) if !is_boundary(nodes, node) => node.inputs.clone(),
                _ => Vec::new(),
            },
            Unit::Loop(context) => match nodes.while_context(context) {
                Some(of) => {
                    let enters = of.vars.iter().map(|v| v.enter).chain(of.invariants.iter().copied());
                    enters.flat_map(of_node).chain(self.popped_in(nodes, context)).collect()
                }
                None => Vec::new(),
            },
        };
        inputs.into_iter().filter(is_between).collect()
    }
}

/// Whether the node is where a loop begins: gradients end there and go on with the loop.
fn is_boundary(nodes: &Nodes, node: &Arc<Node>) -> bool {
    match node.op.kind {
        K::Enter => true,
        K::Switch => nodes.get(node.inputs[1].node).is_some_and(|pred| pred.op.kind == K::LoopCond),
        _ => false,
    }
}

/// The unit of the region in `frame` that a node belongs to; `None` where it is outside.
fn unit_of(nodes: &Nodes, id: NodeId, frame: ContextId) -> Option<Unit> {
    let node = nodes.get(id)?;
    let context = match node.op.kind {
        K::Enter => nodes.value_context(id.into()),
        _ => nodes.context_of(id),
    };
    let mut inner = nodes.frame_of(context);
    if inner == frame {
        return Some(Unit::Node(id));
    }
    while inner != ContextId::ROOT {
        let around = nodes.frame_of(nodes.context(inner).parent);
        if around == frame {
            return Some(Unit::Loop(inner));
        }
        inner = around;
    }
    None
}

/// Whether a loop is `outer`, or lies in it.
fn is_within(nodes: &Nodes, mut frame: ContextId, outer: ContextId) -> bool {
    while frame != outer && frame != ContextId::ROOT {
        frame = nodes.frame_of(nodes.context(frame).parent);
    }
    frame == outer
}
