// Special functions in OpenCL C. Each is computed from a series, an asymptotic expansion or a continued fraction of the Digital Library of
// Mathematical Functions (dlmf.nist.gov), whose numbers are in the comments, and not from fitted coefficients: the same source serves float and
// double.
#include "kernels.h"

namespace torch_opencl {
namespace {

constexpr Helper functions[] = {
    // Reflection (5.5.4), recurrence (5.5.2) up to 10, then 5.11.2 with Bernoulli numbers.
    {"t_digamma", R"(
inline T t_digamma(T x) {
  if (x == 0) return copysign((T)INFINITY, -x);
  T r = 0;
  if (x < 0) {
    if (x == trunc(x)) return NAN;
    r = -(T)3.14159265358979323846 / tanpi(x);
    x = 1 - x;
  }
  while (x < 10) { r -= 1 / x; x += 1; }
  T y = 1 / (x * x), b = (T)(1.0 / 12);
  b = (T)(691.0 / 32760) - y * b; b = (T)(1.0 / 132) - y * b; b = (T)(1.0 / 240) - y * b; b = (T)(1.0 / 252) - y * b;
  b = (T)(1.0 / 120) - y * b; b = (T)(1.0 / 12) - y * b;
  return r + log(x) - (T)0.5 / x - y * b;
}
)"},
    // Hurwitz's zeta function: Euler-Maclaurin summation (25.11.5).
    {"t_zeta", R"(
inline T t_zeta(T x, T q) {
  if (x == 1) return INFINITY;
  if (!(x > 1) || q != q) return NAN;
  if (q <= 0) {
    if (q == floor(q)) return INFINITY;
    if (x != floor(x)) return NAN;
  }
  if (isinf(q)) return 0;
  T s = 0, term = 0;
  for (int k = 0; k < 9 || q < 10; ++k, q += 1) {
    term = pow(q, -x);
    s += term;
    if (fabs(term) < fabs(s) * (sizeof(T) == 8 ? (T)1e-17 : (T)1e-8)) return s;
  }
  T b = pow(q, -x);
  s += b * q / (x - 1) + (T)0.5 * b;
  const T c[7] = {(T)(1.0 / 12), (T)(-1.0 / 720), (T)(1.0 / 30240), (T)(-1.0 / 1209600), (T)(1.0 / 47900160),
                  (T)(-691.0 / 1307674368000), (T)(1.0 / 74724249600)};
  T f = b * x / q;
  for (int j = 0; j < 7; ++j) {
    s += c[j] * f;
    f *= (x + 2 * j + 1) / q * ((x + 2 * j + 2) / q);
  }
  return s;
}
)"},
    // exp(-|x|) I(|x|) of order 0 or 1: the power series (10.25.2), whose terms are positive; from 20 the asymptotic one (10.40.1).
    {"t_bessel_i", R"(
inline T t_bessel_i(T x, int order) {
  T a = fabs(x);
  if (a < 20) {
    T y = a * a / 4, term = order == 0 ? (T)1 : a / 2, s = term;
    for (int k = 1; k < 80 && term > s * (T)1e-17; ++k) { term *= y / ((T)k * (T)(k + order)); s += term; }
    return s * exp(-a);
  }
  T term = 1, s = 1;
  for (int k = 1; k < 30; ++k) {
    term *= (T)((2 * k - 1) * (2 * k - 1) - 4 * order) / (8 * k * a);
    s += term;
  }
  return s / sqrt((T)6.28318530717958647692 * a);
}
)"},
    // Two factors: exp(|x|) alone overflows first.
    {"t_unscaled",
     "inline T t_unscaled(T scaled, T x) { T h = exp(fabs(x) / 2); return isinf(x) ? h : scaled * h * h; }\n"},
    {"t_i0", "inline T t_i0(T x) { return t_unscaled(t_bessel_i(x, 0), x); }\n"},
    {"t_i1", "inline T t_i1(T x) { return copysign(t_unscaled(t_bessel_i(x, 1), x), x); }\n"},
    // From 2 the continued fraction 7.9.1, from its end.
    {"t_erfcx", R"(
inline T t_erfcx(T x) {
  if (x < 2) return exp(x * x) * erfc(x);
  T f = x;
  for (int k = 80; k > 0; --k) f = x + (T)0.5 * k / f;
  return (T)0.56418958354775628695 / f;
}
)"},
    {"t_log_ndtr", R"(
inline T t_log_ndtr(T x) {
  T t = x * (T)0.70710678118654752440;
  return x < -1 ? log(t_erfcx(-t) / 2) - t * t : log1p(-erfc(t) / 2);
}
)"},
    // Newton's method on the logarithm, which is concave: from the second step on it approaches from the left.
    {"t_ndtri", R"(
inline T t_ndtri(T p) {
  if (!(p >= 0 && p <= 1)) return NAN;
  if (p == 0 || p == 1) return p == 0 ? -INFINITY : INFINITY;
  int upper = p > (T)0.5;
  T goal = log(upper ? 1 - p : p), x = goal < -2 ? -sqrt(-2 * goal) : (T)0;
  for (int i = 0; i < 12; ++i) {
    T l = t_log_ndtr(x), step = (l - goal) * exp(l + x * x / 2) * (T)2.50662827463100050242;
    x -= step;
    if (fabs(step) < (sizeof(T) == 8 ? (T)1e-15 : (T)1e-7) * fabs(x)) break;
  }
  return upper ? -x : x;
}
)"},
    // The regularized incomplete gamma functions: below the mean the series 8.7.1 of the lower one, else the continued fraction 8.9.2 of the
    // upper one by Lentz's method.
    {"t_gamma_part", R"(
inline T t_gamma_part(T a, T x, int upper) {
  if (!(a >= 0 && x >= 0)) return NAN;
  if (a == 0) return x > 0 ? (T)(upper ? 0 : 1) : (T)NAN;
  if (x == 0) return upper;
  if (isinf(a)) return isinf(x) ? (T)NAN : (T)upper;
  if (isinf(x)) return upper ? 0 : 1;
  T scale = exp(a * log(x) - x - lgamma(a)), e = sizeof(T) == 8 ? (T)1e-16 : (T)1e-8;
  if (x < a + 1) {
    T term = 1 / a, s = term;
    for (int k = 1; k < 10000 && term > s * e; ++k) { term *= x / (a + k); s += term; }
    return upper ? 1 - scale * s : scale * s;
  }
  T b = x + 1 - a, c = (T)1e30, d = 1 / b, h = d;
  for (int k = 1; k < 10000; ++k) {
    T n = -k * (k - a);
    b += 2;
    d = n * d + b; c = b + n / c;
    if (fabs(d) < (T)1e-30) d = (T)1e-30;
    if (fabs(c) < (T)1e-30) c = (T)1e-30;
    d = 1 / d;
    h *= d * c;
    if (fabs(d * c - 1) < e) break;
  }
  return upper ? scale * h : 1 - scale * h;
}
)"},
};

}  // namespace

std::span<const Helper> special_functions() { return functions; }

}  // namespace torch_opencl
