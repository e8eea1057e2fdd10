//! Loops compiled for the vector units that the machine turns out to have.

#[cfg(target_arch = "x86_64")]
use std::sync::atomic::{AtomicU8, Ordering};

/// Functions whose loops the compiler vectorises three times: for AVX-512, for AVX2, and for any machine; a call takes the
/// best that the machine has. (Slices are arguments of functions, not captured: so the compiler knows that they do not
/// overlap. Products and sums are not contracted: results are the same bits on all machines.)
macro_rules! vectorised {
    ($(
        $(#[$doc:meta])*
        $vis:vis fn $name:ident<$($T:ident: $bound:path),+>($($arg:ident: $t:ty),* $(,)?) $body:block
    )+) => { $(
        $(#[$doc])*
        #[allow(clippy::too_many_arguments, reason = "as below")]
        $vis fn $name<$($T: $bound),+>($($arg: $t),*) {
            #[inline(always)]
            #[allow(clippy::too_many_arguments, reason = "as many as the loop that is wrapped has")]
            fn body<$($T: $bound),+>($($arg: $t),*) $body
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
                #[allow(clippy::too_many_arguments, reason = "as above")]
                fn avx512<$($T: $bound),+>($($arg: $t),*) {
                    body::<$($T),+>($($arg),*);
                }
                #[target_feature(enable = "avx2,fma")]
                #[allow(clippy::too_many_arguments, reason = "as above")]
                fn avx2<$($T: $bound),+>($($arg: $t),*) {
                    body::<$($T),+>($($arg),*);
                }
                match $crate::kernels::wide::level() {
                    // SAFETY: the features that the function is compiled for were found.
                    $crate::kernels::wide::Level::Avx512 => return unsafe { avx512::<$($T),+>($($arg),*) },
                    // SAFETY: as above.
                    $crate::kernels::wide::Level::Avx2 => return unsafe { avx2::<$($T),+>($($arg),*) },
                    $crate::kernels::wide::Level::Any => {}
                }
            }
            body::<$($T),+>($($arg),*);
        }
    )+ };
}
pub(super) use vectorised;

/// What the machine has.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(super) enum Level {
    /// AVX-512 with bytes, words, and short vectors.
    Avx512,
    /// AVX2 and fused multiply-add.
    Avx2,
    /// Nothing in particular.
    Any,
}

/// What the machine has, once it was looked up: see [`level`].
#[cfg(target_arch = "x86_64")]
static LEVEL: AtomicU8 = AtomicU8::new(0);

/// What the machine has: one load, since loops over a few elements ask too.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn level() -> Level {
    match LEVEL.load(Ordering::Relaxed) {
        3 => Level::Avx512,
        2 => Level::Avx2,
        1 => Level::Any,
        _ => look_up(),
    }
}

#[cfg(target_arch = "x86_64")]
#[cold]
fn look_up() -> Level {
    let has_avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
    let has_avx512 = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl");
    let (level, number) = match (has_avx2, has_avx512) {
        (true, true) => (Level::Avx512, 3),
        (true, false) => (Level::Avx2, 2),
        (false, _) => (Level::Any, 1),
    };
    LEVEL.store(number, Ordering::Relaxed);
    level
}

vectorised! {
    /// `values[i] = f(values[i])`
    pub(super) fn update<T: Copy, F: Fn(T) -> T>(values: &mut [T], f: F) {
        values.iter_mut().for_each(|v| *v = f(*v));
    }

    /// `values[i] = f(values[i], other[i])`
    pub(super) fn update_with<T: Copy, F: Fn(T, T) -> T>(values: &mut [T], other: &[T], f: F) {
        values.iter_mut().zip(other).for_each(|(v, o)| *v = f(*v, *o));
    }

    /// `out[i] = f(x[i])`
    pub(super) fn map<T: Copy, U: Copy, F: Fn(T) -> U>(out: &mut [U], x: &[T], f: F) {
        out.iter_mut().zip(x).for_each(|(o, x)| *o = f(*x));
    }

    /// `out[i] = f(a[i], b[i])`
    pub(super) fn zip<T: Copy, U: Copy, F: Fn(T, T) -> U>(out: &mut [U], a: &[T], b: &[T], f: F) {
        out.iter_mut().zip(a).zip(b).for_each(|((o, a), b)| *o = f(*a, *b));
    }
}
