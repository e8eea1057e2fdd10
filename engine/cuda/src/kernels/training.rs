//! Variables in the device's memory, and the optimizers' updates of them: in place where no reader holds the value.

use engine::graph::Node;
use engine::kernels::support::Built;
use engine::kernels::update::{UpdateSpec, variable};
use engine::kernels::{KERNEL_TABLES, Kernel, KernelContext, KernelDef, KernelError};
use engine::{DType, Tensor};

use super::support::{FLOATS, NUMBERS, Unit, c_type, device, gpu, hands_on, is_small, kernel, number, operand, run};
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
    gpu("ResourceApplyGradientDescent", ("T", FLOATS), |n| optimizer::<1, 1, _>(n, "descent", None, |numbers| numbers)),
    gpu("ResourceApplyMomentum", ("T", FLOATS), momentum),
    gpu("ResourceApplyAdam", ("T", FLOATS), |n| {
        optimizer::<3, 6, _>(n, "adam", Some("use_nesterov"), |[p1, p2, lr, b1, b2, epsilon]| {
            [lr * (1.0 - p2).sqrt() / (1.0 - p1), b1, b2, epsilon]
        })
    }),
    gpu("ResourceApplyRMSProp", ("T", FLOATS), |n| optimizer::<3, 4, _>(n, "rms_prop", None, |numbers| numbers)),
    gpu("ResourceApplyAdagrad", ("T", FLOATS), |n| {
        optimizer::<2, 1, _>(n, "adagrad", Some("update_slots"), |numbers| numbers)
    }),
    // Rows that are listed twice are updated once, by either: the engine's optimizers list each once.
    gpu("ResourceSparseApplyMomentum", ("T", ROW_TYPES), momentum),
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

/// Starts an update of the first `N` inputs' variables by kernel `name`, of all elements or of the rows that indices
/// list.
fn update<const N: usize>(
    ctx: &KernelContext<'_>,
    spec: &UpdateSpec,
    name: &str,
    numbers: &[Argument],
) -> Result<(), KernelError> {
    let gpu = device(ctx)?;
    let (of, from) = operand(ctx, spec.gradient)?;
    let indices = spec.indices.map(|i| operand(ctx, i)).transpose()?;
    spec.with_variables::<N>(ctx, |mut values| {
        let mut arguments = vec![Argument::from(of.len())];
        if let (Some(_), [n_rows, row @ ..]) = (&indices, values[0].dims()) {
            arguments.extend([Argument::from(*n_rows), row.iter().product::<usize>().into()]);
        }
        arguments.extend_from_slice(numbers);
        for value in &mut values {
            arguments.push(writable(gpu, value)?.into());
        }
        arguments.push(from.into());
        let Some((indices, listed)) = &indices else {
            // SAFETY: the kernel takes the count, the numbers, the tensors and the gradient, all of one shape.
            return unsafe { run(gpu, (&UNIT, name, of.dtype()), of.len(), &arguments) };
        };
        arguments.push((*listed).into());
        let width = match indices.dtype() {
            DType::I32 => "32",
            DType::I64 => "64",
            other => return Err(KernelError::invalid(format!("{other} are no indices on a GPU"))),
        };
        // SAFETY: the kernel takes the count, the sizes of rows, the numbers, the variables, the gradient with a row
        // for each of the indices, and these.
        unsafe { run(gpu, (&ROWS, &format!("{name}{width}"), of.dtype()), of.len(), &arguments) }
    })
}

/// Small counters stay on the host.
fn accumulate(node: &Node, sign: f64) -> Built {
    let (cpu, spec) = (hands_on(node)?, UpdateSpec::new(node.op, 1)?);
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
        update::<1>(ctx, &spec, "accumulate", &[sign.into()])
    })
}

/// An optimizer's update by kernel `name`, whose numbers `arguments` makes of the op's; then comes the attribute
/// `flag`.
fn optimizer<const N: usize, const K: usize, const A: usize>(
    node: &Node,
    name: &'static str,
    flag: Option<&str>,
    arguments: fn([f64; K]) -> [f64; A],
) -> Built {
    let spec = UpdateSpec::new(node.op, N)?;
    let flag = flag.map(|flag| node.flag(flag)).transpose()?.map(|is_set| usize::from(*is_set));
    kernel(node, move |ctx| {
        let mut numbers = [0.0; K];
        for (value, i) in numbers.iter_mut().zip(&spec.numbers) {
            *value = number(ctx, *i)?;
        }
        let mut all: Vec<Argument> = arguments(numbers).map(Argument::from).into();
        all.extend(flag.map(Argument::from));
        update::<N>(ctx, &spec, name, &all)
    })
}

fn momentum(node: &Node) -> Built {
    optimizer::<2, 2, _>(node, "momentum", Some("use_nesterov"), |numbers| numbers)
}

fn scatter(node: &Node, sign: f64) -> Built {
    let spec = UpdateSpec::new(node.op, 1)?;
    kernel(node, move |ctx| update::<1>(ctx, &spec, "scatter", &[sign.into()]))
}
