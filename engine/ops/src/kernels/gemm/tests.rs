//! Products against plain loops in f64: all edges of tiles, strips and blocks, sums over pairs, packed matrices.

use proptest::prelude::*;

use super::*;
use crate::kernels::Serial;

/// Small integers, so that sums are exact in any order.
fn values<T: From<i8>>(n: usize, seed: usize) -> Vec<T> {
    (0..n).map(|i| T::from(((i * 31 + seed * 17 + i / 7) % 13) as i8 - 6)).collect()
}

fn matrix<T>(data: &[T], rows: usize, cols: usize, transposed: bool) -> Matrix<'_, T> {
    let (row_stride, col_stride) = if transposed { (1, rows) } else { (cols, 1) };
    Matrix { data, rows, cols, row_stride, col_stride, conjugate: false }
}

/// The plain loop.
fn expected<T: Copy + Into<f64>>(a: &[Matrix<'_, T>], b: &[Matrix<'_, T>], m: usize, n: usize) -> Vec<f64> {
    let at = |m: &Matrix<'_, T>, i: usize, j: usize| m.data[i * m.row_stride + j * m.col_stride].into();
    let element = |i, j| {
        let of = |(a, b): (&Matrix<'_, T>, &Matrix<'_, T>)| (0..a.cols).map(|k| at(a, i, k) * at(b, k, j)).sum::<f64>();
        a.iter().zip(b).map(of).sum()
    };
    (0..m * n).map(|at| element(at / n, at % n)).collect()
}

fn check<T: Gemm + From<i8> + Into<f64> + std::ops::AddAssign>(
    m: usize,
    ks: &[usize],
    n: usize,
    turned: (bool, bool),
    adds: bool,
) {
    let a_data: Vec<Vec<T>> = ks.iter().enumerate().map(|(i, k)| values(m * k, i)).collect();
    let b_data: Vec<Vec<T>> = ks.iter().enumerate().map(|(i, k)| values(k * n, i + 5)).collect();
    let a: Vec<_> = ks.iter().zip(&a_data).map(|(k, data)| matrix(data, m, *k, turned.0)).collect();
    let b: Vec<_> = ks.iter().zip(&b_data).map(|(k, data)| matrix(data, *k, n, turned.1)).collect();
    let begin: Vec<T> = values(m * n, 3);
    let mut want = expected(&a, &b, m, n);
    if adds {
        want.iter_mut().zip(&begin).for_each(|(want, begin)| *want += (*begin).into());
    }
    let finish = |column: usize, row: &mut [T]| {
        row.iter_mut().enumerate().for_each(|(j, v)| *v += T::from((column + j) as i8 & 7));
    };
    let finished: Vec<f64> = want.iter().enumerate().map(|(at, v)| v + f64::from((at % n) as i8 & 7)).collect();
    let run = |packed: Option<&[T]>| {
        let mut out = begin.clone();
        let product = Product { a: &a, b: &b, packed, adds, then: Some(&finish) };
        multiply_all(&Serial, &product, &mut out);
        let got: Vec<f64> = out.iter().map(|v| (*v).into()).collect();
        assert_eq!(got, finished, "{m} x {ks:?} x {n}, transposed {turned:?}");
    };
    run(None);
    if let [b] = b.as_slice() {
        let mut room = vec![T::ZERO; packed_len(b)];
        pack_right(&Serial, b, &mut room);
        run(Some(&room));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn products_are_those_of_plain_loops(
        m in 1usize..70,
        ks in prop::collection::vec(0usize..90, 1..6),
        n in 1usize..140,
        turned in any::<(bool, bool)>(),
        adds in any::<bool>(),
    ) {
        check::<f32>(m, &ks, n, turned, adds);
        check::<f64>(m, &ks, n, turned, adds);
    }
}

#[test]
fn blocks_of_steps_and_columns_meet() {
    for turned in [(false, false), (true, false), (false, true), (true, true)] {
        check::<f32>(33, &[700], 1100, turned, false);
        check::<f64>(17, &[257, 3, 300], 1056, turned, true);
        check::<f32>(5, &[300], 64, turned, true);
    }
}
