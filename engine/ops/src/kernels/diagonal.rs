//! Kernels of diagonals and bands of matrices, batched.
//!
//! Diagonal `d` of a matrix has the elements (i, i + d). A range of diagonals [k0, k1] is written as rows, k1 first,
//! each as long as the longest and padded on the left or the right, as attribute `align` says.

use super::pick::{ElementSource, pick, zero};
use super::support::{Built, Computed, cpu_any, kernel};
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use engine_core::graph::Node;
use engine_core::shape::Shape;
use engine_core::tensor::Tensor;

#[linkme::distributed_slice(KERNEL_TABLES)]
static DIAGONALS: &[KernelDef] = &[
    cpu_any("Diag", |_| kernel(diag)),
    cpu_any("DiagPart", |_| kernel(diag_part)),
    cpu_any("MatrixDiag", |_| kernel(|c| matrix_diag(c, Align::LEFT))),
    cpu_any("MatrixDiagV2", |_| kernel(|c| matrix_diag(c, Align::LEFT))),
    cpu_any("MatrixDiagV3", |n| aligned(n, matrix_diag)),
    cpu_any("MatrixDiagPart", |_| kernel(|c| matrix_diag_part(c, Align::LEFT))),
    cpu_any("MatrixDiagPartV2", |_| kernel(|c| matrix_diag_part(c, Align::LEFT))),
    cpu_any("MatrixDiagPartV3", |n| aligned(n, matrix_diag_part)),
    cpu_any("MatrixSetDiag", |_| kernel(|c| matrix_set_diag(c, Align::LEFT))),
    cpu_any("MatrixSetDiagV2", |_| kernel(|c| matrix_set_diag(c, Align::LEFT))),
    cpu_any("MatrixSetDiagV3", |n| aligned(n, matrix_set_diag)),
    cpu_any("MatrixBandPart", |_| kernel(band_part)),
    cpu_any("BatchMatrixBandPart", |_| kernel(band_part)),
];

/// On which side the diagonals above and below the main one begin.
#[derive(Clone, Copy)]
struct Align {
    super_left: bool,
    sub_left: bool,
}

impl Align {
    const LEFT: Align = Align { super_left: true, sub_left: true };

    /// How many elements of padding come before those of diagonal `d`.
    fn offset(self, d: i64, len: i64, longest: i64) -> i64 {
        let left = (d >= 0 && self.super_left) || (d <= 0 && self.sub_left);
        if left { 0 } else { longest - len }
    }
}

fn aligned(node: &Node, f: fn(&mut KernelContext<'_>, Align) -> Computed) -> Built {
    let (super_left, sub_left) = match node.text("align")?.as_str() {
        "LEFT_LEFT" => (true, true),
        "LEFT_RIGHT" => (true, false),
        "RIGHT_LEFT" => (false, true),
        "RIGHT_RIGHT" => (false, false),
        other => return Err(KernelError::invalid(format!("align {other} is unknown"))),
    };
    kernel(move |c| f(c, Align { super_left, sub_left }))
}

/// A range of diagonals of matrices of some size.
struct Band {
    rows: i64,
    cols: i64,
    low: i64,
    high: i64,
}

impl Band {
    fn new(rows: usize, cols: usize, (low, high): (i64, i64)) -> Result<Band, KernelError> {
        let (rows, cols) = (rows as i64, cols as i64);
        let outside = |k: i64| k <= -rows.max(1) || k >= cols.max(1);
        if low > high || (outside(low) && low != 0) || (outside(high) && high != 0) {
            return Err(KernelError::invalid(format!(
                "diagonals {low} to {high} of matrices of shape [{rows},{cols}]"
            )));
        }
        Ok(Band { rows, cols, low, high })
    }

    fn len(&self, d: i64) -> i64 {
        (self.rows + d.min(0)).min(self.cols - d.max(0)).max(0)
    }

    fn longest(&self) -> i64 {
        (self.rows + self.high.min(0)).min(self.cols - self.low.max(0)).max(0)
    }

    fn n_diagonals(&self) -> i64 {
        self.high - self.low + 1
    }

    /// The position among the diagonals' elements of matrix element (i, j), where one of them has it.
    fn position(&self, i: i64, j: i64, align: Align) -> Option<usize> {
        let d = j - i;
        if d < self.low || d > self.high {
            return None;
        }
        let longest = self.longest();
        let column = j - d.max(0) + align.offset(d, self.len(d), longest);
        usize::try_from((self.high - d) * longest + column).ok()
    }
}

/// The range of diagonals that input `i` says: one number or two.
fn range(c: &KernelContext<'_>, i: usize) -> Result<(i64, i64), KernelError> {
    if i >= c.inputs.len() {
        return Ok((0, 0));
    }
    match c.ints(i)?.as_slice() {
        [k] => Ok((*k, *k)),
        [low, high] => Ok((*low, *high)),
        more => Err(KernelError::invalid(format!("k must be one or two numbers, got {more:?}"))),
    }
}

/// The batch dimensions and the last two.
fn matrices(x: &Tensor) -> Result<(&[usize], usize, usize), KernelError> {
    match x.dims() {
        [batch @ .., m, n] => Ok((batch, *m, *n)),
        _ => Err(KernelError::invalid(format!("input must have rank 2 or more, got shape {}", x.shape()))),
    }
}

/// Input `i`, a padding value, or zero where the op has none.
fn padding(c: &KernelContext<'_>, i: usize) -> Result<Tensor, KernelError> {
    if i >= c.inputs.len() {
        return zero(c, c.input(0)?.dtype());
    }
    match c.input(i)? {
        value if value.len() == 1 => Ok(value.clone()),
        value => Err(KernelError::invalid(format!("padding_value must be a scalar, got shape {}", value.shape()))),
    }
}

fn matrix_diag(c: &mut KernelContext<'_>, align: Align) -> Computed {
    let x = c.input(0)?;
    let (low, high) = range(c, 1)?;
    let n_diagonals = usize::try_from(high - low + 1).unwrap_or(0);
    let (batch, longest) = match x.dims() {
        [batch @ .., m, n] if n_diagonals > 1 && *m == n_diagonals => (batch, *n),
        [batch @ .., n] if n_diagonals == 1 => (batch, *n),
        _ => return Err(KernelError::invalid(format!("{n_diagonals} diagonals of shape {}", x.shape()))),
    };
    let asked = |i: usize| -> Result<Option<usize>, KernelError> {
        if i >= c.inputs.len() {
            return Ok(None);
        }
        Ok(c.ints(i)?.first().and_then(|n| usize::try_from(*n).ok()))
    };
    let least_rows = longest + usize::try_from(-high.min(0)).unwrap_or(0);
    let least_cols = longest + usize::try_from(low.max(0)).unwrap_or(0);
    let (rows, cols) = match (asked(2)?, asked(3)?) {
        (None, None) => (least_rows.max(least_cols), least_rows.max(least_cols)),
        (Some(rows), None) => (rows, least_cols),
        (None, Some(cols)) => (least_rows, cols),
        (Some(rows), Some(cols)) => (rows, cols),
    };
    let fits = rows >= least_rows && cols >= least_cols && (rows == least_rows || cols == least_cols);
    if !fits && !x.is_empty() {
        return Err(KernelError::invalid(format!("diagonals of {longest} do not fit matrices of [{rows},{cols}]")));
    }
    let band = Band::new(rows, cols, (low, high))?;
    let value = padding(c, 4)?;
    let (m, n) = (rows.max(1), cols.max(1));
    let own = n_diagonals * longest;
    let shape = Shape::new(&[batch, &[rows, cols]].concat());
    let out = pick(c, [x, &value], shape, &|e| {
        let (i, j) = ((e / n % m) as i64, (e % n) as i64);
        match band.position(i, j, align) {
            Some(p) => ElementSource::First(e / (m * n) * own + p),
            None => ElementSource::Second(0),
        }
    })?;
    c.set(0, out);
    Ok(())
}

fn matrix_diag_part(c: &mut KernelContext<'_>, align: Align) -> Computed {
    let x = c.input(0)?;
    let (batch, rows, cols) = matrices(x)?;
    let band = Band::new(rows, cols, range(c, 1)?)?;
    let value = padding(c, 2)?;
    let (n_diagonals, longest) = (band.n_diagonals(), band.longest());
    let mut dims = batch.to_vec();
    if n_diagonals > 1 {
        dims.push(n_diagonals as usize);
    }
    dims.push(longest as usize);
    let out = pick(c, [x, &value], Shape::new(&dims), &|e| {
        let e = e as i64;
        let (column, d) = (e % longest, band.high - e / longest % n_diagonals);
        let len = band.len(d);
        let at = column - align.offset(d, len, longest);
        if !(0..len).contains(&at) {
            return ElementSource::Second(0);
        }
        let matrix = (e / (longest * n_diagonals)) as usize;
        let (i, j) = (at - d.min(0), at + d.max(0));
        ElementSource::First((matrix * rows + i as usize) * cols + j as usize)
    })?;
    c.set(0, out);
    Ok(())
}

fn matrix_set_diag(c: &mut KernelContext<'_>, align: Align) -> Computed {
    let (x, diagonal) = (c.input(0)?, c.input(1)?);
    let (batch, rows, cols) = matrices(x)?;
    let band = Band::new(rows, cols, range(c, 2)?)?;
    let own = (band.n_diagonals() * band.longest()) as usize;
    let mut dims = batch.to_vec();
    if band.n_diagonals() > 1 {
        dims.push(band.n_diagonals() as usize);
    }
    dims.push(band.longest() as usize);
    if diagonal.dims() != dims {
        let text = format!("diagonal has shape {}, expected {}", diagonal.shape(), Shape::new(&dims));
        return Err(KernelError::invalid(text));
    }
    let out = pick(c, [x, diagonal], x.shape().clone(), &|e| match band.position(
        (e / cols % rows) as i64,
        (e % cols) as i64,
        align,
    ) {
        Some(p) => ElementSource::Second(e / (rows * cols) * own + p),
        None => ElementSource::First(e),
    })?;
    c.set(0, out);
    Ok(())
}

/// Keeps so many diagonals below and above the main one; negative: all.
fn band_part(c: &mut KernelContext<'_>) -> Computed {
    let x = c.input(0)?;
    let (_, rows, cols) = matrices(x)?;
    let one = |i: usize| match c.ints(i)?.as_slice() {
        [k] => Ok(*k),
        more => Err(KernelError::invalid(format!("input {i} must be one number, got {more:?}"))),
    };
    let (lower, upper) = (one(1)?, one(2)?);
    let fill = zero(c, x.dtype())?;
    let out = pick(c, [x, &fill], x.shape().clone(), &|e| {
        let (i, j) = ((e / cols % rows) as i64, (e % cols) as i64);
        let inside = (lower < 0 || i - j <= lower) && (upper < 0 || j - i <= upper);
        if inside { ElementSource::First(e) } else { ElementSource::Second(0) }
    })?;
    c.set(0, out);
    Ok(())
}

/// A tensor of twice the rank with the elements where both halves of the index agree.
fn diag(c: &mut KernelContext<'_>) -> Computed {
    let x = c.input(0)?;
    let (n, fill) = (x.len(), zero(c, x.dtype())?);
    let shape = Shape::new(&[x.dims(), x.dims()].concat());
    if x.shape().rank() == 0 || shape.checked_n_elements().is_none() {
        return Err(KernelError::invalid(format!("a diagonal of shape {}", x.shape())));
    }
    let out = pick(c, [x, &fill], shape, &|e| {
        if e / n == e % n { ElementSource::First(e % n) } else { ElementSource::Second(0) }
    })?;
    c.set(0, out);
    Ok(())
}

fn diag_part(c: &mut KernelContext<'_>) -> Computed {
    let x = c.input(0)?;
    let (first, second) = x.dims().split_at(x.shape().rank() / 2);
    if first != second || first.is_empty() {
        return Err(KernelError::invalid(format!("shape {} is not twice the same dimensions", x.shape())));
    }
    let shape = Shape::new(first);
    let n = shape.n_elements();
    let out = pick(c, [x, x], shape, &|e| ElementSource::First(e * n + e))?;
    c.set(0, out);
    Ok(())
}
