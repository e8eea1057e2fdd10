//! Element-wise kernels of special functions, in f64. Shorter floats compute in it too ([`super::narrow`]).

use super::broadcast::broadcast_shape;
use super::elementwise::{call1, call2, called};
use super::special_functions as f;
use super::support::{Computed, cpu, kernel, shard_slice};
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use engine_core::dtype::DType;

#[linkme::distributed_slice(KERNEL_TABLES)]
static UNARY: &[KernelDef] = called! { call1;
    "Erfinv" [f64] 60_000 f::erfinv;
    "Ndtri" [f64] 60_000 f::ndtri;
    "Lgamma" [f64] 20_000 f::ln_gamma;
    "Digamma" [f64] 20_000 f::digamma;
    "Dawsn" [f64] 60_000 f::dawson;
    "Expint" [f64] 60_000 f::exp_integral;
    "Spence" [f64] 40_000 f::spence;
    "BesselI0" [f64] 60_000 |x| f::bessel_ie(0, x) * x.abs().exp();
    "BesselI0e" [f64] 60_000 |x| f::bessel_ie(0, x);
    "BesselI1" [f64] 60_000 |x| f::bessel_ie(1, x) * x.abs().exp();
    "BesselI1e" [f64] 60_000 |x| f::bessel_ie(1, x);
    "BesselJ0" [f64] 30_000 libm::j0;
    "BesselJ1" [f64] 30_000 libm::j1;
    "BesselY0" [f64] 30_000 libm::y0;
    "BesselY1" [f64] 30_000 libm::y1;
};

#[linkme::distributed_slice(KERNEL_TABLES)]
static BINARY: &[KernelDef] = called! { call2;
    "Polygamma" [f64] 100_000 f::polygamma;
    "Zeta" [f64] 100_000 f::zeta;
    "Igamma" [f64] 100_000 f::igamma;
    "Igammac" [f64] 100_000 f::igammac;
    "IgammaGradA" [f64] 200_000 f::igamma_grad_a;
    "RandomGammaGrad" [f64] 200_000 f::random_gamma_grad;
};

#[linkme::distributed_slice(KERNEL_TABLES)]
static BETA: &[KernelDef] = &[cpu("Betainc", ("T", &[DType::F64]), |_| kernel(betainc))];

/// Each of a, b, x is a scalar or has the shape of all others.
fn betainc(c: &mut KernelContext<'_>) -> Computed {
    let mut shape = c.input(0)?.shape().clone();
    for i in 1..3 {
        let next = c.input(i)?.shape();
        if shape.rank() > 0 && next.rank() > 0 && next != &shape {
            return Err(KernelError::invalid(format!("input {i} has shape {next}, others {shape}")));
        }
        shape = broadcast_shape(&shape, next)?;
    }
    let [a, b, x] = [c.slice::<f64>(0)?, c.slice::<f64>(1)?, c.slice::<f64>(2)?];
    let pick = |of: &[f64], i: usize| if of.len() == 1 { of[0] } else { of[i] };
    let out = c.filled::<f64>(shape, |out| {
        shard_slice(c.sharder, out, 1, 200_000, |at, part| {
            for (i, v) in part.iter_mut().enumerate() {
                *v = f::betainc(pick(a, at + i), pick(b, at + i), pick(x, at + i));
            }
        });
        Ok(())
    })?;
    c.set(0, out);
    Ok(())
}
