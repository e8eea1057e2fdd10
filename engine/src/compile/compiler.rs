//! The compiler of a graph's steps: from feeds, fetches and targets to plans.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::lowered::Lowered;
use super::node_kernels::{Kernels, Numerics, SharedKernels};
use super::partition::TransferOptions;
use super::passes::memory::PeakEstimate;
use super::passes::{PassContext, prune};
use super::pins::pin;
use super::pipeline::{self, PassReport, Passes};
use super::placement::{self, Pins, PlacementOptions, RelaxedRequest};
use super::plan::Plan;
use super::plan::compile::compile;
use super::{CompileError, Signature, WorkGraph};
use crate::checkpoint::{CheckpointError, Fields};
use engine_core::device::Device;
use engine_core::dtype::DType;
use engine_core::functions::FunctionError;
use engine_core::graph::{Attr, FuncRef, Graph, GraphError, NodeId, Nodes, Output};
use engine_core::kernel::KernelStates;
use engine_core::shape::PartialShape;
use engine_ops::gradients;

/// What can be chosen for the plans of a graph.
pub(crate) struct CompileOptions {
    /// The passes that plans go through.
    pub passes: Passes,
    /// A folder that gets the graph of every plan before the first pass and after each.
    pub dump_graphs: Option<PathBuf>,
    /// How nodes are placed on the devices.
    pub placement: PlacementOptions,
    /// How values get from device to device.
    pub transfers: TransferOptions,
    /// What dimensions that shapes leave open are taken for where sizes are estimated.
    pub unknown_dim: usize,
    /// Nodes that the graph may have with the bodies of functions in the place of their calls.
    pub max_nodes: usize,
    /// What is done about results that are no finite numbers.
    pub numerics: Numerics,
    /// The kernels with state.
    pub kernels: SharedKernels,
}

/// What a signature needs, after all passes, and what they report.
pub(crate) struct Rewritten {
    pub graph: WorkGraph,
    pub passes: Vec<PassReport>,
    pub peaks: Vec<PeakEstimate>,
    pub relaxed: Vec<RelaxedRequest>,
}

/// Compiles steps of a graph, which may grow meanwhile. What plans share is here: kernels, places, lowered functions.
pub(crate) struct Compiler {
    graph: Graph,
    devices: Vec<Arc<Device>>,
    options: CompileOptions,
    /// Where nodes that hold state are, and how many nodes were looked at for it.
    pins: Mutex<(usize, Arc<Pins>)>,
    kernels: Mutex<Kernels>,
    lowered: Mutex<Lowered>,
    /// Requests that the plans so far did not meet, by node.
    relaxed: Mutex<BTreeMap<String, RelaxedRequest>>,
}

impl Compiler {
    pub fn new(graph: &Graph, devices: Vec<Arc<Device>>, mut options: CompileOptions) -> Compiler {
        if options.numerics != Numerics::Ignore {
            options.passes = options.passes.without("fuse").without("fuse_matmul");
        }
        Compiler {
            graph: graph.clone(),
            devices,
            pins: Mutex::default(),
            kernels: Mutex::new(Kernels::new(options.numerics, options.kernels.clone())),
            lowered: Mutex::default(),
            relaxed: Mutex::default(),
            options,
        }
    }

    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    pub fn devices(&self) -> &[Arc<Device>] {
        &self.devices
    }

    /// Forgets the kernels, which may hold objects of a container that was dropped.
    pub fn forget_kernels(&self) {
        self.kernels.lock().clear();
    }

    /// What names mean: `node` or `node:port`.
    pub fn signature<'a>(
        &self,
        feeds: impl Iterator<Item = &'a str>,
        fetches: &[&str],
        targets: &[&str],
    ) -> Result<Signature, GraphError> {
        self.graph.check()?;
        Ok(Signature {
            feeds: feeds.map(|name| self.graph.output(name)).collect::<Result<_, _>>()?,
            fetches: fetches.iter().map(|name| self.graph.output(name)).collect::<Result<_, _>>()?,
            targets: targets.iter().map(|name| self.graph.node_of(name)).collect::<Result<_, _>>()?,
        })
    }

    /// The plan of a signature.
    pub fn plan(&self, signature: &Signature) -> Result<Plan, CompileError> {
        let rewritten = self.rewritten(signature)?;
        let mut kernels = self.kernels.lock();
        compile(&rewritten.graph, &mut |node| kernels.get(node, &self.devices))
    }

    /// What a signature needs, after all passes, and what each did.
    pub fn rewritten(&self, signature: &Signature) -> Result<Rewritten, CompileError> {
        let calls = prune::calls(&self.graph.nodes(), signature)?;
        let graph = if calls.is_empty() { self.graph.clone() } else { self.lowered(&calls)? };
        let pins = self.pinned(&graph.nodes(), signature)?;
        let context = PassContext {
            source: Some((&graph, signature)),
            dump: self.options.dump_graphs.as_deref(),
            ..self.pass_context(&pins)
        };
        let (work, passes) = pipeline::run(&self.options.passes, &context)?;
        let (peaks, relaxed) = (context.peaks.into_inner(), context.relaxed.into_inner());
        self.relaxed.lock().extend(relaxed.iter().map(|one| (one.node.clone(), one.clone())));
        Ok(Rewritten { graph: work, passes, peaks, relaxed })
    }

    /// A graph in which what these nodes call is in their place.
    fn lowered(&self, calls: &[NodeId]) -> Result<Graph, CompileError> {
        let (lowered, is_new) = self.lowered.lock().with(&self.graph, calls, self.options.max_nodes)?;
        if is_new {
            self.kernels.lock().forget_stateless();
        }
        Ok(lowered)
    }

    /// The plan of a function that a step calls while it runs, for arguments of these types.
    pub fn plan_of_function(&self, f: &FuncRef, given: &[DType], types: &[DType]) -> Result<Plan, CompileError> {
        let added = |error: GraphError| CompileError::from(FunctionError::from(error));
        let graph = self.graph.with_same_functions();
        let arg = |dtype: &DType| graph.placeholder("arg", *dtype, PartialShape::unknown()).try_output();
        let feeds: Vec<Output> = given.iter().map(arg).collect::<Result<_, _>>().map_err(added)?;
        let call = graph.add_node("PartitionedCall").name("call").inputs(&feeds).attr("f", Attr::Func(f.clone()));
        let (tin, tout) = (Attr::ListType(given.to_vec()), Attr::ListType(types.to_vec()));
        let call = call.attr("Tin", tin).attr("Tout", tout).build().map_err(added)?;
        gradients::lower(&graph, &[call], self.options.max_nodes)?;
        let fetches = (0..types.len() as u32).map(|port| Output { node: call, port }).collect();
        let signature = Signature { feeds, fetches, targets: vec![call] };
        let pins = Pins::default();
        let context = PassContext { source: Some((&graph, &signature)), ..self.pass_context(&pins) };
        let (work, _) = pipeline::run(&self.options.passes, &context)?;
        let mut kernels = Kernels::new(self.options.numerics, SharedKernels::default());
        compile(&work, &mut |node| kernels.get(node, &self.devices))
    }

    /// The requests for devices that the plans so far did not meet, by node.
    pub fn relaxed_requests(&self) -> Vec<RelaxedRequest> {
        self.relaxed.lock().values().cloned().collect()
    }

    fn pass_context<'a>(&'a self, pins: &'a Pins) -> PassContext<'a> {
        PassContext {
            source: None,
            devices: &self.devices,
            dump: None,
            placement: &self.options.placement,
            transfers: &self.options.transfers,
            pins,
            unknown_dim: self.options.unknown_dim,
            peaks: RefCell::default(),
            relaxed: RefCell::default(),
        }
    }

    /// Where the nodes that hold state are. All nodes of a graph that grew are looked at, so that a variable's place, and
    /// whether there are the devices that are asked for, does not depend on which step comes first.
    fn pinned(&self, nodes: &Nodes, signature: &Signature) -> Result<Arc<Pins>, CompileError> {
        let mut known = self.pins.lock();
        if known.0 != nodes.len() {
            // What is wrong with the step itself comes before what is wrong with the graph.
            prune::check(nodes, signature)?;
            if !self.options.placement.is_soft {
                placement::check_requests(nodes, &self.devices)?;
            }
            let pins = match self.devices.len() {
                1 => Arc::clone(&known.1),
                _ => Arc::new(pin(nodes, &self.pass_context(&known.1))?),
            };
            *known = (nodes.len(), pins);
        }
        Ok(Arc::clone(&known.1))
    }
}

impl KernelStates for Compiler {
    fn save(&self) -> Vec<(Arc<str>, Fields)> {
        self.kernels.lock().save()
    }

    fn restore(&self, state: FxHashMap<Arc<str>, Fields>) -> Result<(), CheckpointError> {
        self.kernels.lock().restore(state)
    }
}
