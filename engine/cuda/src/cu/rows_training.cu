// Updates of the rows that indices list, each at most once; a number out of range updates nothing.
template <class N>
__device__ inline void momentum_by(u64 n, u64 rows, u64 inner, double rate, double mu, u64 nesterov, T *v, T *a, const T *g,
                                   const N *indices) {
    C r = (C)rate, m = (C)mu;
    EACH(i, n) {
        i64 row = (i64)indices[i / inner];
        if (row < 0 || row >= (i64)rows) continue;
        u64 at = (u64)row * inner + i % inner;
        C d = wide(g[i]), s = (C)wide(a[at]) * m + d;
        a[at] = Stored<T>::of(s);
        v[at] = Stored<T>::of((C)wide(v[at]) - r * (nesterov ? d + m * s : s));
    }
}
extern "C" __global__ void momentum32(u64 n, u64 rows, u64 inner, double rate, double mu, u64 nesterov, T *v, T *a,
                                      const T *g, const int *indices) {
    momentum_by(n, rows, inner, rate, mu, nesterov, v, a, g, indices);
}
extern "C" __global__ void momentum64(u64 n, u64 rows, u64 inner, double rate, double mu, u64 nesterov, T *v, T *a,
                                      const T *g, const i64 *indices) {
    momentum_by(n, rows, inner, rate, mu, nesterov, v, a, g, indices);
}
template <class N>
__device__ inline void add_by(u64 n, u64 rows, u64 inner, double sign, T *v, const T *g, const N *indices) {
    C s = (C)sign;
    EACH(i, n) {
        i64 row = (i64)indices[i / inner];
        if (row >= 0 && row < (i64)rows) atomicAdd(v + (u64)row * inner + i % inner, (T)(s * (C)wide(g[i])));
    }
}
extern "C" __global__ void scatter32(u64 n, u64 rows, u64 inner, double sign, T *v, const T *g, const int *indices) {
    add_by(n, rows, inner, sign, v, g, indices);
}
extern "C" __global__ void scatter64(u64 n, u64 rows, u64 inner, double sign, T *v, const T *g, const i64 *indices) {
    add_by(n, rows, inner, sign, v, g, indices);
}
