// The expressions of random kernels (workgroup_memory_program.h): each with its OpenCL C and what it computes.
#pragma once

#include "math/half.h"
#include "workgroup_memory_program.h"

#include <algorithm>

namespace polder::compiler::workgroup::test {

inline constexpr NumberType narrow_types[] = {{"char", 8, true},     {"uchar", 8, false}, {"short", 16, true},
                                              {"ushort", 16, false}, {"int", 32, true},   {"uint", 32, false},
                                              {"long", 64, true},    {"ulong", 64, false}};
inline constexpr NumberType int_ = narrow_types[4], uint_ = narrow_types[5], long_ = narrow_types[6],
                            ulong_ = narrow_types[7];
inline constexpr NumberType variable_types[] = {int_, uint_, long_, ulong_, narrow_types[0], narrow_types[3]};

// A constant table of a random kernel.
struct ConstantNumbers {
    const char *type, *name;
    uint32_t size, index_bits;  // 2^index_bits is at most the size

    static constexpr int64_t limit = 113;
    static int64_t element(int64_t place) { return (place * place * 5 + place * 3 + 1) % limit; }
};
inline constexpr ConstantNumbers constant_numbers[] = {
    {"uchar", "table_of_20_bytes", 20, 4}, {"uchar", "table_of_bytes", 250, 7}, {"short", "table_of_shorts", 70, 6},
    {"int", "table_of_8_words", 8, 3},     {"uint", "table_of_words", 37, 5},   {"long", "table_of_16_longs", 16, 4},
    {"ulong", "table_of_longs", 40, 5}};

struct World;
// An expression's value for one work-item.
using Value = std::function<int64_t(const World&, const MemoryItem&)>;

struct Number {
    std::string text;
    Value value;
    NumberType type;
    int64_t limit = 0;  // of the absolute value, where the type is signed
};

struct Real {
    std::string text;
    std::function<float(const World&, const MemoryItem&)> value;
    int64_t limit = 0;  // whole numbers, of at most this absolute value
};

// One work-group.
struct World {
    const Range& range;
    int32_t n;
    MemoryBuffers& buffers;
    std::vector<MemoryItem> items;
    std::vector<int64_t> shared;
    std::array<uint64_t, 2> size{};

    [[nodiscard]] uint64_t place(const MemoryItem& item) const {
        return item.global[1] * range.global[0] + item.global[0];
    }
};

inline std::string number(int64_t value) { return std::to_string(value); }

// No two operands of one expression, and no two arguments of one call, may both ask for random numbers: compilers choose their order.
class ExpressionMaker {
public:
    explicit ExpressionMaker(uint32_t seed) : random_(seed), away_(pick(20)) {}

protected:
    uint32_t pick(uint32_t below) { return static_cast<uint32_t>(random_() % below); }

    // Whole numbers ------------------------------------------------------------------------------

    NumberType arithmetic_type() {
        constexpr NumberType all[] = {int_, int_, int_, uint_, uint_, long_, ulong_};
        return all[pick(7)];
    }

    static Number cast(Number from, NumberType type) {
        const bool fits =
            type.bits == 64 || (from.type.is_signed && type.is_signed && from.limit < int64_t{1} << (type.bits - 1));
        const int64_t limit = from.type.is_signed && fits ? from.limit : limit_of(type);
        return {"(" + std::string(type.name) + ")" + from.text,
                [value = from.value, type](const World& w, const MemoryItem& m) { return type.wrap(value(w, m)); },
                type,
                from.type.is_signed || from.type.bits < type.bits ? std::min(limit, limit_of(type)) : limit_of(type)};
    }
    static int64_t limit_of(NumberType type) {
        return type.bits == 64 ? INT64_MAX : int64_t{1} << (type.bits - (type.is_signed ? 1 : 0));
    }

    Number leaf(NumberType type) {
        const auto made = [&](const std::string& text, int64_t limit, Value value) {
            return Number{"(" + std::string(type.name) + ")" + text,
                          [value, type](const World& w, const MemoryItem& m) { return type.wrap(value(w, m)); }, type,
                          std::min(limit, limit_of(type))};
        };
        const uint32_t d = pick(2);
        switch (pick(10)) {
        case 9: return made("u" + number(d), 64, [d](const World&, const MemoryItem& m) { return m.u[d]; });
        case 0: {
            const int64_t constant = pick(2) ? pick(9) : pick(70);
            return made(number(constant), constant, [constant](const World&, const MemoryItem&) { return constant; });
        }
        case 1:
        case 2:
            return made("get_global_id(" + number(d) + ")", 1024,
                        [d](const World&, const MemoryItem& m) { return static_cast<int64_t>(m.global[d]); });
        case 3:
            return made("get_local_id(" + number(d) + ")", 1024,
                        [d](const World&, const MemoryItem& m) { return static_cast<int64_t>(m.local[d]); });
        case 4: return made("n", 64, [](const World& w, const MemoryItem&) { return int64_t{w.n}; });
        case 5:
            if (loops_ > 0) {
                const uint32_t loop = pick(loops_);
                return made("t" + number(loop), 8, [loop](const World&, const MemoryItem& m) { return m.t[loop]; });
            }
            [[fallthrough]];
        default: {
            const uint32_t v = pick(6);
            const NumberType its = variable_types[v];
            const int64_t limit = its.bits >= 32 && its.is_signed ? 4096
                                  : its.bits < 32                 ? limit_of(its)
                                                                  : limit_of(type);
            return made("v" + number(v), limit, [v](const World&, const MemoryItem& m) { return m.v[v]; });
        }
        }
    }

    // Small enough for any operation.
    static Number masked(Number from, int64_t mask) {
        return {"(" + from.text + " & " + number(mask) + ")",
                [value = from.value, mask](const World& w, const MemoryItem& m) { return value(w, m) & mask; },
                from.type, mask};
    }

    // An element of a constant table, at the place that an expression gives.
    Number looked_up(NumberType type, int depth) {
        const ConstantNumbers& table = constant_numbers[pick(std::size(constant_numbers))];
        const int64_t mask = (int64_t{1} << (1 + pick(table.index_bits))) - 1;
        const int64_t away = pick(table.size - static_cast<uint32_t>(mask));
        const bool is_moved = pick(2) == 1;  // (table + away)[index], else table[index + away]
        const Number index = masked(whole(arithmetic_type(), depth - 1), mask);
        const std::string text = is_moved
                                     ? "(" + std::string(table.name) + " + " + number(away) + ")[" + index.text + "]"
                                     : std::string(table.name) + "[" + index.text + " + " + number(away) + "]";
        return {"((" + std::string(type.name) + ")" + text + ")",
                [value = index.value, away](const World& w, const MemoryItem& m) {
                    return ConstantNumbers::element(value(w, m) + away);
                },
                type, ConstantNumbers::limit};
    }

    static int64_t sum_of_limits(const Number& a, const Number& b) {
        return a.limit > INT64_MAX - b.limit ? INT64_MAX : a.limit + b.limit;
    }

    // Near the end of the 32-bit numbers or around zero, converted to a narrower type and back: some work-items' sums wrap around.
    Number far_sum(NumberType type) {
        constexpr NumberType sums[] = {uint_, long_, ulong_}, narrow[] = {int_, uint_, uint_, narrow_types[2]};
        constexpr int64_t ends[] = {0x7fffffff, 0xffffffff, 0};
        const NumberType sum = sums[pick(3)], between = narrow[pick(4)];
        const uint32_t d = pick(4) == 0 ? 1 : 0;
        const int64_t end = ends[pick(3)], away = pick(60), by_n = pick(2) ? 0x10000001 : 0;
        const int64_t from = end - away;
        const int64_t step = pick(2) ? 1 : 1 + pick(5), times = pick(2) ? 1 : 1 + pick(4);
        const std::string in_sum = "(" + std::string(sum.name) + ")";
        const std::string text = "(" + in_sum + "get_global_id(" + number(d) + ") * " + number(step) + " + " + in_sum +
                                 number(from) + " + " + in_sum + "n * " + number(by_n) + ") * " + number(times);
        return {"((" + std::string(type.name) + ")(" + between.name + ")(" + text + "))",
                [=](const World& w, const MemoryItem& m) {
                    const int64_t all = (static_cast<int64_t>(m.global[d]) * step + from + w.n * by_n) * times;
                    return type.wrap(between.wrap(sum.wrap(all)));
                },
                type, std::min(limit_of(type), limit_of(between))};
    }

    Number whole(NumberType type, int depth) {
        if (depth == 0 || pick(4) == 0)
            return leaf(type);
        if (has_tables_ && pick(3) == 0)
            return looked_up(type, depth);
        if (pick(10) == 0)
            return far_sum(type);
        if (pick(6) == 0)
            return cast(whole(arithmetic_type(), depth - 1), type);
        if (pick(12) == 0) {
            const NumberType narrow = narrow_types[pick(4)];
            return cast(cast(whole(arithmetic_type(), depth - 1), narrow), type);
        }
        Number a = whole(type, depth - 1), b = whole(type, depth - 1);
        const auto both = [&](const char* op, int64_t limit, auto compute) {
            return Number{"(" + a.text + " " + op + " " + b.text + ")",
                          [x = a.value, y = b.value, type, compute](const World& w, const MemoryItem& m) {
                              return type.wrap(static_cast<int64_t>(
                                  compute(static_cast<uint64_t>(x(w, m)), static_cast<uint64_t>(y(w, m)))));
                          },
                          type, limit};
        };
        const int64_t most = type.bits == 32 ? int64_t{1} << 30 : int64_t{1} << 60;
        const auto keep_small = [&](int64_t each) {
            if (!type.is_signed)
                return;
            if (a.limit > each)
                a = masked(a, 1023);
            if (b.limit > each)
                b = masked(b, 1023);
        };
        switch (pick(11)) {
        case 0:
        case 1:
        case 2:
            keep_small(most / 2);
            return both("+", sum_of_limits(a, b), [](uint64_t x, uint64_t y) { return x + y; });
        case 3:
        case 4:
            keep_small(most / 2);
            return both("-", sum_of_limits(a, b), [](uint64_t x, uint64_t y) { return x - y; });
        case 5:
        case 6: {
            const int64_t factor = 1 + pick(pick(2) ? 5 : 40);
            b = {number(factor), [factor](const World&, const MemoryItem&) { return factor; }, type, factor};
            keep_small(most / 64);
            return both("*", type.is_signed ? a.limit * factor : INT64_MAX,
                        [](uint64_t x, uint64_t y) { return x * y; });
        }
        case 7: return masked(a, pick(2) ? 63 : 2047);
        case 8: return both("^", type.is_signed ? limit_of(type) : 0, [](uint64_t x, uint64_t y) { return x ^ y; });
        case 9: {
            // The divisor is not zero, and often the same for all work-items.
            a = masked(a, 4095);
            if (pick(2))
                b = {"(" + std::string(type.name) + ")(n + 3)",
                     [](const World& w, const MemoryItem&) { return int64_t{w.n} + 3; }, type, 70};
            b = masked(b, 31);
            b = {"(" + b.text + " + 1)", [y = b.value](const World& w, const MemoryItem& m) { return y(w, m) + 1; },
                 type, 32};
            return pick(2) ? both("/", 4095, [](uint64_t x, uint64_t y) { return x / y; })
                           : both("%", 4095, [](uint64_t x, uint64_t y) { return x % y; });
        }
        default: {
            const Number condition = comparison(depth - 1);
            return Number{"(" + condition.text + " ? " + a.text + " : " + b.text + ")",
                          [c = condition.value, x = a.value, y = b.value](const World& w, const MemoryItem& m) {
                              return c(w, m) ? x(w, m) : y(w, m);
                          },
                          type, std::max(a.limit, b.limit)};
        }
        }
    }

    Number comparison(int depth) {
        const NumberType type = arithmetic_type();
        const Number a = whole(type, depth), b = whole(type, pick(2) ? 0 : depth);
        const auto made = [&](const char* op, auto compare) {
            return Number{"(" + a.text + " " + op + " " + b.text + ")",
                          [x = a.value, y = b.value, type, compare](const World& w, const MemoryItem& m) -> int64_t {
                              const int64_t left = x(w, m), right = y(w, m);
                              return type.is_signed
                                         ? compare(left, right)
                                         : compare(static_cast<uint64_t>(left), static_cast<uint64_t>(right));
                          },
                          int_, 1};
        };
        switch (pick(4)) {
        case 0: return made("<", [](auto x, auto y) { return x < y; });
        case 1: return made(">=", [](auto x, auto y) { return x >= y; });
        case 2: return made("!=", [](auto x, auto y) { return x != y; });
        default: return made(">", [](auto x, auto y) { return x > y; });
        }
    }

    // The same for all work-items of a launch.
    Number uniform_comparison() {
        const int64_t bound = pick(9);
        return {"(n > " + number(bound) + ")",
                [bound](const World& w, const MemoryItem&) { return int64_t{w.n > bound}; }, int_, 1};
    }

    // Floating point: whole numbers that a float holds exactly -------------------------------------

    Real real(int depth) {
        if (depth == 0 || pick(3) == 0) {
            if (pick(2)) {
                const uint32_t f = pick(2);
                return {"f" + number(f), [f](const World&, const MemoryItem& m) { return m.f[f]; }, 4095};
            }
            const Number from = masked(whole(int_, 1), 255);
            return {
                "(float)" + from.text,
                [value = from.value](const World& w, const MemoryItem& m) { return static_cast<float>(value(w, m)); },
                255};
        }
        Real a = real(depth - 1), b = real(depth - 1);
        const auto made = [&](const char* op, int64_t limit, auto compute) {
            return Real{"(" + a.text + " " + op + " " + b.text + ")",
                        [x = a.value, y = b.value, compute](const World& w, const MemoryItem& m) {
                            return compute(x(w, m), y(w, m));
                        },
                        limit};
        };
        if (a.limit + b.limit < 30000 && pick(4) == 0)
            return in_halves(a, b);
        switch (pick(4)) {
        case 0: return made("+", a.limit + b.limit, [](float x, float y) { return x + y; });
        case 1: return made("-", a.limit + b.limit, [](float x, float y) { return x - y; });
        case 2: {
            const int64_t factor = 2 + pick(3);
            b = {number(factor) + ".0f",
                 [factor](const World&, const MemoryItem&) { return static_cast<float>(factor); }, factor};
            return made("*", a.limit * factor, [](float x, float y) { return x * y; });
        }
        default: {
            Real result{"(" + a.text + " < " + b.text + " ? " + b.text + " : " + a.text + ")",
                        [x = a.value, y = b.value](const World& w, const MemoryItem& m) {
                            return x(w, m) < y(w, m) ? y(w, m) : x(w, m);
                        },
                        std::max(a.limit, b.limit)};
            return result;
        }
        }
    }

    // Rounded to a half three times; whole numbers stay whole. Each rounding adds at most 16.
    Real in_halves(const Real& a, const Real& b) {
        return {"(float)((half)" + a.text + " + (half)" + b.text + ")",
                [x = a.value, y = b.value](const World& w, const MemoryItem& m) {
                    return static_cast<float>(Half(Half(x(w, m)) + Half(y(w, m))));
                },
                a.limit + b.limit + 48};
    }

    std::mt19937 random_;
    const int64_t away_;  // one for the program, so that no two work-items write to one place of `shifted`
    bool has_tables_ = false;
    uint32_t loops_ = 0;
    uint32_t names_ = 0;
};

}  // namespace polder::compiler::workgroup::test
