//! Conditionals and loops from functions that build their parts, over the primitives (white paper section 4.4).
//!
//! Nodes and names are those that TensorFlow's `cond` and `while_loop` make.

use super::{ControlFlowError, Graph, GraphError, Output};
use crate::ops::flow::SHAPE_INVARIANT;
use crate::shape::PartialShape;

/// What can be chosen for a loop.
#[derive(Debug, Clone)]
pub struct WhileOptions {
    /// The scope of the loop's nodes.
    pub name: String,
    /// How many iterations may run at once, at least 1.
    pub parallel_iterations: i64,
    /// For each variable what stays true of its shape in all iterations, where that is less than the shape it begins
    /// with; empty: all variables keep their shapes.
    pub shape_invariants: Vec<Option<PartialShape>>,
}

impl Default for WhileOptions {
    fn default() -> WhileOptions {
        WhileOptions { name: "while".into(), parallel_iterations: 10, shape_invariants: Vec::new() }
    }
}

fn misfit(graph: &Graph, op: &'static str, source: ControlFlowError) -> GraphError {
    GraphError::ControlFlow { node: graph.scope_name().to_owned(), op, source: source.into() }
}

impl Graph {
    /// A conditional: the values that `then` gives where the scalar `pred` is true, those that `otherwise` gives where
    /// it is false. The functions build the sides with the handle they are given, and may use any value from outside.
    /// Only the nodes of the chosen side run.
    ///
    /// # Errors
    /// What the functions return; `pred` is no scalar bool; the sides differ in number or types of values.
    pub fn cond<E: From<GraphError>>(
        &self,
        pred: impl Into<Output>,
        then: impl FnOnce(&Graph) -> Result<Vec<Output>, E>,
        otherwise: impl FnOnce(&Graph) -> Result<Vec<Output>, E>,
    ) -> Result<Vec<Output>, E> {
        self.check()?;
        let (pred, at) = (pred.into(), self.scope("cond"));
        let switch = at.add_node("Switch").input(pred).input(pred).build()?;
        let side = |port: u32, name: &str| -> Result<Graph, GraphError> {
            let switched = Output { node: switch, port };
            // Not of this handle's context: it would be brought in.
            let pivot = at.outside().add_node("Identity").name(name).input(switched).build()?;
            Ok(at.with_context(self.nodes().value_context(switched), pivot))
        };
        let (on_true, on_false) = (side(1, "switch_t")?, side(0, "switch_f")?);
        let results = then(&on_true)?;
        let others = otherwise(&on_false)?;
        self.check()?;
        if results.len() != others.len() {
            let source = ControlFlowError::BranchCount { then: results.len(), otherwise: others.len() };
            return Err(misfit(&at, "Merge", source).into());
        }
        let merge = |(then, otherwise): (Output, Output)| {
            let sides = [on_false.inside(otherwise)?, on_true.inside(then)?];
            Ok(at.outside().add_node("Merge").inputs(&sides).output()?)
        };
        results.into_iter().zip(others).map(merge).collect()
    }

    /// A loop: `body` makes new values of the variables from the old as long as `cond`, a scalar bool, holds. Gives the
    /// variables after the last iteration. The functions build with the handle they are given, and may use any value
    /// from outside. Iterations that do not depend on each other may run at once.
    ///
    /// ```
    /// # use engine::prelude::*;
    /// # fn main() -> Result<(), Error> {
    /// let g = Graph::new();
    /// let x = g.placeholder("x", DType::F32, PartialShape::scalar());
    /// let cond = |g: &Graph, vars: &[Output]| Ok(g.value(vars[0]).less(100.0).output());
    /// let body = |g: &Graph, vars: &[Output]| Ok::<_, Error>(vec![(g.value(vars[0]) * 2.0).output()]);
    /// let doubled = g.while_loop(&[x.output()], cond, body, &WhileOptions::default())?;
    /// let session = Session::new(&g, SessionOptions::default())?;
    /// assert_eq!(session.step().feed(x, 3f32).fetch(doubled[0]).run()?[0].item::<f32>()?, 192.0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// What the functions return; there are no variables; `cond` gives no scalar bool; `body` gives other
    /// numbers, types or shapes of values than the loop has variables.
    pub fn while_loop<E: From<GraphError>>(
        &self,
        vars: &[Output],
        cond: impl FnOnce(&Graph, &[Output]) -> Result<Output, E>,
        body: impl FnOnce(&Graph, &[Output]) -> Result<Vec<Output>, E>,
        options: &WhileOptions,
    ) -> Result<Vec<Output>, E> {
        self.check()?;
        let at = self.scope(&options.name);
        let merges = at.loop_heads(vars, options)?;
        let Some(first) = merges.first() else {
            return Err(misfit(&at, "Merge", ControlFlowError::NoVariables).into());
        };
        // Inside of the loop, before its predicate.
        let head = at.with_context(self.nodes().value_context(*first), first.node);
        let pred = cond(&head, &merges)?;
        self.check()?;
        let pred = head.inside(pred)?;
        let raw = at.outside();
        let loop_cond = raw.add_node("LoopCond").input(pred).output()?;
        let switch = |merge: &Output| raw.add_node("Switch").input(*merge).input(loop_cond).build();
        let switches = merges.iter().map(switch).collect::<Result<Vec<_>, _>>()?;
        let identity = |switch| raw.add_node("Identity").input(Output { node: switch, port: 1 }).output();
        let values = switches.iter().map(|switch| identity(*switch)).collect::<Result<Vec<_>, _>>()?;
        let inside = at.with_context(head.context(), values[0].node);
        let results = body(&inside, &values)?;
        self.check()?;
        if results.len() != vars.len() {
            let source = ControlFlowError::VariableCount { expected: vars.len(), got: results.len() };
            return Err(misfit(&at, "NextIteration", source).into());
        }
        for (merge, result) in merges.iter().zip(results) {
            let next = raw.add_node("NextIteration").input(inside.inside(result)?).output()?;
            at.close_loop(merge.node, 1, next)?;
        }
        let exit = |switch| Ok(raw.add_node("Exit").input(Output { node: switch, port: 0 }).output()?);
        switches.into_iter().map(exit).collect()
    }

    /// The heads of a loop's variables; what comes round is not known yet.
    fn loop_heads(&self, vars: &[Output], options: &WhileOptions) -> Result<Vec<Output>, GraphError> {
        let frame = format!("{}/while_context", self.scope_name());
        let mut merges = Vec::with_capacity(vars.len());
        for (i, var) in vars.iter().enumerate() {
            let mut enter = self
                .add_node("Enter")
                .input(*var)
                .attr("frame_name", frame.as_str())
                .attr("parallel_iterations", options.parallel_iterations);
            if let Some(Some(invariant)) = options.shape_invariants.get(i) {
                enter = enter.attr(SHAPE_INVARIANT, invariant.clone());
            }
            let enter = enter.output()?;
            merges.push(self.outside().add_node("Merge").inputs(&[enter, enter]).output()?);
        }
        Ok(merges)
    }

    /// A handle whose nodes' inputs are taken as they are: for the primitives that lead from one context to another.
    pub(super) fn outside(&self) -> Graph {
        Graph { capture: None, control: [].into(), ..self.clone() }
    }
}
