// Comparisons into predicates (setp) and registers (set), and choices (selp, slct).
#include "floats.h"
#include "operation.h"

#include <array>
#include <utility>

namespace polder::ptx {
namespace {

// The ordered comparisons are false when an operand is a NaN, the unordered ones (equ, neu, ...) are true.
enum class Relation : uint8_t { eq, ne, lt, le, gt, ge, equ, neu, ltu, leu, gtu, geu, num, nan };
constexpr std::array<std::string_view, 14> relation_names{"eq",  "ne",  "lt",  "le",  "gt",  "ge",  "equ",
                                                          "neu", "ltu", "leu", "gtu", "geu", "num", "nan"};

template <Relation relation, class T>
bool holds(T a, T b) {
    bool is_unordered = false;
    if constexpr (std::is_floating_point_v<T>)
        is_unordered = std::isnan(a) || std::isnan(b);
    switch (relation) {
    case Relation::eq: return a == b;
    case Relation::ne: return a != b && !is_unordered;
    case Relation::lt: return a < b;
    case Relation::le: return a <= b;
    case Relation::gt: return a > b;
    case Relation::ge: return a >= b;
    case Relation::equ: return a == b || is_unordered;
    case Relation::neu: return a != b || is_unordered;
    case Relation::ltu: return a < b || is_unordered;
    case Relation::leu: return a <= b || is_unordered;
    case Relation::gtu: return a > b || is_unordered;
    case Relation::geu: return a >= b || is_unordered;
    case Relation::num: return !is_unordered;
    case Relation::nan: return is_unordered;
    }
    return false;
}

// How a third operand, a predicate, is combined with the result.
enum class Combination : int64_t { none, both, either, one };

bool combined(bool result, bool with, Combination how) {
    switch (how) {
    case Combination::both: return result && with;
    case Combination::either: return result || with;
    case Combination::one: return result != with;
    default: return result;
    }
}

constexpr int64_t flushing = 16;
constexpr int64_t inverts_predicate = 32;
constexpr int64_t of_floats = 64;  // set.f32: 1.0 instead of all bits

// d|e = a ? b: e is the comparison's complement, combined likewise. The slot of e is in `count`.
template <class T, Relation relation>
bool run_setp(Thread& t, const Instruction& i) {
    T a = t.get<T>(i.a), b = t.get<T>(i.b);
    if constexpr (std::is_same_v<T, float>)
        if ((i.immediate & flushing) != 0) {
            a = flush(a);
            b = flush(b);
        }
    const bool result = holds<relation>(a, b);
    const auto how = static_cast<Combination>(i.immediate & 3);
    const bool with = t.get<uint8_t>(i.c) != ((i.immediate & inverts_predicate) != 0 ? 1 : 0);
    t.set(i.count, static_cast<uint8_t>(combined(!result, with, how)));
    t.set(i.d, static_cast<uint8_t>(combined(result, with, how)));
    return true;
}
template <class T, Relation relation>
bool run_plain_setp(Thread& t, const Instruction& i) {
    t.set(i.d, static_cast<uint8_t>(holds<relation>(t.get<T>(i.a), t.get<T>(i.b))));
    return true;
}
template <class Format, Relation relation>
bool run_narrow_setp(Thread& t, const Instruction& i) {
    auto a = t.get<Format>(i.a), b = t.get<Format>(i.b);
    if ((i.immediate & flushing) != 0) {
        a = a.flushed();
        b = b.flushed();
    }
    const bool result = holds<relation>(a.wide(), b.wide());
    const auto how = static_cast<Combination>(i.immediate & 3);
    const bool with = t.get<uint8_t>(i.c) != ((i.immediate & inverts_predicate) != 0 ? 1 : 0);
    t.set(i.count, static_cast<uint8_t>(combined(!result, with, how)));
    t.set(i.d, static_cast<uint8_t>(combined(result, with, how)));
    return true;
}
// A comparison of two halves: d is the result of the lower one and e that of the upper one.
template <class Format, Relation relation>
bool run_two_setp(Thread& t, const Instruction& i) {
    const auto a = t.get<uint32_t>(i.a), b = t.get<uint32_t>(i.b);
    const auto half = [](uint32_t of, unsigned shift) { return Format{static_cast<uint16_t>(of >> shift)}.wide(); };
    const bool low = holds<relation>(half(a, 0), half(b, 0)), high = holds<relation>(half(a, 16), half(b, 16));
    t.set(i.count, static_cast<uint8_t>(high));
    t.set(i.d, static_cast<uint8_t>(low));
    return true;
}

struct Handlers {
    Handler plain;
    Handler full;
};

template <class T, size_t... relations>
Handlers of_type(size_t relation, std::index_sequence<relations...>) {
    static constexpr std::array<Handler, sizeof...(relations)> plain{run_plain_setp<T, Relation{relations}>...};
    static constexpr std::array<Handler, sizeof...(relations)> full{run_setp<T, Relation{relations}>...};
    return {plain[relation], full[relation]};
}
template <class Format, size_t... relations>
Handlers of_narrow(size_t relation, bool is_two, std::index_sequence<relations...>) {
    static constexpr std::array<Handler, sizeof...(relations)> one{run_narrow_setp<Format, Relation{relations}>...};
    static constexpr std::array<Handler, sizeof...(relations)> two{run_two_setp<Format, Relation{relations}>...};
    return {nullptr, is_two ? two[relation] : one[relation]};
}

Handlers handlers_of(Type type, size_t relation) {
    constexpr auto all = std::make_index_sequence<relation_names.size()>();
    // lo, ls, hi and hs of unsigned integers are named like these in LLVM's output.
    switch (type) {
    case Type::b16:
    case Type::u16: return of_type<uint16_t>(relation, all);
    case Type::b32:
    case Type::u32: return of_type<uint32_t>(relation, all);
    case Type::b64:
    case Type::u64: return of_type<uint64_t>(relation, all);
    case Type::s16: return of_type<int16_t>(relation, all);
    case Type::s32: return of_type<int32_t>(relation, all);
    case Type::s64: return of_type<int64_t>(relation, all);
    case Type::f32: return of_type<float>(relation, all);
    case Type::f64: return of_type<double>(relation, all);
    case Type::f16:
    case Type::f16x2: return of_narrow<Half>(relation, type == Type::f16x2, all);
    case Type::bf16:
    case Type::bf16x2: return of_narrow<BFloat>(relation, type == Type::bf16x2, all);
    default: return {};
    }
}

// The relation's index; none when there is no such relation for `type`.
std::optional<size_t> take_relation(Line& line) {
    static constexpr std::array<std::pair<std::string_view, size_t>, 4> of_unsigned{
        {{"lo", 2}, {"ls", 3}, {"hi", 4}, {"hs", 5}}};
    for (size_t relation = 0; relation < relation_names.size(); ++relation)
        if (line.take(relation_names[relation]))
            return relation;
    for (const auto& [name, relation] : of_unsigned)
        if (line.take(name))
            return relation;
    return std::nullopt;
}

Combination take_combination(Line& line) {
    const std::string_view name = line.take_one({"and", "or", "xor"});
    return name.empty()    ? Combination::none
           : name == "and" ? Combination::both
           : name == "or"  ? Combination::either
                           : Combination::one;
}

void decode_setp(Line& line) {
    const auto relation = take_relation(line);
    const Combination how = take_combination(line);
    const bool flushes = line.take("ftz");
    const Type type = line.take_type();
    if (!relation || (*relation > 5 && !is_float(type) && type != Type::f16x2 && type != Type::bf16x2))
        return line.refuse();
    const Handlers handlers = handlers_of(type, *relation);
    if (handlers.full == nullptr || line.count() != (how == Combination::none ? 3 : 4))
        return line.refuse();
    const Operand& results = line.operand(0);
    const bool is_pair = results.kind == Operand::Kind::pair;
    Instruction made{.run = handlers.full,
                     .d = line.target(is_pair ? results.parts[0] : results, Type::pred),
                     .a = line.source(1, type),
                     .b = line.source(2, type),
                     .immediate = static_cast<int64_t>(how) | (flushes ? flushing : 0),
                     .count = is_pair ? line.target(results.parts[1], Type::pred) : line.function().sink()};
    if (how != Combination::none) {
        Operand with = line.operand(3);
        made.immediate |= with.is_inverted ? inverts_predicate : 0;
        with.is_inverted = false;
        made.c = line.source(with, Type::pred);
    } else if (!is_pair && !flushes && handlers.plain != nullptr) {
        made.run = handlers.plain;
    }
    line.emit(made);
}

// set: the comparison is one of setp's, then all bits or 1.0 in a register.
bool run_spread(Thread& t, const Instruction& i) {
    const bool is_true = t.get<uint8_t>(i.a) != 0;
    t.set(i.d, !is_true ? 0u : i.immediate == of_floats ? 0x3f800000u : ~0u);
    return true;
}
void decode_set(Line& line) {
    const auto relation = take_relation(line);
    const bool flushes = line.take("ftz");
    const Type result = line.take_type(), type = line.take_type();
    const Handlers handlers = relation ? handlers_of(type, *relation) : Handlers{};
    if (handlers.full == nullptr || bytes_of(type) < 2 || bytes_of(result) != 4 || line.count() != 3)
        return line.refuse();
    const uint32_t sink = line.function().sink();
    line.emit({.run = handlers.full,
               .d = sink,
               .a = line.source(1, type),
               .b = line.source(2, type),
               .immediate = flushes ? flushing : 0,
               .count = line.target(0, result)});
    line.emit(
        {.run = run_spread, .d = line.target(0, result), .a = sink, .immediate = result == Type::f32 ? of_floats : 0});
}

template <class T>
bool run_selp(Thread& t, const Instruction& i) {
    t.set(i.d, t.get<uint8_t>(i.c) != 0 ? t.get<T>(i.a) : t.get<T>(i.b));
    return true;
}
void decode_selp(Line& line) {
    const Type type = line.take_type();
    if (line.count() != 4 || bytes_of(type) < 2)
        return line.refuse();
    Operand by = line.operand(3);
    const bool is_inverted = std::exchange(by.is_inverted, false);
    line.emit({.run = bytes_of(type) == 2   ? run_selp<uint16_t>
                      : bytes_of(type) == 4 ? run_selp<uint32_t>
                                            : run_selp<uint64_t>,
               .d = line.target(0, type),
               .a = line.source(is_inverted ? 2 : 1, type),
               .b = line.source(is_inverted ? 1 : 2, type),
               .c = line.source(by, Type::pred)});
}

// Selects by the sign of c: a when c is not negative.
template <class T, class By>
bool run_slct(Thread& t, const Instruction& i) {
    t.set(i.d, t.get<By>(i.c) >= By{0} ? t.get<T>(i.a) : t.get<T>(i.b));
    return true;
}
void decode_slct(Line& line) {
    const bool flushes = line.take("ftz");
    const Type type = line.take_type(), by = line.take_type();
    if (line.count() != 4 || (by != Type::s32 && by != Type::f32) || bytes_of(type) < 4 || flushes)
        return line.refuse();
    const bool is_wide = bytes_of(type) == 8;
    line.emit({.run = by == Type::s32 ? (is_wide ? run_slct<uint64_t, int32_t> : run_slct<uint32_t, int32_t>)
                                      : (is_wide ? run_slct<uint64_t, float> : run_slct<uint32_t, float>),
               .d = line.target(0, type),
               .a = line.source(1, type),
               .b = line.source(2, type),
               .c = line.source(3, by)});
}

// testp: what kind of number it is.
template <class T>
bool run_testp(Thread& t, const Instruction& i) {
    const int kind = std::fpclassify(t.get<T>(i.a));
    static constexpr int of_names[] = {FP_INFINITE, FP_NAN, FP_NORMAL, FP_SUBNORMAL};
    bool result;
    if (i.immediate == 4)
        result = kind != FP_INFINITE && kind != FP_NAN;
    else if (i.immediate == 5)
        result = kind != FP_NAN;
    else
        result = kind == of_names[i.immediate];
    t.set(i.d, static_cast<uint8_t>(result));
    return true;
}
void decode_testp(Line& line) {
    int64_t which = 0;
    for (const char* name : {"infinite", "notanumber", "normal", "subnormal", "finite", "number"}) {
        if (line.take(name)) {
            const Type type = line.take_type();
            if (line.count() != 2 || (type != Type::f32 && type != Type::f64))
                return line.refuse();
            return line.emit({.run = type == Type::f32 ? run_testp<float> : run_testp<double>,
                              .d = line.target(0, Type::pred),
                              .a = line.source(1, type),
                              .immediate = which});
        }
        ++which;
    }
    line.refuse();
}

}  // namespace

void add_comparisons(Table& table) {
    table["setp"] = decode_setp;
    table["set"] = decode_set;
    table["selp"] = decode_selp;
    table["slct"] = decode_slct;
    table["testp"] = decode_testp;
}

}  // namespace polder::ptx
