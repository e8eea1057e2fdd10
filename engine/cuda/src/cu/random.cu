// Philox 4x32-10 (Salmon et al. 2011), the numbers of the engine's CPU kernels: thread i makes the four numbers of call i.
struct Four { u32 v[4]; };
__device__ inline Four philox(u64 low, u64 high, u64 key) {
    u32 c0 = (u32)low, c1 = (u32)(low >> 32), c2 = (u32)high, c3 = (u32)(high >> 32), k0 = (u32)key, k1 = (u32)(key >> 32);
    for (int i = 0; i < 10; i++) {
        u64 p0 = (u64)0xD2511F53u * c0, p1 = (u64)0xCD9E8D57u * c2;
        u32 n0 = (u32)(p1 >> 32) ^ c1 ^ k0, n2 = (u32)(p0 >> 32) ^ c3 ^ k1;
        c1 = (u32)p1; c3 = (u32)p0; c0 = n0; c2 = n2;
        k0 += 0x9E3779B9u; k1 += 0xBB67AE85u;
    }
    Four out;
    out.v[0] = c0; out.v[1] = c1; out.v[2] = c2; out.v[3] = c3;
    return out;
}
__device__ inline Four call(u64 i, u64 low, u64 high, u64 key) {
    u64 at = low + i;
    return philox(at, high + (at < low ? 1 : 0), key);
}
// [0, 1): 23 random bits behind an exponent that makes [1, 2), less 1.
__device__ inline float unit(u32 word) { return bits_to_float((127u << 23) | (word & 0x7fffffu)) - 1.0f; }
extern "C" __global__ void uniform(u64 n, u64 low, u64 high, u64 key, T *out) {
    EACH(i, (n + 3) / 4) {
        Four w = call(i, low, high, key);
        for (int k = 0; k < 4 && 4 * i + k < n; k++) out[4 * i + k] = unit(w.v[k]);
    }
}
extern "C" __global__ void normal(u64 n, u64 low, u64 high, u64 key, T *out) {
    EACH(i, (n + 3) / 4) {
        Four w = call(i, low, high, key);
        for (int k = 0; k < 4 && 4 * i + k < n; k++) {
            float u = unit(w.v[k & 2]);
            u = u < 1.0e-7f ? 1.0e-7f : u;
            float angle = 6.2831853071795864769f * unit(w.v[(k & 2) + 1]), radius = sqrtf(-2.0f * logf(u));
            out[4 * i + k] = (k & 1 ? cos_of(angle) : sin_of(angle)) * radius;
        }
    }
}
