//! A function's body as nodes of a graph: names within the caller's scope, inputs written as a graph's, values in the
//! place of the attributes that the body leaves open.
//!
//! In a body an input is an argument (`x`, `xs:2`) or an output by its name in the op (`node:product:0`); in a graph it
//! is `node:port`.

use formats::proto::{AttrValue, FunctionDef, NodeDef, OpDef, attr_value, op_def};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::dtype::DType;
use crate::graph::{Attrs, FuncRef, FunctionError, Open, attr_to_proto, colocated_with};
use crate::ops::{self, ArgType, Effect, Library, OpKind};

/// The attribute of a node whose device is that of the call that runs it. Such a device is a default: requests of nodes with
/// which the node is colocated take precedence, as in TensorFlow.
pub const DEFAULT_DEVICE: &str = "_default_device";

/// What a call puts into a function's body.
pub(super) struct Call<'a> {
    /// The node that calls.
    pub node: &'a str,
    /// The scope of the body's nodes, without the last `/`.
    pub scope: &'a str,
    /// The scope in which nodes outside the body are looked up when the body is colocated with them: that of the innermost
    /// call, or the graph (empty). TensorFlow places the body of a call on its own, and the bodies of branches and loops
    /// together with the nodes around them.
    pub colocation_scope: &'a str,
    /// Values of the function's attributes.
    pub attrs: &'a Attrs,
    /// The arguments, as a graph's node writes its inputs.
    pub args: &'a [String],
    /// Their element types, by number.
    pub types: &'a [i32],
    /// The node that what waits for no other node of the body waits for.
    pub after: Option<&'a str>,
    /// The device of nodes that ask for none.
    pub device: &'a str,
    /// Whether `device` is a default: it gives way to the requests of nodes with which such a node is colocated.
    pub is_default: bool,
}

/// A function's body as nodes of a graph.
pub(super) struct Body {
    pub nodes: Vec<NodeDef>,
    /// The outputs, as a graph's node writes its inputs.
    pub outputs: Vec<String>,
    /// The nodes that must have run before the call has: those that the function names, and those with effects.
    pub control: Vec<String>,
}

/// The body of `function` for a call.
pub(super) fn instantiate(library: &Library, function: &FunctionDef, call: &Call<'_>) -> Result<Body, FunctionError> {
    let default = OpDef::default();
    let signature = function.signature.as_ref().unwrap_or(&default);
    let open = Open { function: &signature.name, declared: signature, given: call.attrs };
    let mut names = Names { open: &open, call, args: FxHashMap::default(), nodes: FxHashMap::default() };
    names.args(signature)?;
    let mut nodes = Vec::with_capacity(function.node_def.len());
    for node in &function.node_def {
        let attr = node.attr.iter().map(|(name, value)| Ok((name.clone(), open.fill(value)?)));
        let attr: Attrs = attr.collect::<Result<_, FunctionError>>()?;
        names.nodes.insert(node.name.as_str(), outputs_of(library, &signature.name, node, &attr)?);
        nodes.push((node, attr));
    }
    let body = nodes.into_iter().map(|(node, attr)| names.node(node, attr)).collect::<Result<Vec<_>, _>>()?;
    let outputs = names.outputs(function, signature)?;
    let mut control: Vec<String> = effects(library, function).iter().map(|node| names.full(node)).collect();
    for node in function.control_ret.values() {
        if !names.nodes.contains_key(node.as_str()) {
            return Err(open.body(format!("control output {node} is no node of the body")));
        }
        control.push(names.full(node));
    }
    control.sort_unstable();
    control.dedup();
    Ok(Body { nodes: body, outputs, control })
}

/// The element types of what a call of the function gives.
pub(super) fn output_types(function: &FunctionDef, f: &FuncRef) -> Result<Vec<DType>, FunctionError> {
    let default = OpDef::default();
    let signature = function.signature.as_ref().unwrap_or(&default);
    let given: Attrs = f.attrs.iter().map(|(name, value)| (name.clone(), attr_to_proto(value))).collect();
    let open = Open { function: &signature.name, declared: signature, given: &given };
    let mut all = Vec::new();
    for arg in &signature.output_arg {
        for number in open.types(arg)? {
            let dtype = DType::from_number(number);
            all.push(dtype.ok_or_else(|| open.body(format!("output {} is of no known type", arg.name)))?);
        }
    }
    Ok(all)
}

/// What the texts of a body's inputs mean in the graph.
struct Names<'a> {
    open: &'a Open<'a>,
    call: &'a Call<'a>,
    /// The values of each argument.
    args: FxHashMap<&'a str, &'a [String]>,
    /// For each node the first port and the number of ports of each of its outputs, by the output's name.
    nodes: FxHashMap<&'a str, Vec<(String, u32, u32)>>,
}

impl<'a> Names<'a> {
    fn full(&self, node: &str) -> String {
        format!("{}/{node}", self.call.scope)
    }

    fn signature(&self, problem: String) -> FunctionError {
        FunctionError::Signature { node: self.call.node.to_owned(), function: self.open.function.to_owned(), problem }
    }

    /// Gives the arguments their values.
    fn args(&mut self, signature: &'a OpDef) -> Result<(), FunctionError> {
        let (mut rest, n_given) = (self.call.args, self.call.args.len());
        let mut n_taken = 0;
        for arg in &signature.input_arg {
            let types = self.open.types(arg)?;
            let (n, begin) = (types.len(), n_taken);
            n_taken += n;
            if n > rest.len() {
                return Err(self.signature(format!("takes {n_taken} arguments or more, got {n_given}")));
            }
            let mut pairs = self.call.types[begin..n_taken].iter().zip(&types);
            if let Some((got, expected)) = pairs.find(|(a, b)| a != b) {
                let name = |n: i32| DType::from_number(n).map_or_else(|| format!("type number {n}"), |d| d.to_string());
                let (got, expected) = (name(*got), name(*expected));
                return Err(self.signature(format!("takes {expected} for {}, got {got}", arg.name)));
            }
            let (own, others) = rest.split_at(n);
            self.args.insert(&arg.name, own);
            rest = others;
        }
        if !rest.is_empty() {
            return Err(self.signature(format!("takes {n_taken} arguments, got {n_given}")));
        }
        Ok(())
    }

    /// The outputs of the body, in the signature's order.
    fn outputs(&self, function: &FunctionDef, signature: &OpDef) -> Result<Vec<String>, FunctionError> {
        let mut outputs = Vec::new();
        for arg in &signature.output_arg {
            let n = self.open.types(arg)?.len();
            let missing = || self.open.body(format!("output {} has no value", arg.name));
            let text = function.ret.get(&arg.name).ok_or_else(missing)?;
            let values = self.values(text)?;
            match n {
                1 => outputs.push(values.first().cloned().ok_or_else(missing)?),
                n if n == values.len() => outputs.extend(values),
                n => {
                    let got = values.len();
                    return Err(self.open.body(format!("output {} is of {n} values, {text} of {got}", arg.name)));
                }
            }
        }
        Ok(outputs)
    }

    /// What the text of an input means: an argument's values, or the ports of a node's output.
    fn values(&self, text: &str) -> Result<Vec<String>, FunctionError> {
        let mut parts = text.split(':');
        let (first, output, position) = (parts.next().unwrap_or_default(), parts.next(), parts.next());
        let nothing = || self.open.body(format!("{text} is no argument and no output of a node of the body"));
        let number = |text: &str| text.parse::<u32>().ok();
        if let Some(values) = self.args.get(first) {
            return match output {
                None => Ok(values.to_vec()),
                Some(i) => Ok(vec![number(i).and_then(|i| values.get(i as usize)).ok_or_else(nothing)?.clone()]),
            };
        }
        let outputs = self.nodes.get(first).ok_or_else(nothing)?;
        let port = |port: u32| format!("{}:{port}", self.full(first));
        let Some(output) = output else { return Ok(vec![port(0)]) };
        let by_name = outputs.iter().find(|(name, ..)| name == output);
        match (by_name, position) {
            (Some((_, begin, n)), Some(i)) => match number(i) {
                Some(i) if i < *n => Ok(vec![port(begin + i)]),
                _ => Err(nothing()),
            },
            (Some((_, begin, n)), None) => Ok((*begin..begin + n).map(port).collect()),
            (None, None) => number(output).map(|i| vec![port(i)]).ok_or_else(nothing),
            (None, Some(_)) => Err(nothing()),
        }
    }

    /// A node of the body as one of the graph.
    fn node(&self, def: &NodeDef, mut attr: Attrs) -> Result<NodeDef, FunctionError> {
        let mut input = Vec::with_capacity(def.input.len() + 1);
        let (mut control, mut waits_within) = (Vec::new(), false);
        for text in &def.input {
            match text.strip_prefix('^') {
                Some(node) if self.nodes.contains_key(node) => {
                    waits_within = true;
                    control.push(format!("^{}", self.full(node)));
                }
                Some(arg) => match self.args.get(arg) {
                    Some(values) => control.extend(values.iter().map(|v| format!("^{}", node_of(v)))),
                    None => return Err(self.open.body(format!("node {}: {text} is no node of the body", def.name))),
                },
                None => {
                    waits_within |= !self.args.contains_key(text.split(':').next().unwrap_or_default());
                    input.extend(self.values(text)?);
                }
            }
        }
        control.sort_unstable();
        control.dedup();
        input.extend(control);
        if let Some(after) = self.call.after.filter(|_| !waits_within) {
            input.push(format!("^{after}"));
        }
        self.colocate(&mut attr);
        let device = if def.device.is_empty() { self.call.device } else { &def.device };
        if def.device.is_empty() && self.call.is_default && !device.is_empty() {
            attr.insert(DEFAULT_DEVICE.to_owned(), AttrValue { value: Some(attr_value::Value::B(true)) });
        }
        let (name, op) = (self.full(&def.name), def.op.clone());
        Ok(NodeDef { name, op, input, device: device.to_owned(), attr, ..Default::default() })
    }

    /// Writes the names of colocated nodes as the graph knows them.
    fn colocate(&self, attr: &mut Attrs) {
        let Some(AttrValue { value: Some(attr_value::Value::List(list)) }) = attr.get_mut("_class") else { return };
        for class in &mut list.s {
            let Some(node) = colocated_with(class) else { continue };
            let full = match (self.nodes.contains_key(node), self.call.colocation_scope) {
                (true, _) => self.full(node),
                (false, "") => continue,
                (false, scope) => format!("{scope}/{node}"),
            };
            *class = format!("loc:@{full}").into_bytes();
        }
    }
}

fn node_of(value: &str) -> &str {
    value.rsplit_once(':').map_or(value, |(node, _)| node)
}

/// The outputs of a node: name, first port, number of ports.
fn outputs_of(
    library: &Library,
    function: &str,
    node: &NodeDef,
    attr: &Attrs,
) -> Result<Vec<(String, u32, u32)>, FunctionError> {
    use attr_value::Value;
    let body = |problem| FunctionError::Body { function: function.to_owned(), problem };
    let mut sizes: Vec<(String, usize)> = Vec::new();
    if let Some(op) = ops::lookup(&node.op) {
        let value = |name: &str| attr.get(name).and_then(|v| v.value.as_ref());
        let default = |name: &str| op.attrs.iter().find(|a| a.name == name).and_then(|a| a.default.as_ref());
        for arg in &op.outputs {
            let n = match &arg.ty {
                ArgType::Fixed(_) | ArgType::Attr(_) => 1,
                ArgType::Repeat(n, _) | ArgType::RepeatFixed(n, _) => match (value(n), default(n)) {
                    (Some(Value::I(n)), _) | (None, Some(crate::graph::Attr::Int(n))) => {
                        usize::try_from(*n).unwrap_or(0)
                    }
                    _ => return Err(body(format!("node {}: attribute {n} is missing", node.name))),
                },
                ArgType::List(types) => match value(types) {
                    Some(Value::List(list)) => list.r#type.len(),
                    _ => 0,
                },
            };
            sizes.push((arg.name.to_owned(), n));
        }
    } else if let Some(signature) = library.get(&node.op).and_then(|f| f.signature.as_ref()) {
        let open = Open { function: &node.op, declared: signature, given: attr };
        for arg in &signature.output_arg {
            sizes.push((arg.name.clone(), open.types(arg)?.len()));
        }
    } else {
        return Err(body(format!("node {}: unknown op {}", node.name, node.op)));
    }
    let mut begin = 0;
    let place = |(name, n): (String, usize)| {
        let first = begin;
        begin += n as u32;
        (name, first, n as u32)
    };
    Ok(sizes.into_iter().map(place).collect())
}

/// The body's nodes with effects, which run whenever the function is called. What lies in a conditional or a loop of
/// the body's own primitives runs when those say so.
fn effects<'f>(library: &Library, function: &'f FunctionDef) -> Vec<&'f str> {
    let is_stateful = |node: &NodeDef| match ops::lookup(&node.op) {
        Some(op) => matches!(op.effect, Effect::Checks | Effect::Writes),
        None => library.get(&node.op).and_then(|f| f.signature.as_ref()).is_some_and(|s| s.is_stateful),
    };
    let guarded = guarded(function);
    let effects = function.node_def.iter().filter(|node| is_stateful(node) && !guarded.contains(node.name.as_str()));
    effects.map(|node| node.name.as_str()).collect()
}

/// The nodes that a `Switch` or `Enter` of the body leads to.
fn guarded(function: &FunctionDef) -> FxHashSet<&str> {
    let begins = |op: &str| matches!(ops::kind(op), OpKind::Switch | OpKind::Enter);
    let mut reached: FxHashSet<&str> = FxHashSet::default();
    let mut stack: Vec<&str> = function.node_def.iter().filter(|n| begins(&n.op)).map(|n| n.name.as_str()).collect();
    if stack.is_empty() {
        return reached;
    }
    let mut consumers: FxHashMap<&str, Vec<&str>> = FxHashMap::default();
    for node in &function.node_def {
        for input in &node.input {
            let from = input.trim_start_matches('^').split(':').next().unwrap_or_default();
            consumers.entry(from).or_default().push(&node.name);
        }
    }
    while let Some(node) = stack.pop() {
        if reached.insert(node) {
            stack.extend(consumers.get(node).into_iter().flatten());
        }
    }
    reached
}

/// Whether output `i` of a loop's body is its argument `i`, untouched.
pub(super) fn passes_through(body: &FunctionDef, i: usize) -> bool {
    let Some(signature) = &body.signature else { return false };
    let is_single = |arg: &op_def::ArgDef| arg.number_attr.is_empty() && arg.type_list_attr.is_empty();
    let all_single = signature.input_arg.iter().chain(&signature.output_arg).all(is_single);
    let pair = signature.input_arg.get(i).zip(signature.output_arg.get(i));
    all_single && pair.is_some_and(|(arg, output)| body.ret.get(&output.name) == Some(&arg.name))
}
