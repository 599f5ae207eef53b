// A half of OpenCL C in tests: 16 bits, computed with as a float.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace polder {

class Half {
public:
    constexpr Half() = default;
    // Rounds to the nearest half, ties to even.
    template <class Number>
        requires(std::is_arithmetic_v<Number> && !std::is_same_v<Number, __float128>)
    explicit(false) Half(Number value) : Half(rounded(static_cast<long double>(value))) {}
    explicit Half(__float128 value) : Half(rounded(value)) {}

    [[nodiscard]] static constexpr Half of_bits(uint16_t bits) {
        Half half;
        half.bits_ = bits;
        return half;
    }
    [[nodiscard]] constexpr uint16_t bits() const { return bits_; }

    explicit(false) operator float() const {
        const int exponent = bits_ >> 10 & 31, fraction = bits_ & 1023;
        const float special =
            fraction == 0 ? std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
        const float size = exponent == 31  ? special
                           : exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                                           : std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
        return bits_ >> 15 != 0 ? -size : size;
    }

    // The next one towards another; both are numbers.
    [[nodiscard]] Half next(Half towards) const {
        const float here = *this, there = towards;
        if (here == there)
            return towards;
        if (here == 0)
            return of_bits(there < 0 ? 0x8001 : 1);
        const bool grows = (here < there) == (here > 0);
        return of_bits(static_cast<uint16_t>(grows ? bits_ + 1 : bits_ - 1));
    }

private:
    // For long double and __float128, in which every step is exact.
    template <class Real>
    static Half rounded(Real value) {
        const uint16_t sign = std::signbit(static_cast<long double>(value)) ? 0x8000 : 0;
        if (value != value)
            return of_bits(static_cast<uint16_t>(sign | 0x7e00));
        const Real size = value < 0 ? -value : value;
        if (size >= 65520)
            return of_bits(static_cast<uint16_t>(sign | 0x7c00));
        int exponent = -14;
        Real unit = Real{1} / (1 << 24);
        while (size >= unit * 2048) {
            unit *= 2;
            ++exponent;
        }
        const Real units = size / unit;
        auto whole = static_cast<int>(units);
        const Real rest = units - static_cast<Real>(whole);
        if (rest > Real{1} / 2 || (rest == Real{1} / 2 && whole % 2 == 1))
            ++whole;
        // A fraction of 1024 or 2048 carries into the exponent.
        return of_bits(static_cast<uint16_t>(sign | (((exponent + 14) << 10) + whole)));
    }

    uint16_t bits_ = 0;
};

template <class T>
inline constexpr bool is_floating = std::is_floating_point_v<T> || std::is_same_v<T, Half>;

template <class T>
[[nodiscard]] T next_number(T x, T towards) {
    if constexpr (std::is_same_v<T, Half>)
        return x.next(towards);
    else
        return std::nextafter(x, towards);
}

}  // namespace polder

template <>
class std::numeric_limits<polder::Half> {
public:
    static constexpr bool is_specialized = true;
    static constexpr bool is_signed = true;
    static constexpr int digits = 11;
    static constexpr int min_exponent = -13;
    static constexpr int max_exponent = 16;
    static constexpr polder::Half min() { return polder::Half::of_bits(0x0400); }
    static constexpr polder::Half max() { return polder::Half::of_bits(0x7bff); }
    static constexpr polder::Half lowest() { return polder::Half::of_bits(0xfbff); }
    static constexpr polder::Half epsilon() { return polder::Half::of_bits(0x1400); }
    static constexpr polder::Half denorm_min() { return polder::Half::of_bits(1); }
    static constexpr polder::Half infinity() { return polder::Half::of_bits(0x7c00); }
    static constexpr polder::Half quiet_NaN() { return polder::Half::of_bits(0x7e00); }
};
