// Reductions: many elements into one, in an order that does not depend on the device. OP(a, b) joins two, START is the
// neutral element; I is the type that is read, O the one that is written, C the one between.
__device__ inline i64 place(u64 i, int rank, Eight dims, Eight strides) {
    i64 at = 0;
    for (int d = rank - 1; d >= 0; d--) { at += (i64)(i % (u64)dims.v[d]) * strides.v[d]; i /= (u64)dims.v[d]; }
    return at;
}
// One thread per result and part of its elements.
extern "C" __global__ void reduce_threads(u64 n_out, u64 n_in, u64 n_parts, u64 out_rank, u64 in_rank, Eight out_dims,
                                          Eight out_strides, Eight in_dims, Eight in_strides, double scale,
                                          const I *in, O *out) {
    u64 each = (n_in + n_parts - 1) / n_parts;
    EACH(i, n_out * n_parts) {
        u64 o = i % n_out, begin = i / n_out * each, end = begin + each < n_in ? begin + each : n_in;
        const I *from = in + place(o, (int)out_rank, out_dims, out_strides);
        C sum = START;
        for (u64 r = begin; r < end; r++) {
            C value = (C)wide(from[place(r, (int)in_rank, in_dims, in_strides)]);
            sum = OP(sum, value);
        }
        out[i] = Stored<O>::of(scale == 1.0 ? sum : (C)(sum * (C)scale));
    }
}
// One block per result and part of its elements.
extern "C" __global__ void reduce_blocks(u64 n_out, u64 n_in, u64 n_parts, u64 out_rank, u64 in_rank, Eight out_dims,
                                         Eight out_strides, Eight in_dims, Eight in_strides, double scale,
                                         const I *in, O *out) {
    __shared__ C part[256];
    u64 each = (n_in + n_parts - 1) / n_parts;
    for (u64 i = blockIdx.x; i < n_out * n_parts; i += gridDim.x) {
        u64 o = i % n_out, begin = i / n_out * each, end = begin + each < n_in ? begin + each : n_in;
        const I *from = in + place(o, (int)out_rank, out_dims, out_strides);
        C sum = START;
        for (u64 r = begin + threadIdx.x; r < end; r += blockDim.x) {
            C value = (C)wide(from[place(r, (int)in_rank, in_dims, in_strides)]);
            sum = OP(sum, value);
        }
        part[threadIdx.x] = sum;
        __syncthreads();
        for (u32 half = blockDim.x / 2; half > 0; half /= 2) {
            if (threadIdx.x < half) part[threadIdx.x] = OP(part[threadIdx.x], part[threadIdx.x + half]);
            __syncthreads();
        }
        if (threadIdx.x == 0) out[i] = Stored<O>::of(scale == 1.0 ? part[0] : (C)(part[0] * (C)scale));
        __syncthreads();
    }
}
