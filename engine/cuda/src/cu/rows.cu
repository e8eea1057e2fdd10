// Softmax and cross entropies: a block per row of logits.
__device__ inline C join_max(C *part, C value) {
    part[threadIdx.x] = value;
    __syncthreads();
    for (u32 half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half && part[threadIdx.x + half] > part[threadIdx.x]) part[threadIdx.x] = part[threadIdx.x + half];
        __syncthreads();
    }
    C all = part[0];
    __syncthreads();
    return all;
}
__device__ inline C join_sum(C *part, C value) {
    part[threadIdx.x] = value;
    __syncthreads();
    for (u32 half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    C all = part[0];
    __syncthreads();
    return all;
}
__device__ inline C row_max(C *part, const T *x, u64 n) {
    C most = (C)(-1.0 / 0.0);
    for (u64 i = threadIdx.x; i < n; i += blockDim.x) { C v = wide(x[i]); most = v > most ? v : most; }
    return join_max(part, most);
}
__device__ inline C row_sum(C *part, const T *x, u64 n, C most) {
    C sum = (C)0;
    for (u64 i = threadIdx.x; i < n; i += blockDim.x) sum += e_to((C)wide(x[i]) - most);
    return join_sum(part, sum);
}
extern "C" __global__ void softmax(u64 rows, u64 n, u64 is_log, const T *x, T *y) {
    __shared__ C part[256];
    for (u64 r = blockIdx.x; r < rows; r += gridDim.x) {
        const T *from = x + r * n; T *to = y + r * n;
        C most = row_max(part, from, n), sum = row_sum(part, from, n, most), log = log_of(sum);
        for (u64 i = threadIdx.x; i < n; i += blockDim.x) {
            C v = (C)wide(from[i]) - most;
            to[i] = Stored<T>::of(is_log ? v - log : e_to(v) / sum);
        }
    }
}
extern "C" __global__ void cross_entropy(u64 rows, u64 n, const T *x, const T *labels, T *loss, T *grad) {
    __shared__ C part[256];
    for (u64 r = blockIdx.x; r < rows; r += gridDim.x) {
        const T *from = x + r * n, *p = labels + r * n; T *to = grad + r * n;
        C most = row_max(part, from, n), sum = row_sum(part, from, n, most), log = log_of(sum), total = (C)0;
        for (u64 i = threadIdx.x; i < n; i += blockDim.x) {
            C v = (C)wide(from[i]) - most, q = wide(p[i]);
            total += q * (log - v);
            to[i] = Stored<T>::of(e_to(v) / sum - q);
        }
        total = join_sum(part, total);
        if (threadIdx.x == 0) loss[r] = Stored<T>::of(total);
    }
}
// A class out of range gives a loss and a gradient that are no numbers: a device cannot refuse.
template <class L>
__device__ inline void sparse(u64 rows, u64 n, const T *x, const L *labels, T *loss, T *grad) {
    __shared__ C part[256];
    for (u64 r = blockIdx.x; r < rows; r += gridDim.x) {
        const T *from = x + r * n; T *to = grad + r * n;
        i64 label = (i64)labels[r];
        C most = row_max(part, from, n), sum = row_sum(part, from, n, most), log = log_of(sum);
        bool in = label >= 0 && label < (i64)n;
        C none = (C)(0.0 / 0.0);
        for (u64 i = threadIdx.x; i < n; i += blockDim.x) {
            C v = e_to((C)wide(from[i]) - most) / sum;
            to[i] = Stored<T>::of(in ? v - ((i64)i == label ? (C)1 : (C)0) : none);
        }
        if (threadIdx.x == 0) loss[r] = Stored<T>::of(in ? log - ((C)wide(from[label]) - most) : none);
    }
}
extern "C" __global__ void sparse32(u64 rows, u64 n, const T *x, const int *labels, T *loss, T *grad) {
    sparse(rows, n, x, labels, loss, grad);
}
extern "C" __global__ void sparse64(u64 rows, u64 n, const T *x, const i64 *labels, T *loss, T *grad) {
    sparse(rows, n, x, labels, loss, grad);
}
