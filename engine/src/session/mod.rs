//! Sessions: the client's way to run parts of a graph (white paper sections 2 and 4.2).
//!
//! A [`Session`] compiles each (feeds, fetches, targets) signature it is asked for once, and keeps the plans and the
//! nodes' kernels. Steps run in their callers' threads, several at once where several threads call; they meet in the
//! device's containers of variables, which outlive the session and are shared by the sessions of one [`Device`].
//! [`Session::prepare`] resolves names once for a step that is run often.

mod callable;
mod calls;
mod error;
mod options;
mod parts;
mod plans;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use formats::proto::GraphDef;
use parking_lot::Mutex;
use rustc_hash::FxHashMap;

pub use crate::executor::{CancelToken, OnStall};
pub use callable::Callable;
pub use error::{ExtendError, RunError};
pub use options::{Numerics, RunOptions, SessionOptions};
pub use parts::{Division, Meeting, PartError, TaskSession};
pub use plans::SharedKernels;

use crate::checkpoint::{CheckpointError, Fields};
use crate::device::Device;
use crate::executor::{self, Environment, Limits};
use crate::functions::Lowered;
use crate::graph::{Graph, GraphError, NodeId, Nodes};
use crate::partition::TransferOptions;
use crate::passes::memory::PeakEstimate;
use crate::passes::{self, PassContext, PassReport, Passes, WorkGraph};
use crate::placement::cost_model::NodeRecord;
use crate::placement::{self, CostModel, Pins, PlacementOptions, RelaxedRequest};
use crate::plan::{Plan, PlanError, Signature};
use crate::pool::Pool;
use crate::tensor::Tensor;
use crate::trace::StepTrace;
use calls::{Bodies, Calls};
use plans::{Kernels, Plans};

/// What is executed for some feeds, fetches and targets.
#[derive(Debug, Clone)]
pub struct Inspection {
    /// The graph after all passes.
    pub graph: GraphDef,
    /// What each pass did.
    pub passes: Vec<PassReport>,
    /// The memory that a step is estimated to take, by device.
    pub peaks: Vec<PeakEstimate>,
    /// Requests for devices that were not met ([`PlacementOptions::is_soft`]).
    pub relaxed: Vec<RelaxedRequest>,
}

/// What a signature needs, after all passes, and what they tell.
struct Rewritten {
    graph: WorkGraph,
    passes: Vec<PassReport>,
    peaks: Vec<PeakEstimate>,
    relaxed: Vec<RelaxedRequest>,
}

/// Runs parts of a graph. It may be used from several threads at once.
pub struct Session {
    graph: Graph,
    devices: Vec<Arc<Device>>,
    pool: Arc<Pool>,
    passes: Passes,
    dump_graphs: Option<PathBuf>,
    placement: PlacementOptions,
    transfers: TransferOptions,
    /// Where nodes that hold state are, and how many nodes were looked at for it.
    pins: Mutex<(usize, Arc<Pins>)>,
    unknown_dim: usize,
    max_nodes: usize,
    /// When the session began: the clock's rate is measured from there.
    began: events::Anchor,
    kernels: Mutex<Kernels>,
    plans: Mutex<Plans>,
    extending: Mutex<()>,
    lowered: Mutex<Lowered>,
    /// Requests that the plans so far did not meet, by node.
    relaxed: Mutex<BTreeMap<String, RelaxedRequest>>,
    /// Plans of functions that are called while steps run.
    bodies: Bodies,
}

/// Step ids are unique in the process, whichever session runs the step.
static NEXT_STEP: AtomicU64 = AtomicU64::new(1);

impl Session {
    /// A session on `graph`. Nodes that are added to the graph later can be run too.
    ///
    /// # Errors
    /// The system gives no threads; two devices have one name.
    pub fn new(graph: &Graph, options: SessionOptions) -> Result<Session, RunError> {
        let pool = match options.threads {
            None => Pool::global(),
            Some(n) => Pool::new(n).map(Arc::new),
        };
        let mut devices = options.devices;
        if devices.is_empty() {
            devices.push(Arc::new(Device::cpu(0, options.memory_limit)));
        }
        let is_second = |(i, device): &(usize, &Arc<Device>)| devices[..*i].iter().any(|d| d.name() == device.name());
        if let Some((_, device)) = devices.iter().enumerate().find(is_second) {
            return Err(RunError::SameDevice { name: device.name().to_owned() });
        }
        Ok(Session {
            graph: graph.clone(),
            devices,
            pool: pool.map_err(RunError::Threads)?,
            passes: match options.numerics {
                Numerics::Ignore => options.passes,
                Numerics::Fail | Numerics::Trace => options.passes.without("fuse").without("fuse_matmul"),
            },
            dump_graphs: options.dump_graphs,
            placement: options.placement,
            transfers: options.transfers,
            pins: Mutex::default(),
            unknown_dim: options.unknown_dim,
            max_nodes: options.max_nodes,
            began: events::clock::anchor(),
            kernels: Mutex::new(Kernels::new(options.numerics, options.kernels)),
            plans: Mutex::default(),
            extending: Mutex::default(),
            lowered: Mutex::default(),
            relaxed: Mutex::default(),
            bodies: Bodies::default(),
        })
    }

    /// The graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The first device. What is placed nowhere else runs there.
    pub fn device(&self) -> &Arc<Device> {
        &self.devices[0]
    }

    /// The devices, whose variables the session's steps use. Give them to other sessions to share these.
    pub fn devices(&self) -> &[Arc<Device>] {
        &self.devices
    }

    /// The threads that a step may use, its caller's included.
    pub fn n_threads(&self) -> usize {
        self.pool.n_threads()
    }

    /// Adds the nodes of `def` to the session's graph and gives its new version, the number of its nodes. With
    /// `expected_version` it is refused when somebody else extended the graph since.
    ///
    /// # Errors
    /// Another version, or a node that does not fit.
    pub fn extend(&self, def: &GraphDef, expected_version: Option<usize>) -> Result<usize, ExtendError> {
        let _one_at_a_time = self.extending.lock();
        let version = self.graph.n_nodes();
        if let Some(expected) = expected_version.filter(|expected| *expected != version) {
            return Err(ExtendError::Version { expected, version });
        }
        self.graph.import(def, "")?;
        Ok(self.graph.n_nodes())
    }

    /// Drops the variables and other objects of a container (of the default one: `localhost`). Steps that are
    /// running keep what they hold.
    pub fn reset(&self, container: &str) {
        self.devices.iter().for_each(|device| device.resources().clear(container));
        // Kernels may hold objects of it.
        self.plans.lock().clear();
        self.kernels.lock().clear();
        self.bodies.clear();
    }

    /// The state that kernels hold themselves, by the names of their nodes.
    pub(crate) fn save_kernels(&self) -> Vec<(Arc<str>, Fields)> {
        self.kernels.lock().save()
    }

    /// Gives kernels their state, those that are made later included.
    pub(crate) fn restore_kernels(&self, state: FxHashMap<Arc<str>, Fields>) -> Result<(), CheckpointError> {
        self.kernels.lock().restore(state)
    }

    /// Runs a step: computes `fetches` and runs `targets`, given `feeds`. Names are `node` or `node:port`. Gives the
    /// fetches' values in order.
    ///
    /// # Errors
    /// See [`RunError`].
    pub fn run(&self, feeds: &[(&str, Tensor)], fetches: &[&str], targets: &[&str]) -> Result<Vec<Tensor>, RunError> {
        self.run_step(&RunOptions::default(), feeds, fetches, targets)
    }

    /// As [`Session::run`], with options.
    ///
    /// # Errors
    /// See [`RunError`].
    pub fn run_step(
        &self,
        options: &RunOptions<'_>,
        feeds: &[(&str, Tensor)],
        fetches: &[&str],
        targets: &[&str],
    ) -> Result<Vec<Tensor>, RunError> {
        let signature = self.signature(feeds.iter().map(|(name, _)| *name), fetches, targets)?;
        let plan = self.plan(signature)?;
        let values: smallvec::SmallVec<[Tensor; 4]> = feeds.iter().map(|(_, value)| value.clone()).collect();
        self.execute(&plan, options, &values, None)
    }

    /// Compiles a step for repeated runs: feeds are then given in this order, without names.
    ///
    /// # Errors
    /// A name is unknown, or what is asked cannot be planned.
    pub fn prepare(&self, feeds: &[&str], fetches: &[&str], targets: &[&str]) -> Result<Callable<'_>, RunError> {
        let signature = self.signature(feeds.iter().copied(), fetches, targets)?;
        Ok(Callable::new(self, self.plan(signature)?))
    }

    fn signature<'a>(
        &self,
        feeds: impl Iterator<Item = &'a str>,
        fetches: &[&str],
        targets: &[&str],
    ) -> Result<Signature, GraphError> {
        Ok(Signature {
            feeds: feeds.map(|name| self.graph.output(name)).collect::<Result<_, _>>()?,
            fetches: fetches.iter().map(|name| self.graph.output(name)).collect::<Result<_, _>>()?,
            targets: targets.iter().map(|name| self.target(name)).collect::<Result<_, _>>()?,
        })
    }

    /// The node that a target (`node` or `node:port`) means; unlike a fetch it needs no output.
    fn target(&self, name: &str) -> Result<NodeId, GraphError> {
        let node = name.rsplit_once(':').map_or(name, |(node, _)| node);
        let found = self.graph.nodes().find(node).map(|node| node.id);
        found.ok_or_else(|| GraphError::NoSuchNode { name: node.to_owned() })
    }

    /// The plan of a signature, compiled if it is not in the cache.
    fn plan(&self, signature: Signature) -> Result<Arc<Plan>, PlanError> {
        if let Some(plan) = self.plans.lock().get(&signature) {
            return Ok(plan);
        }
        let rewritten = self.rewritten(&signature)?;
        let mut kernels = self.kernels.lock();
        let plan = crate::plan::compile::compile(&rewritten.graph, &mut |node| kernels.get(node, &self.devices))?;
        let plan = Arc::new(plan);
        self.plans.lock().insert(signature, Arc::clone(&plan));
        Ok(plan)
    }

    /// What a signature needs, after all passes, and what each did.
    fn rewritten(&self, signature: &Signature) -> Result<Rewritten, PlanError> {
        let mut graph = WorkGraph::pruned(&self.graph.nodes(), signature)?;
        let mut pins = None;
        let calls: Vec<NodeId> =
            graph.iter().filter(|(_, n)| n.kind().is_functional()).filter_map(|(_, n)| n.origin).collect();
        if !calls.is_empty() {
            let (lowered, is_new) = self.lowered.lock().with(&self.graph, &calls, self.max_nodes)?;
            if is_new {
                self.kernels.lock().forget_stateless();
            }
            graph = WorkGraph::pruned(&lowered.nodes(), signature)?;
            pins = Some(self.pinned(&lowered.nodes())?);
        }
        let pins = match pins {
            Some(pins) => pins,
            None => self.pinned(&self.graph.nodes())?,
        };
        let context = PassContext { dump: self.dump_graphs.as_deref(), ..self.pass_context(&pins) };
        let passes = passes::run(&mut graph, &self.passes, &context)?;
        let (peaks, relaxed) = (context.peaks.into_inner(), context.relaxed.into_inner());
        self.relaxed.lock().extend(relaxed.iter().map(|one| (one.node.clone(), one.clone())));
        Ok(Rewritten { graph, passes, peaks, relaxed })
    }

    /// The requests for devices that the plans so far did not meet, by node ([`PlacementOptions::is_soft`]).
    pub fn relaxed_requests(&self) -> Vec<RelaxedRequest> {
        self.relaxed.lock().values().cloned().collect()
    }

    /// What the nodes of the plans that are kept took, as far as it was measured: in traced steps, and in some others.
    pub fn cost_model(&self) -> CostModel {
        let clock = events::TicksToNs::from_anchors(&[self.began, events::clock::anchor()]);
        let mut model = CostModel::new();
        for plan in self.plans.lock().iter() {
            // A node outside of loops is measured once in each step that is.
            model.add_steps((0..plan.infos.len()).map(|node| plan.costs.sum(node).0).min().unwrap_or(0));
            for (i, info) in plan.infos.iter().enumerate() {
                let (count, ticks) = plan.costs.sum(i);
                model.add(NodeRecord {
                    name: info.name.to_string(),
                    op: info.op.to_owned(),
                    device: self.devices[usize::from(plan.nodes[i].device)].kind().to_owned(),
                    count,
                    total_ns: clock.duration_ns(self.began.ticks, ticks) as f64,
                    bytes: Vec::new(),
                });
            }
        }
        model
    }

    fn pass_context<'a>(&'a self, pins: &'a Pins) -> PassContext<'a> {
        let (placement, transfers) = (&self.placement, &self.transfers);
        let (unknown_dim, peaks, relaxed) = (self.unknown_dim, RefCell::default(), RefCell::default());
        PassContext { devices: &self.devices, dump: None, placement, transfers, pins, unknown_dim, peaks, relaxed }
    }

    /// Where the nodes that hold state are. All nodes of a graph that grew are looked at, so that a variable's place, and
    /// whether there are the devices that are asked for, does not depend on which step comes first.
    fn pinned(&self, nodes: &Nodes) -> Result<Arc<Pins>, PlanError> {
        let mut known = self.pins.lock();
        if known.0 != nodes.len() {
            if !self.placement.is_soft {
                placement::check_requests(nodes, &self.devices)?;
            }
            let pins = match self.devices.len() {
                1 => Arc::clone(&known.1),
                _ => Arc::new(placement::pin(nodes, &self.pass_context(&known.1))?),
            };
            *known = (nodes.len(), pins);
        }
        Ok(Arc::clone(&known.1))
    }

    /// What is executed for feeds, fetches and targets, and what each pass did to get there: nodes before and after,
    /// changes, time.
    ///
    /// # Errors
    /// A name is unknown, or what is asked cannot be planned.
    pub fn inspect(&self, feeds: &[&str], fetches: &[&str], targets: &[&str]) -> Result<Inspection, RunError> {
        let signature = self.signature(feeds.iter().copied(), fetches, targets)?;
        let Rewritten { graph, passes, peaks, relaxed } = self.rewritten(&signature)?;
        Ok(Inspection { graph: graph.to_def(), passes, peaks, relaxed })
    }

    fn execute(
        &self,
        plan: &Plan,
        options: &RunOptions<'_>,
        feeds: &[Tensor],
        meeting: Option<&Meeting>,
    ) -> Result<Vec<Tensor>, RunError> {
        check_feeds(plan, feeds)?;
        let step_id = NEXT_STEP.fetch_add(1, Ordering::Relaxed);
        let deadline = options.timeout.map(|timeout| {
            let timeout = i64::try_from(timeout.as_nanos()).unwrap_or(i64::MAX);
            events::clock::mono_now().saturating_add(timeout)
        });
        // All tasks tell of the step under one number.
        let told_id = meeting.map_or(step_id, |meeting| meeting.step_id);
        let trace = StepTrace::begin(told_id, options.label, options.summary_step.unwrap_or(-1));
        let environment = Environment {
            pool: &self.pool,
            devices: &self.devices,
            limits: Limits { cancel: options.cancel, deadline, on_stall: options.on_stall },
            functions: &Calls { session: self, trace: trace.tag(), step_id, deadline, depth: 1 },
            step_id,
            rendezvous: meeting.map(|meeting| Arc::clone(&meeting.rendezvous)),
        };
        let result = executor::run(plan, feeds, &environment, trace.tag());
        trace.end();
        Ok(result?)
    }
}

fn check_feeds(plan: &Plan, feeds: &[Tensor]) -> Result<(), RunError> {
    if feeds.len() != plan.feeds.len() {
        return Err(RunError::FeedCount { expected: plan.feeds.len(), got: feeds.len() });
    }
    for (spec, value) in plan.feeds.iter().zip(feeds) {
        if value.dtype() != spec.dtype || !spec.shape.admits(value.shape()) {
            return Err(RunError::Feed {
                name: spec.name.clone(),
                expected: format!("{}{}", spec.dtype, spec.shape),
                got: format!("{}{}", value.dtype(), value.shape()),
            });
        }
    }
    Ok(())
}
