#include "kernels.h"

namespace torch_opencl {
namespace {

constexpr Helper helpers[] = {
    {"t_div_floor",
     "inline T t_div_floor(T a, T b) {\n#if IS_FLOAT\n  if (b == 0) return a / b;\n  T m = fmod(a, b);\n"
     "  T d = (a - m) / b;\n  if (m != 0 && (b < 0) != (m < 0)) d -= 1;\n  if (d == 0) return copysign((T)0, a / b);\n"
     "  T f = floor(d);\n  return d - f > (T)0.5 ? f + 1 : f;\n#else\n  if (b == 0) return 0;\n  T q = a / b;\n"
     "  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;\n#endif\n}\n"},
    {"t_remainder",
     "inline T t_remainder(T a, T b) {\n#if IS_FLOAT\n  T m = fmod(a, b);\n  return m != 0 && (b < 0) != (m < 0) ? m + "
     "b : m;\n"
     "#else\n  if (b == 0) return 0;\n  T m = a % b;\n  return m != 0 && (b < 0) != (m < 0) ? m + b : m;\n#endif\n}\n"},
    {"t_pow", "inline T t_pow(T a, T b) {\n#if IS_FLOAT\n  return pow(a, b);\n#else\n  if (b < 0) return a == 1 ? 1 : "
              "a == (T)-1 ? (b % 2 != 0 ? (T)-1 : (T)1) : 0;\n  T r = 1;\n  while (b > 0) { if (b & 1) r *= a; a *= a; "
              "b >>= 1; }\n"
              "  return r;\n#endif\n}\n"},
    {"t_nan_max",
     "inline T t_nan_max(T a, T b) {\n#if IS_FLOAT\n  return isnan(a) ? a : isnan(b) ? b : (a > b ? a : b);\n#else\n"
     "  return a > b ? a : b;\n#endif\n}\n"},
    {"t_nan_min",
     "inline T t_nan_min(T a, T b) {\n#if IS_FLOAT\n  return isnan(a) ? a : isnan(b) ? b : (a < b ? a : b);\n#else\n"
     "  return a < b ? a : b;\n#endif\n}\n"},
    {"t_gcd",
     "inline T t_gcd(T a, T b) {\n  while (b != 0) { T r = a % b; a = b; b = r; }\n  return a < 0 ? -a : a;\n}\n"},
    {"t_sign", "inline T t_sign(T a) { return (T)(a > 0) - (T)(a < 0); }\n"},
    {"t_abs", "inline T t_abs(T a) {\n#if IS_FLOAT\n  return fabs(a);\n#else\n  return a < 0 ? -a : a;\n#endif\n}\n"},
    {"t_sigmoid", "inline T t_sigmoid(T a) { return 1 / (1 + exp(-a)); }\n"},
    {"t_gelu_tanh_grad", "inline T t_gelu_tanh_grad(T a) {\n  T k = (T)0.7978845608028654, c = (T)0.044715;\n  T t = "
                         "tanh(k * (a + c * a * a * a));\n"
                         "  return (T)0.5 * (1 + t) + (T)0.5 * a * (1 - t * t) * k * (1 + 3 * c * a * a);\n}\n"},
    // x P(x^2) / Q(x^2), fitted by least squares with weights that even out the relative error: at most 3.5e-7 in float. Without a branch,
    // so that items are lanes of vectors.
    {"t_erf",
     "inline float t_erf_float(float x) {\n  float c = x > 3.84f ? 3.84f : x < -3.84f ? -3.84f : x, t = c * c;\n"
     "  float p = 2.11674615e-06f, q = 3.88266635e-05f;\n"
     "  p = fma(p, t, 0.000285825779f); q = fma(q, t, 0.00114332105f);\n"
     "  p = fma(p, t, 0.00366178784f); q = fma(q, t, 0.0147605743f);\n"
     "  p = fma(p, t, 0.0524445884f); q = fma(q, t, 0.112998024f);\n"
     "  p = fma(p, t, 0.187560067f); q = fma(q, t, 0.49955368f);\n"
     "  p = fma(p, t, 1.12837911f); q = fma(q, t, 1.0f);\n"
     "  float v = c * p / q;\n  return fabs(c) == 3.84f ? copysign(1.0f, x) : v;\n}\n"
     "inline T t_erf(T a) { return sizeof(T) == 4 ? (T)t_erf_float((float)a) : erf(a); }\n"},
    {"t_complex_mul",
     "inline T t_complex_mul(T a, T b) { return (T)(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }\n"},
    // Scaled, so that squares of large parts do not overflow.
    {"t_complex_div",
     "inline T t_complex_div(T a, T b) {\n  R m = fmax(fabs(b.x), fabs(b.y));\n  T d = b / m;\n"
     "  return (T)(a.x * d.x + a.y * d.y, a.y * d.x - a.x * d.y) / ((d.x * d.x + d.y * d.y) * m);\n}\n"},
    {"t_complex_exp",
     "inline T t_complex_exp(T a) { return a.y == 0 ? (T)(exp(a.x), a.y) : exp(a.x) * (T)(cos(a.y), sin(a.y)); }\n"},
    {"t_complex_sign", "inline T t_complex_sign(T a) { R r = hypot(a.x, a.y); return r == 0 ? (T)(0, 0) : a / r; }\n"},
    {"t_erfinv",
     "inline T t_erfinv(T y) {\n  if (fabs(y) > 1) return NAN;\n  if (fabs(y) == 1) return copysign((T)INFINITY, y);\n"
     // Giles, "Approximating the erfinv function" (2010), then two steps of Newton's method.
     "  T w = -log((1 - y) * (1 + y)), p;\n  if (w < 5) {\n    w -= (T)2.5;\n    p = (T)2.81022636e-08;\n"
     "    p = (T)3.43273939e-07 + p * w; p = (T)-3.5233877e-06 + p * w; p = (T)-4.39150654e-06 + p * w;\n"
     "    p = (T)0.00021858087 + p * w; p = (T)-0.00125372503 + p * w; p = (T)-0.00417768164 + p * w;\n"
     "    p = (T)0.246640727 + p * w; p = (T)1.50140941 + p * w;\n  } else {\n    w = sqrt(w) - 3;\n    p = "
     "(T)-0.000200214257;\n"
     "    p = (T)0.000100950558 + p * w; p = (T)0.00134934322 + p * w; p = (T)-0.00367342844 + p * w;\n"
     "    p = (T)0.00573950773 + p * w; p = (T)-0.0076224613 + p * w; p = (T)0.00943887047 + p * w;\n"
     "    p = (T)1.00167406 + p * w; p = (T)2.83297682 + p * w;\n  }\n  T x = p * y;\n"
     "  for (int i = 0; i < 2; ++i) x -= (erf(x) - y) / ((T)1.1283791670955126 * exp(-x * x));\n  return x;\n}\n"},
};

}  // namespace

namespace {

// From the last one to the first, because a function calls earlier ones.
void add_called(std::span<const Helper> table, const std::string& expression, std::string& text) {
    for (auto helper = table.rbegin(); helper != table.rend(); ++helper)
        if (expression.find(helper->name) != std::string::npos || text.find(helper->name) != std::string::npos)
            text.insert(0, helper->source);
}

}  // namespace

std::string helper_functions(const std::string& expression) {
    std::string text;
    add_called(helpers, expression, text);
    std::string special;
    add_called(special_functions(), expression, special);
    return text + special;
}

}  // namespace torch_opencl
