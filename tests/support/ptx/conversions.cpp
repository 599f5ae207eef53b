// cvt between integers, f16, bf16, f32 and f64. A conversion goes through int64_t, uint64_t or double, which hold each source exactly,
// and is rounded once, to the result. The integers that numbers beyond the range of the result become are the nearest ones.
#include "floats.h"
#include "operation.h"

#include <algorithm>

namespace polder::ptx {
namespace {

enum class ToWhole : uint8_t { no, nearest, zero, down, up };

// In `immediate`.
struct How {
    Type to = Type::none;
    Type from = Type::none;
    Round round = Round::nearest;
    ToWhole whole = ToWhole::no;
    bool flushes = false;
    bool saturates = false;
    bool clamps = false;

    [[nodiscard]] int64_t packed() const {
        return static_cast<int64_t>(to) | static_cast<int64_t>(from) << 8 | static_cast<int64_t>(round) << 16 |
               static_cast<int64_t>(whole) << 20 | (flushes ? 1 << 24 : 0) | (saturates ? 1 << 25 : 0) |
               (clamps ? 1 << 26 : 0);
    }
    static How of(int64_t packed) {
        return {static_cast<Type>(packed & 0xff),
                static_cast<Type>(packed >> 8 & 0xff),
                static_cast<Round>(packed >> 16 & 3),
                static_cast<ToWhole>(packed >> 20 & 7),
                (packed & 1 << 24) != 0,
                (packed & 1 << 25) != 0,
                (packed & 1 << 26) != 0};
    }
};

double to_whole(double value, ToWhole how) {
    switch (how) {
    case ToWhole::nearest: return std::nearbyint(value);
    case ToWhole::zero: return std::trunc(value);
    case ToWhole::down: return std::floor(value);
    case ToWhole::up: return std::ceil(value);
    default: return value;
    }
}

double load_float(const Thread& t, uint32_t slot, const How& how) {
    switch (how.from) {
    case Type::f16: return t.get<Half>(slot).wide();
    case Type::bf16: return t.get<BFloat>(slot).wide();
    case Type::f32: {
        const auto value = t.get<float>(slot);
        return double{how.flushes ? flush(value) : value};
    }
    default: return t.get<double>(slot);
    }
}

int64_t load_integer(const Thread& t, uint32_t slot, Type type) {
    switch (type) {
    case Type::u8: return t.get<uint8_t>(slot);
    case Type::s8: return t.get<int8_t>(slot);
    case Type::u16: return t.get<uint16_t>(slot);
    case Type::s16: return t.get<int16_t>(slot);
    case Type::u32: return t.get<uint32_t>(slot);
    case Type::s32: return t.get<int32_t>(slot);
    default: return t.get<int64_t>(slot);
    }
}

void store_float(Thread& t, uint32_t slot, double value, const How& how) {
    if (how.saturates)
        value = saturate(value);
    if (how.clamps && value < 0)
        value = 0;
    switch (how.to) {
    case Type::f16: t.set(slot, Half::of(value, how.round)); break;
    case Type::bf16: t.set(slot, BFloat::of(value, how.round)); break;
    case Type::f32: {
        const Rounding rounding(how.round);
        const float result = opaque(static_cast<float>(opaque(value)));
        t.set(slot, canonical(how.flushes ? flush(result) : result));
        break;
    }
    default: t.set(slot, value);
    }
}

// The lowest and the highest value of an integer type.
struct Limits {
    __int128 low;
    __int128 high;
    explicit Limits(Type type) {
        const unsigned bits = 8 * bytes_of(type);
        low = is_signed(type) ? -(__int128{1} << (bits - 1)) : 0;
        high = (__int128{1} << (is_signed(type) ? bits - 1 : bits)) - 1;
    }
};

bool run_float_to_integer(Thread& t, const Instruction& i) {
    const How how = How::of(i.immediate);
    const double value = load_float(t, i.a, how);
    const Limits limits(how.to);
    uint64_t result;
    if (std::isnan(value)) {
        // Zero, but for 64 bits the highest bit.
        const bool is_wide = how.from == Type::f64 || bytes_of(how.to) == 8;
        result = is_wide ? uint64_t{1} << (8 * bytes_of(how.to) - 1) : 0;
        if (is_wide && how.to == Type::s32)
            result = static_cast<uint64_t>(int64_t{INT32_MIN});
    } else {
        const double whole = to_whole(value, how.whole);
        if (whole <= static_cast<double>(limits.low))
            result = static_cast<uint64_t>(limits.low);
        else if (whole >= static_cast<double>(limits.high))
            result = static_cast<uint64_t>(limits.high);
        else
            result = static_cast<uint64_t>(static_cast<__int128>(whole));
    }
    t.r[i.d] = result;
    return true;
}

bool run_integer_to_float(Thread& t, const Instruction& i) {
    const How how = How::of(i.immediate);
    const int64_t value = load_integer(t, i.a, how.from);
    const bool is_large = how.from == Type::u64 && value < 0;
    if (how.to == Type::f32 || how.to == Type::f64) {
        const Rounding rounding(how.round);
        if (how.to == Type::f32)
            t.set(i.d, opaque(is_large ? static_cast<float>(opaque(static_cast<uint64_t>(value)))
                                       : static_cast<float>(opaque(value))));
        else
            t.set(i.d, opaque(is_large ? static_cast<double>(opaque(static_cast<uint64_t>(value)))
                                       : static_cast<double>(opaque(value))));
        return true;
    }
    // Rounds to odd where double cannot hold all bits, then to the format.
    const bool is_negative = how.from != Type::u64 && value < 0;
    uint64_t magnitude = is_negative ? ~static_cast<uint64_t>(value) + 1 : static_cast<uint64_t>(value);
    if (magnitude >> 53 != 0)
        magnitude = (magnitude >> 11 | ((magnitude & 0x7ff) != 0 ? 1 : 0)) << 11;
    const double exact = static_cast<double>(magnitude);
    store_float(t, i.d, is_negative ? -exact : exact, how);
    return true;
}

bool run_float_to_float(Thread& t, const Instruction& i) {
    const How how = How::of(i.immediate);
    const double value = load_float(t, i.a, how);
    // f64 to f64: the bits of a NaN stay.
    store_float(t, i.d, std::isnan(value) ? value : to_whole(value, how.whole), how);
    return true;
}

bool run_integer_to_integer(Thread& t, const Instruction& i) {
    const How how = How::of(i.immediate);
    int64_t value = load_integer(t, i.a, how.from);
    if (how.saturates) {
        const __int128 exact = how.from == Type::u64 ? __int128{static_cast<uint64_t>(value)} : __int128{value};
        const Limits limits(how.to);
        value = static_cast<int64_t>(std::clamp(exact, limits.low, limits.high));
    }
    switch (how.to) {
    case Type::u8: value = static_cast<uint8_t>(value); break;
    case Type::s8: value = static_cast<int8_t>(value); break;
    case Type::u16: value = static_cast<uint16_t>(value); break;
    case Type::s16: value = static_cast<int16_t>(value); break;
    case Type::u32: value = static_cast<uint32_t>(value); break;
    case Type::s32: value = static_cast<int32_t>(value); break;
    default: break;
    }
    t.set(i.d, value);
    return true;
}

template <class From, class To>
bool run_plain_cvt(Thread& t, const Instruction& i) {
    t.set(i.d, static_cast<To>(t.get<From>(i.a)));
    return true;
}
// The most frequent ones.
Handler plain_cvt(Type to, Type from) {
    if (from == Type::s32 && to == Type::s64)
        return run_plain_cvt<int32_t, int64_t>;
    if (from == Type::u32 && to == Type::u64)
        return run_plain_cvt<uint32_t, uint64_t>;
    if (from == Type::u64 && to == Type::u32)
        return run_plain_cvt<uint64_t, uint32_t>;
    return from == Type::f32 && to == Type::f64 ? run_plain_cvt<float, double> : nullptr;
}

// cvt.rn.f16x2.f32 d, a, b: a becomes the upper half.
template <class Format>
bool run_two_floats(Thread& t, const Instruction& i) {
    const How how = How::of(i.immediate);
    const auto one = [&](uint32_t slot) {
        double value = load_float(t, slot, how);
        if (how.clamps && value < 0)
            value = 0;
        return uint32_t{Format::of(value, how.round).bits};
    };
    t.set(i.d, one(i.a) << 16 | one(i.b));
    return true;
}

bool is_integer(Type type) { return !is_float(type) && type >= Type::b8 && type <= Type::s64; }

void decode_cvt(Line& line) {
    How how;
    const std::string_view whole = line.take_one({"rni", "rzi", "rmi", "rpi"});
    const std::string_view round = line.take_one({"rn", "rz", "rm", "rp"});
    how.flushes = line.take("ftz");
    how.clamps = line.take("relu");
    how.saturates = line.take("sat");
    how.to = line.take_type();
    how.from = line.take_type();
    how.round = round == "rz" ? Round::zero : round == "rm" ? Round::down : round == "rp" ? Round::up : Round::nearest;
    how.whole = whole == "rni"   ? ToWhole::nearest
                : whole == "rzi" ? ToWhole::zero
                : whole == "rmi" ? ToWhole::down
                : whole == "rpi" ? ToWhole::up
                                 : ToWhole::no;
    if (how.to == Type::f16x2 || how.to == Type::bf16x2) {
        if (how.from != Type::f32 || line.count() != 3 || round.empty())
            return line.refuse();
        return line.emit({.run = how.to == Type::f16x2 ? run_two_floats<Half> : run_two_floats<BFloat>,
                          .d = line.target(0, how.to),
                          .a = line.source(1, how.from),
                          .b = line.source(2, how.from),
                          .immediate = how.packed()});
    }
    Handler handler = nullptr;
    if (is_float(how.to) && is_float(how.from))
        handler = run_float_to_float;
    else if (is_float(how.to) && is_integer(how.from))
        handler = round.empty() ? nullptr : run_integer_to_float;
    else if (is_integer(how.to) && is_float(how.from))
        handler = how.whole == ToWhole::no ? nullptr : run_float_to_integer;
    else if (is_integer(how.to) && is_integer(how.from))
        handler = run_integer_to_integer;
    // A narrower float needs a direction.
    if (is_float(how.to) && is_float(how.from) && bytes_of(how.to) < bytes_of(how.from) && round.empty())
        handler = nullptr;
    if (handler == nullptr || line.count() != 2)
        return line.refuse();
    const bool is_plain = !how.saturates && !how.flushes && how.whole == ToWhole::no && round.empty();
    if (const Handler plain = is_plain ? plain_cvt(how.to, how.from) : nullptr)
        handler = plain;
    line.emit({.run = handler, .d = line.target(0, how.to), .a = line.source(1, how.from), .immediate = how.packed()});
}

}  // namespace

void add_conversions(Table& table) { table["cvt"] = decode_cvt; }

}  // namespace polder::ptx
