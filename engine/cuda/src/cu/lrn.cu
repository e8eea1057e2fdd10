// Local response normalisation: x / norm^beta, norm = bias + alpha * the squares of the channels around, channels last.
struct Around { i64 begin, end; };
__device__ inline Around around(i64 channel, i64 channels, i64 radius) {
    Around a;
    a.begin = channel > radius ? channel - radius : 0;
    a.end = channels - channel > radius ? channel + radius + 1 : channels;
    return a;
}
// The norm of each element: `y` is null, or gets the normalised values too.
extern "C" __global__ void lrn(u64 n, i64 channels, i64 radius, double bias, double alpha, double beta, const T *x, C *norms, T *y) {
    EACH(i, n) {
        i64 c = (i64)(i % (u64)channels);
        const T *pixel = x + (i64)i - c;
        Around a = around(c, channels, radius);
        C sum = (C)0;
        for (i64 k = a.begin; k < a.end; k++) { C v = wide(pixel[k]); sum += v * v; }
        C norm = (C)bias + (C)alpha * sum;
        if (norms) norms[i] = norm;
        if (y) y[i] = Stored<T>::of((C)wide(x[i]) * power(norm, (C)-beta));
    }
}
// An element is in the norms of its neighbours.
extern "C" __global__ void lrn_back(u64 n, i64 channels, i64 radius, double alpha, double beta, const T *dy, const T *x, const T *y, const C *norms, T *dx) {
    EACH(i, n) {
        i64 c = (i64)(i % (u64)channels), first = (i64)i - c;
        Around a = around(c, channels, radius);
        C through = (C)0;
        for (i64 k = a.begin; k < a.end; k++) through += (C)wide(dy[first + k]) * (C)wide(y[first + k]) / norms[first + k];
        C own = (C)wide(dy[i]) * power(norms[i], (C)-beta);
        dx[i] = Stored<T>::of(own - (C)2 * (C)alpha * (C)beta * (C)wide(x[i]) * through);
    }
}
