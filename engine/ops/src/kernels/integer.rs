//! Element-wise kernels of integers: division, powers, bits. Narrow integers compute as i64 ([`super::narrow`]).

use super::elementwise::{call2, called, forward, map1, map2};
use super::support::{Built, Computed, cheap, cpu, kernel};
use super::{KERNEL_TABLES, KernelContext, KernelDef, KernelError};
use engine_core::convert::convert;
use engine_core::dtype::{DType, Element};
use engine_core::graph::Node;

/// Division of integers: by zero is an error, as in TensorFlow.
fn division<T: Element + Default>(f: fn(T, T) -> T) -> Built {
    kernel(move |c| {
        if c.slice::<T>(1)?.contains(&T::default()) {
            return Err(KernelError::invalid("integer division by zero"));
        }
        map2::<T>(c, 2000, f)
    })
}

macro_rules! divisions {
    ($($t:ty),+) => { &[ $(
        cpu("Div", ("T", &[<$t as Element>::DTYPE]), |_| division::<$t>(<$t>::wrapping_div)),
        cpu("RealDiv", ("T", &[<$t as Element>::DTYPE]), |_| division::<$t>(<$t>::wrapping_div)),
        cpu("TruncateDiv", ("T", &[<$t as Element>::DTYPE]), |_| division::<$t>(<$t>::wrapping_div)),
        cpu("FloorDiv", ("T", &[<$t as Element>::DTYPE]), |_| division::<$t>(|x, y| {
            let r = x.wrapping_rem(y);
            #[allow(unused_comparisons, reason = "unsigned integers come by here too")]
            let down = r != 0 && (r < 0) != (y < 0);
            x.wrapping_div(y).wrapping_sub(<$t>::from(down))
        })),
        cpu("FloorMod", ("T", &[<$t as Element>::DTYPE]), |_| division::<$t>(|x, y| {
            let r = x.wrapping_rem(y);
            #[allow(unused_comparisons, reason = "unsigned integers come by here too")]
            let other_sign = r != 0 && (r < 0) != (y < 0);
            if other_sign { r.wrapping_add(y) } else { r }
        })),
        cpu("Mod", ("T", &[<$t as Element>::DTYPE]), |_| division::<$t>(<$t>::wrapping_rem)),
        cpu("TruncateMod", ("T", &[<$t as Element>::DTYPE]), |_| division::<$t>(<$t>::wrapping_rem)),
        cpu("Pow", ("T", &[<$t as Element>::DTYPE]), |_| power::<$t>(|x, y| {
            // By squaring, with all bits of the exponent: the low bits of the power repeat with no short period.
            let (mut base, mut exponent, mut product) = (x, y, 1 as $t);
            while exponent > 0 {
                if exponent & 1 == 1 {
                    product = product.wrapping_mul(base);
                }
                base = base.wrapping_mul(base);
                exponent >>= 1;
            }
            product
        })),
    )+ ] };
}

#[linkme::distributed_slice(KERNEL_TABLES)]
static DIVISIONS: &[KernelDef] = divisions!(i32, i64, u64);

/// Powers of integers: a negative exponent is an error, as in TensorFlow.
fn power<T: Element + PartialOrd + Default>(f: fn(T, T) -> T) -> Built {
    kernel(move |c| {
        if c.slice::<T>(1)?.iter().any(|e| *e < T::default()) {
            return Err(KernelError::invalid("integers to negative integer powers are not allowed"));
        }
        map2(c, 3000, f)
    })
}

#[linkme::distributed_slice(KERNEL_TABLES)]
static BITS: &[KernelDef] = called! { call2;
    "BitwiseAnd" [i32, i64] 400 |x, y| x & y;
    "BitwiseOr" [i32, i64] 400 |x, y| x | y;
    "BitwiseXor" [i32, i64] 400 |x, y| x ^ y;
    "Maximum" [u64] 400 |x: u64, y| x.max(y);
    "Minimum" [u64] 400 |x: u64, y| x.min(y);
};

#[linkme::distributed_slice(KERNEL_TABLES)]
static OTHERS: &[KernelDef] = &[
    cpu("Invert", ("T", &[DType::I32]), |_| kernel(|c| map1::<i32>(c, 300, |x| !x))),
    cpu("Invert", ("T", &[DType::I64]), |_| kernel(|c| map1::<i64>(c, 300, |x| !x))),
    cpu("Round", ("T", DType::INTEGERS), |_| cheap(forward)),
    cpu("LeftShift", ("T", DType::INTEGERS), |n| shift(n, true)),
    cpu("RightShift", ("T", DType::INTEGERS), |n| shift(n, false)),
    cpu("PopulationCount", ("T", DType::INTEGERS), |n| {
        let mask = u64::MAX >> (64 - 8 * n.dtype("T")?.size());
        kernel(move |c| {
            let wide = convert(c.input(0)?, DType::I64, c.allocator)?;
            let counts =
                super::elementwise::map_to::<i64, u8>(c, &wide, 500, |v| (v as u64 & mask).count_ones() as u8)?;
            c.set(0, counts);
            Ok(())
        })
    }),
];

/// Shifts by at most all bits but one, as TensorFlow's.
fn shift(node: &Node, left: bool) -> Built {
    let dtype = *node.dtype("T")?;
    let most = (8 * dtype.size() - 1) as i64;
    let signed = matches!(dtype, DType::I8 | DType::I16 | DType::I32 | DType::I64);
    kernel(move |c: &mut KernelContext<'_>| -> Computed {
        for i in 0..2 {
            c.inputs[i] = Some(convert(c.input(i)?, DType::I64, c.allocator)?);
        }
        map2::<i64>(c, 500, |x, by| {
            // An amount beyond the bits, or negative (as unsigned: huge), is clamped.
            let by = if signed { by.clamp(0, most) } else { (by as u64).min(most as u64) as i64 };
            match (left, signed) {
                (true, _) => x << by,
                (false, true) => x >> by,
                (false, false) => ((x as u64) >> by) as i64,
            }
        })?;
        let out = c.outputs[0].take().ok_or(KernelError::MissingInput(0))?;
        c.set(0, convert(&out, dtype, c.allocator)?);
        Ok(())
    })
}
