//! Loops compiled for the vector units that the machine turns out to have.

/// Functions whose loops the compiler vectorises three times: for AVX-512, for AVX2, and for any machine; a call takes
/// the best that there is.
macro_rules! vectorised {
    ($($(#[$doc:meta])* $vis:vis fn $name:ident<$T:ident: $bound:path>($($arg:ident: $t:ty),* $(,)?) $body:block)+) => { $(
        $(#[$doc])*
        #[allow(clippy::too_many_arguments, reason = "as below")]
        $vis fn $name<$T: $bound>($($arg: $t),*) {
            #[inline(always)]
            #[allow(clippy::too_many_arguments, reason = "as many as the loop that is wrapped has")]
            fn body<$T: $bound>($($arg: $t),*) $body
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
                #[allow(clippy::too_many_arguments, reason = "as above")]
                fn avx512<$T: $bound>($($arg: $t),*) {
                    body($($arg),*);
                }
                #[target_feature(enable = "avx2,fma")]
                #[allow(clippy::too_many_arguments, reason = "as above")]
                fn avx2<$T: $bound>($($arg: $t),*) {
                    body($($arg),*);
                }
                match $crate::kernels::wide::level() {
                    // SAFETY: the features that the function is compiled for were found.
                    $crate::kernels::wide::Level::Avx512 => return unsafe { avx512($($arg),*) },
                    // SAFETY: as above.
                    $crate::kernels::wide::Level::Avx2 => return unsafe { avx2($($arg),*) },
                    $crate::kernels::wide::Level::Any => {}
                }
            }
            body($($arg),*);
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

/// What the machine has; the answers are cached by the standard library.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(super) fn level() -> Level {
    if !(is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")) {
        return Level::Any;
    }
    let wide = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl");
    if wide { Level::Avx512 } else { Level::Avx2 }
}
