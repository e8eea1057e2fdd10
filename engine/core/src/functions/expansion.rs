//! How large a graph becomes with the bodies of functions in the place of their calls: counted before any is put there,
//! since calls of calls multiply. Each function is counted once, so that it takes as long as the library is large.

use std::collections::BTreeMap;
use std::rc::Rc;

use formats::proto::{FunctionDef, NameAttrList, NodeDef, OpDef, attr_value::Value};
use prost::Message as _;
use rustc_hash::FxHashMap;

use crate::graph::{Attr, Attrs, FuncRef, FunctionError, Graph, NodeId, Open, attr_to_proto};
use crate::ops::{self, Library};

/// Nodes that a graph may have with bodies in the place of calls, unless a session says otherwise.
pub const MAX_NODES: usize = 1_000_000;
/// Calls may be nested so deep.
const MAX_DEPTH: usize = 1000;
/// Functions of a chain that an error names.
const N_NAMED: usize = 6;

/// Checks that the graph stays within `limit` nodes when the calls of these nodes are replaced.
///
/// # Errors
/// It does not, or calls are nested too deep.
pub(super) fn check(graph: &Graph, ids: &[NodeId], limit: usize) -> Result<(), FunctionError> {
    let nodes = graph.nodes();
    let library = nodes.functions();
    let mut count =
        Count { library, limit, known: FxHashMap::default(), bodies: FxHashMap::default(), chain: Vec::new() };
    let mut total = nodes.len();
    for node in ids.iter().filter_map(|id| nodes.get(*id)) {
        count.chain.clear();
        let calls = node.attrs.values().flat_map(functions_of).map(call_of).collect::<Vec<_>>();
        for call in &calls {
            let size = count.size(call).map_err(|source| source.at(&node.name))?;
            total = total.saturating_add(size.n_nodes);
            if total > limit {
                let chain = count.heaviest(call);
                return Err(FunctionError::TooLarge { node: node.name.to_string(), n_nodes: total, limit, chain });
            }
        }
    }
    Ok(())
}

fn functions_of(attr: &Attr) -> &[FuncRef] {
    match attr {
        Attr::Func(f) => std::slice::from_ref(f),
        Attr::ListFunc(all) => all,
        _ => &[],
    }
}

fn call_of(f: &FuncRef) -> NameAttrList {
    let attr = f.attrs.iter().map(|(name, value)| (name.clone(), attr_to_proto(value))).collect();
    NameAttrList { name: f.name.to_string(), attr }
}

/// What a call adds to the graph.
#[derive(Clone, Copy)]
struct Size {
    n_nodes: usize,
    /// A function is not put in its own place again: the outermost of the calls around this one for which it matters.
    depends_on: Option<usize>,
}

/// Calls that cannot be counted.
enum Uncounted {
    TooDeep { function: String },
    Other(FunctionError),
}

impl Uncounted {
    fn at(self, node: &str) -> FunctionError {
        match self {
            Uncounted::TooDeep { function } => {
                FunctionError::TooDeep { node: node.to_owned(), function, limit: MAX_DEPTH }
            }
            Uncounted::Other(error) => error,
        }
    }
}

struct Count<'l> {
    library: &'l Library,
    limit: usize,
    /// The sizes of calls that do not depend on where they are.
    known: FxHashMap<Vec<u8>, Size>,
    /// The calls in the bodies of calls.
    bodies: FxHashMap<Vec<u8>, Rc<[NameAttrList]>>,
    /// The functions in whose bodies we are.
    chain: Vec<String>,
}

impl Count<'_> {
    fn size(&mut self, call: &NameAttrList) -> Result<Size, Uncounted> {
        // What the library lacks is reported when it is needed.
        let Some(function) = self.library.get(&call.name).cloned() else {
            return Ok(Size { n_nodes: 0, depends_on: None });
        };
        if let Some(at) = self.chain.iter().position(|name| *name == call.name) {
            return Ok(Size { n_nodes: 1, depends_on: Some(at) });
        }
        let key = call.encode_to_vec();
        if let Some(size) = self.known.get(&key) {
            return Ok(*size);
        }
        let depth = self.chain.len();
        if depth >= MAX_DEPTH {
            return Err(Uncounted::TooDeep { function: call.name.clone() });
        }
        let calls = match self.bodies.get(&key) {
            Some(calls) => Rc::clone(calls),
            None => calls(self.library, &function, &call.attr).map_err(Uncounted::Other)?.into(),
        };
        self.bodies.insert(key.clone(), Rc::clone(&calls));
        self.chain.push(call.name.clone());
        let mut size = Size { n_nodes: function.node_def.len(), depends_on: None };
        for call in calls.iter() {
            let inner = stacker::maybe_grow(64 << 10, 1 << 20, || self.size(call))?;
            size.n_nodes = size.n_nodes.saturating_add(inner.n_nodes);
            size.depends_on = size.depends_on.into_iter().chain(inner.depends_on).filter(|at| *at < depth).min();
            // What cannot be kept is counted again and again, but not for ever.
            if size.depends_on.is_some() && size.n_nodes > self.limit {
                break;
            }
        }
        self.chain.pop();
        if size.depends_on.is_none() {
            self.known.insert(key, size);
        }
        Ok(size)
    }

    /// From a call that is too large to where most of it comes from; what depends on the calls around it comes first.
    fn heaviest(&self, call: &NameAttrList) -> String {
        let mut names = vec![call.name.clone()];
        let mut call = call.clone();
        while let Some(calls) = self.bodies.get(&call.encode_to_vec()) {
            let size = |call: &NameAttrList| self.known.get(&call.encode_to_vec()).map_or(usize::MAX, |s| s.n_nodes);
            let others = calls.iter().filter(|inner| !names.contains(&inner.name));
            let Some(largest) = others.reduce(|a, b| if size(b) > size(a) { b } else { a }) else { break };
            if names.len() == N_NAMED {
                return format!("{} -> ...", names.join(" -> "));
            }
            names.push(largest.name.clone());
            call = largest.clone();
        }
        names.join(" -> ")
    }
}

/// The calls in a function's body, each as often as it stands there.
fn calls(library: &Library, function: &FunctionDef, given: &Attrs) -> Result<Vec<NameAttrList>, FunctionError> {
    let default = OpDef::default();
    let declared = function.signature.as_ref().unwrap_or(&default);
    let open = Open { function: &declared.name, declared, given };
    let mut all = Vec::new();
    for node in &function.node_def {
        all.extend(of_node(library, node, &open)?);
    }
    Ok(all)
}

fn of_node(library: &Library, node: &NodeDef, open: &Open<'_>) -> Result<Vec<NameAttrList>, FunctionError> {
    if ops::lookup(&node.op).is_none() && library.get(&node.op).is_some() {
        let attr: BTreeMap<_, _> = node
            .attr
            .iter()
            .map(|(name, v)| Ok((name.clone(), open.fill(v)?)))
            .collect::<Result<_, FunctionError>>()?;
        return Ok(vec![NameAttrList { name: node.op.clone(), attr }]);
    }
    let mut all = Vec::new();
    for value in node.attr.values().filter(|_| ops::kind(&node.op).is_functional()) {
        match open.fill(value)?.value {
            Some(Value::Func(f)) => all.push(f),
            Some(Value::List(list)) => all.extend(list.func),
            _ => {}
        }
    }
    Ok(all)
}
