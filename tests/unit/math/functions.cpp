#include "functions.h"

#include "half.h"

#include <algorithm>
#include <array>
#include <climits>
#include <cmath>
#include <limits>

namespace polder::math {
namespace {

const Real pi = M_PIq;
const Real nan_ = nanq("");
const Real infinity = HUGE_VALQ;

bool is_odd(Real x) { return fmodq(fabsq(x), 2) == 1; }
bool is_integer(Real x) { return truncq(x) == x; }
bool is_finite(Real x) { return finiteq(x) != 0; }
bool is_nan(Real x) { return isnanq(x) != 0; }
bool is_infinite(Real x) { return isinfq(x) != 0; }

Real smallest_above(Real x, Real towards, Precision precision) {
    if (precision == Precision::half)
        return Half(x).next(Half(towards));
    if (precision == Precision::single)
        return std::nextafter(static_cast<float>(x), static_cast<float>(towards));
    return std::nextafter(static_cast<double>(x), static_cast<double>(towards));
}

// sin and cos of pi * x without rounding the product: reduced to a quarter turn first.
Real sin_pi(Real x) {
    if (!is_finite(x))
        return nan_;
    Real turn = fmodq(fabsq(x), 2);
    if (turn == 0 || turn == 1)
        return copysignq(0, x);
    Real sign = signbitq(x) ? -1 : 1;
    if (turn > 1) {
        sign = -sign;
        turn -= 1;
    }
    if (turn > 0.5Q)
        turn = 1 - turn;
    return sign * (turn > 0.25Q ? cosq(pi * (0.5Q - turn)) : sinq(pi * turn));
}

Real cos_pi(Real x) {
    if (!is_finite(x))
        return nan_;
    const Real turn = fmodq(fabsq(x), 2);
    if (turn == 0.5Q || turn == 1.5Q)
        return 0;
    return turn < 1.5Q ? sin_pi(0.5Q - turn) : sin_pi(turn - 1.5Q);
}

Real tan_pi(Real x) {
    if (!is_finite(x))
        return nan_;
    const Real ax = fabsq(x);
    const Real whole = floorq(ax);
    if (ax == whole)
        return copysignq(0, is_odd(whole) ? -x : x);
    if (ax - whole == 0.5Q)
        return copysignq(infinity, is_odd(whole) ? -x : x);
    return sin_pi(x) / cos_pi(x);
}

Real power(Real x, Real y) { return powq(x, y); }

Real powr_(Real x, Real y) {
    if (is_nan(x) || is_nan(y) || x < 0)
        return nan_;
    if ((x == 0 && y == 0) || (is_infinite(x) && y == 0) || (x == 1 && is_infinite(y)))
        return nan_;
    return power(fabsq(x), y);
}

Real rootn_(Real x, int n) {
    if (n == 0 || is_nan(x) || (x < 0 && n % 2 == 0))
        return nan_;
    const Real root = powq(fabsq(x), 1 / static_cast<Real>(n));
    return n % 2 == 0 ? root : copysignq(root, x);
}

// The low seven bits of the integer nearest to a / b, with its sign. 128 b is exact, and so is the remainder by it.
Real low_quotient(const Arguments& p) {
    const Real rest = is_infinite(p.b) ? 0 : fmodq(fabsq(p.a), 128 * fabsq(p.b));
    const Real quotient = fmodq(is_infinite(p.b) ? 0 : rintq(rest / fabsq(p.b)), 128);
    return (signbitq(p.a) != 0) != (signbitq(p.b) != 0) ? -quotient : quotient;
}

bool has_no_quotient(const Arguments& p) { return is_nan(p.a) || is_nan(p.b) || is_infinite(p.a) || p.b == 0; }

Real fract_(const Arguments& p) {
    if (is_nan(p.a))
        return p.a;
    if (is_infinite(p.a))
        return copysignq(0, p.a);
    if (p.a == 0)
        return p.a;
    const Real below_one = smallest_above(1, 0, p.precision);
    const Real fraction = p.a - floorq(p.a);
    const Real rounded = p.precision == Precision::half     ? static_cast<Real>(Half(fraction))
                         : p.precision == Precision::single ? static_cast<Real>(static_cast<float>(fraction))
                                                            : static_cast<Real>(static_cast<double>(fraction));
    return fminq(rounded, below_one);
}

Real frexp_(const Arguments& p) {
    int exponent = 0;
    return frexpq(p.a, &exponent);
}

Real frexp_exponent(const Arguments& p) {
    int exponent = 0;
    if (is_finite(p.a))
        frexpq(p.a, &exponent);
    return exponent;
}

Real modf_(const Arguments& p) {
    Real whole = 0;
    return is_infinite(p.a) ? copysignq(0, p.a) : modfq(p.a, &whole);
}

Real ilogb_(const Arguments& p) {
    if (p.a == 0)
        return INT_MIN;
    if (is_nan(p.a) || is_infinite(p.a))
        return INT_MAX;
    return ilogbq(p.a);
}

Real lgamma_sign(const Arguments& p) {
    if (p.a == 0)
        return signbitq(p.a) ? -1 : 1;
    if (is_finite(p.a) && p.a < 0) {
        if (is_integer(p.a))
            return 0;
        return is_odd(floorq(p.a)) ? -1 : 1;
    }
    return 1;
}

Real gamma_(Real x) {
    if (x < 0 && (is_integer(x) || is_infinite(x)))
        return nan_;
    return tgammaq(x);
}

// Close to a zero of lgamma between two poles no implementation is asked for relative accuracy.
bool is_near_zero_of_lgamma(const Arguments& p) { return p.a < -2 && fabsq(lgammaq(p.a)) < 1; }

// Which zero the larger or smaller of two zeros is.
bool are_zeros(const Arguments& p) { return p.a == 0 && p.b == 0; }

bool has_open_sign(const Arguments& p) { return is_nan(p.a) || lgamma_sign(p) == 0; }
bool has_open_exponent(const Arguments& p) { return !is_finite(p.a); }

// half_sin, half_cos and half_tan are for arguments up to 2^16; which zero they return for -0 is not specified.
bool is_beyond_half(const Arguments& p) { return p.a == 0 || (is_finite(p.a) && fabsq(p.a) > 65536); }

// The accuracy that native_* should have.
bool is_immoderate(const Arguments& p) {
    const auto is_out = [](Real x) { return !(fabsq(x) <= 65536 && fabsq(x) >= 1e-5Q); };
    return is_out(p.a) || is_out(p.b);
}

// Exponentials that are less than the smallest normal number: native_* give some number below it.
#define IMMODERATE_OR_SUBNORMAL(EXPRESSION)                                                                            \
    [](const Arguments& p) { return is_immoderate(p) || (EXPRESSION) < 0x1p-126Q; }

#define REF(EXPRESSION)                                                                                                \
    [](const Arguments& p) -> Real {                                                                                   \
        static_cast<void>(p);                                                                                          \
        return EXPRESSION;                                                                                             \
    }

// Bounds: OpenCL C 3.0, table "ULP values for single precision built-in math functions", and the one for
// double precision. Where the specification sets no bound (lgamma), one that programs can live with.
constexpr double exact = 0.0;
// What rounds correctly is off by half a unit at most.
constexpr double rounded = 0.5;
constexpr double none = -1;

const Function table[] = {
    {"acos", Signature::t_from_t, 4, 4, Domain::unit, REF(acosq(p.a))},
    {"acosh", Signature::t_from_t, 4, 4, Domain::positive, REF(acoshq(p.a))},
    {"acospi", Signature::t_from_t, 5, 5, Domain::unit, REF(acosq(p.a) / pi)},
    {"asin", Signature::t_from_t, 4, 4, Domain::unit, REF(asinq(p.a))},
    {"asinh", Signature::t_from_t, 4, 4, Domain::any, REF(asinhq(p.a))},
    {"asinpi", Signature::t_from_t, 5, 5, Domain::unit, REF(asinq(p.a) / pi)},
    {"atan", Signature::t_from_t, 5, 5, Domain::any, REF(atanq(p.a))},
    {"atan2", Signature::t_from_tt, 6, 6, Domain::any, REF(atan2q(p.a, p.b))},
    {"atan2pi", Signature::t_from_tt, 6, 6, Domain::any, REF(atan2q(p.a, p.b) / pi)},
    {"atanh", Signature::t_from_t, 5, 5, Domain::unit, REF(atanhq(p.a))},
    {"atanpi", Signature::t_from_t, 5, 5, Domain::any, REF(atanq(p.a) / pi)},
    {"cbrt", Signature::t_from_t, 2, 2, Domain::any, REF(cbrtq(p.a))},
    {"ceil", Signature::t_from_t, exact, exact, Domain::integers_and_halves, REF(ceilq(p.a))},
    {"copysign", Signature::t_from_tt, exact, exact, Domain::any, REF(copysignq(p.a, p.b))},
    {"cos", Signature::t_from_t, 4, 4, Domain::circle, REF(cosq(p.a))},
    {"cosh", Signature::t_from_t, 4, 4, Domain::exponent, REF(coshq(p.a))},
    {"cospi", Signature::t_from_t, 4, 4, Domain::integers_and_halves, REF(cos_pi(p.a))},
    {"erf", Signature::t_from_t, 16, 16, Domain::exponent, REF(erfq(p.a))},
    {"erfc", Signature::t_from_t, 16, 16, Domain::exponent, REF(erfcq(p.a))},
    {"exp", Signature::t_from_t, 3, 3, Domain::exponent, REF(expq(p.a))},
    {"exp10", Signature::t_from_t, 3, 3, Domain::exponent, REF(powq(10, p.a))},
    {"exp2", Signature::t_from_t, 3, 3, Domain::exponent, REF(powq(2, p.a))},
    {"expm1", Signature::t_from_t, 3, 3, Domain::exponent, REF(expm1q(p.a))},
    {"fabs", Signature::t_from_t, exact, exact, Domain::any, REF(fabsq(p.a))},
    {"fdim", Signature::t_from_tt, rounded, rounded, Domain::any, REF(fdimq(p.a, p.b))},
    {"floor", Signature::t_from_t, exact, exact, Domain::integers_and_halves, REF(floorq(p.a))},
    {"fma", Signature::t_from_ttt, rounded, rounded, Domain::any, REF(fmaq(p.a, p.b, p.c))},
    {"fmax", Signature::t_from_tt, exact, exact, Domain::any, REF(fmaxq(p.a, p.b)), nullptr, nullptr, are_zeros},
    {"fmin", Signature::t_from_tt, exact, exact, Domain::any, REF(fminq(p.a, p.b)), nullptr, nullptr, are_zeros},
    {"fmod", Signature::t_from_tt, exact, exact, Domain::remainder, REF(fmodq(p.a, p.b))},
    {"fract", Signature::t_and_t, exact, exact, Domain::any, fract_, REF(is_infinite(p.a) ? p.a : floorq(p.a))},
    {"frexp", Signature::t_and_n, exact, exact, Domain::any, frexp_, frexp_exponent, has_open_exponent},
    {"hypot", Signature::t_from_tt, 4, 4, Domain::any, REF(hypotq(p.a, p.b))},
    {"ilogb", Signature::n_from_t, exact, exact, Domain::any, ilogb_},
    {"ldexp", Signature::t_from_tn, rounded, rounded, Domain::scale, REF(ldexpq(p.a, p.n))},
    {"lgamma", Signature::t_from_t, 1e4, 1e4, Domain::exponent, REF(lgammaq(p.a)), nullptr, nullptr,
     is_near_zero_of_lgamma},
    {"lgamma_r", Signature::t_and_n, 1e4, 1e4, Domain::exponent, REF(lgammaq(p.a)), lgamma_sign, has_open_sign,
     is_near_zero_of_lgamma},
    {"log", Signature::t_from_t, 3, 3, Domain::around_one, REF(logq(p.a))},
    {"log10", Signature::t_from_t, 3, 3, Domain::around_one, REF(log10q(p.a))},
    {"log1p", Signature::t_from_t, 2, 2, Domain::positive, REF(log1pq(p.a))},
    {"log2", Signature::t_from_t, 3, 3, Domain::around_one, REF(log2q(p.a))},
    {"logb", Signature::t_from_t, exact, exact, Domain::any, REF(logbq(p.a))},
    {"maxmag", Signature::t_from_tt, exact, exact, Domain::any,
     REF(fabsq(p.a) > fabsq(p.b)   ? p.a
         : fabsq(p.b) > fabsq(p.a) ? p.b
                                   : fmaxq(p.a, p.b)),
     nullptr, nullptr, are_zeros},
    {"minmag", Signature::t_from_tt, exact, exact, Domain::any,
     REF(fabsq(p.a) < fabsq(p.b)   ? p.a
         : fabsq(p.b) < fabsq(p.a) ? p.b
                                   : fminq(p.a, p.b)),
     nullptr, nullptr, are_zeros},
    {"modf", Signature::t_and_t, exact, exact, Domain::any, modf_, REF(truncq(p.a))},
    {"nextafter", Signature::t_from_tt, exact, exact, Domain::any,
     REF(is_nan(p.a) || is_nan(p.b) ? nan_ : smallest_above(p.a, p.b, p.precision))},
    {"pow", Signature::t_from_tt, 16, 16, Domain::power, REF(power(p.a, p.b))},
    {"pown", Signature::t_from_tn, 16, 16, Domain::power, REF(power(p.a, p.n))},
    {"powr", Signature::t_from_tt, 16, 16, Domain::power, REF(powr_(p.a, p.b))},
    {"remainder", Signature::t_from_tt, exact, exact, Domain::remainder, REF(remainderq(p.a, p.b))},
    {"remquo", Signature::t_from_tt_and_n, exact, exact, Domain::remainder, REF(remainderq(p.a, p.b)), low_quotient,
     has_no_quotient},
    {"rint", Signature::t_from_t, exact, exact, Domain::integers_and_halves, REF(rintq(p.a))},
    {"rootn", Signature::t_from_tn, 16, 16, Domain::any, REF(rootn_(p.a, p.n))},
    {"round", Signature::t_from_t, exact, exact, Domain::integers_and_halves, REF(roundq(p.a))},
    {"rsqrt", Signature::t_from_t, 2, 2, Domain::positive, REF(p.a == 0 ? copysignq(infinity, p.a) : 1 / sqrtq(p.a))},
    {"sin", Signature::t_from_t, 4, 4, Domain::circle, REF(sinq(p.a))},
    {"sincos", Signature::t_and_t, 4, 4, Domain::circle, REF(sinq(p.a)), REF(cosq(p.a))},
    {"sinh", Signature::t_from_t, 4, 4, Domain::exponent, REF(sinhq(p.a))},
    {"sinpi", Signature::t_from_t, 4, 4, Domain::integers_and_halves, REF(sin_pi(p.a))},
    {"sqrt", Signature::t_from_t, 3, rounded, Domain::positive, REF(sqrtq(p.a))},
    {"tan", Signature::t_from_t, 5, 5, Domain::circle, REF(tanq(p.a))},
    {"tanh", Signature::t_from_t, 5, 5, Domain::exponent, REF(tanhq(p.a))},
    {"tanpi", Signature::t_from_t, 6, 6, Domain::integers_and_halves, REF(tan_pi(p.a))},
    {"tgamma", Signature::t_from_t, 16, 16, Domain::exponent, REF(gamma_(p.a))},
    {"trunc", Signature::t_from_t, exact, exact, Domain::integers_and_halves, REF(truncq(p.a))},

    // Single precision only.
    {"half_cos", Signature::t_from_t, 8192, none, Domain::moderate, REF(cosq(p.a)), nullptr, nullptr, is_beyond_half},
    {"half_divide", Signature::t_from_tt, 8192, none, Domain::any, REF(p.a / p.b)},
    {"half_exp", Signature::t_from_t, 8192, none, Domain::exponent, REF(expq(p.a))},
    {"half_exp10", Signature::t_from_t, 8192, none, Domain::exponent, REF(powq(10, p.a))},
    {"half_exp2", Signature::t_from_t, 8192, none, Domain::exponent, REF(powq(2, p.a))},
    {"half_log", Signature::t_from_t, 8192, none, Domain::any, REF(logq(p.a))},
    {"half_log10", Signature::t_from_t, 8192, none, Domain::any, REF(log10q(p.a))},
    {"half_log2", Signature::t_from_t, 8192, none, Domain::any, REF(log2q(p.a))},
    {"half_powr", Signature::t_from_tt, 8192, none, Domain::power, REF(powr_(p.a, p.b))},
    {"half_recip", Signature::t_from_t, 8192, none, Domain::any, REF(1 / p.a)},
    {"half_rsqrt", Signature::t_from_t, 8192, none, Domain::any, REF(1 / sqrtq(p.a))},
    {"half_sin", Signature::t_from_t, 8192, none, Domain::moderate, REF(sinq(p.a)), nullptr, nullptr, is_beyond_half},
    {"half_sqrt", Signature::t_from_t, 8192, none, Domain::any, REF(sqrtq(p.a))},
    {"half_tan", Signature::t_from_t, 8192, none, Domain::moderate, REF(tanq(p.a)), nullptr, nullptr, is_beyond_half},
    // No bound is set for these; ours are no worse.
    {"native_cos", Signature::t_from_t, 8192, none, Domain::moderate, REF(cosq(p.a)), nullptr, nullptr, is_immoderate},
    {"native_divide", Signature::t_from_tt, 8192, none, Domain::moderate, REF(p.a / p.b), nullptr, nullptr,
     is_immoderate},
    {"native_exp", Signature::t_from_t, 8192, none, Domain::moderate, REF(expq(p.a)), nullptr, nullptr,
     IMMODERATE_OR_SUBNORMAL(expq(p.a))},
    {"native_exp10", Signature::t_from_t, 8192, none, Domain::moderate, REF(powq(10, p.a)), nullptr, nullptr,
     IMMODERATE_OR_SUBNORMAL(powq(10, p.a))},
    {"native_exp2", Signature::t_from_t, 8192, none, Domain::moderate, REF(powq(2, p.a)), nullptr, nullptr,
     IMMODERATE_OR_SUBNORMAL(powq(2, p.a))},
    {"native_log", Signature::t_from_t, 8192, none, Domain::moderate, REF(logq(p.a)), nullptr, nullptr, is_immoderate},
    {"native_log10", Signature::t_from_t, 8192, none, Domain::moderate, REF(log10q(p.a)), nullptr, nullptr,
     is_immoderate},
    {"native_log2", Signature::t_from_t, 8192, none, Domain::moderate, REF(log2q(p.a)), nullptr, nullptr,
     is_immoderate},
    {"native_powr", Signature::t_from_tt, 8192, none, Domain::moderate, REF(powr_(p.a, p.b)), nullptr, nullptr,
     IMMODERATE_OR_SUBNORMAL(powr_(p.a, p.b))},
    {"native_recip", Signature::t_from_t, 8192, none, Domain::moderate, REF(1 / p.a), nullptr, nullptr, is_immoderate},
    {"native_rsqrt", Signature::t_from_t, 8192, none, Domain::moderate, REF(1 / sqrtq(p.a)), nullptr, nullptr,
     is_immoderate},
    {"native_sin", Signature::t_from_t, 8192, none, Domain::moderate, REF(sinq(p.a)), nullptr, nullptr, is_immoderate},
    {"native_sqrt", Signature::t_from_t, 8192, none, Domain::moderate, REF(sqrtq(p.a)), nullptr, nullptr,
     is_immoderate},
    {"native_tan", Signature::t_from_t, 8192, none, Domain::moderate, REF(tanq(p.a)), nullptr, nullptr, is_immoderate},
};

} // namespace

std::span<const Function> functions() { return table; }

const char* type_name(Precision precision) {
    return precision == Precision::half ? "half" : precision == Precision::single ? "float" : "double";
}

// For halves: OpenCL C 3.0 with cl_khr_fp16, table "ULP values for half-precision floating-point arithmetic operations". What is
// exact or correctly rounded is so for doubles, too.
double bound_of(const Function& function, Precision precision) {
    if (precision != Precision::half)
        return precision == Precision::single ? function.ulp_single : function.ulp_double;
    constexpr std::array of_four = {"erf", "erfc", "pow", "pown", "powr", "rootn", "tgamma"};
    if (function.ulp_double <= rounded || function.ulp_double > 1000)
        return function.ulp_double;
    if (std::string{"rsqrt"} == function.name)
        return 1;
    return std::find(of_four.begin(), of_four.end(), std::string{function.name}) != of_four.end() ? 4 : 2;
}

std::string kernel_source(const Function& function, Precision precision, int width) {
    const std::string type = type_name(precision);
    const std::string name = function.name;
    const std::string w = width == 1 ? "" : std::to_string(width);
    const auto from = [&](const char* array) {
        return width == 1 ? std::string{array} + "[i]" : "vload" + w + "(i, " + array + ")";
    };
    const auto store = [&](const char* array, const std::string& value) {
        return width == 1 ? std::string{array} + "[i] = " + value + ";"
                          : "vstore" + w + "(" + value + ", i, " + array + ");";
    };
    const std::string a = from("a"), b = from("b"), c = from("c"), n = from("n");
    const std::string real_second = type + w + " s; ", int_second = "int" + w + " s; ";
    std::string body;
    switch (function.signature) {
    case Signature::t_from_t: body = store("out", name + "(" + a + ")"); break;
    case Signature::t_from_tt: body = store("out", name + "(" + a + ", " + b + ")"); break;
    case Signature::t_from_ttt: body = store("out", name + "(" + a + ", " + b + ", " + c + ")"); break;
    case Signature::t_from_tn: body = store("out", name + "(" + a + ", " + n + ")"); break;
    case Signature::n_from_t: body = store("out_n", name + "(" + a + ")"); break;
    case Signature::t_and_t:
        body = real_second + store("out", name + "(" + a + ", &s)") + " " + store("second", "s");
        break;
    case Signature::t_and_n:
        body = int_second + store("out", name + "(" + a + ", &s)") + " " + store("out_n", "s");
        break;
    case Signature::t_from_tt_and_n:
        body = int_second + store("out", name + "(" + a + ", " + b + ", &s)") + " " + store("out_n", "s");
        break;
    }
    // Lanes of wide vectors make very much code.
    const std::string kernel =
        width > 2 ? "kernel __attribute__((reqd_work_group_size(1, 1, 1))) void " : "kernel void ";
    return kernel + name + "_" + type + w + "(global const " + type + "* a, global const " + type +
           "* b, global const " + type + "* c, global const int* n, global " + type + "* out, global " + type +
           "* second, global int* out_n) {\n    size_t i = get_global_id(0);\n    " + body + "\n}\n";
}

}  // namespace polder::math
