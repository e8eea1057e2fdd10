//! Functions that steps call while they run: those that call themselves, whose bodies cannot all be in the graph.
//!
//! Such a call is a small step of its own, within the one that it comes from: under its number, in the thread that came to the
//! call, with a plan that all calls of the function share. It ends with the step around it.

use std::sync::Arc;

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::plans::{Kernels, SharedKernels};
use super::{RunError, Session};
use crate::checkpoint::{CheckpointError, Fields};
use crate::dtype::DType;
use crate::executor::{self, CancelToken, Environment, ExecuteError, Limits};
use crate::functions::{self, FunctionError};
use crate::graph::{Attr, FuncRef, GraphError};
use crate::kernels::{Cancellation, Functions, KernelError, KernelStates};
use crate::passes::{self, WorkGraph};
use crate::placement::Pins;
use crate::plan::{Plan, PlanError, Signature};
use crate::shape::PartialShape;
use crate::tensor::Tensor;
use crate::trace::StepTag;

/// Calls that may be open at once, one within the other.
const MAX_DEPTH: u32 = 1000;
/// Where less of the stack is left than this, a call gets a new piece.
const STACK_LEFT: usize = 256 << 10;
/// How large a new piece is.
const STACK_PIECE: usize = 4 << 20;

/// The plan of a function for arguments of these types.
struct Body {
    f: FuncRef,
    given: Vec<DType>,
    plan: Arc<Plan>,
}

/// The plans of the functions that were called.
#[derive(Default)]
pub(super) struct Bodies(Mutex<Vec<Body>>);

impl Bodies {
    pub fn clear(&self) {
        self.0.lock().clear();
    }
}

/// Runs functions for a step, or for a function that the step called.
pub(super) struct Calls<'a> {
    pub session: &'a Session,
    pub trace: StepTag,
    pub step_id: u64,
    pub deadline: Option<i64>,
    /// Of the calls that are made here.
    pub depth: u32,
}

impl Functions for Calls<'_> {
    fn call(
        &self,
        f: &FuncRef,
        args: Vec<Tensor>,
        types: &[DType],
        cancellation: Cancellation,
    ) -> Result<Vec<Tensor>, KernelError> {
        if self.depth > MAX_DEPTH {
            return Err(KernelError::TooDeep { function: f.name.clone(), limit: MAX_DEPTH });
        }
        let failed = |source: RunError| KernelError::Function { function: f.name.clone(), source: Box::new(source) };
        let plan = self.session.body(f, &args, types).map_err(|e| failed(e.into()))?;
        let cancel = CancelToken::of(cancellation);
        let environment = Environment {
            pool: &self.session.pool,
            devices: &self.session.devices,
            limits: Limits { cancel: Some(&cancel), deadline: self.deadline, on_stall: None },
            functions: &Calls { depth: self.depth + 1, ..*self },
            step_id: self.step_id,
            rendezvous: None,
        };
        let run = || executor::run(&plan, &args, &environment, self.trace);
        stacker::maybe_grow(STACK_LEFT, STACK_PIECE, run).map_err(|error| match error {
            // Told once, by the innermost call, not by all those around it.
            ExecuteError::Kernel { source, .. } if is_told(&source) => *source,
            other => failed(other.into()),
        })
    }

    fn kernels(&self) -> Option<&dyn KernelStates> {
        Some(self.session)
    }
}

impl KernelStates for Session {
    fn save(&self) -> Vec<(Arc<str>, Fields)> {
        self.save_kernels()
    }

    fn restore(&self, state: FxHashMap<Arc<str>, Fields>) -> Result<(), CheckpointError> {
        self.restore_kernels(state)
    }
}

fn is_told(error: &KernelError) -> bool {
    matches!(error, KernelError::Function { .. } | KernelError::TooDeep { .. })
}

impl Session {
    /// The plan of a function for arguments of these types.
    fn body(&self, f: &FuncRef, args: &[Tensor], types: &[DType]) -> Result<Arc<Plan>, PlanError> {
        let given: Vec<DType> = args.iter().map(Tensor::dtype).collect();
        let mut known = self.bodies.0.lock();
        if let Some(body) = known.iter().find(|body| body.f == *f && body.given == given) {
            return Ok(Arc::clone(&body.plan));
        }
        let plan = Arc::new(self.compile_body(f, &given, types)?);
        known.push(Body { f: f.clone(), given, plan: Arc::clone(&plan) });
        Ok(plan)
    }

    fn compile_body(&self, f: &FuncRef, given: &[DType], types: &[DType]) -> Result<Plan, PlanError> {
        let added = |error: GraphError| PlanError::from(FunctionError::from(error));
        let graph = self.graph.with_same_functions();
        let arg = |dtype: &DType| graph.placeholder("arg", *dtype, PartialShape::unknown());
        let feeds = given.iter().map(arg).collect::<Result<Vec<_>, _>>().map_err(added)?;
        let call = graph.add_node("PartitionedCall").name("call").inputs(&feeds).attr("f", Attr::Func(f.clone()));
        let (tin, tout) = (Attr::ListType(given.to_vec()), Attr::ListType(types.to_vec()));
        let call = call.attr("Tin", tin).attr("Tout", tout).build().map_err(added)?;
        functions::lower(&graph, &[call], self.max_nodes)?;
        let fetches = (0..types.len() as u32).map(|port| crate::graph::Output { node: call, port }).collect();
        let signature = Signature { feeds, fetches, targets: vec![call] };
        let mut work = WorkGraph::pruned(&graph.nodes(), &signature)?;
        let pins = Pins::default();
        passes::run(&mut work, &self.passes, &self.pass_context(&pins))?;
        let mut kernels = Kernels::new(self.kernels.lock().numerics(), SharedKernels::default());
        crate::plan::compile::compile(&work, &mut |node| kernels.get(node, &self.devices))
    }
}
