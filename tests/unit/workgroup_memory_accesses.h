// The statements of random kernels (workgroup_memory_program.h), and those of them that access memory.
#pragma once

#include "workgroup_memory_expressions.h"

namespace polder::compiler::workgroup::test {

using Mask = std::vector<bool>;
struct LoopMasks {
    Mask left;  // by break
};

struct MemoryStatement {
    // OpenCL C with %1, %2 in place of the bodies.
    std::string text;
    std::vector<MemoryBlock> bodies{};
    bool is_there = true;
    bool may_open = false, is_open = false;  // only the bodies, one after the other
    // Runs for the work-items in the mask; removes those that leave it.
    std::function<void(World&, Mask&, LoopMasks*)> run{};
};

inline void run_block(const MemoryBlock& block, World& world, Mask& active, LoopMasks* loop) {
    for (const auto& statement : block) {
        if (!statement->is_there)
            continue;
        if (!statement->is_open)
            statement->run(world, active, loop);
        else
            for (const MemoryBlock& body : statement->bodies)
                run_block(body, world, active, loop);
    }
}

inline void each(World& world, const Mask& active, const std::function<void(MemoryItem&)>& action) {
    for (size_t i = 0; i < world.items.size(); ++i)
        if (active[i])
            action(world.items[i]);
}

class AccessMaker : public ExpressionMaker {
public:
    using ExpressionMaker::ExpressionMaker;

protected:
    static MemoryStatement on_each(std::string text, std::function<void(World&, MemoryItem&)> action) {
        MemoryStatement result{std::move(text)};
        result.run = [action](World& w, Mask& active, LoopMasks*) {
            each(w, active, [&](MemoryItem& m) { action(w, m); });
        };
        return result;
    }

    struct Buffer {
        const char* name;
        const char* type;
        int64_t bytes;  // of an element
        std::function<int64_t(const World&, int64_t)> get;
        bool is_real;
    };

    Buffer buffer() {
        switch (pick(5)) {
        case 0:
            return {"chars", "char", 1,
                    [](const World& w, int64_t i) { return int64_t{w.buffers.chars[static_cast<size_t>(i)]}; }, false};
        case 1:
            return {"shorts", "ushort", 2,
                    [](const World& w, int64_t i) { return int64_t{w.buffers.shorts[static_cast<size_t>(i)]}; }, false};
        case 2:
            return {"longs", "long", 8,
                    [](const World& w, int64_t i) { return w.buffers.longs[static_cast<size_t>(i)]; }, false};
        case 3:
            return {"floats", "float", 4,
                    [](const World& w, int64_t i) {
                        return static_cast<int64_t>(w.buffers.floats[static_cast<size_t>(i)]);
                    },
                    true};
        default:
            return {"ints", "int", 4,
                    [](const World& w, int64_t i) { return int64_t{w.buffers.ints[static_cast<size_t>(i)]}; }, false};
        }
    }

    // An index that is near the work-item's place: what kernels most often have, in a random form.
    Number index(NumberType type) {
        if (pick(3) == 0)
            return whole(type, 2);
        const uint32_t d = pick(4) == 0 ? 1 : 0;
        const int64_t step = pick(2) ? 1 : 1 + pick(4), away = pick(40);
        const bool minus = pick(2), is_from_n = pick(3) == 0;
        switch (pick(8)) {
        case 0:
        case 3: return far_sum(type);
        case 1: return reversed_index(type, d, step);
        case 2: return index_for_all(type);
        default: break;
        }
        const std::string distance = is_from_n ? "(" + std::string(type.name) + ")n" : number(away);
        const std::string text = "((" + std::string(type.name) + ")get_global_id(" + number(d) + ") * " + number(step) +
                                 (minus ? " - " : " + ") + distance + ")";
        return {text,
                [=](const World& w, const MemoryItem& m) {
                    const int64_t by = is_from_n ? w.n : away;
                    return type.wrap(static_cast<int64_t>(m.global[d]) * step + (minus ? -by : by));
                },
                type, 8192};
    }

    // Lower for higher work-items.
    Number reversed_index(NumberType type, uint32_t d, int64_t step) {
        const int64_t from = pick(300);
        return {"(" + number(from) + " - (" + std::string(type.name) + ")get_global_id(" + number(d) + ") * " +
                    number(step) + ")",
                [=](const World&, const MemoryItem& m) {
                    return type.wrap(from - static_cast<int64_t>(m.global[d]) * step);
                },
                type, 8192};
    }

    // The same for all work-items, and far outside for some launches.
    Number index_for_all(NumberType type) {
        const int64_t step = pick(2) ? 3 : 40000001, away = pick(20);
        return {"((" + std::string(type.name) + ")n * " + number(step) + " + " + number(away) + ")",
                [=](const World& w, const MemoryItem&) { return type.wrap(w.n * step + away); }, type, 8192};
    }

    MemoryStatement read() {
        constexpr NumberType types[] = {int_, int_, uint_, long_, ulong_};
        const NumberType type = types[pick(5)];
        Number at = index(type);
        const Buffer from = buffer();
        const std::string target = from.is_real ? "f0 = " : "v2 = ((long)";
        const std::string end = from.is_real ? ";" : ") & 1023;";
        const auto set = [from](World& w, MemoryItem& m, int64_t i) {
            if (from.is_real)
                m.f[0] = static_cast<float>(from.get(w, i));
            else
                m.v[2] = from.get(w, i) & 1023;
        };
        const std::string name = from.name;
        const std::string i = "i" + number(static_cast<int64_t>(names_++)),
                          declare = std::string(type.name) + " " + i + " = " + at.text + ";";
        const int64_t low = pick(5), second = pick(20);
        const auto is_less = [type](int64_t a, int64_t b) {
            return type.is_signed ? a < b : static_cast<uint64_t>(a) < static_cast<uint64_t>(b);
        };
        switch (pick(6)) {
        case 5: {
            // A guard with a bound that the compiler does not know, and a difference that wraps around outside of it.
            const std::string bound = "(" + std::string(type.name) + ")n";
            return on_each("{ " + declare + " if (" + i + " >= " + bound + " && " + i + " < " +
                               number(memory_elements) + ") " + target + name + "[" + i + " - " + bound + "]" + end +
                               " }",
                           [set, at, is_less](World& w, MemoryItem& m) {
                               const int64_t place = at.value(w, m);
                               if (!is_less(place, w.n) && is_less(place, memory_elements))
                                   set(w, m, place - w.n);
                           });
        }
        case 4: {
            // The guard differs between work-items, and holds for none of them where the place is outside of the buffer.
            const int64_t below = pick(100), place = pick(1000);
            return on_each("if (get_global_id(0) + (ulong)n * 100000 < " + number(below) + ") " + target + name +
                               "[(long)n * 40000001 + " + number(place) + "]" + end,
                           [set, below, place](World& w, MemoryItem& m) {
                               if (w.n == 0 && static_cast<int64_t>(m.global[0]) < below)
                                   set(w, m, place);
                           });
        }
        case 0:
            return on_each(target + name + "[" + at.text + " & " + number(memory_elements - 1) + "]" + end,
                           [set, at](World& w, MemoryItem& m) { set(w, m, at.value(w, m) & (memory_elements - 1)); });
        case 1:
            return on_each("{ " + declare + " if (" + i + " >= " + number(low) + " && " + i + " < " +
                               number(memory_elements) + ") " + target + name + "[" + i + "]" + end + " }",
                           [set, at, is_less, low](World& w, MemoryItem& m) {
                               const int64_t place = at.value(w, m);
                               if (!is_less(place, low) && is_less(place, memory_elements))
                                   set(w, m, place);
                           });
        case 2:
            // A guard inside a guard, with a difference that may wrap around outside of them.
            return on_each("{ " + declare + " if (" + i + " >= " + number(second) + " && " + i + " < " +
                               number(memory_elements) + ") { if (" + i + " - " + number(second) +
                               " >= " + number(low) + ") " + target + name + "[" + i + " - " + number(second + low) +
                               " + " + number(low) + "]" + end + " else v1 += 3; } }",
                           [set, at, is_less, low, second](World& w, MemoryItem& m) {
                               const int64_t place = at.value(w, m);
                               if (is_less(place, second) || !is_less(place, memory_elements))
                                   return;
                               if (!is_less(place - second, low))
                                   set(w, m, place - second);
                               else
                                   m.v[1] = uint_.wrap(m.v[1] + 3);
                           });
        default:
            return on_each("{ " + declare + " " + i + " = " + i + " < " + number(low) + " ? " + number(low) + " : " +
                               i + " > " + number(memory_elements - 1) + " ? " + number(memory_elements - 1) + " : " +
                               i + "; " + target + name + "[" + i + "]" + end + " }",
                           [set, at, is_less, low](World& w, MemoryItem& m) {
                               int64_t place = at.value(w, m);
                               place = is_less(place, low)                   ? low
                                       : is_less(memory_elements - 1, place) ? memory_elements - 1
                                                                             : place;
                               set(w, m, place);
                           });
        }
    }

    MemoryStatement write() {
        const Number e = whole(arithmetic_type(), 2), k = masked(whole(int_, 1), 3);
        const int64_t member = pick(4), away = away_;
        constexpr NumberType types[] = {int_, uint_, long_, ulong_};
        const NumberType type = types[pick(4)];
        const std::string place = "((" + std::string(type.name) + ")get_global_id(1) * (" + type.name +
                                  ")get_global_size(0) + (" + type.name + ")get_global_id(0))";
        switch (pick(5)) {
        case 0:
            return on_each("out[" + place + " * 4 + " + number(member) + "] = (int)" + e.text + ";",
                           [e, member](World& w, MemoryItem& m) {
                               w.buffers.out[w.place(m) * 4 + static_cast<size_t>(member)] =
                                   static_cast<int32_t>(e.value(w, m));
                           });
        case 1:
            return on_each("out[" + place + " * 4 + " + k.text + "] ^= (int)" + e.text + ";",
                           [e, k](World& w, MemoryItem& m) {
                               w.buffers.out[w.place(m) * 4 + static_cast<size_t>(k.value(w, m))] ^=
                                   static_cast<int32_t>(e.value(w, m));
                           });
        case 2:
            return on_each("bytes[" + place + "] = (uchar)" + e.text + ";", [e](World& w, MemoryItem& m) {
                w.buffers.bytes[w.place(m)] = static_cast<uint8_t>(e.value(w, m));
            });
        case 3:
            return on_each("((global int4*)out)[" + place + "] = w;", [](World& w, MemoryItem& m) {
                for (size_t i = 0; i < 4; ++i)
                    w.buffers.out[w.place(m) * 4 + i] = m.w[i];
            });
        default: {
            const std::string i = "i" + number(static_cast<int64_t>(names_++));
            return on_each("{ " + std::string(type.name) + " " + i + " = " + place + "; if (" + i + " >= " +
                               number(away) + ") shifted[" + i + " - " + number(away) + "] = (long)" + e.text + "; }",
                           [e, away](World& w, MemoryItem& m) {
                               const auto at = static_cast<int64_t>(w.place(m));
                               if (at >= away)
                                   w.buffers.shifted[static_cast<size_t>(at - away)] = e.value(w, m);
                           });
        }
        }
    }

    // The work-item's own four elements of `out`: loads and stores of some, in an order that matters.
    MemoryStatement read_and_write_own() {
        const Number e = whole(int_, 2);
        std::array<size_t, 6> member{};
        for (size_t& each_member : member)
            each_member = pick(4);
        const int64_t add = pick(50);
        const auto own = [&](size_t i) { return "out[at * 4 + " + number(static_cast<int64_t>(member[i])) + "]"; };
        return on_each("v0 = " + own(0) + " & 2047; " + own(1) + " = " + e.text + "; v2 = ((long)" + own(2) + " + " +
                           own(3) + ") & 1023; " + own(4) + " = v0 + " + number(add) + "; " + own(5) + " = (int)v2;",
                       [e, member, add](World& w, MemoryItem& m) {
                           int32_t* mine = &w.buffers.out[w.place(m) * 4];
                           m.v[0] = mine[member[0]] & 2047;
                           mine[member[1]] = static_cast<int32_t>(e.value(w, m));
                           m.v[2] = (int64_t{mine[member[2]]} + mine[member[3]]) & 1023;
                           mine[member[4]] = static_cast<int32_t>(m.v[0] + add);
                           mine[member[5]] = static_cast<int32_t>(m.v[2]);
                       });
    }

    // A private array.
    MemoryStatement use_array() {
        if (pick(3) == 0)
            return read_neighbours(2 + pick(3));
        const Number to = masked(whole(int_, 2), 7), from = masked(whole(int_, 1), 7), e = whole(int_, 2);
        if (pick(3) == 0)
            return on_each("v0 = p[" + from.text + "] & 2047;", [from](World& w, MemoryItem& m) {
                m.v[0] = m.p[static_cast<size_t>(from.value(w, m))] & 2047;
            });
        return on_each("p[" + to.text + "] = (p[" + from.text + "] & 1023) + (" + e.text + " & 1023);",
                       [to, from, e](World& w, MemoryItem& m) {
                           const int32_t old = m.p[static_cast<size_t>(from.value(w, m))] & 1023;
                           m.p[static_cast<size_t>(to.value(w, m))] =
                               static_cast<int32_t>(old + (e.value(w, m) & 1023));
                       });
    }

    // Elements of a private array that are side by side, from an index that differs between the work-items: a way to read them together must
    // know where the lanes' copies of the array are. The array has too many elements for registers.
    MemoryStatement read_neighbours(uint32_t count) {
        constexpr size_t elements = 40;
        const Number from = masked(whole(int_, 1), 31);
        const std::string id = number(static_cast<int64_t>(names_++)), q = "q" + id, first = "at" + id, j = "j" + id;
        std::string text;
        for (uint32_t k = 0; k < count; ++k)
            text += (k == 0 ? "" : " + ") + number(int64_t{2} * k + 1) + " * " + first + "[" + number(int64_t{k}) + "]";
        return on_each("{ int " + q + "[" + number(int64_t{elements}) + "]; for (int " + j + " = 0; " + j + " < " +
                           number(int64_t{elements}) + "; ++" + j + ") " + q + "[" + j + "] = 5 * " + j + " + (p[" + j +
                           " & 7] & 1023); const int* " + first + " = " + q + " + " + from.text + "; v0 = (" + text +
                           ") & 2047; }",
                       [from, count](World& w, MemoryItem& m) {
                           std::array<int64_t, elements> all{};
                           for (size_t i = 0; i < elements; ++i)
                               all[i] = 5 * static_cast<int64_t>(i) + (m.p[i & 7] & 1023);
                           int64_t sum = 0;
                           for (uint32_t k = 0; k < count; ++k)
                               sum += (int64_t{2} * k + 1) * all[static_cast<size_t>(from.value(w, m)) + k];
                           m.v[0] = sum & 2047;
                       });
    }

    // A division whose divisor may be zero outside of the guard.
    MemoryStatement divide() {
        const Number a = masked(whole(int_, 2), 4095);
        const int64_t away = pick(4);
        const bool is_rest = pick(2);
        const Number by = pick(2)
                              ? masked(whole(int_, 1), 3)
                              : Number{"((n & 7) - " + number(away) + ")",
                                       [away](const World& w, const MemoryItem&) { return (w.n & 7) - away; }, int_, 8};
        const std::string d = "d" + number(static_cast<int64_t>(names_++));
        return on_each("{ int " + d + " = " + by.text + "; if (" + d + " != 0) v0 = (" + a.text +
                           (is_rest ? " % " : " / ") + d + ") & 2047; else v1 += 1; }",
                       [a, by, is_rest](World& w, MemoryItem& m) {
                           const int64_t divisor = by.value(w, m);
                           if (divisor == 0)
                               m.v[1] = uint_.wrap(m.v[1] + 1);
                           else
                               m.v[0] = (is_rest ? a.value(w, m) % divisor : a.value(w, m) / divisor) & 2047;
                       });
    }
};

}  // namespace polder::compiler::workgroup::test
