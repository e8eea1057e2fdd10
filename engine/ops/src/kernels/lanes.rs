//! Vectors of numbers for the tiles of products and convolutions: AVX-512 where the machine has it, else short arrays,
//! which the compiler vectorises for the instructions that the machine has.

use engine_core::dtype::Element;

/// A vector of `N` numbers.
pub(super) trait Lanes: Copy {
    /// The numbers.
    type T: Element + Default + std::ops::AddAssign;
    /// How many.
    const N: usize;
    /// Vectors that a tile is wide at most, so that its sums stay in registers.
    const MAX_WIDTH: usize;

    /// Zeros.
    fn zero() -> Self;
    /// One number in all places.
    fn splat(v: Self::T) -> Self;
    /// The numbers at `from`.
    ///
    /// # Safety
    /// `N` numbers can be read there.
    unsafe fn load(from: *const Self::T) -> Self;
    /// Says that the numbers at `from` are wanted soon; it need not be a place that can be read.
    #[inline(always)]
    fn fetch(_from: *const Self::T) {}
    /// Writes the numbers to `to`.
    ///
    /// # Safety
    /// `N` numbers can be written there.
    unsafe fn store(self, to: *mut Self::T);
    /// `self + a * b`.
    fn add_product(self, a: Self, b: Self) -> Self;
    /// `self + other`.
    fn plus(self, other: Self) -> Self;
}

/// Vectors whose numbers change places.
pub(super) trait Exchange: Lanes {
    /// Of two vectors cut into blocks of `D` numbers, the even blocks (this one's, the other's, in turn) and the odd ones.
    fn exchange<const D: usize>(self, other: Self) -> (Self, Self);
}

macro_rules! arrays {
    ($($t:ty),+) => { $(
        impl Lanes for [$t; 8] {
            type T = $t;
            const N: usize = 8;
            const MAX_WIDTH: usize = 1;

            #[inline(always)]
            fn zero() -> Self {
                [<$t>::default(); 8]
            }
            #[inline(always)]
            fn splat(v: $t) -> Self {
                [v; 8]
            }
            #[inline(always)]
            unsafe fn load(from: *const $t) -> Self {
                // SAFETY: the caller's word.
                unsafe { from.cast::<Self>().read_unaligned() }
            }
            #[inline(always)]
            unsafe fn store(self, to: *mut $t) {
                // SAFETY: the caller's word.
                unsafe { to.cast::<Self>().write_unaligned(self) }
            }
            #[inline(always)]
            fn add_product(mut self, a: Self, b: Self) -> Self {
                for i in 0..8 {
                    self[i] += a[i] * b[i];
                }
                self
            }
            #[inline(always)]
            fn plus(mut self, other: Self) -> Self {
                for i in 0..8 {
                    self[i] += other[i];
                }
                self
            }
        }
    )+ };
}
arrays!(f32, f64);

/// Of the AVX-512 vectors: to be used only within functions that are compiled for it and called where it is.
#[cfg(target_arch = "x86_64")]
pub(super) mod avx512 {
    use std::arch::x86_64::{
        __m512, __m512d, _MM_HINT_T0, _mm_prefetch, _mm512_add_pd, _mm512_add_ps, _mm512_fmadd_pd, _mm512_fmadd_ps,
        _mm512_loadu_pd, _mm512_loadu_ps, _mm512_loadu_si512, _mm512_permutex2var_pd, _mm512_permutex2var_ps,
        _mm512_set1_pd, _mm512_set1_ps, _mm512_setzero_pd, _mm512_setzero_ps, _mm512_storeu_pd, _mm512_storeu_ps,
    };

    macro_rules! vector {
        ($name:ident, $v:ty, $t:ty, $n:literal, $zero:ident, $splat:ident, $load:ident, $store:ident, $fma:ident, $add:ident, $index:ty, $permute:ident) => {
            /// A vector of 512 bits.
            #[derive(Clone, Copy)]
            #[repr(transparent)]
            pub(in crate::kernels) struct $name($v);

            impl super::Lanes for $name {
                type T = $t;
                const N: usize = $n;
                const MAX_WIDTH: usize = 3;

                #[inline(always)]
                fn zero() -> Self {
                    // SAFETY: this type is used only where the machine has AVX-512.
                    $name(unsafe { $zero() })
                }
                #[inline(always)]
                fn splat(v: $t) -> Self {
                    // SAFETY: as above.
                    $name(unsafe { $splat(v) })
                }
                #[inline(always)]
                unsafe fn load(from: *const $t) -> Self {
                    // SAFETY: as above, and the caller's word.
                    $name(unsafe { $load(from) })
                }
                #[inline(always)]
                fn fetch(from: *const $t) {
                    // SAFETY: as above; a prefetch never faults.
                    unsafe { _mm_prefetch::<_MM_HINT_T0>(from.cast()) }
                }
                #[inline(always)]
                unsafe fn store(self, to: *mut $t) {
                    // SAFETY: as above, and the caller's word.
                    unsafe { $store(to, self.0) }
                }
                #[inline(always)]
                fn add_product(self, a: Self, b: Self) -> Self {
                    // SAFETY: as above.
                    $name(unsafe { $fma(a.0, b.0, self.0) })
                }
                #[inline(always)]
                fn plus(self, other: Self) -> Self {
                    // SAFETY: as above.
                    $name(unsafe { $add(self.0, other.0) })
                }
            }

            impl super::Exchange for $name {
                #[inline(always)]
                fn exchange<const D: usize>(self, other: Self) -> (Self, Self) {
                    // Places of the second vector follow those of the first.
                    const fn places(d: usize, is_odd: bool) -> [$index; $n] {
                        let (mut places, mut i) = ([0; $n], 0);
                        while i < $n {
                            let from = if i & d == 0 { i } else { $n + i - d };
                            places[i] = (if is_odd { from + d } else { from }) as $index;
                            i += 1;
                        }
                        places
                    }
                    let (even, odd) = (const { places(D, false) }, const { places(D, true) });
                    // SAFETY: as above; the arrays are as long as a vector.
                    unsafe {
                        let [even, odd] = [&even, &odd].map(|places| _mm512_loadu_si512(places.as_ptr().cast()));
                        ($name($permute(self.0, even, other.0)), $name($permute(self.0, odd, other.0)))
                    }
                }
            }
        };
    }
    vector!(
        F32x16,
        __m512,
        f32,
        16,
        _mm512_setzero_ps,
        _mm512_set1_ps,
        _mm512_loadu_ps,
        _mm512_storeu_ps,
        _mm512_fmadd_ps,
        _mm512_add_ps,
        u32,
        _mm512_permutex2var_ps
    );
    vector!(
        F64x8,
        __m512d,
        f64,
        8,
        _mm512_setzero_pd,
        _mm512_set1_pd,
        _mm512_loadu_pd,
        _mm512_storeu_pd,
        _mm512_fmadd_pd,
        _mm512_add_pd,
        u64,
        _mm512_permutex2var_pd
    );
}
