//! Functions that steps call while they run: those that call themselves, whose bodies cannot all be in the graph.
//!
//! Such a call is a small step of its own, within the one that it comes from: under its number, in the thread that came to the
//! call, with a plan that all calls of the function share. It ends with the step around it.

use std::sync::Arc;

use parking_lot::Mutex;

use super::error::RunError;
use crate::compile::{CompileError, Compiler};
use crate::run::executor::{self, CancelToken, Environment, Executable, ExecuteError, Limits};
use crate::run::pool::Pool;
use engine_core::dtype::DType;
use engine_core::graph::FuncRef;
use engine_core::kernel::{Cancellation, Functions, KernelError, KernelStates};
use engine_core::tensor::Tensor;
use engine_core::trace::StepTag;

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
    plan: Arc<Executable>,
}

/// The plans of the functions that were called.
#[derive(Default)]
pub(super) struct Bodies(Mutex<Vec<Body>>);

impl Bodies {
    /// The plan of a function for arguments of these types.
    fn plan(
        &self,
        compiler: &Compiler,
        f: &FuncRef,
        args: &[Tensor],
        types: &[DType],
    ) -> Result<Arc<Executable>, CompileError> {
        let given: Vec<DType> = args.iter().map(Tensor::dtype).collect();
        let mut known = self.0.lock();
        if let Some(body) = known.iter().find(|body| body.f == *f && body.given == given) {
            return Ok(Arc::clone(&body.plan));
        }
        let plan = Arc::new(Executable::from(compiler.plan_of_function(f, &given, types)?));
        known.push(Body { f: f.clone(), given, plan: Arc::clone(&plan) });
        Ok(plan)
    }

    pub fn clear(&self) {
        self.0.lock().clear();
    }
}

/// Runs functions for a step, or for a function that the step called.
pub(super) struct Calls<'a> {
    pub pool: &'a Pool,
    pub compiler: &'a Compiler,
    pub bodies: &'a Bodies,
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
        let plan = self.bodies.plan(self.compiler, f, &args, types).map_err(|e| failed(e.into()))?;
        let cancel = CancelToken::of(cancellation);
        let environment = Environment {
            pool: self.pool,
            devices: self.compiler.devices(),
            limits: Limits { cancel: Some(&cancel), deadline: self.deadline, on_stall: None },
            functions: &Calls { depth: self.depth + 1, ..*self },
            step_id: self.step_id,
            rendezvous: None,
        };
        let run = || executor::run(&plan, &args, &environment, self.trace);
        stacker::maybe_grow(STACK_LEFT, STACK_PIECE, run).map_err(|error| match error {
            // Only the innermost call names its function, not all those around it.
            ExecuteError::Kernel { source, .. } if has_function(&source) => *source,
            other => failed(other.into()),
        })
    }

    fn kernels(&self) -> Option<&dyn KernelStates> {
        Some(self.compiler)
    }
}

/// Whether an error already names the function that it came from.
fn has_function(error: &KernelError) -> bool {
    matches!(error, KernelError::Function { .. } | KernelError::TooDeep { .. })
}
