// Matrix products where there is no library: c = op(a) op(b), column by column, as cuBLAS means it. A block computes a tile
// of 64 by 64, a thread 4 by 4 of it.
#define TILE 64
#define DEPTH 16
extern "C" __global__ void gemm(u64 m, u64 n, u64 k, u64 lda, u64 ldb, u64 ldc, u64 turned_a, u64 turned_b,
                                u64 stride_a, u64 stride_b, u64 stride_c, u64 adds, const T *a, const T *b, T *c) {
    __shared__ C tile_a[DEPTH][TILE + 1];
    __shared__ C tile_b[DEPTH][TILE + 1];
    a += blockIdx.z * stride_a; b += blockIdx.z * stride_b; c += blockIdx.z * stride_c;
    u64 row = (u64)blockIdx.x * TILE, column = (u64)blockIdx.y * TILE;
    u32 x = threadIdx.x % 16, y = threadIdx.x / 16;
    C sum[4][4];
    for (int i = 0; i < 4; i++) for (int j = 0; j < 4; j++) sum[i][j] = (C)0;
    for (u64 at = 0; at < k; at += DEPTH) {
        for (u32 e = threadIdx.x; e < TILE * DEPTH; e += blockDim.x) {
            // Neighbouring threads read neighbouring elements, whichever way the matrix lies.
            u32 i = turned_a ? e / DEPTH : e % TILE, d = turned_a ? e % DEPTH : e / TILE;
            bool in = row + i < m && at + d < k;
            tile_a[d][i] = in ? (C)wide(turned_a ? a[(row + i) * lda + at + d] : a[(at + d) * lda + row + i]) : (C)0;
            u32 j = turned_b ? e % TILE : e / DEPTH, f = turned_b ? e / TILE : e % DEPTH;
            in = column + j < n && at + f < k;
            tile_b[f][j] = in ? (C)wide(turned_b ? b[(at + f) * ldb + column + j] : b[(column + j) * ldb + at + f]) : (C)0;
        }
        __syncthreads();
        for (u32 d = 0; d < DEPTH; d++)
            for (int i = 0; i < 4; i++)
                for (int j = 0; j < 4; j++) sum[i][j] += tile_a[d][x + 16 * i] * tile_b[d][y + 16 * j];
        __syncthreads();
    }
    for (int j = 0; j < 4; j++)
        for (int i = 0; i < 4; i++) {
            u64 r = row + x + 16 * i, q = column + y + 16 * j;
            if (r >= m || q >= n) continue;
            C old = adds ? (C)wide(c[q * ldc + r]) : (C)0;
            c[q * ldc + r] = Stored<T>::of(old + sum[i][j]);
        }
}
