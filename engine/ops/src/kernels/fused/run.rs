//! Runs a program over blocks of its inputs.

use std::ops::Range;

use smallvec::SmallVec;

use super::alone::alone;
use super::float::Float;
use super::layout::{Along, Apart, Layout};
use super::program::{Program, ResultLocation};
use crate::kernels::support::{Computed, unique_slice};
use crate::kernels::{Kernel, KernelContext, KernelError};
use engine_core::tensor::Tensor;

/// Elements of a register.
const BLOCK: usize = 1024;
/// Elements of a unit of work that is not cut further.
const UNIT: usize = 4096;

/// A fused kernel for elements of type `T`.
pub(super) struct Fused<T> {
    program: Program,
    of: std::marker::PhantomData<T>,
}

impl<T> Fused<T> {
    pub fn new(program: Program) -> Fused<T> {
        Fused { program, of: std::marker::PhantomData }
    }
}

impl<T: Float> Kernel for Fused<T> {
    fn compute(&self, ctx: &mut KernelContext<'_>) -> Computed {
        let mut inputs: SmallVec<[Tensor; 8]> = SmallVec::new();
        for i in 0..self.program.n_inputs {
            inputs.push(ctx.take(i)?);
        }
        let layout = Layout::new(&self.program, &inputs).filter(|layout| layout.shape.n_elements() > 0);
        let outputs = match layout {
            None => alone::<T>(&self.program, ctx, inputs)?,
            Some(layout) if layout.shape.n_elements() == 1 && self.program.is_plain() => {
                single::<T>(&self.program, &inputs, &layout)?
            }
            Some(layout) => blocks::<T>(&self.program, ctx, inputs, &layout)?,
        };
        outputs.into_iter().enumerate().for_each(|(i, output)| ctx.set(i, output));
        Ok(())
    }
}

type Outputs = SmallVec<[Tensor; 4]>;

/// The program on inputs of one element.
fn single<T: Float>(program: &Program, inputs: &[Tensor], layout: &Layout) -> Result<Outputs, KernelError> {
    let mut values: SmallVec<[T; 32]> = SmallVec::new();
    for input in inputs {
        values.push(input.item::<T>()?);
    }
    for step in &program.steps {
        let [a, b] = step.operands.map(|o| [values[o]]);
        let mut out = [T::default()];
        T::step(step.def)(&a, &b, &mut out);
        values.push(out[0]);
    }
    let output = |result: usize| {
        let value = Tensor::scalar(values[program.n_inputs + result]);
        Ok(if layout.shape.rank() == 0 { value } else { value.into_shape(layout.shape.clone())? })
    };
    program.outputs.iter().map(|output| output.results[0]).map(output).collect()
}

/// Where a result is written, in addition to its register.
struct Target<T> {
    data: *mut T,
    /// How it lies there; `None`: as it is.
    apart: Option<Apart>,
}

// SAFETY: threads write disjoint elements through it (see `Run::part`), and `T` can be sent.
unsafe impl<T: Send> Sync for Target<T> {}

/// What is the same for all blocks.
struct Run<'a, T> {
    program: &'a Program,
    layout: &'a Layout,
    /// The inputs' elements; none of the one whose memory output 0 takes.
    inputs: SmallVec<[&'a [T]; 8]>,
    /// Scalars and short rows, repeated over a block.
    repeated: SmallVec<[Vec<T>; 8]>,
    in_place: Option<usize>,
    /// By step, where its result is part of an output.
    targets: SmallVec<[Option<Target<T>>; 16]>,
    /// Elements of a block, a multiple of the row where that is shorter.
    block: usize,
}

fn blocks<T: Float>(
    program: &Program,
    ctx: &KernelContext<'_>,
    mut inputs: SmallVec<[Tensor; 8]>,
    layout: &Layout,
) -> Result<Outputs, KernelError> {
    let n = layout.shape.n_elements();
    let block = match layout.row {
        0 => BLOCK.min(n),
        row if row <= BLOCK => (BLOCK / row * row).min(n),
        _ => BLOCK,
    };
    let is_free =
        |i: &usize| program.windows[*i].is_none() && layout.inputs[*i] == Along::Full && inputs[*i].is_unique();
    let in_place = (0..inputs.len()).find(is_free).filter(|_| program.outputs[0].results.len() == 1);
    let mut outputs = Outputs::new();
    let mut targets: SmallVec<[Option<Target<T>>; 16]> = program.steps.iter().map(|_| None).collect();
    for (o, joined) in program.outputs.iter().enumerate() {
        let mut output = match in_place.filter(|_| o == 0) {
            Some(i) => std::mem::replace(&mut inputs[i], Tensor::scalar(T::default())),
            None => ctx.room::<T>(layout.output(joined.axis, joined.results.len(), 0).0)?,
        };
        let data = unique_slice::<T>(&mut output)?.as_mut_ptr();
        for (at, result) in joined.results.iter().enumerate() {
            let apart = layout.output(joined.axis, joined.results.len(), at).1;
            targets[*result] = Some(Target { data, apart });
        }
        outputs.push(output);
    }
    let mut run = Run { program, layout, inputs: SmallVec::new(), repeated: SmallVec::new(), in_place, targets, block };
    for (i, input) in inputs.iter().enumerate() {
        let values = input.slice::<T>()?;
        let repeated = match layout.inputs[i] {
            Along::Scalar => vec![values[0]; block],
            Along::Row if layout.row <= BLOCK => values.iter().copied().cycle().take(block).collect(),
            _ => Vec::new(),
        };
        run.inputs.push(values);
        run.repeated.push(repeated);
    }
    let cut = if layout.row <= BLOCK { layout.row.max(1) } else { 1 };
    let unit = UNIT.div_ceil(cut) * cut;
    let cost = (unit as u64 * program.ps / 1000).max(1);
    if n <= 2 * unit {
        run.part(0..n);
    } else {
        ctx.sharder.parallel_for(n.div_ceil(unit), cost, &|units| {
            run.part(units.start * unit..(units.end * unit).min(n));
        });
    }
    Ok(outputs)
}

impl<T: Float> Run<'_, T> {
    /// Computes some elements of all outputs. No other thread computes any of them meanwhile.
    fn part(&self, elements: Range<usize>) {
        let n_copies = self.layout.windows.iter().flatten().count() + usize::from(self.in_place.is_some());
        let block = self.block.min(elements.len());
        T::with_scratch((self.program.n_registers + n_copies) * block, |scratch| {
            let (registers, copies) = scratch.split_at_mut(self.program.n_registers * block);
            let mut begin = elements.start;
            while begin < elements.end {
                let len = match self.layout.row {
                    row if row > BLOCK => (row - begin % row).min(self.block),
                    _ => self.block,
                };
                let end = (begin + len).min(elements.end);
                self.block(begin, end - begin, block, registers, copies);
                begin = end;
            }
        });
    }

    fn block(&self, begin: usize, len: usize, room: usize, registers: &mut [T], copies: &mut [T]) {
        self.copy(begin, len, room, copies);
        let mut places: SmallVec<[&mut [T]; 24]> =
            registers.chunks_exact_mut(room.max(1)).map(|register| &mut register[..len]).collect();
        let first_output = places.len();
        for (output, joined) in self.program.outputs.iter().enumerate() {
            let target = self.targets[joined.results[0]].as_ref().filter(|target| target.apart.is_none());
            // SAFETY: an output has the elements of the layout's shape, of which this thread alone has these; its input in
            // place was copied, and is not read otherwise. `output` counts so that its place is found.
            let place = target.map(|target| unsafe { std::slice::from_raw_parts_mut(target.data.add(begin), len) });
            debug_assert_eq!(places.len(), first_output + output, "outputs are in order");
            places.push(place.unwrap_or_default());
        }
        for (i, step) in self.program.steps.iter().enumerate() {
            let at = match step.place {
                ResultLocation::Register(register) => register,
                ResultLocation::Output(output) => first_output + output,
            };
            let result = std::mem::take(&mut places[at]);
            let [a, b] = step.operands.map(|o| self.operand(o, begin, room, &places, first_output, copies, len));
            T::step(step.def)(a, b, result);
            if let Some(Target { data, apart: Some(apart) }) = &self.targets[i] {
                apart.runs(begin, len, |here, there, n| {
                    // SAFETY: as above: `there` is where these elements lie in an output of joined results.
                    unsafe { data.add(there).copy_from_nonoverlapping(result[here..here + n].as_ptr(), n) };
                });
            }
            places[at] = result;
        }
    }

    /// Copies what does not lie as the program reads it: windows, and the input whose memory is written.
    fn copy(&self, begin: usize, len: usize, room: usize, copies: &mut [T]) {
        let mut copies = copies.chunks_exact_mut(room.max(1));
        for (input, window) in self.inputs.iter().zip(&self.layout.windows) {
            if let Some((apart, copy)) = window.as_ref().and_then(|apart| Some((apart, copies.next()?))) {
                apart.runs(begin, len, |here, there, n| {
                    copy[here..here + n].copy_from_slice(&input[there..there + n]);
                });
            }
        }
        let target = self.in_place.and(self.targets[self.program.outputs[0].results[0]].as_ref());
        if let Some((target, copy)) = target.zip(copies.next()) {
            // SAFETY: output 0 holds the input's elements, as many; this thread alone has these.
            copy[..len].copy_from_slice(unsafe { std::slice::from_raw_parts(target.data.add(begin), len) });
        }
    }

    #[inline]
    #[expect(clippy::too_many_arguments, reason = "where each kind of operand lies")]
    fn operand<'r>(
        &'r self,
        o: usize,
        begin: usize,
        room: usize,
        places: &'r [&mut [T]],
        first_output: usize,
        copies: &'r [T],
        len: usize,
    ) -> &'r [T] {
        if let Some(of) = o.checked_sub(self.program.n_inputs) {
            return match self.program.steps[of].place {
                ResultLocation::Register(register) => places[register],
                ResultLocation::Output(output) => places[first_output + output],
            };
        }
        let n_windows = || self.layout.windows[..o].iter().flatten().count();
        match self.layout.inputs[o] {
            Along::Full if self.in_place == Some(o) => {
                let at = self.layout.windows.iter().flatten().count() * room;
                &copies[at..at + len]
            }
            Along::Full if self.layout.windows[o].is_some() => &copies[n_windows() * room..][..len],
            Along::Full => &self.inputs[o][begin..begin + len],
            Along::Row if self.layout.row > BLOCK => &self.inputs[o][begin % self.layout.row..][..len],
            _ => &self.repeated[o][..len],
        }
    }
}
