// Elements by their numbers. A number out of range reads zeros and writes nothing: a device cannot refuse.
template <class N>
__device__ inline void gather_by(u64 n, u64 n_rows, u64 n_indices, u64 inner, const T *from, const N *indices, T *to) {
    EACH(i, n) {
        u64 at = i % inner, r = i / inner, outer = r / n_indices;
        i64 row = (i64)indices[r % n_indices];
        bool in = row >= 0 && row < (i64)n_rows;
        to[i] = in ? from[(outer * n_rows + (u64)row) * inner + at] : Stored<T>::of((C)0);
    }
}
extern "C" __global__ void gather32(u64 n, u64 n_rows, u64 n_indices, u64 inner, const T *from, const int *indices, T *to) {
    gather_by(n, n_rows, n_indices, inner, from, indices, to);
}
extern "C" __global__ void gather64(u64 n, u64 n_rows, u64 n_indices, u64 inner, const T *from, const i64 *indices, T *to) {
    gather_by(n, n_rows, n_indices, inner, from, indices, to);
}
extern "C" __global__ void largest(u64 n, u64 size, u64 inner, u64 is_min, u64 is_wide, const T *from, void *to) {
    EACH(i, n) {
        const T *row = from + i / inner * size * inner + i % inner;
        u64 best = 0;
        C most = wide(row[0]);
        for (u64 k = 1; k < size; k++) {
            C v = wide(row[k * inner]);
            if (is_min ? v < most : v > most) { most = v; best = k; }
        }
        if (is_wide) ((i64 *)to)[i] = (i64)best; else ((int *)to)[i] = (int)best;
    }
}
template <class N>
__device__ inline void hot_by(u64 n, u64 depth, u64 inner, const N *indices, const T *on, const T *off, T *to) {
    EACH(i, n) {
        u64 at = i % inner, k = i / inner % depth, outer = i / inner / depth;
        to[i] = (i64)indices[outer * inner + at] == (i64)k ? *on : *off;
    }
}
extern "C" __global__ void hot32(u64 n, u64 depth, u64 inner, const int *indices, const T *on, const T *off, T *to) {
    hot_by(n, depth, inner, indices, on, off, to);
}
extern "C" __global__ void hot64(u64 n, u64 depth, u64 inner, const i64 *indices, const T *on, const T *off, T *to) {
    hot_by(n, depth, inner, indices, on, off, to);
}
