// Formats of 16 bits, f16 and bf16, as double, which holds all their values; and back, with one rounding.
#pragma once

#include <bit>
#include <cstdint>

namespace polder::ptx {

enum class Round : uint8_t { nearest, zero, down, up };

// A format with `exponent_bits` and `mantissa_bits`.
template <int exponent_bits, int mantissa_bits>
struct Narrow {
    uint16_t bits;

    static constexpr int bias = (1 << (exponent_bits - 1)) - 1;
    static constexpr uint16_t infinity = ((1 << exponent_bits) - 1) << mantissa_bits;
    static constexpr uint16_t sign = 0x8000;
    static constexpr uint16_t nan = 0x7fff;

    [[nodiscard]] constexpr bool is_nan() const { return (bits & 0x7fff) > infinity; }
    [[nodiscard]] constexpr bool is_subnormal() const { return (bits & infinity) == 0 && (bits & 0x7fff) != 0; }
    [[nodiscard]] constexpr Narrow flushed() const {
        return is_subnormal() ? Narrow{static_cast<uint16_t>(bits & sign)} : *this;
    }

    [[nodiscard]] constexpr double wide() const {
        const uint64_t sign_bit = uint64_t{static_cast<uint16_t>(bits & sign)} << 48;
        const int exponent = (bits & infinity) >> mantissa_bits;
        const uint64_t mantissa = bits & ((1u << mantissa_bits) - 1);
        if (exponent == (1 << exponent_bits) - 1)
            return std::bit_cast<double>(sign_bit | uint64_t{0x7ff} << 52 | mantissa << (52 - mantissa_bits));
        if (exponent == 0) {
            // Exact: a small integer times a power of two.
            const double unit = std::bit_cast<double>(static_cast<uint64_t>(1023 + 1 - bias - mantissa_bits) << 52);
            const double value = static_cast<double>(mantissa) * unit;
            return sign_bit != 0 ? -value : value;
        }
        return std::bit_cast<double>(sign_bit | static_cast<uint64_t>(exponent - bias + 1023) << 52 |
                                     mantissa << (52 - mantissa_bits));
    }

    static constexpr Narrow of(double value, Round round) {
        const auto raw = std::bit_cast<uint64_t>(value);
        const auto sign_bit = static_cast<uint16_t>(raw >> 48 & sign);
        const int exponent = static_cast<int>(raw >> 52 & 0x7ff);
        uint64_t mantissa = raw & ((uint64_t{1} << 52) - 1);
        if (exponent == 0x7ff)
            return {mantissa != 0 ? nan : static_cast<uint16_t>(sign_bit | infinity)};
        if (exponent == 0)
            mantissa = mantissa != 0 ? 1 : 0;  // smaller than all values of the format
        else
            mantissa |= uint64_t{1} << 52;
        int result_exponent = exponent - 1023 + bias;
        // How many bits are cut off; for a subnormal result more of them.
        int cut = 52 - mantissa_bits;
        if (result_exponent <= 0) {
            cut += 1 - result_exponent;
            result_exponent = 0;
        }
        if (cut > 60) {
            cut = 60;
            mantissa = mantissa != 0 ? 1 : 0;
        }
        const uint64_t rest = mantissa & ((uint64_t{1} << cut) - 1);
        const uint64_t half = uint64_t{1} << (cut - 1);
        uint64_t kept = mantissa >> cut;
        bool is_up = false;
        switch (round) {
        case Round::nearest: is_up = rest > half || (rest == half && (kept & 1) != 0); break;
        case Round::zero: break;
        case Round::down: is_up = rest != 0 && sign_bit != 0; break;
        case Round::up: is_up = rest != 0 && sign_bit == 0; break;
        }
        kept += is_up ? 1 : 0;
        // A normal result has its leading bit in `kept`, which adds 1 to the exponent; a carry adds one more.
        const uint64_t base = result_exponent > 0 ? static_cast<uint64_t>(result_exponent - 1) << mantissa_bits : 0;
        const uint64_t magnitude = base + kept;
        if (magnitude >= infinity) {
            const bool stays_finite = round == Round::zero || (round == Round::down && sign_bit == 0) ||
                                      (round == Round::up && sign_bit != 0);
            return {static_cast<uint16_t>(sign_bit | (stays_finite ? infinity - 1 : infinity))};
        }
        return {static_cast<uint16_t>(sign_bit | magnitude)};
    }
};

using Half = Narrow<5, 10>;
using BFloat = Narrow<8, 7>;

}  // namespace polder::ptx
