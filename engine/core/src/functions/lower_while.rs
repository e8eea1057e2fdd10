//! A `While` node becomes a loop of primitives.

use super::body::passes_through;
use super::lower::{Lowering, LoweringResult, func};
use crate::graph::{Attr, Graph, Node, NodeId, Output};
use crate::shape::PartialShape;
use crate::tensor::Tensor;

/// A loop variable.
enum Variable {
    /// The body gives it on as it is: it enters once, for all iterations.
    Invariant { enter: Output },
    /// The body may change it; it begins with `enter` at this `Merge`.
    Changing { merge: NodeId },
}

/// A loop while it is built: the node's variables, and one that keeps the loop going where none of them changes.
struct Loop {
    /// Adds to the node's scope.
    graph: Graph,
    variables: Vec<Variable>,
}

impl Lowering<'_> {
    /// Puts the loop in the place of the node.
    pub(super) fn lower_while(&mut self, node: &Node) -> LoweringResult {
        let graph = self.within(node);
        let a_loop = Loop { variables: enter(self, node, &graph)?, graph };
        let (cond, body) = (func(node, "cond")?, func(node, "body")?);
        let n = node.inputs.len();
        let args = a_loop.values(|merge| Ok(merge.into()))?;
        let scope = format!("{}/cond", node.name);
        let test = self.inline_any(node, cond, &scope, &args[..n], &[a_loop.changing()[0]])?;
        let value = self.after(&a_loop.graph, test.outputs, &test.control)?;
        let [value] = value[..] else {
            return Err(self.misfit(node, &cond.name, format!("gives {} values, a condition gives one", value.len())));
        };
        let value = self.to_bool(&a_loop.graph, value)?;
        let running = a_loop.graph.add_node("LoopCond").input(value).output()?;
        let switch = |merge: NodeId| a_loop.graph.add_node("Switch").input(merge).input(running).build();
        let switches = a_loop.changing().into_iter().map(switch).collect::<Result<Vec<_>, _>>()?;
        let inside = |s: &NodeId| a_loop.graph.add_node("Identity").input(Output { node: *s, port: 1 }).output();
        let insides = switches.iter().map(inside).collect::<Result<Vec<_>, _>>()?;
        let mut changing = insides.iter();
        let args = a_loop.values(|merge| Ok(*changing.next().unwrap_or(&merge.into())))?;
        let scope = format!("{}/body", node.name);
        let types = node.dtypes("T").cloned().unwrap_or_default();
        let result = self.inline(node, body, &scope, &args[..n], &[insides[0].node], &types)?;
        a_loop.next(self, result.outputs, &result.control, &insides)?;
        let exit = |s: &NodeId| a_loop.graph.add_node("Exit").input(Output { node: *s, port: 0 }).output();
        let exits = switches.iter().map(exit).collect::<Result<Vec<_>, _>>()?;
        let mut left = exits.iter();
        let output = |(variable, input): (&Variable, &Output)| match variable {
            Variable::Invariant { .. } => *input,
            Variable::Changing { .. } => *left.next().unwrap_or(input),
        };
        let outputs: Vec<Output> = a_loop.variables.iter().zip(&node.inputs).map(output).collect();
        let done: Vec<NodeId> = exits.iter().map(|exit| exit.node).collect();
        self.finish(node, &outputs, if n < a_loop.variables.len() { &done } else { &[] })
    }
}

/// `Enter` of every input, and `Merge` of those that change.
fn enter(lowering: &Lowering<'_>, node: &Node, graph: &Graph) -> LoweringResult<Vec<Variable>> {
    let body = lowering.function(node, &func(node, "body")?.name)?;
    let shapes = match node.attrs.get("output_shapes") {
        Some(Attr::ListShape(shapes)) => shapes.clone(),
        _ => Vec::new(),
    };
    let parallel = node.int("parallel_iterations").copied().unwrap_or(10);
    let enter = |input: Output, is_constant: bool| {
        let enter = graph.add_node("Enter").input(input).after(&node.control_inputs);
        let enter = enter.attr("frame_name", &*node.name).attr("is_constant", is_constant);
        enter.attr("parallel_iterations", parallel).output()
    };
    let changing = |input: Output, shape: PartialShape| -> LoweringResult<Variable> {
        let enter = enter(input, false)?;
        // The second input is set when the body is there.
        let merge = graph.add_node("Merge").inputs(&[enter, enter]).build()?;
        graph.set_shape(merge.into(), shape)?;
        Ok(Variable::Changing { merge })
    };
    let mut variables = Vec::with_capacity(node.inputs.len() + 1);
    for (i, input) in node.inputs.iter().enumerate() {
        variables.push(match passes_through(&body, i) {
            true => Variable::Invariant { enter: enter(*input, true)? },
            false => changing(*input, shapes.get(i).cloned().unwrap_or_default())?,
        });
    }
    if variables.iter().all(|v| matches!(v, Variable::Invariant { .. })) {
        let nothing = lowering.guarded(node)?.constant(Tensor::scalar(false)).try_output()?;
        variables.push(changing(nothing, PartialShape::scalar())?);
    }
    Ok(variables)
}

impl Loop {
    fn changing(&self) -> Vec<NodeId> {
        let merge = |v: &Variable| if let Variable::Changing { merge } = v { Some(*merge) } else { None };
        self.variables.iter().filter_map(merge).collect()
    }

    /// The variables' values: invariants as they entered, the others by `of`.
    fn values(&self, mut of: impl FnMut(NodeId) -> LoweringResult<Output>) -> LoweringResult<Vec<Output>> {
        let value = |v: &Variable| match v {
            Variable::Invariant { enter } => Ok(*enter),
            Variable::Changing { merge } => of(*merge),
        };
        self.variables.iter().map(value).collect()
    }

    /// The body's results are the next iteration's variables, once the entire body has run.
    fn next(
        &self,
        lowering: &Lowering<'_>,
        results: Vec<Output>,
        control: &[NodeId],
        insides: &[Output],
    ) -> LoweringResult {
        let is_changing = |v: &Variable| matches!(v, Variable::Changing { .. });
        let changing = results.into_iter().zip(&self.variables).filter(|(_, v)| is_changing(v));
        let mut values: Vec<Output> = changing.map(|(value, _)| value).collect();
        values.extend(insides.get(values.len()..).unwrap_or_default());
        let values = lowering.after(&self.graph, values, control)?;
        for (merge, value) in self.changing().into_iter().zip(values) {
            let next = self.graph.add_node("NextIteration").input(value).output()?;
            // The node says what its variables' shapes are in all iterations; inference may know less.
            let (own, declared) = (self.graph.shape(next)?, self.graph.shape(merge.into())?);
            if let Some(both) = own.merge(&declared).filter(|_| declared.dims().is_some()) {
                self.graph.set_shape(next, both)?;
            }
            self.graph.close_loop(merge, 1, next)?;
        }
        Ok(())
    }
}
