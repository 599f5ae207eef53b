// Arithmetic of integers: with carry, with wide and high results, by 24 bits, two of 16 bits at once.
#include "integers.h"

#include "operation.h"
#include "operators.h"

#include <algorithm>
#include <limits>
#include <type_traits>

namespace polder::ptx {
namespace {

// Wide enough that no operation of T overflows where C++ does not define it.
template <class T>
using Plain = std::conditional_t<sizeof(T) <= 4, uint32_t, uint64_t>;
template <class T>
Plain<T> plain(T value) {
    return static_cast<Plain<T>>(value);
}

struct Add {
    template <class T>
    static T of(T a, T b) {
        return static_cast<T>(plain(a) + plain(b));
    }
};
struct Sub {
    template <class T>
    static T of(T a, T b) {
        return static_cast<T>(plain(a) - plain(b));
    }
};
struct MulLow {
    template <class T>
    static T of(T a, T b) {
        return static_cast<T>(plain(a) * plain(b));
    }
};
struct MulHigh {
    template <class T>
    static T of(T a, T b) {
        using Wide = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
        return static_cast<T>((static_cast<Wide>(a) * static_cast<Wide>(b)) >> (8 * sizeof(T)));
    }
};
template <class Multiply>
struct MulAdd {
    template <class T>
    static T of(T a, T b, T c) {
        return Add::of(Multiply::of(a, b), c);
    }
};
// A division by zero has no defined result in PTX; all bits are set, as on the processors.
struct Div {
    template <class T>
    static T of(T a, T b) {
        if (b == 0)
            return static_cast<T>(~T{0});
        if (std::is_signed_v<T> && b == static_cast<T>(-1))
            return Sub::of(T{0}, a);
        return static_cast<T>(a / b);
    }
};
struct Rem {
    template <class T>
    static T of(T a, T b) {
        if (b == 0)
            return a;
        if (std::is_signed_v<T> && b == static_cast<T>(-1))
            return 0;
        return static_cast<T>(a % b);
    }
};
struct Abs {
    template <class T>
    static T of(T a) {
        if constexpr (std::is_signed_v<T>)
            return a < 0 ? Sub::of(T{0}, a) : a;
        return a;
    }
};
struct Neg {
    template <class T>
    static T of(T a) {
        return Sub::of(T{0}, a);
    }
};
struct Sad {
    template <class T>
    static T of(T a, T b, T c) {
        return Add::of(c, a < b ? Sub::of(b, a) : Sub::of(a, b));
    }
};
template <class Inner>
struct Saturated {
    static int32_t of(int32_t a, int32_t b) {
        const int64_t wide = std::is_same_v<Inner, Add> ? int64_t{a} + b : int64_t{a} - b;
        return static_cast<int32_t>(std::clamp<int64_t>(wide, INT32_MIN, INT32_MAX));
    }
};
// Two halves.
template <class Half, class Inner>
struct Halves {
    static uint32_t of(uint32_t a, uint32_t b) {
        const auto low = Inner::of(static_cast<Half>(a), static_cast<Half>(b));
        const auto high = Inner::of(static_cast<Half>(a >> 16), static_cast<Half>(b >> 16));
        return static_cast<uint32_t>(static_cast<uint16_t>(high)) << 16 | static_cast<uint16_t>(low);
    }
};

template <class Operation>
Handler two_halves(Type type) {
    if (type == Type::s16x2)
        return run_binary<uint32_t, Halves<int16_t, Operation>>;
    return type == Type::u16x2 ? run_binary<uint32_t, Halves<uint16_t, Operation>> : nullptr;
}

template <class T, bool subtracts, bool takes_carry, bool sets_carry>
bool run_carry(Thread& t, const Instruction& i) {
    const auto a = t.get<T>(i.a);
    const T b = subtracts ? static_cast<T>(~t.get<T>(i.b)) : t.get<T>(i.b);
    // A subtraction adds the complement and 1; the carry is a borrow.
    const bool carry = takes_carry ? t.carry != subtracts : subtracts;
    const unsigned __int128 sum = static_cast<unsigned __int128>(a) + b + (carry ? 1 : 0);
    if (sets_carry)
        t.carry = ((sum >> (8 * sizeof(T))) != 0) != subtracts;
    t.set(i.d, static_cast<T>(sum));
    return true;
}

template <bool subtracts, bool takes_carry>
Handler carried(Type type, bool sets_carry) {
    if (bytes_of(type) == 8)
        return sets_carry ? run_carry<uint64_t, subtracts, takes_carry, true>
                          : run_carry<uint64_t, subtracts, takes_carry, false>;
    return sets_carry ? run_carry<uint32_t, subtracts, takes_carry, true>
                      : run_carry<uint32_t, subtracts, takes_carry, false>;
}

template <class T, bool high, bool takes_carry, bool sets_carry>
bool run_mad_carry(Thread& t, const Instruction& i) {
    const auto a = t.get<T>(i.a), b = t.get<T>(i.b);
    using U = std::make_unsigned_t<T>;
    const auto product = static_cast<U>(high ? MulHigh::of(a, b) : MulLow::of(a, b));
    const unsigned __int128 sum =
        static_cast<unsigned __int128>(product) + t.get<U>(i.c) + (takes_carry && t.carry ? 1 : 0);
    if (sets_carry)
        t.carry = (sum >> (8 * sizeof(T))) != 0;
    t.set(i.d, static_cast<U>(sum));
    return true;
}

template <class T, bool takes_carry>
Handler mad_carried(bool is_high, bool sets_carry) {
    if (is_high)
        return sets_carry ? run_mad_carry<T, true, takes_carry, true> : run_mad_carry<T, true, takes_carry, false>;
    return sets_carry ? run_mad_carry<T, false, takes_carry, true> : run_mad_carry<T, false, takes_carry, false>;
}

template <bool takes_carry>
void decode_mad_carry(Line& line) {
    const bool is_high = line.take_one({"hi", "lo"}) == "hi";
    const bool sets = line.take("cc");
    const Type type = line.take_type();
    switch (type) {
    case Type::u32: return line.emit(mad_carried<uint32_t, takes_carry>(is_high, sets), type, 3);
    case Type::s32: return line.emit(mad_carried<int32_t, takes_carry>(is_high, sets), type, 3);
    case Type::u64: return line.emit(mad_carried<uint64_t, takes_carry>(is_high, sets), type, 3);
    case Type::s64: return line.emit(mad_carried<int64_t, takes_carry>(is_high, sets), type, 3);
    default: return line.refuse();
    }
}

template <class From, class To, bool adds>
bool run_wide(Thread& t, const Instruction& i) {
    const To product = MulLow::of(static_cast<To>(t.get<From>(i.a)), static_cast<To>(t.get<From>(i.b)));
    t.set(i.d, adds ? Add::of(product, t.get<To>(i.c)) : product);
    return true;
}

template <bool adds>
void decode_wide(Line& line, Type type) {
    Handler handler = nullptr;
    switch (type) {
    case Type::u16: handler = run_wide<uint16_t, uint32_t, adds>; break;
    case Type::s16: handler = run_wide<int16_t, int32_t, adds>; break;
    case Type::u32: handler = run_wide<uint32_t, uint64_t, adds>; break;
    case Type::s32: handler = run_wide<int32_t, int64_t, adds>; break;
    default: return line.refuse();
    }
    const Type wide = bytes_of(type) == 2 ? Type::u32 : Type::u64;
    Instruction made{.run = handler, .d = line.target(0, wide), .a = line.source(1, type), .b = line.source(2, type)};
    if (adds)
        made.c = line.source(3, wide);
    line.emit(made);
}

template <bool adds>
void decode_multiplication(Line& line) {
    const bool saturates = adds && line.take("sat");
    const std::string_view part = line.take_one({"lo", "hi", "wide"});
    const Type type = line.take_type();
    if (part == "wide" && !saturates)
        return decode_wide<adds>(line, type);
    if (part.empty() || saturates)
        return line.refuse();
    if constexpr (adds)
        line.emit(part == "lo" ? ternary<MulAdd<MulLow>>(type) : ternary<MulAdd<MulHigh>>(type), type, 3);
    else
        line.emit(part == "lo" ? binary<MulLow>(type) : binary<MulHigh>(type), type, 2);
}

template <class T, bool high, bool adds>
bool run_24(Thread& t, const Instruction& i) {
    const auto low_24 = [](T x) { return static_cast<int64_t>(static_cast<T>(static_cast<uint32_t>(x) << 8) >> 8); };
    const int64_t product = low_24(t.get<T>(i.a)) * low_24(t.get<T>(i.b));
    const auto result = static_cast<T>(high ? product >> 16 : product);
    t.set(i.d, adds ? Add::of(result, t.get<T>(i.c)) : result);
    return true;
}

template <bool adds>
void decode_24(Line& line) {
    const bool is_high = line.take_one({"hi", "lo"}) == "hi";
    const Type type = line.take_type();
    if (type != Type::u32 && type != Type::s32)
        return line.refuse();
    const bool is_signed_type = type == Type::s32;
    Handler handler = is_signed_type ? run_24<int32_t, false, adds> : run_24<uint32_t, false, adds>;
    if (is_high)
        handler = is_signed_type ? run_24<int32_t, true, adds> : run_24<uint32_t, true, adds>;
    line.emit(handler, type, adds ? 3 : 2);
}

template <bool subtracts, bool takes_carry>
void decode_carry(Line& line) {
    const bool sets = line.take("cc");
    const Type type = line.take_type();
    if (bytes_of(type) < 4)
        return line.refuse();
    line.emit(carried<subtracts, takes_carry>(type, sets), type, 2);
}

template <class A, class B>
bool run_dp4a(Thread& t, const Instruction& i) {
    uint32_t sum = t.get<uint32_t>(i.c);
    const auto a = t.get<uint32_t>(i.a), b = t.get<uint32_t>(i.b);
    for (unsigned byte = 0; byte < 32; byte += 8)
        sum += static_cast<uint32_t>(int32_t{static_cast<A>(a >> byte)} * int32_t{static_cast<B>(b >> byte)});
    t.set(i.d, sum);
    return true;
}

template <class A, class B>
bool run_dp2a(Thread& t, const Instruction& i) {
    uint32_t sum = t.get<uint32_t>(i.c);
    const auto a = t.get<uint32_t>(i.a);
    const uint32_t b = t.get<uint32_t>(i.b) >> (i.immediate != 0 ? 16 : 0);
    sum += static_cast<uint32_t>(int64_t{static_cast<A>(a)} * int64_t{static_cast<B>(b)});
    sum += static_cast<uint32_t>(int64_t{static_cast<A>(a >> 16)} * int64_t{static_cast<B>(b >> 8)});
    t.set(i.d, sum);
    return true;
}

void decode_dot(Line& line, Handler uu, Handler us, Handler su, Handler ss, bool is_high) {
    const Type a = line.take_type(), b = line.take_type();
    const bool is_a = is_signed(a), is_b = is_signed(b);
    if (line.count() != 4 || bytes_of(a) != 4 || bytes_of(b) != 4)
        return line.refuse();
    line.emit({.run = is_a ? (is_b ? ss : su) : (is_b ? us : uu),
               .d = line.target(0, Type::b32),
               .a = line.source(1, a),
               .b = line.source(2, b),
               .c = line.source(3, Type::b32),
               .immediate = is_high ? 1 : 0});
}

}  // namespace

// add, sub, mul and mad are also floats' (floats.cpp), which are tried first.
void decode_integer_add(Line& line) {
    const bool saturates = line.take("sat"), sets = line.take("cc");
    const Type type = line.take_type();
    if (type == Type::u16x2 || type == Type::s16x2)
        return line.emit(two_halves<Add>(type), type, 2);
    if (saturates)
        return line.emit(type == Type::s32 ? run_binary<int32_t, Saturated<Add>> : nullptr, type, 2);
    line.emit(sets ? carried<false, false>(type, true) : binary<Add>(type), type, 2);
}
void decode_integer_sub(Line& line) {
    const bool saturates = line.take("sat"), sets = line.take("cc");
    const Type type = line.take_type();
    if (saturates)
        return line.emit(type == Type::s32 ? run_binary<int32_t, Saturated<Sub>> : nullptr, type, 2);
    line.emit(sets ? carried<true, false>(type, true) : binary<Sub>(type), type, 2);
}
void decode_integer_mul(Line& line) { decode_multiplication<false>(line); }
void decode_integer_mad(Line& line) {
    if (line.has("cc"))
        return decode_mad_carry<false>(line);
    decode_multiplication<true>(line);
}
void decode_integer_div(Line& line) {
    const Type type = line.take_type();
    line.emit(binary<Div>(type), type, 2);
}
void decode_integer_abs(Line& line) {
    const Type type = line.take_type();
    line.emit(is_signed(type) ? unary<Abs>(type) : nullptr, type, 1);
}
void decode_integer_neg(Line& line) {
    const Type type = line.take_type();
    line.emit(is_signed(type) ? unary<Neg>(type) : nullptr, type, 1);
}
void decode_integer_min(Line& line) {
    const Type type = line.take_type();
    line.emit(bytes_of(type) == 4 && binary<Min>(type) == nullptr ? two_halves<Min>(type) : binary<Min>(type), type, 2);
}
void decode_integer_max(Line& line) {
    const Type type = line.take_type();
    line.emit(bytes_of(type) == 4 && binary<Max>(type) == nullptr ? two_halves<Max>(type) : binary<Max>(type), type, 2);
}

void add_integers(Table& table) {
    table["addc"] = decode_carry<false, true>;
    table["subc"] = decode_carry<true, true>;
    table["madc"] = decode_mad_carry<true>;
    table["mul24"] = decode_24<false>;
    table["mad24"] = decode_24<true>;
    table["rem"] = [](Line& line) {
        const Type type = line.take_type();
        line.emit(binary<Rem>(type), type, 2);
    };
    table["sad"] = [](Line& line) {
        const Type type = line.take_type();
        line.emit(ternary<Sad>(type), type, 3);
    };
    table["dp4a"] = [](Line& line) {
        decode_dot(line, run_dp4a<uint8_t, uint8_t>, run_dp4a<uint8_t, int8_t>, run_dp4a<int8_t, uint8_t>,
                   run_dp4a<int8_t, int8_t>, false);
    };
    table["dp2a"] = [](Line& line) {
        const bool is_high = line.take_one({"hi", "lo"}) == "hi";
        decode_dot(line, run_dp2a<uint16_t, uint8_t>, run_dp2a<uint16_t, int8_t>, run_dp2a<int16_t, uint8_t>,
                   run_dp2a<int16_t, int8_t>, is_high);
    };
}

}  // namespace polder::ptx
