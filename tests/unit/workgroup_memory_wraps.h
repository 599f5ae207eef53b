// Statements of random kernels (workgroup_memory_program.h) whose result shows whether one rule of the vectorizer holds: numbers that
// wrap around between two lanes, and accesses of one structure with another access between them whose place LLVM does not know.
#pragma once

#include "workgroup_memory_accesses.h"

#include <algorithm>

namespace polder::compiler::workgroup::test {

class WrapMaker : public AccessMaker {
public:
    using AccessMaker::AccessMaker;

protected:
    // (id + n * step) * factor: for one n, some work-items are below the end of the numbers of 31 or 32 bits and some above. LLVM
    // does not know n, so that it cannot distribute the product.
    Number far_product(NumberType type) {
        const NumberType between = pick(2) ? uint_ : int_;
        const int64_t end = far_end(), factor = 3 + pick(6), away = pick(60), n = far_n();
        const int64_t step = ((end + factor - 1) / factor - away) / n;
        const uint32_t d = pick(8) == 0 ? 1 : 0;
        return {"((" + std::string(type.name) + ")(" + between.name + ")(((uint)get_global_id(" + number(d) +
                    ") + (uint)n * " + number(step) + "u) * " + number(factor) + "u))",
                [=](const World& w, const MemoryItem& m) {
                    return type.wrap(between.wrap((static_cast<int64_t>(m.global[d]) + w.n * step) * factor));
                },
                type, std::min(limit_of(type), limit_of(between))};
    }

    Number far(NumberType type) { return pick(2) ? far_sum(type) : far_product(type); }

    // All 64 bits of a number that wraps around, as a value; no place could show those above the buffer's end.
    MemoryStatement keep_far() {
        const NumberType type = pick(2) ? long_ : ulong_;
        const Number a = far(type);
        if (pick(2))
            return on_each("v3 = (ulong)" + a.text + ";", [a](World& w, MemoryItem& m) { m.v[3] = a.value(w, m); });
        const Number b = far(type);
        return on_each("v3 ^= (ulong)" + a.text + " ^ (ulong)" + b.text + ";",
                       [a, b](World& w, MemoryItem& m) { m.v[3] ^= a.value(w, m) ^ b.value(w, m); });
    }

    MemoryStatement read_far() {
        const NumberType type = pick(2) ? long_ : ulong_;
        const Number at = far(type);
        const Element from = element();
        const std::string i = "i" + number(static_cast<int64_t>(names_++));
        return on_each("{ " + std::string(type.name) + " " + i + " = " + at.text + "; if (" + i + " >= 0 && " + i +
                           " < " + number(memory_elements) + ") " + from.text(i) + " }",
                       [from, at](World& w, MemoryItem& m) {
                           const int64_t place = at.value(w, m);
                           if (place >= 0 && place < memory_elements)
                               from.set(w, m, place);
                       });
    }

    // A number of 64 bits that is used itself, and its lower 32 bits: extended again at once (LLVM makes two shifts of that), or
    // subtracted from what is -1 for one n, so that the conversion stays and nothing overflows.
    MemoryStatement cut_to_32_bits() {
        const bool is_subtracted = pick(2);
        const int64_t end = is_subtracted ? int64_t{1} << 31 : far_end();
        const int64_t away = pick(60), stride = pick(2) ? 1 : 2 + pick(3);
        const int64_t n = is_subtracted ? 22 : far_n(), step = (end - away) / n;
        const uint32_t d = pick(8) == 0 ? 1 : 0;
        const NumberType narrow = is_subtracted || pick(2) ? int_ : uint_;
        const Element from = element();
        const std::string name = number(static_cast<int64_t>(names_++)), q = "q" + name, e = "e" + name;
        const std::string text = "{ long " + q + " = (long)get_global_id(" + number(d) + ") * " + number(stride) +
                                 " + (long)n * " + number(step) + "; long " + e + " = " +
                                 (is_subtracted ? "(n - 23) - " : "") + "(" + narrow.name + ")" + q + "; v3 = (ulong)" +
                                 q + " + 3 * (ulong)" + e + "; if (" + e + " >= 0 && " + e + " < " +
                                 number(memory_elements) + ") " + from.text(e) + " }";
        return on_each(text, [=](World& w, MemoryItem& m) {
            const int64_t whole = static_cast<int64_t>(m.global[d]) * stride + w.n * step;
            const int64_t part = is_subtracted ? (w.n - 23) - narrow.wrap(whole) : narrow.wrap(whole);
            m.v[3] = whole + 3 * part;
            if (part >= 0 && part < memory_elements)
                from.set(w, m, part);
        });
    }

    // A product that overflows only where the guard does not hold, so that LLVM promises that it does not.
    MemoryStatement guarded_product() {
        const int64_t factor = 2 + pick(7), limit = (int64_t{1} << 31) / factor, away = pick(60);
        const int64_t step = (limit + away) / 22;  // for the largest n
        const bool falls = pick(2);
        const uint32_t d = pick(8) == 0 ? 1 : 0;
        const std::string c = "c" + number(static_cast<int64_t>(names_++)),
                          id = "(int)get_global_id(" + number(d) + ")", far = "n * " + number(step);
        return on_each("{ int " + c + " = " + (falls ? far + " - " + id : id + " - " + far) + "; if (" + c + " >= -" +
                           number(limit) + " && " + c + " < " + number(limit) + ") v3 = (ulong)(long)(" + c + " * " +
                           number(factor) + ") + (ulong)longs[" + c + " & 63]; }",
                       [=](World& w, MemoryItem& m) {
                           const int64_t up = static_cast<int64_t>(m.global[d]) - w.n * step, value = falls ? -up : up;
                           if (value >= -limit && value < limit)
                               m.v[3] = value * factor + w.buffers.longs[static_cast<size_t>(value & 63)];
                       });
    }

    // A difference that wraps around exactly where the guard does not hold. Below `memory_elements` without another guard.
    MemoryStatement guarded_difference() {
        const int64_t step = pick(3) ? 1 : 1 + pick(4);
        const uint32_t d = pick(8) == 0 ? 1 : 0;
        const Element from = element();
        const std::string i = "i" + number(static_cast<int64_t>(names_++));
        return on_each("{ uint " + i + " = (uint)get_global_id(" + number(d) + ") * " + number(step) + "u; if (" + i +
                           " >= (uint)n) " + from.text(i + " - (uint)n") + " }",
                       [=](World& w, MemoryItem& m) {
                           const int64_t place = static_cast<int64_t>(m.global[d]) * step;
                           if (place >= w.n)
                               from.set(w, m, place - w.n);
                       });
    }

    // The work-item's own four elements of `out`: loads before and after a store whose place depends on the launch. Most
    // vectors have all work-items active, one has not.
    MemoryStatement store_between_loads() {
        const Place k = place_of_launch();
        const Number e = whole(int_, 1);
        const size_t first = pick(4), second = pick(4);
        const uint64_t but = pick(20);
        return on_each("if (get_local_id(0) != " + number(static_cast<int64_t>(but)) + ") { int a = " + own(first) +
                           "; out[at * 4 + " + k.text + "] = " + e.text + "; v0 = (a ^ " + own(second) + ") & 2047; }",
                       [=](World& w, MemoryItem& m) {
                           if (m.local[0] == but)
                               return;
                           int32_t* mine = &w.buffers.out[w.place(m) * 4];
                           const int32_t before = mine[first];
                           mine[k.of(w)] = static_cast<int32_t>(e.value(w, m));
                           m.v[0] = (before ^ mine[second]) & 2047;
                       });
    }

    // All four are stored, in any order, and between the stores one is loaded or stored whose place depends on the launch.
    MemoryStatement access_between_stores() {
        const Place k = place_of_launch();
        const Number e = whole(int_, 1);
        std::array<size_t, 4> order{0, 1, 2, 3};
        for (size_t i = 3; i > 0; --i)
            std::swap(order[i], order[pick(static_cast<uint32_t>(i) + 1)]);
        const size_t before = 1 + pick(3);
        const bool is_load = pick(2);
        std::string text = "{ int e = " + e.text + "; ";
        for (size_t i = 0; i < 4; ++i) {
            if (i == before)
                text += is_load ? "v0 = out[at * 4 + " + k.text + "] & 2047; " : "out[at * 4 + " + k.text + "] = n; ";
            text += own(order[i]) + " = e ^ " + number(static_cast<int64_t>(i)) + "; ";
        }
        return on_each(text + "}", [=](World& w, MemoryItem& m) {
            int32_t* mine = &w.buffers.out[w.place(m) * 4];
            const auto value = static_cast<int32_t>(e.value(w, m));
            for (size_t i = 0; i < 4; ++i) {
                if (i == before && is_load)
                    m.v[0] = mine[k.of(w)] & 2047;
                else if (i == before)
                    mine[k.of(w)] = w.n;
                mine[order[i]] = value ^ static_cast<int32_t>(i);
            }
        });
    }

    // Two of them as a vector, one of these again, and one of the others: LLVM keeps both stores to the one place.
    MemoryStatement store_twice() {
        const Number a = whole(int_, 1), b = whole(int_, 1);
        const size_t half = pick(2), again = half * 2 + pick(2), other = 2 - half * 2 + pick(2);
        return on_each("{ int a = " + a.text + ", b = " + b.text + "; ((global int2*)out)[at * 2 + " +
                           number(static_cast<int64_t>(half)) + "] = (int2)(a, b); " + own(again) + " = a ^ 1; " +
                           own(other) + " = b ^ 2; }",
                       [=](World& w, MemoryItem& m) {
                           int32_t* mine = &w.buffers.out[w.place(m) * 4];
                           const auto x = static_cast<int32_t>(a.value(w, m)), y = static_cast<int32_t>(b.value(w, m));
                           mine[half * 2] = x;
                           mine[half * 2 + 1] = y;
                           mine[again] = x ^ 1;
                           mine[other] = y ^ 2;
                       });
    }

    // A variable that takes only values that all work-items have in common: it varies only by control.
    MemoryStatement assign_common() {
        const uint32_t to = pick(2), from = pick(2), form = pick(3);
        const int64_t constant = pick(30);
        const std::string target = "u" + number(to) + " = ";
        switch (form) {
        case 0: return on_each(target + number(constant) + ";", [=](World&, MemoryItem& m) { m.u[to] = constant; });
        case 1:
            return on_each(target + "(n + " + number(constant) + ") & 31;",
                           [=](World& w, MemoryItem& m) { m.u[to] = (w.n + constant) & 31; });
        default:
            return on_each(target + "(u" + number(from) + " + " + number(constant | 1) + ") & 31;",
                           [=](World&, MemoryItem& m) { m.u[to] = (m.u[from] + (constant | 1)) & 31; });
        }
    }

    // What is the same for all work-items while they are in a loop, and differs after it, because they leave it at different times. A
    // loop that may have no round begins with a branch, and the variable differs where that branch's ways meet. A loop that has at least
    // one round has no such branch.
    MemoryStatement count_rounds() {
        const Number rounds = masked(whole(int_, 1), 7);
        const int64_t add = pick(30);
        const uint32_t u = pick(2);
        const int64_t rounds_min = pick(2);
        const std::string r = "r" + number(static_cast<int64_t>(names_++)), name = "u" + number(u);
        const std::string begin = "int " + r + " = " + rounds.text + ";",
                          step = name + " = (" + name + " * 5 + " + number(add) + ") & 31;";
        const std::string text = rounds_min == 0 ? "for (" + begin + " " + r + " > 0; --" + r + ") " + step
                                                 : "{ " + begin + " do " + step + " while (--" + r + " > 0); }";
        return on_each(text, [=](World& w, MemoryItem& m) {
            for (int64_t i = std::max(rounds.value(w, m), rounds_min); i > 0; --i)
                m.u[u] = (m.u[u] * 5 + add) & 31;
        });
    }

    // All work-items that get there take the same case, and the switch has all cases. The other work-items may get to another such switch.
    MemoryStatement switch_under_guard() {
        const uint64_t but = pick(3);
        const AllCases first = all_cases(), second = all_cases();
        const bool has_second = pick(2);
        return on_each("if (get_local_id(0) % 3 != " + number(static_cast<int64_t>(but)) + ") { " + first.text + " }" +
                           (has_second ? " else { " + second.text + " }" : ""),
                       [=](World& w, MemoryItem& m) {
                           if (m.local[0] % 3 != but)
                               first.run(w, m);
                           else if (has_second)
                               second.run(w, m);
                       });
    }

private:
    int64_t far_end() { return int64_t{1} << (pick(2) ? 31 : 32); }
    // The value of n in one of the launches that a test makes.
    int64_t far_n() { return pick(2) ? 3 : 22; }

    struct AllCases {
        std::string text;
        std::function<void(World&, MemoryItem&)> run;
    };
    AllCases all_cases() {
        const int64_t away = pick(4), change = 1 + pick(20);
        const Number e = whole(int_, 1);
        return {"switch ((n + " + number(away) + ") & 3) { case 0: " + own(0) + " = " + e.text +
                    "; break; case 1: v0 = ints[" + e.text + " & 1023] & 2047; break; case 2: " + own(1) +
                    " = n; break; case 3: v1 ^= " + number(change) + "; break; }",
                [=](World& w, MemoryItem& m) {
                    int32_t* mine = &w.buffers.out[w.place(m) * 4];
                    switch ((w.n + away) & 3) {
                    case 0: mine[0] = static_cast<int32_t>(e.value(w, m)); break;
                    case 1: m.v[0] = w.buffers.ints[static_cast<size_t>(e.value(w, m) & 1023)] & 2047; break;
                    case 2: mine[1] = w.n; break;
                    default: m.v[1] ^= change; break;
                    }
                }};
    }

    // Loads one element of a buffer.
    struct Element {
        Buffer from;
        [[nodiscard]] std::string text(const std::string& place) const {
            return std::string(from.is_real ? "f0 = " : "v2 = (long)") + from.name + "[" + place + "]" +
                   (from.is_real ? ";" : " & 1023;");
        }
        void set(World& w, MemoryItem& m, int64_t place) const {
            if (from.is_real)
                m.f[0] = static_cast<float>(from.get(w, place));
            else
                m.v[2] = from.get(w, place) & 1023;
        }
    };
    Element element() { return {buffer()}; }

    // A member of a structure that LLVM does not know.
    struct Place {
        int64_t away;
        std::string text;
        [[nodiscard]] size_t of(const World& w) const { return static_cast<size_t>((w.n + away) & 3); }
    };
    Place place_of_launch() {
        const int64_t away = pick(4);
        return {away, "((n + " + number(away) + ") & 3)"};
    }
    static std::string own(size_t member) { return "out[at * 4 + " + number(static_cast<int64_t>(member)) + "]"; }
};

}  // namespace polder::compiler::workgroup::test
