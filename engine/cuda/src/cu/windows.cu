// What slides windows over images: convolutions by columns, pools. Channels lie last.
// The columns: group by group, a row per output pixel, an element per window element and channel of the group (g.each of them).
extern "C" __global__ void to_columns(u64 n, Eight ga, Eight gb, const T *image, T *columns) {
    Geometry g = geometry(ga, gb);
    EACH(i, n) {
        u64 r = i;
        i64 c = (i64)(r % (u64)g.each); r /= (u64)g.each;
        i64 wx = (i64)(r % (u64)g.win_x); r /= (u64)g.win_x;
        i64 wy = (i64)(r % (u64)g.win_y); r /= (u64)g.win_y;
        i64 ox = (i64)(r % (u64)g.out_x); r /= (u64)g.out_x;
        i64 oy = (i64)(r % (u64)g.out_y); r /= (u64)g.out_y;
        c += (i64)(r / (u64)g.batch) * g.each; r %= (u64)g.batch;
        i64 y = oy * g.stride_y - g.before_y + wy * g.dil_y, x = ox * g.stride_x - g.before_x + wx * g.dil_x;
        bool in = y >= 0 && y < g.in_y && x >= 0 && x < g.in_x;
        columns[i] = in ? image[(((i64)r * g.in_y + y) * g.in_x + x) * g.channels + c] : Stored<T>::of((C)0);
    }
}
// Back: each image element is the sum of what its windows say.
extern "C" __global__ void from_columns(u64 n, Eight ga, Eight gb, const T *columns, T *image) {
    Geometry g = geometry(ga, gb);
    EACH(i, n) {
        u64 r = i;
        i64 c = (i64)(r % (u64)g.channels); r /= (u64)g.channels;
        i64 x = (i64)(r % (u64)g.in_x); r /= (u64)g.in_x;
        i64 y = (i64)(r % (u64)g.in_y); r /= (u64)g.in_y;
        C sum = (C)0;
        for (i64 wy = 0; wy < g.win_y; wy++) {
            i64 ty = y + g.before_y - wy * g.dil_y;
            if (ty < 0 || ty % g.stride_y != 0 || ty / g.stride_y >= g.out_y) continue;
            for (i64 wx = 0; wx < g.win_x; wx++) {
                i64 tx = x + g.before_x - wx * g.dil_x;
                if (tx < 0 || tx % g.stride_x != 0 || tx / g.stride_x >= g.out_x) continue;
                i64 pixel = ((c / g.each * g.batch + (i64)r) * g.out_y + ty / g.stride_y) * g.out_x + tx / g.stride_x;
                sum += wide(columns[((pixel * g.win_y + wy) * g.win_x + wx) * g.each + c % g.each]);
            }
        }
        image[i] = Stored<T>::of(sum);
    }
}
struct Span { i64 begin, end; };
// The window's positions that lie in the data, without dilation.
__device__ inline Span span(i64 o, i64 in, i64 window, i64 stride, i64 before) {
    Span s;
    s.begin = o * stride - before; s.end = s.begin + window;
    if (s.begin < 0) s.begin = 0;
    if (s.end > in) s.end = in;
    return s;
}
extern "C" __global__ void pool(u64 n, Eight ga, Eight gb, u64 is_max, const T *in, T *out) {
    Geometry g = geometry(ga, gb);
    EACH(i, n) {
        u64 r = i;
        i64 c = (i64)(r % (u64)g.channels); r /= (u64)g.channels;
        i64 ox = (i64)(r % (u64)g.out_x); r /= (u64)g.out_x;
        i64 oy = (i64)(r % (u64)g.out_y); r /= (u64)g.out_y;
        Span sy = span(oy, g.in_y, g.win_y, g.stride_y, g.before_y), sx = span(ox, g.in_x, g.win_x, g.stride_x, g.before_x);
        C value = is_max ? (C)(-1.0 / 0.0) : (C)0;
        for (i64 y = sy.begin; y < sy.end; y++)
            for (i64 x = sx.begin; x < sx.end; x++) {
                C v = wide(in[(((i64)r * g.in_y + y) * g.in_x + x) * g.channels + c]);
                value = is_max ? (v > value || v != v ? v : value) : value + v;
            }
        if (!is_max) value = value / (C)((sy.end - sy.begin) * (sx.end - sx.begin));
        out[i] = Stored<T>::of(value);
    }
}
// The windows that an element lies in.
__device__ inline Span windows(i64 at, i64 window, i64 stride, i64 before, i64 out) {
    Span s;
    i64 first = at + before - window + 1;
    s.begin = first > 0 ? (first + stride - 1) / stride : 0;
    s.end = (at + before) / stride + 1;
    if (s.end > out) s.end = out;
    return s;
}
// A window's gradient goes to its first largest element.
extern "C" __global__ void max_back(u64 n, Eight ga, Eight gb, const T *in, const T *out, const T *grad, T *back) {
    Geometry g = geometry(ga, gb);
    EACH(i, n) {
        u64 r = i;
        i64 c = (i64)(r % (u64)g.channels); r /= (u64)g.channels;
        i64 x = (i64)(r % (u64)g.in_x); r /= (u64)g.in_x;
        i64 y = (i64)(r % (u64)g.in_y); r /= (u64)g.in_y;
        C own = wide(in[i]), sum = (C)0;
        Span wy = windows(y, g.win_y, g.stride_y, g.before_y, g.out_y), wx = windows(x, g.win_x, g.stride_x, g.before_x, g.out_x);
        for (i64 oy = wy.begin; oy < wy.end; oy++)
            for (i64 ox = wx.begin; ox < wx.end; ox++) {
                i64 o = (((i64)r * g.out_y + oy) * g.out_x + ox) * g.channels + c;
                C most = wide(out[o]);
                if (!(own == most)) continue;
                Span sy = span(oy, g.in_y, g.win_y, g.stride_y, g.before_y), sx = span(ox, g.in_x, g.win_x, g.stride_x, g.before_x);
                bool is_first = true;
                for (i64 a = sy.begin; a <= y && is_first; a++)
                    for (i64 b = sx.begin; b < sx.end; b++) {
                        if (a == y && b == x) break;
                        C other = wide(in[(((i64)r * g.in_y + a) * g.in_x + b) * g.channels + c]);
                        if (other == most) { is_first = false; break; }
                    }
                if (is_first) sum += wide(grad[o]);
            }
        back[i] = Stored<T>::of(sum);
    }
}
extern "C" __global__ void average_back(u64 n, Eight ga, Eight gb, const T *grad, T *back) {
    Geometry g = geometry(ga, gb);
    EACH(i, n) {
        u64 r = i;
        i64 c = (i64)(r % (u64)g.channels); r /= (u64)g.channels;
        i64 x = (i64)(r % (u64)g.in_x); r /= (u64)g.in_x;
        i64 y = (i64)(r % (u64)g.in_y); r /= (u64)g.in_y;
        C sum = (C)0;
        Span wy = windows(y, g.win_y, g.stride_y, g.before_y, g.out_y), wx = windows(x, g.win_x, g.stride_x, g.before_x, g.out_x);
        for (i64 oy = wy.begin; oy < wy.end; oy++)
            for (i64 ox = wx.begin; ox < wx.end; ox++) {
                Span sy = span(oy, g.in_y, g.win_y, g.stride_y, g.before_y), sx = span(ox, g.in_x, g.win_x, g.stride_x, g.before_x);
                C share = (C)((sy.end - sy.begin) * (sx.end - sx.begin));
                sum += (C)wide(grad[(((i64)r * g.out_y + oy) * g.out_x + ox) * g.channels + c]) / share;
            }
        back[i] = Stored<T>::of(sum);
    }
}
