//! Programs of fused nodes: steps, what they read, and which results are outputs.

use std::sync::{Arc, OnceLock};

use smallvec::SmallVec;

use crate::kernels::formula::{FusedOp, fused_op};
use crate::kernels::{Kernel, KernelError};
use engine_core::dtype::DType;
use engine_core::graph::{Attr, Node};

/// One step of a program.
pub(super) struct Step {
    pub def: &'static FusedOp,
    /// Numbers of inputs, then of results.
    pub operands: [usize; 2],
    pub place: ResultLocation,
}

/// Where a result is while it is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResultLocation {
    Register(usize),
    /// In the output itself.
    Output(usize),
}

/// The part of an input that takes part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Window {
    pub axis: usize,
    /// The first position along the axis.
    pub begin: usize,
    /// Positions along the axis.
    pub size: usize,
}

/// An output: results that stand side by side along an axis, mostly one.
#[derive(Debug, Clone)]
pub(super) struct Joined {
    pub axis: usize,
    /// Steps.
    pub results: SmallVec<[usize; 4]>,
}

/// What a fused node computes.
pub(super) struct Program {
    pub n_inputs: usize,
    /// Of each input.
    pub windows: SmallVec<[Option<Window>; 8]>,
    pub steps: Vec<Step>,
    pub outputs: SmallVec<[Joined; 4]>,
    pub n_registers: usize,
    /// What an element costs, in picoseconds.
    pub ps: u64,
    /// The ops' own kernels, made when they are needed.
    pub alone: OnceLock<Option<Vec<Arc<dyn Kernel>>>>,
    pub dtype: DType,
}

impl Program {
    /// The program that a node's attributes say.
    ///
    /// # Errors
    /// They contradict each other.
    pub fn new(node: &Node) -> Result<Program, KernelError> {
        let n_inputs = usize::try_from(*node.int("N")?).unwrap_or(0);
        let steps = steps(node, n_inputs)?;
        let windows = windows(node, n_inputs)?;
        let outputs = outputs(node, steps.len())?;
        let ps = steps.iter().map(|step| step.def.ps).sum::<u64>() + 200;
        let (alone, dtype) = (OnceLock::new(), *node.dtype("T")?);
        let mut program = Program { n_inputs, windows, steps, outputs, n_registers: 0, ps, alone, dtype };
        program.assign_places();
        Ok(program)
    }

    /// Whether inputs and outputs are whole tensors.
    pub fn is_plain(&self) -> bool {
        self.windows.iter().all(Option::is_none) && self.outputs.iter().all(|output| output.results.len() == 1)
    }

    /// Gives each result a register that no value needed later is in; what is an output alone is computed there.
    fn assign_places(&mut self) {
        let n = self.steps.len();
        let mut last_use: Vec<usize> = (0..n).collect();
        for (i, step) in self.steps.iter().enumerate() {
            step.operands.iter().filter(|o| **o >= self.n_inputs).for_each(|o| last_use[o - self.n_inputs] = i);
        }
        let mut free: Vec<usize> = Vec::new();
        for i in 0..n {
            let output = self.outputs.iter().position(|output| output.results.as_slice() == [i]);
            self.steps[i].place = match output {
                Some(output) => ResultLocation::Output(output),
                None => {
                    let register = free.pop().unwrap_or(self.n_registers);
                    self.n_registers = self.n_registers.max(register + 1);
                    ResultLocation::Register(register)
                }
            };
            // Only now: a result never lies where its operands do.
            let [a, b] = self.steps[i].operands;
            let ended =
                [a, b].into_iter().take(if a == b { 1 } else { 2 }).filter_map(|o| o.checked_sub(self.n_inputs));
            let ended: SmallVec<[usize; 3]> = ended.chain([i]).filter(|of| last_use[*of] == i).collect();
            for of in ended {
                if let ResultLocation::Register(register) = self.steps[of].place {
                    free.push(register);
                }
            }
        }
    }
}

fn steps(node: &Node, n_inputs: usize) -> Result<Vec<Step>, KernelError> {
    let operands = node.ints("operands")?;
    let Some(Attr::ListStr(ops)) = node.attrs.get("ops") else {
        return Err(KernelError::invalid("attribute ops is missing"));
    };
    let bad = || KernelError::invalid(format!("{operands:?} are not operands of {} ops", ops.len()));
    if ops.is_empty() || operands.len() != 2 * ops.len() {
        return Err(bad());
    }
    let mut steps = Vec::with_capacity(ops.len());
    for (i, (name, operands)) in ops.iter().zip(operands.chunks_exact(2)).enumerate() {
        let def = std::str::from_utf8(name).ok().and_then(fused_op);
        let def = def.ok_or_else(|| KernelError::invalid(format!("{name:?} is not an op that can be fused")))?;
        let known = |o: i64| usize::try_from(o).ok().filter(|o| *o < n_inputs + i);
        let (Some(a), Some(b)) = (known(operands[0]), known(operands[1])) else { return Err(bad()) };
        steps.push(Step { def, operands: [a, b], place: ResultLocation::Register(0) });
    }
    Ok(steps)
}

/// Attributes that say nothing mean whole inputs, and the last result.
fn windows(node: &Node, n_inputs: usize) -> Result<SmallVec<[Option<Window>; 8]>, KernelError> {
    let numbers = node.ints("windows")?;
    if numbers.is_empty() {
        return Ok(SmallVec::from_elem(None, n_inputs));
    }
    let window = |numbers: &[i64]| match numbers {
        [-1, _, _] => Some(None),
        [axis, begin, size] => Some(Some(Window {
            axis: usize::try_from(*axis).ok()?,
            begin: usize::try_from(*begin).ok()?,
            size: usize::try_from(*size).ok()?,
        })),
        _ => None,
    };
    let all: Option<SmallVec<[_; 8]>> = numbers.chunks(3).map(window).collect();
    let all = all.filter(|all| all.len() == n_inputs);
    all.ok_or_else(|| KernelError::invalid(format!("{numbers:?} are not windows of {n_inputs} inputs")))
}

fn outputs(node: &Node, n_steps: usize) -> Result<SmallVec<[Joined; 4]>, KernelError> {
    let (results, joined) = (node.ints("results")?, node.ints("joined")?);
    let bad = || KernelError::invalid(format!("{results:?}, joined by {joined:?}, are not results of {n_steps} steps"));
    let steps: Option<Vec<usize>> =
        results.iter().map(|r| usize::try_from(*r).ok().filter(|step| *step < n_steps)).collect();
    let mut steps = steps.ok_or_else(bad)?;
    if (1..steps.len()).any(|i| steps[..i].contains(&steps[i])) {
        return Err(bad());
    }
    if steps.is_empty() {
        steps.push(n_steps - 1);
    }
    let ones: Vec<i64> = steps.iter().flat_map(|_| [0, 1]).collect();
    let mut outputs = SmallVec::new();
    for pair in if joined.is_empty() { &ones } else { joined }.chunks(2) {
        let &[axis, n] = pair else { return Err(bad()) };
        let (axis, n) = (usize::try_from(axis).map_err(|_| bad())?, usize::try_from(n).map_err(|_| bad())?);
        if n == 0 || n > steps.len() {
            return Err(bad());
        }
        outputs.push(Joined { axis, results: steps.drain(..n).collect() });
    }
    if !steps.is_empty() || i64::try_from(outputs.len()).ok() != Some(*node.int("M")?) {
        return Err(bad());
    }
    Ok(outputs)
}
