// Rows added up by number, in any order: sums of floats may differ in their last bits from run to run.
template <class N>
__device__ inline void add_by(u64 n, u64 n_rows, u64 inner, const T *from, const N *indices, T *to) {
    EACH(i, n) {
        i64 row = (i64)indices[i / inner];
        if (row >= 0 && row < (i64)n_rows) atomicAdd(to + (u64)row * inner + i % inner, from[i]);
    }
}
extern "C" __global__ void add32(u64 n, u64 n_rows, u64 inner, const T *from, const int *indices, T *to) {
    add_by(n, n_rows, inner, from, indices, to);
}
extern "C" __global__ void add64(u64 n, u64 n_rows, u64 inner, const T *from, const i64 *indices, T *to) {
    add_by(n, n_rows, inner, from, indices, to);
}
