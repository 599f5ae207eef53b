// The processor's approximations. PTX bounds their errors; here they are computed in double and rounded, so they are better than on a
// GPU. Special values are as PTX defines them. div, rcp and sqrt with a direction of rounding are exact (floats.cpp).
#include "float_instructions.h"
#include "floats.h"
#include "operation.h"

namespace polder::ptx {
namespace {

struct Exp2 {
    static double of(double x, double) { return std::exp2(x); }
};
struct Log2 {
    static double of(double x, double) { return std::log2(x); }
};
struct Sin {
    static double of(double x, double) { return std::sin(x); }
};
struct Cos {
    static double of(double x, double) { return std::cos(x); }
};
struct Tanh {
    static double of(double x, double) { return std::tanh(x); }
};
struct Rsqrt {
    static double of(double x, double) { return 1 / std::sqrt(x); }
};
struct Sqrt {
    static double of(double x, double) { return std::sqrt(x); }
};
struct Rcp {
    static double of(double x, double) { return 1 / x; }
};
// .full divides over the full range; .approx returns 0 for divisors above 2^126, where a processor that multiplies with the reciprocal
// has none.
struct Div {
    static double of(double x, double y) { return x / y; }
};
struct DivOfSmall {
    static double of(double x, double y) {
        if (std::abs(y) > 0x1p126 && std::isfinite(y))
            return std::isinf(x) ? std::numeric_limits<double>::quiet_NaN()
                                 : std::copysign(0.0, x) * std::copysign(1.0, y);
        return x / y;
    }
};

template <class Operation, bool flushes>
bool run_approximate(Thread& t, const Instruction& i) {
    float a = t.get<float>(i.a), b = t.get<float>(i.b);
    if (flushes) {
        a = flush(a);
        b = flush(b);
    }
    const auto result = static_cast<float>(Operation::of(a, b));
    t.set(i.d, canonical(flushes ? flush(result) : result));
    return true;
}
template <class Operation>
bool run_approximate_double(Thread& t, const Instruction& i) {
    // The lower half of operand and result is not used.
    const auto upper = [](double x) { return std::bit_cast<double>(std::bit_cast<uint64_t>(x) >> 32 << 32); };
    t.set(i.d, upper(flush(Operation::of(flush(upper(t.get<double>(i.a))), 0))));
    return true;
}
template <class Format, class Operation>
bool run_approximate_narrow(Thread& t, const Instruction& i) {
    t.set(i.d, Format::of(Operation::of(t.get<Format>(i.a).wide(), 0), Round::nearest));
    return true;
}
template <class Format, class Operation>
bool run_approximate_two(Thread& t, const Instruction& i) {
    const auto a = t.get<uint32_t>(i.a);
    uint32_t both = 0;
    for (const unsigned shift : {0u, 16u})
        both |=
            uint32_t{
                Format::of(Operation::of(Format{static_cast<uint16_t>(a >> shift)}.wide(), 0), Round::nearest).bits}
            << shift;
    t.set(i.d, both);
    return true;
}

template <class Operation>
void decode_unary(Line& line) {
    if (!line.take("approx"))
        return line.refuse();
    const bool flushes = line.take("ftz");
    const Type type = line.take_type();
    Handler handler = nullptr;
    switch (type) {
    case Type::f32: handler = flushes ? run_approximate<Operation, true> : run_approximate<Operation, false>; break;
    case Type::f64: handler = flushes ? run_approximate_double<Operation> : nullptr; break;
    case Type::f16: handler = run_approximate_narrow<Half, Operation>; break;
    case Type::bf16: handler = run_approximate_narrow<BFloat, Operation>; break;
    case Type::f16x2: handler = run_approximate_two<Half, Operation>; break;
    case Type::bf16x2: handler = run_approximate_two<BFloat, Operation>; break;
    default: break;
    }
    line.emit(handler, type, 1);
}

void decode_division(Line& line) {
    const std::string_view how = line.take_one({"full", "approx"});
    if (how.empty())
        return decode_exact_div(line);
    const bool flushes = line.take("ftz");
    const Type type = line.take_type();
    if (type != Type::f32)
        return line.refuse();
    if (how == "full")
        line.emit(flushes ? run_approximate<Div, true> : run_approximate<Div, false>, type, 2);
    else
        line.emit(flushes ? run_approximate<DivOfSmall, true> : run_approximate<DivOfSmall, false>, type, 2);
}

}  // namespace

void add_approximations(Table& table) {
    table["div"] = decode_division;
    table["rcp"] = [](Line& line) {
        if (line.has("approx"))
            decode_unary<Rcp>(line);
        else
            decode_exact_rcp(line);
    };
    table["sqrt"] = [](Line& line) {
        if (line.has("approx"))
            decode_unary<Sqrt>(line);
        else
            decode_exact_sqrt(line);
    };
    table["rsqrt"] = decode_unary<Rsqrt>;
    table["ex2"] = decode_unary<Exp2>;
    table["lg2"] = decode_unary<Log2>;
    table["sin"] = decode_unary<Sin>;
    table["cos"] = decode_unary<Cos>;
    table["tanh"] = decode_unary<Tanh>;
}

}  // namespace polder::ptx
