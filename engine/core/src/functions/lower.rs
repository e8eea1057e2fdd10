//! Function nodes become primitive ops: the body of what a node calls takes the node's place, in the node's scope.
//!
//! ```text
//! PartitionedCall   body                                                              -> IdentityN
//! If, Case          Switch of each input -> bodies -> Merge of each output            -> IdentityN
//! While             Enter -> Merge -> Switch -> body -> NextIteration -> Merge; Exit  -> IdentityN
//!                            Merge -> condition -> LoopCond
//! ```
//!
//! The node itself stays, as an `IdentityN` (or `NoOp`) of the results, so that its name can be fetched and its
//! consumers need not change. It runs after all nodes of the body that have effects and after those that the function
//! names as its control outputs; what waits for no other node of a body waits for the node's control inputs, in a branch
//! for the branch to be taken, and in a loop for the iteration.
//!
//! Within its own body a function is not put in the place of a call, which would have no end: the call becomes a
//! `_RecursiveCall`, which runs the function when (and if) the step comes there.

use std::collections::BTreeMap;
use std::sync::Arc;

use formats::proto::{FunctionDef, GraphDef};

use super::body::{self, Body, Call};
use super::expansion;
use super::{STACK_LEFT, STACK_PIECE};
use crate::dtype::DType;
use crate::graph::{Attr, ContextId, FuncRef, FunctionError, Graph, GraphError, Node, NodeId, Output, attr_to_proto};
use crate::ops::OpKind;
use crate::tensor::Tensor;

/// Adds the gradients of the sum of outputs with respect to each of some inputs, from those that flow into the outputs.
/// `engine_ops::gradients` has it, which lowers functions in turn.
pub type Gradients = fn(&Graph, &[Output], &[Output], &[Output]) -> Result<Vec<Output>, String>;

/// Puts what they call in the place of those of the nodes that call functions. `graph` is nobody else's, and gets no more
/// than `max_nodes`.
///
/// # Errors
/// A function that is missing or does not fit, or too many nodes; `graph` is then left in between.
pub fn lower(graph: &Graph, ids: &[NodeId], max_nodes: usize, gradients: Gradients) -> Result<(), FunctionError> {
    expansion::check(graph, ids, max_nodes)?;
    let mut lowering = Lowering { graph, chain: Vec::new(), colocation_scope: String::new(), max_nodes, gradients };
    ids.iter().try_for_each(|id| lowering.node(*id))
}

/// The attribute of the `IdentityN` that replaces a function node and hands on the results of its bodies.
pub const RESULTS: &str = "_results";

pub(super) struct Lowering<'g> {
    graph: &'g Graph,
    /// The functions in whose bodies we are.
    chain: Vec<Arc<str>>,
    /// See [`Call::colocation_scope`].
    colocation_scope: String,
    max_nodes: usize,
    gradients: Gradients,
}

pub(super) type LoweringResult<T = ()> = Result<T, FunctionError>;

/// A body in the graph.
pub(super) struct Inlined {
    pub outputs: Vec<Output>,
    /// What must have run before the call has.
    pub control: Vec<NodeId>,
}

/// A branch of a conditional.
struct Branch<'a> {
    name: String,
    function: &'a FuncRef,
    inputs: Vec<Output>,
    /// Alive where the branch is taken.
    pivot: NodeId,
}

impl Lowering<'_> {
    fn node(&mut self, id: NodeId) -> LoweringResult {
        let node = self.graph.node(id)?;
        match node.op.kind {
            OpKind::Call => self.call(&node),
            OpKind::If => self.conditional(&node),
            OpKind::Case => self.case(&node),
            OpKind::While => self.lower_while(&node),
            OpKind::SymbolicGradient => self.gradient(&node),
            _ => Ok(()),
        }
    }

    fn call(&mut self, node: &Node) -> LoweringResult {
        let f = func(node, "f")?;
        let types = node.dtypes("Tout").cloned().unwrap_or_default();
        let body = self.inline(node, f, &node.name, &node.inputs, &self.guards(node)?, &types)?;
        self.finish(node, &body.outputs, &body.control)
    }

    /// What must have run before the nodes that take the node's place: its control inputs, and in a loop or branch
    /// what its inputs come from too. A node without inputs of its own, such as a constant, would run in the root
    /// frame otherwise, and where the branch is not taken.
    pub(super) fn guards(&self, node: &Node) -> LoweringResult<Vec<NodeId>> {
        let mut guards = node.control_inputs.clone();
        let nodes = self.graph.nodes();
        let kind = |output: &Output| nodes.get(output.node).map_or(OpKind::Compute, |from| from.op.kind);
        let is_inside = |output: &&Output| nodes.value_context(**output) != ContextId::ROOT;
        // What is only brought in says less: a switch has run whichever way it went, an invariant is there even after the
        // last iteration.
        let is_brought_in = |output: &&Output| kind(output).is_switch() || kind(output) == OpKind::Enter;
        let (brought_in, made): (Vec<&Output>, Vec<&Output>) =
            node.inputs.iter().filter(is_inside).partition(is_brought_in);
        guards.extend(made.iter().map(|output| output.node));
        let mut covered: Vec<ContextId> = guards.iter().map(|id| nodes.control_context(*id)).collect();
        let mut more: Vec<(Output, bool)> = Vec::new();
        for output in brought_in {
            let context = nodes.value_context(*output);
            if !covered.contains(&context) {
                covered.push(context);
                more.push((*output, kind(output).is_switch()));
            }
        }
        drop(nodes);
        for (input, is_switched) in more {
            guards.push(match is_switched {
                true => self.within(node).add_node("Identity").name("live").input(input).build()?,
                false => input.node,
            });
        }
        Ok(guards)
    }

    /// A handle for constants in the node's place.
    pub(super) fn guarded(&self, node: &Node) -> LoweringResult<Graph> {
        Ok(self.within(node).with_control(&self.guards(node)?))
    }

    /// A handle that adds to the node's scope, on its device.
    pub(super) fn within(&self, node: &Node) -> Graph {
        self.graph.at_scope(&node.name).with_device(&node.device)
    }

    /// Adds the body of `f`, in `scope`, with these inputs, after these nodes, giving values of these types.
    pub(super) fn inline(
        &mut self,
        node: &Node,
        f: &FuncRef,
        scope: &str,
        inputs: &[Output],
        after: &[NodeId],
        types: &[DType],
    ) -> LoweringResult<Inlined> {
        let body = self.inline_any(node, f, scope, inputs, after)?;
        let got = self.types(&body.outputs)?;
        if got != types {
            return Err(self.misfit(node, &f.name, format!("gives {got:?}, the node expects {types:?}")));
        }
        Ok(body)
    }

    /// The same whatever the types of the values are.
    pub(super) fn inline_any(
        &mut self,
        node: &Node,
        f: &FuncRef,
        scope: &str,
        inputs: &[Output],
        after: &[NodeId],
    ) -> LoweringResult<Inlined> {
        let function = self.function(node, &f.name)?;
        if self.chain.contains(&f.name) {
            return self.call_again(node, f, &function, scope, inputs, after);
        }
        let n_nodes = self.graph.n_nodes() + function.node_def.len();
        if n_nodes > self.max_nodes {
            let (chain, limit) = (self.chain.join(" -> "), self.max_nodes);
            return Err(FunctionError::TooLarge { node: node.name.to_string(), n_nodes, limit, chain });
        }
        let scope = self.free_scope(scope, &function);
        let after = self.single(node, &scope, after)?;
        let outer_scope = self.colocation_scope.clone();
        if node.op.kind == OpKind::Call {
            self.colocation_scope.clone_from(&scope);
        }
        let body = self.body(node, f, &function, &scope, inputs, after)?;
        let names: Vec<String> = body.nodes.iter().map(|n| n.name.clone()).collect();
        let def = GraphDef { node: body.nodes, ..Default::default() };
        self.graph.import_body(&def).map_err(|source| FunctionError::Import {
            node: node.name.to_string(),
            function: f.name.to_string(),
            source: Box::new(source),
        })?;
        let ids = names.iter().map(|name| self.id(name)).collect::<LoweringResult<Vec<NodeId>>>()?;
        self.chain.push(f.name.clone());
        ids.into_iter().try_for_each(|id| stacker::maybe_grow(STACK_LEFT, STACK_PIECE, || self.node(id)))?;
        self.chain.pop();
        self.colocation_scope = outer_scope;
        let outputs = body.outputs.iter().map(|o| self.graph.output(o)).collect::<Result<Vec<_>, _>>()?;
        let (got, declared) = (self.types(&outputs)?, body::output_types(&function, f)?);
        if got != declared {
            return Err(self.misfit(
                node,
                &f.name,
                format!("declares results of types {declared:?}, its body gives {got:?}"),
            ));
        }
        let control = body.control.iter().map(|name| self.id(name)).collect::<LoweringResult<_>>()?;
        Ok(Inlined { outputs, control })
    }

    /// A function within its own body: only the step determines how often it is called.
    fn call_again(
        &self,
        node: &Node,
        f: &FuncRef,
        function: &FunctionDef,
        scope: &str,
        inputs: &[Output],
        after: &[NodeId],
    ) -> LoweringResult<Inlined> {
        let types = |all: Vec<DType>| Attr::ListType(all);
        let given = self.types(inputs)?;
        let results = body::output_types(function, f)?;
        let n = results.len() as u32;
        let graph = self.graph.at_scope(scope).with_device(&node.device);
        let call = graph.add_node("_RecursiveCall").name("call").inputs(inputs).after(after);
        let call = call.attr("f", Attr::Func(f.clone())).attr("Tin", types(given)).attr("Tout", types(results));
        let call = call.build()?;
        let has_effects = function.signature.as_ref().is_some_and(|s| s.is_stateful);
        Ok(Inlined {
            outputs: (0..n).map(|port| Output { node: call, port }).collect(),
            control: if has_effects { vec![call] } else { Vec::new() },
        })
    }

    fn types(&self, outputs: &[Output]) -> LoweringResult<Vec<DType>> {
        Ok(outputs.iter().map(|output| self.graph.dtype(*output)).collect::<Result<_, _>>()?)
    }

    fn id(&self, name: &str) -> LoweringResult<NodeId> {
        let missing = || GraphError::NoSuchNode { name: name.to_owned() };
        Ok(self.graph.nodes().find(name).map(|n| n.id).ok_or_else(missing)?)
    }

    pub(super) fn function(&self, node: &Node, name: &str) -> LoweringResult<Arc<FunctionDef>> {
        let missing = || FunctionError::Missing { node: node.name.to_string(), function: name.to_owned() };
        self.graph.nodes().functions().get(name).cloned().ok_or_else(missing)
    }

    fn body(
        &self,
        node: &Node,
        f: &FuncRef,
        function: &FunctionDef,
        scope: &str,
        inputs: &[Output],
        after: Option<NodeId>,
    ) -> LoweringResult<Body> {
        let attrs: BTreeMap<_, _> = f.attrs.iter().map(|(name, value)| (name.clone(), attr_to_proto(value))).collect();
        let nodes = self.graph.nodes();
        let name_of = |id: NodeId| nodes.get(id).map(|n| n.name.to_string()).unwrap_or_default();
        let args: Vec<String> = inputs.iter().map(|o| format!("{}:{}", name_of(o.node), o.port)).collect();
        let types = inputs.iter().map(|o| nodes.get(o.node).and_then(|n| n.outputs.get(o.port as usize)));
        let types: Vec<i32> = types.map(|port| port.map_or(0, |port| port.dtype as i32)).collect();
        let after = after.map(name_of);
        let after = after.as_deref();
        let is_default = node.op.kind == OpKind::Call || node.attrs.contains_key(body::DEFAULT_DEVICE);
        let (node, colocation_scope, device) = (&*node.name, &*self.colocation_scope, &*node.device);
        let call = Call {
            node,
            scope,
            colocation_scope,
            attrs: &attrs,
            args: &args,
            types: &types,
            after,
            device,
            is_default,
        };
        body::instantiate(nodes.functions(), function, &call)
    }

    pub(super) fn misfit(&self, node: &Node, function: &str, problem: String) -> FunctionError {
        FunctionError::Signature { node: node.name.to_string(), function: function.to_owned(), problem }
    }

    /// `scope`, or with a number where some node of the body would have a name that is taken.
    fn free_scope(&self, scope: &str, function: &FunctionDef) -> String {
        let nodes = self.graph.nodes();
        let is_free = |s: &str| function.node_def.iter().all(|n| nodes.find(&format!("{s}/{}", n.name)).is_none());
        let numbered = (1u32..).map(|n| format!("{scope}_{n}"));
        std::iter::once(scope.to_owned()).chain(numbered).find(|s| is_free(s)).unwrap_or_default()
    }

    /// One node that has run when all of these have.
    fn single(&self, node: &Node, scope: &str, after: &[NodeId]) -> LoweringResult<Option<NodeId>> {
        Ok(match after {
            [] => None,
            [one] => Some(*one),
            many => {
                let graph = self.graph.at_scope(scope).with_device(&node.device);
                Some(graph.add_node("NoOp").name("input_control_node").after(many).build()?)
            }
        })
    }

    /// Makes the node itself give the results.
    pub(super) fn finish(&self, node: &Node, outputs: &[Output], control: &[NodeId]) -> LoweringResult {
        let builder = match outputs.is_empty() {
            true => self.graph.add_node("NoOp").after(&self.guards(node)?),
            false => {
                let results = self.graph.add_node("IdentityN").inputs(outputs).attr(RESULTS, true);
                results.after(&node.control_inputs)
            }
        };
        Ok(builder.device(&node.device).after(control).build_in_place_of(node.id)?)
    }

    /// The condition as a bool.
    pub(super) fn to_bool(&self, graph: &Graph, condition: Output) -> LoweringResult<Output> {
        match self.graph.dtype(condition)? {
            DType::Bool => Ok(condition),
            _ => Ok(graph.add_node("ToBool").input(condition).output()?),
        }
    }

    fn conditional(&mut self, node: &Node) -> LoweringResult {
        let graph = self.within(node);
        let condition = self.to_bool(&graph, node.inputs[0])?;
        let pred = graph.add_node("Switch").name("switch_pred").input(condition).input(condition);
        let pred = pred.after(&node.control_inputs).build()?;
        let pivot = |name: &str, port| graph.add_node("Identity").name(name).input(Output { node: pred, port }).build();
        let pivots = [pivot("pivot_f", 0)?, pivot("pivot_t", 1)?];
        let switch = |input: &Output| graph.add_node("Switch").input(*input).input(condition).build();
        let switches = node.inputs[1..].iter().map(switch).collect::<Result<Vec<_>, _>>()?;
        let branch = |i: usize, name: &str, attr: &str| -> LoweringResult<Branch<'_>> {
            let inputs = switches.iter().map(|s| Output { node: *s, port: i as u32 }).collect();
            let name = format!("{}/{name}", node.name);
            Ok(Branch { name, function: func(node, attr)?, inputs, pivot: pivots[i] })
        };
        let branches = [branch(0, "else", "else_branch")?, branch(1, "then", "then_branch")?];
        self.join(node, &graph, &branches)
    }

    fn case(&mut self, node: &Node) -> LoweringResult {
        let graph = self.within(node);
        let functions = node.funcs("branches").cloned().unwrap_or_default();
        let Some(n) = functions.len().checked_sub(1) else {
            return Err(self.misfit(node, "(none)", "is missing: there must be a branch".to_owned()));
        };
        let (index, guarded) = (node.inputs[0], self.guarded(node)?);
        let is = |op: &str, i: usize| -> LoweringResult<Output> {
            let i = guarded.constant(Tensor::scalar(i as i32)).try_output()?;
            Ok(graph.add_node(op).input(index).input(i).output()?)
        };
        let mut branches = Vec::new();
        for (i, function) in functions.iter().enumerate() {
            // An index that is none means the last branch.
            let taken = if i < n {
                is("Equal", i)?
            } else {
                graph.add_node("LogicalOr").input(is("Less", 0)?).input(is("GreaterEqual", n)?).output()?
            };
            let pred = graph.add_node("Switch").name("switch_pred").input(taken).input(taken);
            let pred = pred.after(&node.control_inputs).build()?;
            let pivot = graph.add_node("Identity").name("pivot").input(Output { node: pred, port: 1 }).build()?;
            let switch = |input: &Output| graph.add_node("Switch").input(*input).input(taken).build();
            let switches = node.inputs[1..].iter().map(switch).collect::<Result<Vec<_>, _>>()?;
            let inputs = switches.into_iter().map(|node| Output { node, port: 1 }).collect();
            branches.push(Branch { name: format!("{}/branch{i}", node.name), function, inputs, pivot });
        }
        self.join(node, &graph, &branches)
    }

    /// The bodies of the branches, and what comes of the one that is taken.
    fn join(&mut self, node: &Node, graph: &Graph, branches: &[Branch<'_>]) -> LoweringResult {
        let types = node.dtypes("Tout").cloned().unwrap_or_default();
        let (mut results, mut executed) = (Vec::new(), Vec::new());
        for branch in branches {
            let pivot = [branch.pivot];
            let body = self.inline(node, branch.function, &branch.name, &branch.inputs, &pivot, &types)?;
            let outputs = self.after(graph, body.outputs, &body.control)?;
            let done = graph.add_node("Identity").name("executed").input(branch.pivot).after(&body.control);
            if outputs.is_empty() {
                executed.push(done.output()?);
            }
            results.push(outputs);
        }
        if types.is_empty() {
            let executed = graph.add_node("Merge").name("branch_executed").inputs(&executed).build()?;
            return self.finish(node, &[], &[executed]);
        }
        let merge = |i: usize| {
            let values: Vec<Output> = results.iter().map(|outputs| outputs[i]).collect();
            graph.add_node("Merge").name("merge").inputs(&values).output()
        };
        let merged = (0..types.len()).map(merge).collect::<Result<Vec<_>, _>>()?;
        self.finish(node, &merged, &[])
    }

    /// The values, there once `control` has run too.
    pub(super) fn after(&self, graph: &Graph, values: Vec<Output>, control: &[NodeId]) -> LoweringResult<Vec<Output>> {
        if control.is_empty() || values.is_empty() {
            return Ok(values);
        }
        let all = graph.add_node("IdentityN").inputs(&values).after(control).build()?;
        Ok((0..values.len() as u32).map(|port| Output { node: all, port }).collect())
    }

    /// The gradients of a function's inputs from its inputs and the gradients of its outputs: the library's function for
    /// it, or the function's body, differentiated.
    fn gradient(&mut self, node: &Node) -> LoweringResult {
        let f = func(node, "f")?;
        let types = node.dtypes("Tout").cloned().unwrap_or_default();
        let registered = self.graph.nodes().functions().gradient_of(&f.name).map(FuncRef::new);
        if let Some(gradient) = registered {
            let gradient = FuncRef { attrs: f.attrs.clone(), ..gradient };
            let body = self.inline(node, &gradient, &node.name, &node.inputs, &self.guards(node)?, &types)?;
            return self.finish(node, &body.outputs, &body.control);
        }
        let graph = self.within(node);
        let (inputs, grads) = node.inputs.split_at(types.len().min(node.inputs.len()));
        let own = |x: &Output| graph.add_node("Identity").name("x").input(*x).after(&node.control_inputs).output();
        let xs = inputs.iter().map(own).collect::<Result<Vec<_>, _>>()?;
        let of_outputs = self.types(grads)?;
        let scope = format!("{}/forward", node.name);
        let body = self.inline(node, f, &scope, &xs, &self.guards(node)?, &of_outputs)?;
        let gradients = (self.gradients)(&graph, &body.outputs, &xs, grads);
        let gradients =
            gradients.map_err(|problem| FunctionError::Gradient { node: node.name.to_string(), problem })?;
        self.finish(node, &gradients, &body.control)
    }
}

/// The function in an attribute, which the op's checks say is there.
pub(super) fn func<'n>(node: &'n Node, attr: &str) -> LoweringResult<&'n FuncRef> {
    node.func(attr).map_err(|source| {
        let (node, op) = (node.name.to_string(), node.op.name);
        FunctionError::Graph(GraphError::Attr { node, op, source })
    })
}
