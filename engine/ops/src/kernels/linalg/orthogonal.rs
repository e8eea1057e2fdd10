//! Orthogonal factors: QR by Householder's reflections, eigenvalues and singular values by Jacobi's rotations.
//!
//! Jacobi's methods find small eigenvalues and singular values to high relative accuracy, are short, and take about
//! six to ten sweeps of O(n^3).

use num_traits::{Float, One, Zero};

use super::field::{Field, Mat, epsilon, norm_sqr, number, real};

/// More sweeps than convergence, which is quadratic, ever takes.
const MAX_SWEEPS: usize = 60;

/// `A = Q R` with Q of `full` or thin size; R has the signs that LAPACK's and Eigen's reflections give.
pub(crate) fn qr<T: Field>(mut a: Mat<T>, full: bool) -> (Mat<T>, Mat<T>) {
    let (m, n) = (a.rows, a.cols);
    let p = m.min(n);
    let mut taus = Vec::with_capacity(p);
    for k in 0..p {
        let tau = reflect_column(&mut a, k);
        apply(&mut a, k, tau, k + 1, None);
        taus.push(tau);
    }
    let q_cols = if full { m } else { p };
    let mut q = Mat::zeros(m, q_cols);
    (0..q_cols).for_each(|i| q.set(i, i, T::one()));
    for k in (0..p).rev() {
        apply(&mut q, k, taus[k].conj(), 0, Some(&a));
    }
    let r_rows = if full { m } else { p };
    let mut r = Mat::zeros(r_rows, n);
    for i in 0..p {
        (i..n).for_each(|j| r.set(i, j, a.at(i, j)));
    }
    (q, r)
}

/// Makes column `k` zero below the diagonal; the reflection's vector (its first element 1, left out) takes its place.
fn reflect_column<T: Field>(a: &mut Mat<T>, k: usize) -> T {
    let first = a.at(k, k);
    let tail = (k + 1..a.rows).fold(T::Real::zero(), |sum, i| sum + norm_sqr(a.at(i, k)));
    let imaginary = first.im() * first.im();
    if tail <= T::Real::min_positive_value() && imaginary <= T::Real::min_positive_value() {
        (k + 1..a.rows).for_each(|i| a.set(i, k, T::zero()));
        return T::zero();
    }
    let length = (norm_sqr(first) + tail).sqrt();
    let beta = real::<T>(if first.re() >= T::Real::zero() { -length } else { length });
    for i in k + 1..a.rows {
        let v = a.at(i, k) / (first - beta);
        a.set(i, k, v);
    }
    a.set(k, k, beta);
    ((beta - first) / beta).conj()
}

/// `x -= tau v (v* x)` on the columns from `first` on, v being column `k` of `of` (of `x` itself where `None`).
fn apply<T: Field>(x: &mut Mat<T>, k: usize, tau: T, first: usize, of: Option<&Mat<T>>) {
    if tau.is_zero() || first >= x.cols {
        return;
    }
    let v: Vec<T> = (k + 1..x.rows).map(|i| of.map_or_else(|| x.at(i, k), |of| of.at(i, k))).collect();
    let mut dots = x.row(k)[first..].to_vec();
    for (i, v) in v.iter().enumerate() {
        dots.iter_mut().zip(&x.row(k + 1 + i)[first..]).for_each(|(d, x)| *d = *d + v.conj() * *x);
    }
    let n = x.cols;
    let mut update = |i: usize, factor: T| {
        let row = &mut x.data[i * n + first..(i + 1) * n];
        row.iter_mut().zip(&dots).for_each(|(x, d)| *x = *x - factor * *d);
    };
    update(k, tau);
    v.iter().enumerate().for_each(|(i, v)| update(k + 1 + i, tau * *v));
}

/// The rotation that makes the two vectors with squared lengths `pp`, `qq` and product `pq` orthogonal: cosine, sine,
/// and the conjugate phase of the product.
fn rotation<T: Field>(pp: T::Real, qq: T::Real, pq: T) -> (T, T, T) {
    let (one, two) = (T::Real::one(), T::Real::one() + T::Real::one());
    let size = pq.abs();
    let phase = (pq / real::<T>(size)).conj();
    let theta = (qq - pp) / (two * size);
    let t = if theta.is_finite() { one / (theta.abs() + (one + theta * theta).sqrt()) } else { T::Real::zero() };
    let t = if theta < T::Real::zero() { -t } else { t };
    let c = one / (one + t * t).sqrt();
    (real(c), real(t * c), phase)
}

/// Eigenvalues of a Hermitian matrix, of which the lower triangle is read, ascending, and the eigenvectors as columns.
pub(crate) fn eigh<T: Field>(a: &Mat<T>) -> (Vec<T::Real>, Mat<T>) {
    let n = a.rows;
    let mut h = a.clone();
    for i in 0..n {
        h.set(i, i, real(a.at(i, i).re()));
        (i + 1..n).for_each(|j| h.set(i, j, a.at(j, i).conj()));
    }
    // Rows of `v` are the eigenvectors (not conjugated), so that rotations run along memory.
    let mut v = Mat::<T>::identity(n);
    let total = h.data.iter().fold(T::Real::zero(), |sum, x| sum + norm_sqr(*x));
    let limit = total * epsilon::<T>() * epsilon::<T>() / number::<T>(1e4).re();
    for _ in 0..MAX_SWEEPS {
        let mut off = T::Real::zero();
        for p in 0..n {
            (p + 1..n).for_each(|q| off = off + norm_sqr(h.at(p, q)));
        }
        if !(off > limit) {
            break;
        }
        for p in 0..n {
            for q in p + 1..n {
                rotate_pair(&mut h, &mut v, p, q);
            }
        }
    }
    let mut order: Vec<usize> = (0..n).collect();
    let value = |i: usize| h.at(i, i).re();
    order.sort_by(|i, j| value(*i).partial_cmp(&value(*j)).unwrap_or(std::cmp::Ordering::Equal));
    let mut vectors = Mat::zeros(n, n);
    for (to, from) in order.iter().enumerate() {
        (0..n).for_each(|i| vectors.set(i, to, v.at(*from, i)));
    }
    (order.iter().map(|i| value(*i)).collect(), vectors)
}

fn rotate_pair<T: Field>(h: &mut Mat<T>, v: &mut Mat<T>, p: usize, q: usize) {
    let pq = h.at(p, q);
    if pq.abs() <= T::Real::min_positive_value() {
        return;
    }
    let (c, s, phase) = rotation::<T>(h.at(p, p).re(), h.at(q, q).re(), pq);
    for k in 0..h.rows {
        let (x, y) = (h.at(k, p), h.at(k, q) * phase);
        h.set(k, p, c * x - s * y);
        h.set(k, q, s * x + c * y);
    }
    let back = phase.conj();
    rotate_rows(h, p, q, (c, s, back));
    rotate_rows(v, p, q, (c, s, phase));
    h.set(p, q, T::zero());
    h.set(q, p, T::zero());
}

/// `(p, q) = (c p - s phase q, s p + c phase q)`.
fn rotate_rows<T: Field>(x: &mut Mat<T>, p: usize, q: usize, (c, s, phase): (T, T, T)) {
    let n = x.cols;
    let (a, b) = x.data.split_at_mut(q * n);
    for (x, y) in a[p * n..(p + 1) * n].iter_mut().zip(&mut b[..n]) {
        let (of_p, of_q) = (*x, *y * phase);
        *x = c * of_p - s * of_q;
        *y = s * of_p + c * of_q;
    }
}

/// `A = U diag(s) V*`, s descending, with U and V of `full` or thin size.
pub(crate) fn svd<T: Field>(a: &Mat<T>, full: bool) -> (Vec<T::Real>, Mat<T>, Mat<T>) {
    if a.rows < a.cols {
        let (s, u, v) = svd(&a.adjoint(), full);
        return (s, v, u);
    }
    let (m, n) = (a.rows, a.cols);
    // Rows are A's columns, and V's.
    let mut w = Mat::zeros(n, m);
    for i in 0..m {
        (0..n).for_each(|j| w.set(j, i, a.at(i, j)));
    }
    let mut v = Mat::<T>::identity(n);
    for _ in 0..MAX_SWEEPS {
        let mut is_orthogonal = true;
        for p in 0..n {
            for q in p + 1..n {
                is_orthogonal &= !orthogonalise(&mut w, &mut v, p, q);
            }
        }
        if is_orthogonal {
            break;
        }
    }
    let length = |i: usize| w.row(i).iter().fold(T::Real::zero(), |sum, x| sum + norm_sqr(*x)).sqrt();
    let lengths: Vec<T::Real> = (0..n).map(length).collect();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|i, j| lengths[*j].partial_cmp(&lengths[*i]).unwrap_or(std::cmp::Ordering::Equal));
    let s: Vec<T::Real> = order.iter().map(|i| lengths[*i]).collect();
    let mut vectors = Mat::zeros(n, n);
    for (to, from) in order.iter().enumerate() {
        (0..n).for_each(|i| vectors.set(i, to, v.at(*from, i)));
    }
    (s.clone(), left_vectors(&w, &order, &s, if full { m } else { n }), vectors)
}

/// Makes rows `p` and `q` of `w` orthogonal; whether they were not.
fn orthogonalise<T: Field>(w: &mut Mat<T>, v: &mut Mat<T>, p: usize, q: usize) -> bool {
    let sum = |x: &[T]| x.iter().fold(T::Real::zero(), |sum, x| sum + norm_sqr(*x));
    let (pp, qq) = (sum(w.row(p)), sum(w.row(q)));
    let pq = w.row(p).iter().zip(w.row(q)).fold(T::zero(), |sum, (x, y)| sum + x.conj() * *y);
    let tiny = epsilon::<T>() * (pp * qq).sqrt();
    if !(pq.abs() > tiny) || pq.abs() <= T::Real::min_positive_value() {
        return false;
    }
    let turn = rotation::<T>(pp, qq, pq);
    rotate_rows(w, p, q, turn);
    rotate_rows(v, p, q, turn);
    true
}

/// The normalised rows of `w` as columns, completed to `n_cols` orthonormal ones.
fn left_vectors<T: Field>(w: &Mat<T>, order: &[usize], s: &[T::Real], n_cols: usize) -> Mat<T> {
    let m = w.cols;
    let largest = s.first().copied().unwrap_or_else(T::Real::zero);
    let is_direction =
        |s: &T::Real| *s > largest * epsilon::<T>() * epsilon::<T>() && *s > T::Real::min_positive_value();
    let rank = s.iter().take_while(|s| is_direction(s)).count();
    let mut u = Mat::zeros(m, rank);
    for (to, from) in order[..rank].iter().enumerate() {
        let scale = real::<T>(s[to]);
        (0..m).for_each(|i| u.set(i, to, w.at(*from, i) / scale));
    }
    if rank == n_cols {
        return u;
    }
    // Q's further columns are orthogonal to the first ones, which span what `u` spans.
    let (q, _) = qr(u.clone(), true);
    let mut all = q.first_cols(n_cols);
    for i in 0..m {
        (0..rank).for_each(|j| all.set(i, j, u.at(i, j)));
    }
    all
}

/// The least `|A X - B|` of least `|X|`, by singular values.
pub(crate) fn least_squares<T: Field>(a: &Mat<T>, b: &Mat<T>) -> Mat<T> {
    let (s, u, v) = svd(a, false);
    let n = number::<T>(a.rows.max(a.cols) as f64).re();
    let limit = s.first().copied().unwrap_or_else(T::Real::zero) * epsilon::<T>() * n;
    let mut y = u.adjoint().times(b);
    for (i, s) in s.iter().enumerate() {
        let factor = if *s > limit { real::<T>(T::Real::one() / *s) } else { T::zero() };
        let cols = y.cols;
        y.data[i * cols..(i + 1) * cols].iter_mut().for_each(|v| *v = *v * factor);
    }
    v.times(&y)
}
