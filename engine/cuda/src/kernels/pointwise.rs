//! Element-wise kernels, generated: a source per expression, element types and way of walking.
//!
//! Operands and results are walked linearly, not at all (scalars), or by strides over up to eight dimensions, so that what
//! is broadcast, cut out, transposed, reversed or put side by side needs no kernel of its own.

use std::fmt::Write;

use engine::kernels::KernelError;
use smallvec::SmallVec;

use super::support::{PRELUDE, grid};
use crate::backend::Address;
use crate::gpu::{Argument, Gpu};

/// Dimensions that can be walked.
pub const MAX_RANK: usize = 8;

/// What is read or written.
#[derive(Debug, Clone)]
pub struct Side {
    /// Where its first element is.
    pub at: Address,
    /// Its elements, as the source calls them.
    pub of: &'static str,
    /// Elements from one position to the next, by dimension.
    pub strides: SmallVec<[i64; 8]>,
}

/// An element-wise kernel.
#[derive(Debug, Clone)]
pub struct Pointwise<'a> {
    /// What is walked over.
    pub dims: &'a [usize],
    /// What is read: `a`, `b`, `c`, ... in expressions, `x0`, `x1`, ... from the fourth on.
    pub inputs: &'a [Side],
    /// Statements between.
    pub body: &'a str,
    /// What is written: an expression each.
    pub outputs: &'a [(Side, String)],
}

/// The name of an operand in expressions.
pub fn name(i: usize) -> String {
    match i {
        0 => "a".to_owned(),
        1 => "b".to_owned(),
        2 => "c".to_owned(),
        more => format!("x{more}"),
    }
}

/// How a side is walked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Walk {
    Linear,
    Scalar,
    Strided,
}

/// Joins dimensions that all sides walk as one, and drops those of size one.
fn joined(dims: &[usize], sides: &[&[i64]]) -> (Vec<usize>, Vec<Vec<i64>>) {
    let mut out_dims: Vec<usize> = Vec::new();
    let mut out: Vec<Vec<i64>> = vec![Vec::new(); sides.len()];
    for (i, dim) in dims.iter().enumerate().filter(|(_, dim)| **dim != 1) {
        let joins = |(done, side): (&Vec<i64>, &&[i64])| done.last() == Some(&(side[i] * *dim as i64));
        if !out_dims.is_empty() && out.iter().zip(sides).all(joins) {
            if let Some(last) = out_dims.last_mut() {
                *last *= dim;
            }
            out.iter_mut().zip(sides).for_each(|(done, side)| {
                done.pop();
                done.push(side[i]);
            });
        } else {
            out_dims.push(*dim);
            out.iter_mut().zip(sides).for_each(|(done, side)| done.push(side[i]));
        }
    }
    (out_dims, out)
}

impl Pointwise<'_> {
    /// Starts it.
    ///
    /// # Safety
    /// Every side has the elements that its strides lead to, in the device's memory.
    ///
    /// # Errors
    /// More than eight dimensions remain; the driver refuses.
    pub unsafe fn run(&self, gpu: &Gpu) -> Result<(), KernelError> {
        let n: usize = self.dims.iter().product();
        if n == 0 {
            return Ok(());
        }
        let sides: Vec<&Side> = self.inputs.iter().chain(self.outputs.iter().map(|(side, _)| side)).collect();
        let strides: Vec<&[i64]> = sides.iter().map(|side| side.strides.as_slice()).collect();
        let (dims, strides) = joined(self.dims, &strides);
        if dims.len() > MAX_RANK {
            return Err(KernelError::invalid(format!("shape {:?} has more than {MAX_RANK} dimensions", self.dims)));
        }
        let walk = |strides: &Vec<i64>| match strides.as_slice() {
            _ if strides.iter().all(|stride| *stride == 0) => Walk::Scalar,
            [1] => Walk::Linear,
            _ => Walk::Strided,
        };
        let mut walks: Vec<Walk> = strides.iter().map(walk).collect();
        // A single element is read and written at its place.
        if n == 1 {
            walks.fill(Walk::Scalar);
        }
        let is_wide = n > i32::MAX as usize;
        let source = self.source(dims.len(), &walks, is_wide);
        let function = gpu.function(&source.0, "pointwise", &[], || format!("{PRELUDE}{}", source.1))?;
        let mut arguments: SmallVec<[Argument; 16]> = SmallVec::new();
        arguments.push(n.into());
        arguments.push(eight(dims.iter().map(|dim| *dim as i64)).into());
        arguments.extend(sides.iter().map(|side| Argument::from(side.at)));
        let strided = strides.iter().zip(&walks).filter(|(_, walk)| **walk == Walk::Strided);
        arguments.extend(strided.map(|(strides, _)| Argument::from(eight(strides.iter().copied()))));
        // SAFETY: the source takes these arguments in this order; the caller promises the sides.
        unsafe { gpu.launch(function, grid(n), &arguments) }
    }

    /// A name that no other source has, and the source.
    fn source(&self, rank: usize, walks: &[Walk], is_wide: bool) -> (String, String) {
        let index = if is_wide { "u64" } else { "u32" };
        let n_inputs = self.inputs.len();
        let mut text = String::from("extern \"C\" __global__ void pointwise(u64 n, Eight dims");
        // Writing to a string cannot fail.
        for (i, side) in self.inputs.iter().enumerate() {
            let _ = write!(text, ", const {} *p{i}", side.of);
        }
        for (i, (side, _)) in self.outputs.iter().enumerate() {
            let _ = write!(text, ", {} *p{}", side.of, n_inputs + i);
        }
        let strided: Vec<usize> = (0..walks.len()).filter(|i| walks[*i] == Walk::Strided).collect();
        for i in &strided {
            let _ = write!(text, ", Eight s{i}");
        }
        let _ = writeln!(text, ") {{\n  EACH(i, n) {{");
        if !strided.is_empty() {
            let _ = writeln!(text, "    {index} rest = ({index})i;");
            for d in (1..rank).rev() {
                let _ = writeln!(text, "    {index} i{d} = rest % ({index})dims.v[{d}]; rest /= ({index})dims.v[{d}];");
            }
            let _ = writeln!(text, "    {index} i0 = rest;");
        }
        for i in &strided {
            let terms: Vec<String> = (0..rank).map(|d| format!("(i64)i{d} * s{i}.v[{d}]")).collect();
            let _ = writeln!(text, "    i64 o{i} = {};", terms.join(" + "));
        }
        let place = |i: usize| match walks[i] {
            Walk::Linear => format!("p{i}[i]"),
            Walk::Scalar => format!("p{i}[0]"),
            Walk::Strided => format!("p{i}[o{i}]"),
        };
        for i in 0..n_inputs {
            let _ = writeln!(text, "    auto {} = wide({});", name(i), place(i));
        }
        text.push_str(self.body);
        for (i, (side, value)) in self.outputs.iter().enumerate() {
            let _ = writeln!(text, "    {} = Stored<{}>::of({value});", place(n_inputs + i), side.of);
        }
        text.push_str("  }\n}\n");
        (text.clone(), text)
    }
}

fn eight(values: impl Iterator<Item = i64>) -> [i64; 8] {
    let mut out = [0; 8];
    out.iter_mut().zip(values).for_each(|(to, from)| *to = from);
    out
}

/// Copies elements from one place to another, both by strides.
///
/// # Safety
/// As [`Pointwise::run`].
///
/// # Errors
/// As [`Pointwise::run`].
pub unsafe fn move_elements(
    gpu: &Gpu,
    of: &'static str,
    dims: &[usize],
    (from, from_strides): (Address, &[i64]),
    (to, to_strides): (Address, &[i64]),
) -> Result<(), KernelError> {
    let input = Side { at: from, of, strides: from_strides.into() };
    let output = (Side { at: to, of, strides: to_strides.into() }, "a".to_owned());
    // SAFETY: as the caller promises.
    unsafe { Pointwise { dims, inputs: &[input], body: "", outputs: &[output] }.run(gpu) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dimensions_that_all_walk_as_one_are_joined() {
        // [4, 1, 3, 5] row by row, next to one that repeats the first three dimensions.
        let (dims, strides) = joined(&[4, 1, 3, 5], &[&[15, 15, 5, 1], &[0, 0, 0, 1]]);
        assert_eq!((dims, strides), (vec![12, 5], vec![vec![5, 1], vec![0, 1]]));
        let (dims, strides) = joined(&[4, 3], &[&[3, 1], &[3, 1]]);
        assert_eq!((dims, strides), (vec![12], vec![vec![1], vec![1]]));
        let (dims, strides) = joined(&[4, 3], &[&[3, 1], &[1, 4]]);
        assert_eq!((dims, strides), (vec![4, 3], vec![vec![3, 1], vec![1, 4]]));
        assert_eq!(joined(&[1, 1], &[&[1, 1]]), (vec![], vec![vec![]]));
    }
}
