// Arithmetic of f32, f64, f16 and bf16 that is exactly defined: IEEE 754 in all directions of rounding, with subnormal
// numbers flushed (.ftz) and results saturated to [0, 1] (.sat) where the instruction says so.
#include "floats.h"

#include "float_instructions.h"
#include "integers.h"
#include "operation.h"

#include <bit>
#include <type_traits>

namespace polder::ptx {
namespace {

// In `immediate` of an instruction.
struct Modifiers {
    Round round = Round::nearest;
    bool flushes = false;
    bool saturates = false;
    bool keeps_nan = false;  // .NaN of min and max
    bool clamps = false;  // .relu

    [[nodiscard]] int64_t packed() const {
        return static_cast<int64_t>(round) | (flushes ? 4 : 0) | (saturates ? 8 : 0) | (keeps_nan ? 16 : 0) |
               (clamps ? 32 : 0);
    }
    static Modifiers of(int64_t packed) {
        return {static_cast<Round>(packed & 3), (packed & 4) != 0, (packed & 8) != 0, (packed & 16) != 0,
                (packed & 32) != 0};
    }
};

Modifiers take_modifiers(Line& line) {
    Modifiers taken;
    const std::string_view round = line.take_one({"rn", "rz", "rm", "rp"}, "rn");
    taken.round = round == "rn"   ? Round::nearest
                  : round == "rz" ? Round::zero
                  : round == "rm" ? Round::down
                                  : Round::up;
    taken.flushes = line.take("ftz");
    taken.saturates = line.take("sat");
    taken.keeps_nan = line.take("NaN");
    taken.clamps = line.take("relu");
    // Not for what flushes: the results of f16 are never flushed without .ftz.
    line.take("noftz");
    return taken;
}

struct Add {
    static constexpr int operands = 2;
    template <class T>
    static T of(T a, T b, T, const Modifiers&) {
        return a + b;
    }
    static double narrow(double a, double b, double) { return odd_fma(a, 1, b); }
};
struct Sub {
    static constexpr int operands = 2;
    template <class T>
    static T of(T a, T b, T, const Modifiers&) {
        return a - b;
    }
    static double narrow(double a, double b, double) { return odd_fma(a, 1, -b); }
};
struct Mul {
    static constexpr int operands = 2;
    template <class T>
    static T of(T a, T b, T, const Modifiers&) {
        return a * b;
    }
    static double narrow(double a, double b, double) { return a * b; }
};
struct Fma {
    static constexpr int operands = 3;
    template <class T>
    static T of(T a, T b, T c, const Modifiers&) {
        return std::fma(a, b, c);
    }
    static double narrow(double a, double b, double c) { return odd_fma(a, b, c); }
};
struct Div {
    static constexpr int operands = 2;
    template <class T>
    static T of(T a, T b, T, const Modifiers&) {
        return a / b;
    }
};
struct Rcp {
    static constexpr int operands = 1;
    template <class T>
    static T of(T a, T, T, const Modifiers&) {
        return T{1} / a;
    }
};
struct Sqrt {
    static constexpr int operands = 1;
    template <class T>
    static T of(T a, T, T, const Modifiers&) {
        return std::sqrt(a);
    }
};
// -0 is less than +0. When one operand is a NaN, the other one is returned.
template <bool is_max>
struct Extreme {
    static constexpr int operands = 2;
    template <class T>
    static T of(T a, T b, T, const Modifiers& modifiers) {
        if (std::isnan(a) || std::isnan(b)) {
            if (modifiers.keeps_nan || (std::isnan(a) && std::isnan(b)))
                return std::numeric_limits<T>::quiet_NaN();
            return std::isnan(a) ? b : a;
        }
        const bool a_is_less = a < b || (a == b && std::signbit(a));
        return a_is_less != is_max ? a : b;
    }
    static double narrow_with(double a, double b, const Modifiers& modifiers) { return of(a, b, 0.0, modifiers); }
};

// --- float and double ---

template <class T, class Operation>
T float_result(T a, T b, T c, const Modifiers& modifiers) {
    if (modifiers.flushes) {
        a = flush(a);
        b = flush(b);
        c = flush(c);
    }
    T result;
    if (modifiers.round == Round::nearest) {
        result = Operation::of(a, b, c, modifiers);
    } else {
        const Rounding rounding(modifiers.round);
        result = opaque(Operation::of(opaque(a), opaque(b), opaque(c), modifiers));
    }
    if (modifiers.flushes)
        result = flush(result);
    if (modifiers.saturates)
        result = saturate(result);
    return canonical(result);
}

template <class T, class Operation>
bool run_float(Thread& t, const Instruction& i) {
    t.set(i.d, float_result<T, Operation>(t.get<T>(i.a), Operation::operands > 1 ? t.get<T>(i.b) : T{0},
                                          Operation::operands > 2 ? t.get<T>(i.c) : T{0}, Modifiers::of(i.immediate)));
    return true;
}

// Two floats in 64 bits, each as if it were alone.
template <class Operation>
bool run_two_floats(Thread& t, const Instruction& i) {
    const auto a = t.get<uint64_t>(i.a), b = t.get<uint64_t>(i.b);
    const uint64_t c = Operation::operands > 2 ? t.get<uint64_t>(i.c) : 0;
    uint64_t both = 0;
    for (const unsigned shift : {0u, 32u}) {
        const auto part = [shift](uint64_t of) { return std::bit_cast<float>(static_cast<uint32_t>(of >> shift)); };
        const float result = float_result<float, Operation>(part(a), part(b), part(c), Modifiers::of(i.immediate));
        both |= uint64_t{std::bit_cast<uint32_t>(result)} << shift;
    }
    t.set(i.d, both);
    return true;
}

// The usual instruction, without modifiers.
template <class T, class Operation>
bool run_plain_float(Thread& t, const Instruction& i) {
    const T result = Operation::of(t.get<T>(i.a), Operation::operands > 1 ? t.get<T>(i.b) : T{0},
                                   Operation::operands > 2 ? t.get<T>(i.c) : T{0}, Modifiers{});
    t.set(i.d, canonical(result));
    return true;
}

// --- 16 bits, one or two of them ---

template <class Format, class Operation>
Format narrow_result(Format a, Format b, Format c, const Modifiers& modifiers) {
    if (modifiers.flushes) {
        a = a.flushed();
        b = b.flushed();
        c = c.flushed();
    }
    double result;
    if constexpr (requires { Operation::narrow(0.0, 0.0, 0.0); })
        result = Operation::narrow(a.wide(), b.wide(), c.wide());
    else
        result = Operation::narrow_with(a.wide(), b.wide(), modifiers);
    if (modifiers.saturates)
        result = saturate(result);
    if (modifiers.clamps && result < 0)
        result = 0;
    const Format narrow = Format::of(result, modifiers.round);
    return modifiers.flushes ? narrow.flushed() : narrow;
}

template <class Format, class Operation>
bool run_narrow(Thread& t, const Instruction& i) {
    t.set(i.d, narrow_result<Format, Operation>(
                   t.get<Format>(i.a), Operation::operands > 1 ? t.get<Format>(i.b) : Format{},
                   Operation::operands > 2 ? t.get<Format>(i.c) : Format{}, Modifiers::of(i.immediate)));
    return true;
}
template <class Format, class Operation>
bool run_two_narrow(Thread& t, const Instruction& i) {
    const auto a = t.get<uint32_t>(i.a), b = t.get<uint32_t>(i.b);
    const uint32_t c = Operation::operands > 2 ? t.get<uint32_t>(i.c) : 0;
    uint32_t both = 0;
    for (const unsigned shift : {0u, 16u}) {
        const auto part = [shift](uint32_t of) { return Format{static_cast<uint16_t>(of >> shift)}; };
        both |= uint32_t{narrow_result<Format, Operation>(part(a), part(b), part(c), Modifiers::of(i.immediate)).bits}
                << shift;
    }
    t.set(i.d, both);
    return true;
}

// float with factors, or a first summand, of 16 bits (add.f32.f16, fma.f32.bf16): their values are exact in float.
template <class Format, class Operation>
bool run_mixed(Thread& t, const Instruction& i) {
    const auto narrow = [&t](uint32_t slot) { return static_cast<float>(t.get<Format>(slot).wide()); };
    const float a = narrow(i.a);
    const Modifiers modifiers = Modifiers::of(i.immediate);
    t.set(i.d, Operation::operands > 2 ? float_result<float, Operation>(a, narrow(i.b), t.get<float>(i.c), modifiers)
                                       : float_result<float, Operation>(a, t.get<float>(i.b), 0, modifiers));
    return true;
}

// False: the instruction is none of these.
template <class Operation>
bool decode_mixed(Line& line, const Modifiers& modifiers) {
    const bool is_half = line.take("f16");
    if (!is_half && !line.take("bf16"))
        return false;
    const Type narrow = is_half ? Type::f16 : Type::bf16;
    if (line.function().symbols().processor < 100 || modifiers.flushes || modifiers.clamps ||
        line.count() != Operation::operands + 1) {
        line.refuse();
        return true;
    }
    Instruction made{.run = is_half ? run_mixed<Half, Operation> : run_mixed<BFloat, Operation>,
                     .d = line.target(0, Type::f32),
                     .a = line.source(1, narrow),
                     .b = line.source(2, Operation::operands > 2 ? narrow : Type::f32)};
    if (Operation::operands > 2)
        made.c = line.source(3, Type::f32);
    made.immediate = modifiers.packed();
    line.emit(made);
    return true;
}

template <class Operation>
void decode_float(Line& line) {
    const Modifiers modifiers = take_modifiers(line);
    const Type type = line.take_type();
    if constexpr (std::is_same_v<Operation, Add> || std::is_same_v<Operation, Sub> || std::is_same_v<Operation, Fma>)
        if (type == Type::f32 && decode_mixed<Operation>(line, modifiers))
            return;
    Handler handler = nullptr;
    const bool is_plain = modifiers.packed() == 0;
    if (type == Type::f32)
        handler = is_plain ? run_plain_float<float, Operation> : run_float<float, Operation>;
    else if (type == Type::f64)
        handler = is_plain ? run_plain_float<double, Operation> : run_float<double, Operation>;
    // Only these operations have the form f32x2, which never saturates.
    constexpr bool is_packed = std::is_same_v<Operation, Add> || std::is_same_v<Operation, Sub> ||
                               std::is_same_v<Operation, Mul> || std::is_same_v<Operation, Fma>;
    if constexpr (is_packed)
        if (type == Type::f32x2 && !modifiers.saturates && line.function().symbols().processor >= 100)
            handler = run_two_floats<Operation>;
    if constexpr (
        requires { Operation::narrow(0.0, 0.0, 0.0); } || requires { Operation::narrow_with(0.0, 0.0, Modifiers{}); }) {
        if (type == Type::f16)
            handler = run_narrow<Half, Operation>;
        else if (type == Type::bf16)
            handler = run_narrow<BFloat, Operation>;
        else if (type == Type::f16x2)
            handler = run_two_narrow<Half, Operation>;
        else if (type == Type::bf16x2)
            handler = run_two_narrow<BFloat, Operation>;
    }
    if (handler == nullptr || line.count() != Operation::operands + 1 ||
        (modifiers.clamps && bytes_of(type) > 2 && (is_float(type) || type == Type::f32x2)))
        return line.refuse();
    Instruction made{.run = handler, .d = line.target(0, type), .a = line.source(1, type)};
    if (Operation::operands > 1)
        made.b = line.source(2, type);
    if (Operation::operands > 2)
        made.c = line.source(3, type);
    made.immediate = modifiers.packed();
    line.emit(made);
}

bool is_of_floats(const Line& line) {
    for (const char* type : {"f32", "f64", "f16", "bf16", "f16x2", "bf16x2", "f32x2"})
        if (line.has(type))
            return true;
    return false;
}

// --- the sign: bits only ---

template <class T, T mask, bool flips>
bool run_sign(Thread& t, const Instruction& i) {
    T a = t.get<T>(i.a);
    if (sizeof(T) == 4 && i.immediate != 0)
        a = std::bit_cast<uint32_t>(flush(std::bit_cast<float>(static_cast<uint32_t>(a))));
    t.set(i.d, static_cast<T>(flips ? a ^ mask : a & ~mask));
    return true;
}

template <bool flips>
void decode_sign(Line& line) {
    const bool flushes = line.take("ftz");
    const Type type = line.take_type();
    Handler handler = nullptr;
    switch (type) {
    case Type::f16:
    case Type::bf16: handler = run_sign<uint16_t, 0x8000, flips>; break;
    case Type::f16x2:
    case Type::bf16x2: handler = run_sign<uint32_t, 0x80008000u, flips>; break;
    case Type::f32: handler = run_sign<uint32_t, 0x80000000u, flips>; break;
    case Type::f64: handler = run_sign<uint64_t, uint64_t{1} << 63, flips>; break;
    default: return line.refuse();
    }
    if (line.count() != 2 || (flushes && type != Type::f32))
        return line.refuse();
    line.emit({.run = handler, .d = line.target(0, type), .a = line.source(1, type), .immediate = flushes ? 1 : 0});
}

// The sign of a with the magnitude of b.
template <class T>
bool run_copysign(Thread& t, const Instruction& i) {
    t.set(i.d, std::copysign(t.get<T>(i.b), t.get<T>(i.a)));
    return true;
}

template <class Operation, void (*of_integers)(Line&)>
void decode_either(Line& line) {
    if (is_of_floats(line))
        decode_float<Operation>(line);
    else
        of_integers(line);
}

}  // namespace

void decode_exact_div(Line& line) { decode_either<Div, decode_integer_div>(line); }
void decode_exact_rcp(Line& line) { decode_float<Rcp>(line); }
void decode_exact_sqrt(Line& line) { decode_float<Sqrt>(line); }

void add_floats(Table& table) {
    table["add"] = decode_either<Add, decode_integer_add>;
    table["sub"] = decode_either<Sub, decode_integer_sub>;
    table["mul"] = decode_either<Mul, decode_integer_mul>;
    table["mad"] = decode_either<Fma, decode_integer_mad>;
    table["fma"] = decode_float<Fma>;
    table["min"] = decode_either<Extreme<false>, decode_integer_min>;
    table["max"] = decode_either<Extreme<true>, decode_integer_max>;
    table["abs"] = [](Line& line) {
        if (is_of_floats(line))
            decode_sign<false>(line);
        else
            decode_integer_abs(line);
    };
    table["neg"] = [](Line& line) {
        if (is_of_floats(line))
            decode_sign<true>(line);
        else
            decode_integer_neg(line);
    };
    table["copysign"] = [](Line& line) {
        const Type type = line.take_type();
        line.emit(type == Type::f32   ? run_copysign<float>
                  : type == Type::f64 ? run_copysign<double>
                                      : nullptr,
                  type, 2);
    };
}

}  // namespace polder::ptx
