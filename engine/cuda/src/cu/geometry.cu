// A window over images: [0] batch, [1] channels, and for rows and columns of the image: input, window, stride, dilation, before, output;
// then the channels of a group, where windows are written down.
struct Geometry { i64 batch, channels, in_y, win_y, stride_y, dil_y, before_y, out_y, in_x, win_x, stride_x, dil_x, before_x, out_x, each, unused; };
__device__ inline Geometry geometry(Eight a, Eight b) {
    Geometry g;
    g.batch = a.v[0]; g.channels = a.v[1];
    g.in_y = a.v[2]; g.win_y = a.v[3]; g.stride_y = a.v[4]; g.dil_y = a.v[5]; g.before_y = a.v[6]; g.out_y = a.v[7];
    g.in_x = b.v[0]; g.win_x = b.v[1]; g.stride_x = b.v[2]; g.dil_x = b.v[3]; g.before_x = b.v[4]; g.out_x = b.v[5];
    g.each = b.v[6]; g.unused = b.v[7];
    return g;
}
