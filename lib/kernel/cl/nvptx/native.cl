// native_* and half_*: the processor's own approximations, and functions that are computed from them.
#include "../common.h"

float _polder_sin_approx(float x) __attribute__((const));
float _polder_cos_approx(float x) __attribute__((const));
float _polder_log2_approx(float x) __attribute__((const));
float _polder_exp2_approx(float x) __attribute__((const));
float _polder_sqrt_approx(float x) __attribute__((const));
float _polder_rsqrt_approx(float x) __attribute__((const));
float _polder_divide_approx(float x, float y) __attribute__((const));

#define LOG2_E 1.44269504088896340736f
#define LOG2_10 3.32192809488736234787f

#define DEFINE_VECTORS(NAME)                                                                           \
    BUILTIN float2 NAME(float2 x) { return (float2)(NAME(x.x), NAME(x.y)); }                           \
    BUILTIN float3 NAME(float3 x) { return (float3)(NAME(x.x), NAME(x.y), NAME(x.z)); }                \
    BUILTIN float4 NAME(float4 x) { return (float4)(NAME(x.lo), NAME(x.hi)); }                         \
    BUILTIN float8 NAME(float8 x) { return (float8)(NAME(x.lo), NAME(x.hi)); }                         \
    BUILTIN float16 NAME(float16 x) { return (float16)(NAME(x.lo), NAME(x.hi)); }
#define DEFINE_VECTORS_OF_TWO(NAME)                                                                    \
    BUILTIN float2 NAME(float2 x, float2 y) { return (float2)(NAME(x.x, y.x), NAME(x.y, y.y)); }       \
    BUILTIN float3 NAME(float3 x, float3 y) {                                                          \
        return (float3)(NAME(x.x, y.x), NAME(x.y, y.y), NAME(x.z, y.z));                               \
    }                                                                                                  \
    BUILTIN float4 NAME(float4 x, float4 y) { return (float4)(NAME(x.lo, y.lo), NAME(x.hi, y.hi)); }   \
    BUILTIN float8 NAME(float8 x, float8 y) { return (float8)(NAME(x.lo, y.lo), NAME(x.hi, y.hi)); }   \
    BUILTIN float16 NAME(float16 x, float16 y) { return (float16)(NAME(x.lo, y.lo), NAME(x.hi, y.hi)); }
#define DEFINE(NAME, EXPRESSION)                                                                       \
    BUILTIN float NAME(float x) { return EXPRESSION; }                                                 \
    DEFINE_VECTORS(NAME)
#define DEFINE_OF_TWO(NAME, EXPRESSION)                                                                \
    BUILTIN float NAME(float x, float y) { return EXPRESSION; }                                        \
    DEFINE_VECTORS_OF_TWO(NAME)

DEFINE(native_sin, _polder_sin_approx(x))
DEFINE(native_cos, _polder_cos_approx(x))
DEFINE(native_tan, _polder_divide_approx(_polder_sin_approx(x), _polder_cos_approx(x)))
DEFINE(native_log2, _polder_log2_approx(x))
DEFINE(native_log, _polder_log2_approx(x) * (1 / LOG2_E))
DEFINE(native_log10, _polder_log2_approx(x) * (1 / LOG2_10))
DEFINE(native_exp2, _polder_exp2_approx(x))
DEFINE(native_exp, _polder_exp2_approx(x * LOG2_E))
DEFINE(native_exp10, _polder_exp2_approx(x * LOG2_10))
DEFINE(native_sqrt, _polder_sqrt_approx(x))
DEFINE(native_rsqrt, _polder_rsqrt_approx(x))
DEFINE(native_recip, _polder_divide_approx(1.0f, x))
DEFINE_OF_TWO(native_divide, _polder_divide_approx(x, y))
DEFINE_OF_TWO(native_powr, _polder_exp2_approx(y * _polder_log2_approx(x)))

// pow of programs that may be approximate: exp2(y * log2(|x|)), with the sign of x for odd y.
BUILTIN float _polder_relaxed_pow(float x, float y) {
    const float magnitude = _polder_exp2_approx(y * _polder_log2_approx(fabs(x)));
    const float half_y = 0.5f * y;
    const bool is_whole = trunc(y) == y;
    const bool is_odd = is_whole && trunc(half_y) != half_y;
    if (y == 0.0f)
        return 1.0f;
    if (x < 0.0f && !is_whole)
        return NAN;
    return is_odd ? copysign(magnitude, x) : magnitude;
}
DEFINE_VECTORS_OF_TWO(_polder_relaxed_pow)

// 8192 ulp are allowed, over a range in which the approximations of sine, cosine and the exponential are not that good.
DEFINE(half_sin, sin(x))
DEFINE(half_cos, cos(x))
DEFINE(half_tan, tan(x))
DEFINE(half_log2, log2(x))
DEFINE(half_log, log(x))
DEFINE(half_log10, log10(x))
DEFINE(half_exp2, exp2(x))
DEFINE(half_exp, exp(x))
DEFINE(half_exp10, exp10(x))
DEFINE(half_sqrt, sqrt(x))
DEFINE(half_rsqrt, 1.0f / sqrt(x))
DEFINE(half_recip, 1.0f / x)
DEFINE_OF_TWO(half_divide, x / y)
DEFINE_OF_TWO(half_powr, powr(x, y))
