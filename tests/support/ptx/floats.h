// Values of float, double and the formats of 16 bits for the instructions: flushing of subnormal numbers, canonical NaNs, and operations in
// a direction of rounding.
#pragma once

#include "narrow.h"
#include "thread.h"

#include <cfenv>
#include <cmath>
#include <limits>

namespace polder::ptx {

// While it exists, the host rounds like this.
class Rounding {
public:
    explicit Rounding(Round round) : before_(fegetround()), is_nearest_(round == Round::nearest) {
        if (!is_nearest_)
            fesetround(round == Round::zero ? FE_TOWARDZERO : round == Round::down ? FE_DOWNWARD : FE_UPWARD);
    }
    Rounding(const Rounding&) = delete;
    Rounding& operator=(const Rounding&) = delete;
    ~Rounding() {
        if (!is_nearest_)
            fesetround(before_);
    }

private:
    int before_;
    bool is_nearest_;
};

// The compiler neither computes it ahead nor moves what is done with it.
template <class T>
T opaque(T value) {
    asm volatile("" : "+m"(value));
    return value;
}

template <class T>
T flush(T value) {
    return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(T{0}, value) : value;
}

// NaNs that float operations return are all the same; those of double keep their bits.
inline float canonical(float value) { return std::isnan(value) ? std::bit_cast<float>(0x7fffffffu) : value; }
inline double canonical(double value) { return value; }

template <class T>
T saturate(T value) {
    if (!(value > T{0}))
        return T{0};
    return value > T{1} ? T{1} : value;
}

// x * y + z for values whose product is exact in double: the sum rounded to odd, which a format of 16 bits then rounds correctly.
inline double odd_fma(double x, double y, double z) {
    const double product = x * y;
    const double sum = product + z;
    if (!std::isfinite(sum))
        return sum;
    const double of_z = sum - product;
    const double error = (product - (sum - of_z)) + (z - of_z);
    const auto bits = std::bit_cast<uint64_t>(sum);
    if (error == 0 || (bits & 1) != 0)
        return sum;
    // The even neighbour was too large or too small in magnitude: the odd one lies between.
    const bool grows = (error > 0) == (sum > 0);
    return std::bit_cast<double>(grows ? bits + 1 : bits - 1);
}

}  // namespace polder::ptx
