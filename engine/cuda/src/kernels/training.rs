//! Variables in the device's memory, and the optimizers' updates of them: in place where no reader holds the value.

use std::sync::Arc;

use engine::graph::Node;
use engine::kernels::support::Built;
use engine::kernels::{KERNEL_TABLES, Kernel, KernelContext, KernelDef, KernelError};
use engine::{DType, Shape, Tensor};
use parking_lot::RwLockWriteGuard;

use super::support::{
    FLOATS, NUMBERS, Unit, c_type, device, gpu, hands_on, is_small, kernel, number, operand, run, variable,
};
use crate::backend::Address;
use crate::gpu::{Argument, Gpu};

/// Its kernels.
pub const UNIT: Unit = Unit {
    name: "training.cu",
    text: include_str!("../cu/training.cu"),
    kernels: &["descent", "momentum", "adam", "rms_prop", "adagrad", "accumulate"],
    dtypes: FLOATS,
};

const ROW_TYPES: &[DType] = &[DType::F32, DType::F64];
/// Updates of rows.
pub const ROWS: Unit = Unit {
    name: "rows_training.cu",
    text: include_str!("../cu/rows_training.cu"),
    kernels: &["momentum32", "momentum64", "scatter32", "scatter64"],
    dtypes: ROW_TYPES,
};

#[linkme::distributed_slice(KERNEL_TABLES)]
static TRAINING: &[KernelDef] = &[
    gpu("AssignVariableOp", ("", &[]), assign),
    gpu("AssignAddVariableOp", ("dtype", NUMBERS), |n| accumulate(n, 1.0)),
    gpu("AssignSubVariableOp", ("dtype", NUMBERS), |n| accumulate(n, -1.0)),
    gpu("ResourceApplyGradientDescent", ("T", FLOATS), descent),
    gpu("ResourceApplyMomentum", ("T", FLOATS), momentum),
    gpu("ResourceApplyAdam", ("T", FLOATS), adam),
    gpu("ResourceApplyRMSProp", ("T", FLOATS), rms_prop),
    gpu("ResourceApplyAdagrad", ("T", FLOATS), adagrad),
    gpu("ResourceSparseApplyMomentum", ("T", ROW_TYPES), sparse_momentum),
    gpu("ResourceScatterAdd", ("dtype", ROW_TYPES), |n| scatter(n, 1.0)),
    gpu("ResourceScatterSub", ("dtype", ROW_TYPES), |n| scatter(n, -1.0)),
];

/// The value goes to the device first, if it belongs there.
fn assign(node: &Node) -> Built {
    struct Assign(Box<dyn Kernel>);
    impl Kernel for Assign {
        fn compute(&self, ctx: &mut KernelContext<'_>) -> Result<(), KernelError> {
            let value = ctx.input(1)?;
            if !is_small(value) && c_type(value.dtype()).is_some() {
                ctx.inputs[1] = Some(device(ctx)?.bring(value)?.0);
            }
            self.0.compute(ctx)
        }

        fn is_expensive(&self) -> bool {
            false
        }
    }
    Ok(Box::new(Assign(hands_on(node)?)))
}

/// Makes a variable's value one that may be written on the device: brought there, and copied where a reader shares it.
fn writable(gpu: &Gpu, value: &mut Tensor) -> Result<Address, KernelError> {
    match gpu.address_of(value) {
        Some(address) if value.is_unique() => Ok(address),
        Some(from) => {
            let (copy, to) = gpu.room(value.dtype(), value.shape().clone())?;
            gpu.copy(to, from, value.n_bytes())?;
            *value = copy;
            Ok(to)
        }
        None => {
            let (there, address) = gpu.bring(value)?;
            *value = there;
            Ok(address)
        }
    }
}

/// Calls `f` with where the first `N` inputs' variables lie, all of one shape that `fits`, and that shape.
fn with_all<const N: usize>(
    ctx: &KernelContext<'_>,
    gradient: &Tensor,
    fits: impl Fn(&Shape) -> bool,
    f: impl FnOnce(&Gpu, [Address; N], &Shape) -> Result<(), KernelError>,
) -> Result<(), KernelError> {
    let gpu = device(ctx)?;
    let variables = (0..N).map(|i| variable(ctx, i)).collect::<Result<Vec<_>, _>>()?;
    // Locked in the order of their addresses, so that updates which share slots do not wait for each other.
    let mut order: Vec<usize> = (0..N).collect();
    order.sort_by_key(|i| Arc::as_ptr(&variables[*i].0));
    if order.windows(2).any(|w| Arc::ptr_eq(&variables[w[0]].0, &variables[w[1]].0)) {
        return Err(KernelError::invalid("the variable and its slots must be different variables"));
    }
    let mut guards: Vec<(usize, RwLockWriteGuard<'_, Option<Tensor>>)> =
        order.iter().map(|i| (*i, variables[*i].0.value.write())).collect();
    let (mut at, mut shape) = ([0; N], None::<Shape>);
    for (i, guard) in &mut guards {
        let name = &variables[*i].1;
        let value = guard.as_mut().ok_or_else(|| KernelError::Uninitialised(Arc::clone(name)))?;
        let is_one = shape.as_ref().is_none_or(|shape| shape == value.shape());
        if !is_one || !fits(value.shape()) || value.dtype() != gradient.dtype() {
            let (is, got) = (value.shape(), gradient.shape());
            let types = (value.dtype(), gradient.dtype());
            let text = format!("variable {name} is {}{is}, the update {}{got}", types.0, types.1);
            return Err(KernelError::invalid(text));
        }
        at[*i] = writable(gpu, value)?;
        shape = Some(value.shape().clone());
    }
    f(gpu, at, &shape.unwrap_or_else(Shape::scalar))
}

/// Starts an update of `N` tensors by a gradient.
fn update<const N: usize>(
    ctx: &KernelContext<'_>,
    name: &str,
    gradient: usize,
    numbers: &[Argument],
) -> Result<(), KernelError> {
    let (of, from) = operand(ctx, gradient)?;
    with_all::<N>(
        ctx,
        &of,
        |shape| shape == of.shape(),
        |gpu, at, _| {
            let mut arguments = vec![Argument::from(of.len())];
            arguments.extend_from_slice(numbers);
            arguments.extend(at.into_iter().chain([from]).map(Argument::from));
            // SAFETY: the kernel takes the count, the numbers, the tensors and the gradient, all of one shape.
            unsafe { run(gpu, (&UNIT, name, of.dtype()), of.len(), &arguments) }
        },
    )
}

/// Small counters stay on the host.
fn accumulate(node: &Node, sign: f64) -> Built {
    let cpu = hands_on(node)?;
    kernel(node, move |ctx| {
        let (variable, name) = variable(ctx, 0)?;
        let stays = variable.value.read().as_ref().is_none_or(is_small) && is_small(ctx.input(1)?);
        let dtype = ctx.input(1)?.dtype();
        if stays || matches!(dtype, DType::I32 | DType::I64) {
            let delta = ctx.input(1)?.to_host()?;
            ctx.inputs[1] = Some(delta);
            let mut slot = variable.value.write();
            let value = slot.as_mut().ok_or(KernelError::Uninitialised(name))?;
            *value = value.to_host()?;
            drop(slot);
            return cpu.compute(ctx);
        }
        update::<1>(ctx, "accumulate", 1, &[sign.into()])
    })
}

fn descent(node: &Node) -> Built {
    kernel(node, |ctx| {
        let rate = number(ctx, 1)?;
        update::<1>(ctx, "descent", 2, &[rate.into()])
    })
}

fn momentum(node: &Node) -> Built {
    let nesterov = usize::from(*node.flag("use_nesterov")?);
    kernel(node, move |ctx| {
        let (rate, mu) = (number(ctx, 2)?, number(ctx, 4)?);
        update::<2>(ctx, "momentum", 3, &[rate.into(), mu.into(), nesterov.into()])
    })
}

fn adam(node: &Node) -> Built {
    let nesterov = usize::from(*node.flag("use_nesterov")?);
    kernel(node, move |ctx| {
        let (p1, p2, lr) = (number(ctx, 3)?, number(ctx, 4)?, number(ctx, 5)?);
        let (b1, b2, epsilon) = (number(ctx, 6)?, number(ctx, 7)?, number(ctx, 8)?);
        let rate = lr * (1.0 - p2).sqrt() / (1.0 - p1);
        let numbers = [rate.into(), b1.into(), b2.into(), epsilon.into(), nesterov.into()];
        update::<3>(ctx, "adam", 9, &numbers)
    })
}

fn rms_prop(node: &Node) -> Built {
    kernel(node, |ctx| {
        let [lr, rho, mu, epsilon] = [number(ctx, 3)?, number(ctx, 4)?, number(ctx, 5)?, number(ctx, 6)?];
        update::<3>(ctx, "rms_prop", 7, &[lr.into(), rho.into(), mu.into(), epsilon.into()])
    })
}

fn adagrad(node: &Node) -> Built {
    let updates = usize::from(*node.flag("update_slots")?);
    kernel(node, move |ctx| {
        let lr = number(ctx, 2)?;
        update::<2>(ctx, "adagrad", 3, &[lr.into(), updates.into()])
    })
}

/// Starts an update of the rows of `N` variables that `indices` list.
fn update_rows<const N: usize>(
    ctx: &KernelContext<'_>,
    name: &str,
    (gradient, indices): (usize, usize),
    numbers: &[Argument],
) -> Result<(), KernelError> {
    let ((of, from), (indices, listed)) = (operand(ctx, gradient)?, operand(ctx, indices)?);
    let width = match indices.dtype() {
        DType::I32 => "32",
        DType::I64 => "64",
        other => return Err(KernelError::invalid(format!("{other} are no indices on a GPU"))),
    };
    // A row of the gradient for each index, shaped as the variable's.
    let rows = indices.shape().rank();
    let fits = |shape: &Shape| {
        shape.rank() > 0 && of.dims().starts_with(indices.dims()) && of.dims()[rows..] == shape.dims()[1..]
    };
    with_all::<N>(ctx, &of, fits, |gpu, at, shape| {
        let inner: usize = shape.dims()[1..].iter().product();
        let mut arguments: Vec<Argument> = vec![of.len().into(), shape.dims()[0].into(), inner.into()];
        arguments.extend_from_slice(numbers);
        arguments.extend(at.into_iter().chain([from, listed]).map(Argument::from));
        // SAFETY: the kernel takes the sizes, the numbers, the variables, the gradient and the indices.
        unsafe { run(gpu, (&ROWS, &format!("{name}{width}"), of.dtype()), of.len(), &arguments) }
    })
}

/// Rows that are listed twice are updated once, by either: the engine's optimizers list each once.
fn sparse_momentum(node: &Node) -> Built {
    let nesterov = usize::from(*node.flag("use_nesterov")?);
    kernel(node, move |ctx| {
        let (rate, mu) = (number(ctx, 2)?, number(ctx, 5)?);
        update_rows::<2>(ctx, "momentum", (3, 4), &[rate.into(), mu.into(), nesterov.into()])
    })
}

fn scatter(node: &Node, sign: f64) -> Built {
    kernel(node, move |ctx| update_rows::<1>(ctx, "scatter", (2, 1), &[sign.into()]))
}
