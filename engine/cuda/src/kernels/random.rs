//! Random numbers: those of the CPU for the same seeds (uniform ones to the bit). The generator is the host's; threads begin
//! where it is.

use engine::DType;
use engine::graph::Node;
use engine::kernels::random::{Origin, RESERVED};
use engine::kernels::support::{Built, kernel_with_state};
use engine::kernels::{KERNEL_TABLES, KernelDef};

use super::support::{Unit, device, gpu, hands_on, run};

/// Its kernels.
pub const UNIT: Unit = Unit {
    name: "random.cu",
    text: include_str!("../cu/random.cu"),
    kernels: &["uniform", "normal"],
    dtypes: &[DType::F32],
};

#[linkme::distributed_slice(KERNEL_TABLES)]
static RANDOM: &[KernelDef] = &[
    gpu("RandomUniform", ("dtype", &[DType::F32]), |node| drawn(node, "uniform")),
    gpu("RandomStandardNormal", ("dtype", &[DType::F32]), |node| drawn(node, "normal")),
    // Those that fall outside are drawn again: made by the host, once, where variables begin.
    gpu("TruncatedNormal", ("dtype", &[DType::F32]), hands_on),
];

fn drawn(node: &Node, name: &'static str) -> Built {
    let origin = Origin::of_seeds(node)?;
    kernel_with_state(origin.state(), move |ctx| {
        let (value, to) = device(ctx)?.room(DType::F32, ctx.shape_input(0)?)?;
        let n = value.len();
        let base = origin.begin(ctx, (n as u64).wrapping_mul(RESERVED))?;
        let (key, [low, high]) = base.key_and_counter();
        let arguments = [n.into(), low.into(), high.into(), key.into(), to.into()];
        // SAFETY: the kernel takes these, and writes `n` numbers.
        unsafe { run(device(ctx)?, (&UNIT, name, DType::F32), n.div_ceil(4), &arguments)? };
        ctx.set(0, value);
        Ok(())
    })
}
