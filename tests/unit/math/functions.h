// The math functions of OpenCL C (6.15.2) with their error bounds for the full profile (7.4) and correctly
// rounded references, computed with 113 bits.
#pragma once

#include <quadmath.h>
#include <span>
#include <string>

namespace polder::math {

using Real = __float128;

// The type that a function is tested in. References may need it where the result depends on the precision.
enum class Precision { half, single, double_ };

struct Arguments {
    Real a, b, c;
    int n;
    Precision precision;
};

// The types of a function's parameters and result in OpenCL C: T is half, float or double.
enum class Signature {
    t_from_t,       // T f(T a)
    t_from_tt,      // T f(T a, T b)
    t_from_ttt,     // T f(T a, T b, T c)
    t_from_tn,      // T f(T a, int n)
    n_from_t,       // int f(T a)
    t_and_t,        // T f(T a, T* second)
    t_and_n,        // T f(T a, int* second)
    t_from_tt_and_n // T f(T a, T b, int* second)
};

// Where arguments are drawn from, besides special values and random bit patterns.
enum class Domain {
    any,
    unit,
    circle,
    exponent,
    positive,
    around_one,
    power,
    integers_and_halves,
    remainder,
    scale,
    moderate
};

struct Function {
    const char* name;
    Signature signature;
    double ulp_single;
    double ulp_double;  // negative: the function has no form for doubles or halves
    Domain domain;
    Real (*reference)(const Arguments&);
    // The second result; a number for an int, too.
    Real (*second)(const Arguments&) = nullptr;
    // Arguments for which the specification leaves the second result open, and those for which it sets no
    // bound at all; null: none.
    bool (*is_second_open)(const Arguments&) = nullptr;
    bool (*is_unbounded)(const Arguments&) = nullptr;
};

[[nodiscard]] std::span<const Function> functions();

// The bound in units of the last place, and the type's name.
[[nodiscard]] double bound_of(const Function& function, Precision precision);
[[nodiscard]] const char* type_name(Precision precision);

// OpenCL C source of one kernel that calls a function's form for vectors of `width` elements, named
// <function>_<type>[<width>]:
//   kernel(global const T* a, b, c, global const int* n, global T* out, global T* second, global int* out_n)
// A work-item computes `width` neighbouring results.
[[nodiscard]] std::string kernel_source(const Function& function, Precision precision, int width = 1);

} // namespace polder::math
