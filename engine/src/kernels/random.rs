//! Kernels of random ops: TensorFlow's numbers for TensorFlow's seeds, whatever the number of threads.
//!
//! Each output group (of four floats or two doubles) has its own place in the generator's sequence; each execution
//! reserves 256 calls per output, as TensorFlow does.

use std::hash::{BuildHasher, RandomState};

use parking_lot::Mutex;

use super::philox::{Philox, normal_f32, normal_f64, uniform_f32, uniform_f64};
use super::support::{Built, cpu, kernel, shard_slice};
use super::{KERNEL_TABLES, KernelDef};
use crate::dtype::{DType, Element};
use crate::graph::Node;

/// Calls of the generator set aside for each output.
const RESERVED: u64 = 256;
/// Normal numbers further out are drawn again.
const TRUNCATE: f64 = 2.0;

/// Fills one group from a generator at the group's place.
type Group<T> = fn(&mut Philox, &mut [T]);

fn uniform4(g: &mut Philox, out: &mut [f32]) {
    out.iter_mut().zip(g.next4()).for_each(|(o, x)| *o = uniform_f32(x));
}

fn uniform2(g: &mut Philox, out: &mut [f64]) {
    let x = g.next4();
    out.iter_mut().zip([uniform_f64(x[0], x[1]), uniform_f64(x[2], x[3])]).for_each(|(o, v)| *o = v);
}

fn normal4(g: &mut Philox, out: &mut [f32]) {
    let x = g.next4();
    let values = [normal_f32(x[0], x[1]), normal_f32(x[2], x[3])];
    out.iter_mut().zip(values.into_iter().flatten()).for_each(|(o, v)| *o = v);
}

fn normal2(g: &mut Philox, out: &mut [f64]) {
    out.iter_mut().zip(normal_f64(g.next4())).for_each(|(o, v)| *o = v);
}

fn truncated4(g: &mut Philox, out: &mut [f32]) {
    let mut n = 0;
    while n < out.len() {
        let x = g.next4();
        for v in [normal_f32(x[0], x[1]), normal_f32(x[2], x[3])].into_iter().flatten() {
            if v.abs() < TRUNCATE as f32 && n < out.len() {
                out[n] = v;
                n += 1;
            }
        }
    }
}

fn truncated2(g: &mut Philox, out: &mut [f64]) {
    let mut n = 0;
    while n < out.len() {
        for v in normal_f64(g.next4()) {
            if v.abs() < TRUNCATE && n < out.len() {
                out[n] = v;
                n += 1;
            }
        }
    }
}

/// A kernel whose group `i` begins `i * stride` calls after the execution's place.
fn random<T: Element>(node: &Node, group_len: usize, stride: u64, ps: u64, group: Group<T>) -> Built {
    let (seed, seed2) = (*node.int("seed")? as u64, *node.int("seed2")? as u64);
    let start = match (seed, seed2) {
        (0, 0) => Philox::new(RandomState::new().hash_one(1u8), RandomState::new().hash_one(2u8)),
        _ => Philox::new(seed, seed2),
    };
    let generator = Mutex::new(start);
    kernel(move |c| {
        let shape = c.shape_input(0)?;
        let mut t = c.room::<T>(shape)?;
        let base = {
            let mut g = generator.lock();
            let base = *g;
            g.skip((t.len() as u64).wrapping_mul(RESERVED));
            base
        };
        shard_slice(c.sharder, super::support::unique_slice::<T>(&mut t)?, group_len, ps, |at, part| {
            for (i, out) in part.chunks_mut(group_len).enumerate() {
                let mut g = base;
                g.skip((at / group_len + i) as u64 * stride);
                group(&mut g, out);
            }
        });
        c.set(0, t);
        Ok(())
    })
}

#[linkme::distributed_slice(KERNEL_TABLES)]
static RANDOM: &[KernelDef] = &[
    cpu("RandomUniform", ("dtype", &[DType::F32]), |n| random::<f32>(n, 4, 1, 2000, uniform4)),
    cpu("RandomUniform", ("dtype", &[DType::F64]), |n| random::<f64>(n, 2, 1, 4000, uniform2)),
    cpu("RandomStandardNormal", ("dtype", &[DType::F32]), |n| random::<f32>(n, 4, 1, 10_000, normal4)),
    cpu("RandomStandardNormal", ("dtype", &[DType::F64]), |n| random::<f64>(n, 2, 1, 20_000, normal2)),
    cpu("TruncatedNormal", ("dtype", &[DType::F32]), |n| random::<f32>(n, 4, RESERVED, 10_000, truncated4)),
    cpu("TruncatedNormal", ("dtype", &[DType::F64]), |n| random::<f64>(n, 2, RESERVED / 2, 20_000, truncated2)),
];
