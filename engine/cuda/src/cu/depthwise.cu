// Convolutions that keep channels apart: filter [win_y, win_x, channels, each], results [channels * each], channels last.
// The position in the image of a window's element, or -1 where it lies outside.
__device__ inline i64 position(i64 out, i64 tap, i64 stride, i64 dilation, i64 before, i64 in) {
    i64 at = out * stride + tap * dilation - before;
    return at >= 0 && at < in ? at : -1;
}
// The window whose element `tap` lies at `at`, or -1 where there is none.
__device__ inline i64 window_of(i64 at, i64 tap, i64 stride, i64 dilation, i64 before, i64 out) {
    i64 from = at + before - tap * dilation;
    return from >= 0 && from % stride == 0 && from / stride < out ? from / stride : -1;
}
extern "C" __global__ void depthwise(u64 n, Eight ga, Eight gb, u64 each, const T *image, const T *filter, T *out) {
    Geometry g = geometry(ga, gb);
    u64 all = (u64)g.channels * each;
    EACH(i, n) {
        u64 r = i, to = r % all; r /= all;
        i64 ox = (i64)(r % (u64)g.out_x); r /= (u64)g.out_x;
        i64 oy = (i64)(r % (u64)g.out_y); r /= (u64)g.out_y;
        C sum = (C)0;
        for (i64 ky = 0; ky < g.win_y; ky++) {
            i64 y = position(oy, ky, g.stride_y, g.dil_y, g.before_y, g.in_y);
            if (y < 0) continue;
            for (i64 kx = 0; kx < g.win_x; kx++) {
                i64 x = position(ox, kx, g.stride_x, g.dil_x, g.before_x, g.in_x);
                if (x < 0) continue;
                C v = wide(image[(((i64)r * g.in_y + y) * g.in_x + x) * g.channels + (i64)(to / each)]);
                sum += v * (C)wide(filter[(u64)(ky * g.win_x + kx) * all + to]);
            }
        }
        out[i] = Stored<T>::of(sum);
    }
}
extern "C" __global__ void depthwise_to_input(u64 n, Eight ga, Eight gb, u64 each, const T *filter, const T *grad, T *image) {
    Geometry g = geometry(ga, gb);
    u64 all = (u64)g.channels * each;
    EACH(i, n) {
        u64 r = i, c = r % (u64)g.channels; r /= (u64)g.channels;
        i64 x = (i64)(r % (u64)g.in_x); r /= (u64)g.in_x;
        i64 y = (i64)(r % (u64)g.in_y); r /= (u64)g.in_y;
        C sum = (C)0;
        for (i64 ky = 0; ky < g.win_y; ky++) {
            i64 oy = window_of(y, ky, g.stride_y, g.dil_y, g.before_y, g.out_y);
            if (oy < 0) continue;
            for (i64 kx = 0; kx < g.win_x; kx++) {
                i64 ox = window_of(x, kx, g.stride_x, g.dil_x, g.before_x, g.out_x);
                if (ox < 0) continue;
                const T *of = grad + (((i64)r * g.out_y + oy) * g.out_x + ox) * (i64)all + c * each;
                const T *by = filter + (u64)(ky * g.win_x + kx) * all + c * each;
                for (u64 q = 0; q < each; q++) sum += (C)wide(of[q]) * (C)wide(by[q]);
            }
        }
        image[i] = Stored<T>::of(sum);
    }
}
// A block per element of the filter: its threads share the pixels.
extern "C" __global__ void depthwise_to_filter(u64 n, Eight ga, Eight gb, u64 each, const T *image, const T *grad, T *filter) {
    __shared__ C part[256];
    Geometry g = geometry(ga, gb);
    u64 all = (u64)g.channels * each, pixels = (u64)(g.batch * g.out_y * g.out_x);
    for (u64 i = blockIdx.x; i < n; i += gridDim.x) {
        u64 to = i % all, tap = i / all;
        i64 ky = (i64)tap / g.win_x, kx = (i64)tap % g.win_x;
        C sum = (C)0;
        for (u64 p = threadIdx.x; p < pixels; p += blockDim.x) {
            u64 r = p;
            i64 ox = (i64)(r % (u64)g.out_x); r /= (u64)g.out_x;
            i64 oy = (i64)(r % (u64)g.out_y); r /= (u64)g.out_y;
            i64 y = position(oy, ky, g.stride_y, g.dil_y, g.before_y, g.in_y);
            i64 x = position(ox, kx, g.stride_x, g.dil_x, g.before_x, g.in_x);
            if (y < 0 || x < 0) continue;
            C v = wide(image[(((i64)r * g.in_y + y) * g.in_x + x) * g.channels + (i64)(to / each)]);
            sum += v * (C)wide(grad[p * all + to]);
        }
        part[threadIdx.x] = sum;
        __syncthreads();
        for (u32 half = blockDim.x / 2; half > 0; half /= 2) {
            if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
            __syncthreads();
        }
        if (threadIdx.x == 0) filter[i] = Stored<T>::of(part[0]);
        __syncthreads();
    }
}
