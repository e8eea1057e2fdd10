//! The session itself: the compiler of its graph, the threads, and the plans that it keeps.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use formats::proto::GraphDef;
use lru::LruCache;
use parking_lot::Mutex;
use rustc_hash::{FxBuildHasher, FxHashMap};

use super::calls::{Bodies, Calls};
use super::error::{ExtendError, RunError};
use super::options::{Meeting, RunOptions, SessionOptions};
use crate::checkpoint::{CheckpointError, Fields};
use crate::compile::passes::memory::PeakEstimate;
use crate::compile::placement::cost_model::NodeRecord;
use crate::compile::placement::{CostModel, RelaxedRequest};
use crate::compile::plan::Plan;
use crate::compile::{CompileError, CompileOptions, Compiler, PassReport, Rewritten, Signature};
use crate::run::executor::{self, Environment, Executable, Limits};
use crate::run::pool::Pool;
use engine_core::device::Device;
use engine_core::graph::Graph;
use engine_core::kernel::KernelStates;
use engine_core::tensor::Tensor;
use engine_core::trace::StepTrace;

/// What is executed for some feeds, fetches and targets.
#[derive(Debug, Clone)]
pub struct Inspection {
    /// The graph after all passes.
    pub graph: GraphDef,
    /// What each pass did.
    pub passes: Vec<PassReport>,
    /// The memory that a step is estimated to take, by device.
    pub peaks: Vec<PeakEstimate>,
    /// Requests for devices that were not met ([`is_soft`](crate::compile::placement::PlacementOptions::is_soft)).
    pub relaxed: Vec<RelaxedRequest>,
}

/// Runs parts of a graph. It may be used from several threads at once.
pub struct Session {
    pub(super) compiler: Compiler,
    pool: Arc<Pool>,
    /// When the session began: the clock's rate is measured from there.
    began: events::Anchor,
    /// By signature; the one that was not used longest makes room.
    plans: Mutex<LruCache<Signature, Arc<Executable>, FxBuildHasher>>,
    extending: Mutex<()>,
    /// Plans of functions that are called while steps run.
    bodies: Bodies,
}

/// More signatures than this are compiled again when their turn comes.
const MAX_PLANS: NonZeroUsize = NonZeroUsize::new(128).unwrap();

/// Step ids are unique in the process, whichever session runs the step.
static NEXT_STEP: AtomicU64 = AtomicU64::new(1);

impl Session {
    /// A session on `graph`. Nodes that are added to the graph later can be run too.
    ///
    /// # Errors
    /// A node of the graph could not be added ([`Graph::check`]); the system gives no threads; two devices have one name.
    pub fn new(graph: &Graph, options: SessionOptions) -> Result<Session, RunError> {
        graph.check()?;
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
        let pool = pool.map_err(RunError::Threads)?;
        let began = events::clock::anchor();
        let options = CompileOptions {
            passes: options.passes,
            dump_graphs: options.dump_graphs,
            placement: options.placement,
            transfers: options.transfers,
            unknown_dim: options.unknown_dim,
            max_nodes: options.max_nodes,
            numerics: options.numerics,
            kernels: options.kernels,
        };
        Ok(Session {
            compiler: Compiler::new(graph, devices, options),
            pool,
            began,
            plans: Mutex::new(LruCache::with_hasher(MAX_PLANS, FxBuildHasher)),
            extending: Mutex::default(),
            bodies: Bodies::default(),
        })
    }

    /// The graph.
    pub fn graph(&self) -> &Graph {
        self.compiler.graph()
    }

    /// The first device. What is placed nowhere else runs there.
    pub fn device(&self) -> &Arc<Device> {
        &self.compiler.devices()[0]
    }

    /// The devices, whose variables the session's steps use. Give them to other sessions to share these.
    pub fn devices(&self) -> &[Arc<Device>] {
        self.compiler.devices()
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
        let version = self.graph().n_nodes();
        if let Some(expected) = expected_version.filter(|expected| *expected != version) {
            return Err(ExtendError::Version { expected, version });
        }
        self.graph().import(def, "")?;
        Ok(self.graph().n_nodes())
    }

    /// Drops the variables and other objects of a container (of the default one: `localhost`). Steps that are
    /// running keep what they hold.
    pub fn reset(&self, container: &str) {
        self.devices().iter().for_each(|device| device.resources().clear(container));
        // Kernels may hold objects of it.
        self.plans.lock().clear();
        self.compiler.forget_kernels();
        self.bodies.clear();
    }

    /// The state that kernels hold themselves, by the names of their nodes.
    pub(crate) fn save_kernels(&self) -> Vec<(Arc<str>, Fields)> {
        self.compiler.save()
    }

    /// Gives kernels their state, those that are made later included.
    pub(crate) fn restore_kernels(&self, state: FxHashMap<Arc<str>, Fields>) -> Result<(), CheckpointError> {
        self.compiler.restore(state)
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
        let signature = self.compiler.signature(feeds.iter().map(|(name, _)| *name), fetches, targets)?;
        let plan = self.plan(signature)?;
        let values: smallvec::SmallVec<[Tensor; 4]> = feeds.iter().map(|(_, value)| value.clone()).collect();
        self.execute(&plan, options, &values, None)
    }

    /// What names ask for: `node` or `node:port`.
    ///
    /// # Errors
    /// A name is unknown, or a node of the graph could not be added.
    pub fn signature(&self, feeds: &[&str], fetches: &[&str], targets: &[&str]) -> Result<Signature, RunError> {
        Ok(self.compiler.signature(feeds.iter().copied(), fetches, targets)?)
    }

    /// The plan of a signature, compiled if it is not in the cache.
    pub(super) fn plan(&self, signature: Signature) -> Result<Arc<Executable>, CompileError> {
        if let Some(plan) = self.plans.lock().get(&signature) {
            return Ok(Arc::clone(plan));
        }
        let plan = Arc::new(Executable::from(self.compiler.plan(&signature)?));
        self.plans.lock().put(signature, Arc::clone(&plan));
        Ok(plan)
    }

    /// The requests for devices that the plans so far did not meet, by node
    /// ([`PlacementOptions::is_soft`](crate::compile::placement::PlacementOptions::is_soft)).
    pub fn relaxed_requests(&self) -> Vec<RelaxedRequest> {
        self.compiler.relaxed_requests()
    }

    /// What the nodes of the plans that are kept took, as far as it was measured: in traced steps, and in some others.
    pub fn cost_model(&self) -> CostModel {
        let clock = events::TicksToNs::from_anchors(&[self.began, events::clock::anchor()]);
        let mut model = CostModel::new();
        for (_, executable) in self.plans.lock().iter() {
            let plan = &executable.plan;
            // A node outside of loops is measured once in each step that is.
            model.add_steps((0..plan.infos.len()).map(|node| plan.costs.sum(node).0).min().unwrap_or(0));
            for (i, info) in plan.infos.iter().enumerate() {
                let (count, ticks) = plan.costs.sum(i);
                model.add(NodeRecord {
                    name: info.name.to_string(),
                    op: info.op.to_owned(),
                    device: self.devices()[usize::from(plan.nodes[i].device)].kind().to_owned(),
                    count,
                    total_ns: clock.duration_ns(self.began.ticks, ticks) as f64,
                    bytes: Vec::new(),
                });
            }
        }
        model
    }

    /// What is executed for feeds, fetches and targets, and what each pass did to get there: nodes before and after,
    /// changes, time.
    ///
    /// # Errors
    /// A name is unknown, or what is asked cannot be planned.
    pub fn inspect(&self, feeds: &[&str], fetches: &[&str], targets: &[&str]) -> Result<Inspection, RunError> {
        let signature = self.signature(feeds, fetches, targets)?;
        let Rewritten { graph, passes, peaks, relaxed } = self.compiler.rewritten(&signature)?;
        Ok(Inspection { graph: graph.to_def(), passes, peaks, relaxed })
    }

    pub(super) fn execute(
        &self,
        executable: &Executable,
        options: &RunOptions<'_>,
        feeds: &[Tensor],
        meeting: Option<&Meeting>,
    ) -> Result<Vec<Tensor>, RunError> {
        check_feeds(&executable.plan, feeds)?;
        let step_id = NEXT_STEP.fetch_add(1, Ordering::Relaxed);
        let deadline = options.timeout.map(|timeout| {
            let timeout = i64::try_from(timeout.as_nanos()).unwrap_or(i64::MAX);
            events::clock::mono_now().saturating_add(timeout)
        });
        // All tasks trace the step under one number.
        let trace_id = meeting.map_or(step_id, |meeting| meeting.step_id);
        let trace = StepTrace::begin(trace_id, options.label, options.summary_step.unwrap_or(-1));
        let environment = Environment {
            pool: &self.pool,
            devices: self.devices(),
            limits: Limits { cancel: options.cancel, deadline, on_stall: options.on_stall },
            functions: &Calls {
                pool: &self.pool,
                compiler: &self.compiler,
                bodies: &self.bodies,
                trace: trace.tag(),
                step_id,
                deadline,
                depth: 1,
            },
            step_id,
            rendezvous: meeting.map(|meeting| Arc::clone(&meeting.rendezvous)),
        };
        let result = executor::run(executable, feeds, &environment, trace.tag());
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
