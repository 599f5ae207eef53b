#include "check.h"

#include <algorithm>
#include <cstdio>

namespace polder::math {
namespace {

constexpr uint64_t failures_shown = 6;

template <class T>
Precision precision_of() {
    return sizeof(T) == 2 ? Precision::half : sizeof(T) == 4 ? Precision::single : Precision::double_;
}

std::string number(Real value) {
    char text[64];
    std::snprintf(text, sizeof text, "%a (%.9g)", static_cast<double>(value), static_cast<double>(value));
    return text;
}

// One sample of one result.
struct Sample {
    Arguments arguments;
    Real answer;
    Real exact;
    double error;
    double bound;
};

void record(Verdict& verdict, const Function& function, const Sample& sample) {
    if (sample.error > verdict.worst_ulp)
        verdict.worst_ulp = sample.error;
    if (sample.error <= sample.bound)
        return;
    if (verdict.failures++ >= failures_shown)
        return;
    const Arguments& p = sample.arguments;
    verdict.first_failures += std::string("  ") + function.name + ": a = " + number(p.a) + ", b = " + number(p.b) +
                              ", c = " + number(p.c) + ", n = " + std::to_string(p.n) + " gives " +
                              number(sample.answer) + ", exactly " + number(sample.exact) + "\n";
}

} // namespace

template <class T>
double ulp_error(T answer, Real exact) {
    using Limits = std::numeric_limits<T>;
    const double wrong = std::numeric_limits<double>::infinity();
    if (isnanq(exact) || std::isnan(answer))
        return isnanq(exact) && std::isnan(answer) ? 0 : wrong;
    const Real overflow = ldexpq(1, Limits::max_exponent);
    if (isinfq(exact) || (std::isinf(answer) && fabsq(exact) >= overflow))
        return std::isinf(answer) && std::signbit(answer) == (signbitq(exact) != 0) ? 0 : wrong;
    if (exact == 0 && answer == 0)
        return std::signbit(answer) == (signbitq(exact) != 0) ? 0 : wrong;
    const int exponent =
        exact == 0 ? Limits::min_exponent : std::clamp(ilogbq(exact) + 1, Limits::min_exponent, Limits::max_exponent);
    const Real unit = ldexpq(1, exponent - Limits::digits);
    // An infinity counts as the first number that is too large.
    const Real value = std::isinf(answer) ? copysignq(overflow, answer) : static_cast<Real>(answer);
    return static_cast<double>(fabsq(value - exact) / unit);
}

template <class T>
Verdict check(const Function& function, const Inputs<T>& inputs, const Outputs<T>& outputs) {
    Verdict verdict;
    const Precision precision = precision_of<T>();
    // References are rounded at 113 bits, which can show in a correctly rounded function's half unit.
    const double bound = bound_of(function, precision) + 1e-9;
    const bool second_is_integer = function.signature != Signature::t_and_t;
    for (size_t i = 0; i < inputs.a.size(); ++i) {
        const Arguments p{Real(inputs.a[i]), Real(inputs.b[i]), Real(inputs.c[i]), inputs.n[i], precision};
        if (function.is_unbounded != nullptr && function.is_unbounded(p))
            continue;
        const Real exact = function.reference(p);
        if (function.signature == Signature::n_from_t)
            record(verdict, function, {p, Real(outputs.out_n[i]), exact, outputs.out_n[i] == exact ? 0 : 1e9, bound});
        else
            record(verdict, function, {p, outputs.out[i], exact, ulp_error<T>(outputs.out[i], exact), bound});
        if (function.second == nullptr || (function.is_second_open != nullptr && function.is_second_open(p)))
            continue;
        const Real second = function.second(p);
        if (!second_is_integer)
            record(verdict, function, {p, outputs.second[i], second, ulp_error<T>(outputs.second[i], second), bound});
        else {
            const bool is_low_bits = function.signature == Signature::t_from_tt_and_n;
            const int answer = is_low_bits ? outputs.out_n[i] % 128 : outputs.out_n[i];
            record(verdict, function, {p, Real(answer), second, answer == second ? 0 : 1e9, bound});
        }
    }
    return verdict;
}

template Verdict check(const Function&, const Inputs<Half>&, const Outputs<Half>&);
template Verdict check(const Function&, const Inputs<float>&, const Outputs<float>&);
template Verdict check(const Function&, const Inputs<double>&, const Outputs<double>&);

} // namespace polder::math
