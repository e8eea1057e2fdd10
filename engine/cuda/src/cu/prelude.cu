// Types and their conversions, for all kernels. The sources are C++ that NVRTC compiles for a device; tests compile the same
// sources for the host, with HOST defined and the threads of a block one after the other.
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;
struct Eight { i64 v[8]; };
struct half16 { u16 bits; };
struct brain16 { u16 bits; };

#ifdef HOST
inline float bits_to_float(u32 b) { float f; memcpy(&f, &b, 4); return f; }
inline u32 float_to_bits(float f) { u32 b; memcpy(&b, &f, 4); return b; }
inline float half_to_float(u16 h) {
    u32 sign = (u32)(h & 0x8000) << 16, exponent = (h >> 10) & 31, mantissa = h & 1023;
    if (exponent == 31) return bits_to_float(sign | 0x7f800000u | mantissa << 13);
    if (exponent == 0) { float v = mantissa * 5.9604644775390625e-8f; return sign ? -v : v; }
    return bits_to_float(sign | (exponent + 112) << 23 | mantissa << 13);
}
inline u16 float_to_half(float f) {
    u32 b = float_to_bits(f), sign = (b >> 16) & 0x8000, rest = b & 0x7fffffff;
    if (rest > 0x7f800000u) return (u16)(sign | 0x7e00);
    if (rest >= 0x477ff000u) return (u16)(sign | 0x7c00);
    if (rest < 0x38800000u) return (u16)(sign | (u32)rintf(bits_to_float(rest) * 16777216.0f));
    u32 odd = (rest >> 13) & 1;
    return (u16)(sign | ((rest + 0xfff + odd - 0x38000000u) >> 13));
}
#else
__device__ inline float bits_to_float(u32 b) { return __uint_as_float(b); }
__device__ inline u32 float_to_bits(float f) { return __float_as_uint(f); }
__device__ inline float half_to_float(u16 h) { float f; asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h)); return f; }
__device__ inline u16 float_to_half(float f) { u16 h; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f)); return h; }
#endif
__device__ inline u16 float_to_brain(float f) {
    u32 b = float_to_bits(f);
    if ((b & 0x7fffffff) > 0x7f800000u) return (u16)((b >> 16) | 0x40);
    return (u16)((b + 0x7fff + ((b >> 16) & 1)) >> 16);
}

// The type that values are computed in.
template <class V> __device__ inline V wide(V v) { return v; }
__device__ inline float wide(half16 v) { return half_to_float(v.bits); }
__device__ inline float wide(brain16 v) { return bits_to_float((u32)v.bits << 16); }

// A value as it is stored.
template <class V> struct Stored { template <class W> __device__ static V of(W w) { return (V)w; } };
template <> struct Stored<half16> { template <class W> __device__ static half16 of(W w) { half16 h; h.bits = float_to_half((float)w); return h; } };
template <> struct Stored<brain16> { template <class W> __device__ static brain16 of(W w) { brain16 h; h.bits = float_to_brain((float)w); return h; } };
template <> struct Stored<bool> { template <class W> __device__ static bool of(W w) { return w != (W)0; } };

// The element of an iteration of the grid, and the step to this thread's next one.
#define FIRST ((u64)blockIdx.x * blockDim.x + threadIdx.x)
#define STEP ((u64)gridDim.x * blockDim.x)
#define EACH(i, n) for (u64 i = FIRST; i < (u64)(n); i += STEP)

// Functions that differ by name between C and CUDA, or that neither has.
__device__ inline float inverse_root(float x) { return 1.0f / sqrtf(x); }
__device__ inline double inverse_root(double x) { return 1.0 / sqrt(x); }
__device__ inline float root(float x) { return sqrtf(x); }
__device__ inline double root(double x) { return sqrt(x); }
__device__ inline float e_to(float x) { return expf(x); }
__device__ inline double e_to(double x) { return exp(x); }
__device__ inline float log_of(float x) { return logf(x); }
__device__ inline double log_of(double x) { return log(x); }
__device__ inline float log1p_of(float x) { return log1pf(x); }
__device__ inline double log1p_of(double x) { return log1p(x); }
__device__ inline float expm1_of(float x) { return expm1f(x); }
__device__ inline double expm1_of(double x) { return expm1(x); }
__device__ inline float tanh_of(float x) { return tanhf(x); }
__device__ inline double tanh_of(double x) { return tanh(x); }
__device__ inline float sin_of(float x) { return sinf(x); }
__device__ inline double sin_of(double x) { return sin(x); }
__device__ inline float cos_of(float x) { return cosf(x); }
__device__ inline double cos_of(double x) { return cos(x); }
__device__ inline float erf_of(float x) { return erff(x); }
__device__ inline double erf_of(double x) { return erf(x); }
__device__ inline float power(float x, float y) { return powf(x, y); }
__device__ inline double power(double x, double y) { return pow(x, y); }
__device__ inline float floor_of(float x) { return floorf(x); }
__device__ inline double floor_of(double x) { return floor(x); }
__device__ inline float ceil_of(float x) { return ceilf(x); }
__device__ inline double ceil_of(double x) { return ceil(x); }
__device__ inline float nearest(float x) { return rintf(x); }
__device__ inline double nearest(double x) { return rint(x); }
template <class V> __device__ inline V larger(V a, V b) { return a > b || a != a ? a : b; }
template <class V> __device__ inline V smaller(V a, V b) { return a < b || a != a ? a : b; }
template <class V> __device__ inline V absolute(V x) { return x < (V)0 ? -x : x; }
__device__ inline float absolute(float x) { return fabsf(x); }
__device__ inline double absolute(double x) { return fabs(x); }
template <class V> __device__ inline V logistic(V x) { return (V)1 / ((V)1 + e_to(-x)); }
