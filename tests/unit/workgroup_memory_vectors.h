// Statements of random kernels (workgroup_memory_program.h) on explicit vectors: int4 w, int3 h, float4 g with whole numbers, and long2 l.
#pragma once

#include "workgroup_memory_structures.h"

namespace polder::compiler::workgroup::test {

class VectorMaker : public StructureMaker {
public:
    using StructureMaker::StructureMaker;

protected:
    MemoryStatement vectors() {
        switch (pick(12)) {
        case 0:
        case 1:
        case 2: return read_vectors();
        case 3: return write_vectors();
        case 4: return change_array();
        case 5: return insert();
        case 6: return ask_elements();
        case 7: return convert();
        case 8: return choose_vectors();
        default: return move_elements();
        }
    }

private:
    Number small() { return masked(whole(int_, 2), 255); }
    static int32_t value_of(const Number& number, const World& w, const MemoryItem& m) {
        return static_cast<int32_t>(number.value(w, m));
    }

    // The vector that a work-item reads: in a row, every second one, backwards, one that all of a row share, anywhere.
    Number vector_index() {
        const auto at = [](const char* text, int64_t factor, size_t dimension, int64_t away) {
            return Number{"((int)get_global_id(" + number(static_cast<int64_t>(dimension)) + ")" + text + number(away) +
                              ")",
                          [=](const World&, const MemoryItem& m) {
                              return static_cast<int64_t>(m.global[dimension]) * factor + away;
                          },
                          int_, memory_elements / 4};
        };
        const int64_t away = pick(60);
        switch (pick(6)) {
        case 0:
        case 1: return at(" + ", 1, 0, away);
        case 2: return at(" * 2 + ", 2, 0, away & 1);
        case 3: return at(" * -1 + ", -1, 0, 128 + away);
        case 4: return at(" + ", 1, 1, away);
        default: return small();
        }
    }

    MemoryStatement read_vectors() {
        const Number i = vector_index();
        const auto place = [i](const World& w, const MemoryItem& m, size_t elements) {
            return static_cast<size_t>(i.value(w, m)) * elements;
        };
        switch (pick(7)) {
        case 0:
            return on_each("w ^= ((global const int4*)ints)[" + i.text + "];", [place](World& w, MemoryItem& m) {
                for (size_t e = 0; e < 4; ++e)
                    m.w[e] ^= w.buffers.ints[place(w, m, 4) + e];
            });
        case 1:
            return on_each("w = convert_int4(((global const char4*)chars)[" + i.text + "]);",
                           [place](World& w, MemoryItem& m) {
                               for (size_t e = 0; e < 4; ++e)
                                   m.w[e] = w.buffers.chars[place(w, m, 4) + e];
                           });
        case 2:
            return on_each("w = convert_int4(((global const ushort4*)shorts)[" + i.text + "]).wzxy + 1;",
                           [place](World& w, MemoryItem& m) {
                               constexpr size_t from[] = {3, 2, 0, 1};
                               for (size_t e = 0; e < 4; ++e)
                                   m.w[e] = w.buffers.shorts[place(w, m, 4) + from[e]] + 1;
                           });
        case 3:
            return on_each("{ global const int* from = ints + " + i.text +
                               " * 3; h = (int3)(from[0], from[1], from[2]); }",
                           [place](World& w, MemoryItem& m) {
                               for (size_t e = 0; e < 3; ++e)
                                   m.h[e] = w.buffers.ints[place(w, m, 3) + e];
                           });
        case 4:
            return on_each("h = ((global const int4*)ints)[" + i.text + "].wyx;", [place](World& w, MemoryItem& m) {
                const int32_t* from = &w.buffers.ints[place(w, m, 4)];
                m.h = {from[3], from[1], from[0]};
            });
        case 5:
            return on_each("g = ((global const float4*)floats)[" + i.text + "];", [place](World& w, MemoryItem& m) {
                for (size_t e = 0; e < 4; ++e)
                    m.g[e] = w.buffers.floats[place(w, m, 4) + e];
            });
        default:
            return on_each("l = ((global const long2*)longs)[" + i.text + "] & 0xffffL;",
                           [place](World& w, MemoryItem& m) {
                               for (size_t e = 0; e < 2; ++e)
                                   m.l[e] = w.buffers.longs[place(w, m, 2) + e] & 0xffff;
                           });
        }
    }

    MemoryStatement write_vectors() {
        const int64_t half = pick(2);
        switch (pick(3)) {
        case 0:
            return on_each("((global int4*)out)[at] = w ^ w.wzyx;", [](World& w, MemoryItem& m) {
                for (size_t e = 0; e < 4; ++e)
                    w.buffers.out[w.place(m) * 4 + e] = m.w[e] ^ m.w[3 - e];
            });
        case 1:
            return on_each("((global int2*)out)[at * 2 + " + number(half) + "] = h.zx;",
                           [half](World& w, MemoryItem& m) {
                               int32_t* to = &w.buffers.out[w.place(m) * 4 + 2 * static_cast<size_t>(half)];
                               to[0] = m.h[2];
                               to[1] = m.h[0];
                           });
        default:
            return on_each("{ global int* to = out + at * 4 + " + number(half) +
                               "; to[0] = h.x; to[1] = h.y; to[2] = h.z; }",
                           [half](World& w, MemoryItem& m) {
                               for (size_t e = 0; e < 3; ++e)
                                   w.buffers.out[w.place(m) * 4 + static_cast<size_t>(half) + e] = m.h[e];
                           });
        }
    }

    MemoryStatement change_array() {
        const Number a = small(), to = small(), from = small();
        const std::string q = "q" + number(static_cast<int64_t>(names_++));
        return on_each("{ int4 " + q + "[3]; " + q + "[0] = w; " + q + "[1] = w.yxwz; " + q + "[2] = (int4)(" + a.text +
                           "); " + q + "[" + to.text + " % 3] ^= 5; w = " + q + "[" + from.text + " % 3] & 0xffff; }",
                       [=](World& w, MemoryItem& m) {
                           const int32_t value = value_of(a, w, m);
                           std::array<std::array<int32_t, 4>, 3> all{
                               m.w, {m.w[1], m.w[0], m.w[3], m.w[2]}, {value, value, value, value}};
                           for (int32_t& element : all[static_cast<size_t>(to.value(w, m) % 3)])
                               element ^= 5;
                           m.w = all[static_cast<size_t>(from.value(w, m) % 3)];
                           for (int32_t& element : m.w)
                               element &= 0xffff;
                       });
    }

    MemoryStatement insert() {
        const Number to = small(), e = small();
        return on_each("w[" + to.text + " & 3] = " + e.text + ";", [to, e](World& w, MemoryItem& m) {
            const int32_t value = value_of(e, w, m);
            m.w[static_cast<size_t>(to.value(w, m) & 3)] = value;
        });
    }

    MemoryStatement ask_elements() {
        const Number a = small();
        return on_each("v2 = (any(w < (int4)(" + a.text + ")) ? 1 : 0) + (all(h.xy > 3) ? 2 : 0);",
                       [a](World& w, MemoryItem& m) {
                           const int32_t bound = value_of(a, w, m);
                           const bool is_any = std::ranges::any_of(m.w, [&](int32_t one) { return one < bound; });
                           m.v[2] = (is_any ? 1 : 0) + (m.h[0] > 3 && m.h[1] > 3 ? 2 : 0);
                       });
    }

    MemoryStatement convert() {
        const Number a = small();
        switch (pick(3)) {
        case 0:
            return on_each("g = convert_float4((convert_int4(g) + w.wzyx + " + a.text + ") & 1023);",
                           [a](World& w, MemoryItem& m) {
                               const int32_t add = value_of(a, w, m);
                               for (size_t e = 0; e < 4; ++e)
                                   m.g[e] =
                                       static_cast<float>((static_cast<int32_t>(m.g[e]) + m.w[3 - e] + add) & 1023);
                           });
        case 1:
            return on_each("l = (l.yx * 3L + convert_long2(w.xw)) & 0xfffffL; v3 ^= (ulong)(l.x + l.y);",
                           [](World&, MemoryItem& m) {
                               m.l = {(m.l[1] * 3 + m.w[0]) & 0xfffff, (m.l[0] * 3 + m.w[3]) & 0xfffff};
                               m.v[3] ^= m.l[0] + m.l[1];
                           });
        default:
            return on_each("f0 = (float)((int)(g.x + g.y * 2 - g.w) & 4095);", [](World&, MemoryItem& m) {
                m.f[0] = static_cast<float>(static_cast<int32_t>(m.g[0] + m.g[1] * 2 - m.g[3]) & 4095);
            });
        }
    }

    MemoryStatement choose_vectors() {
        const Number a = small();
        if (pick(2))
            return on_each("w = (w.x < " + a.text + " ? w.wwyx : (int4)(h, " + a.text + ")) & 0xffff;",
                           [a](World& w, MemoryItem& m) {
                               const int32_t bound = value_of(a, w, m);
                               const std::array<int32_t, 4> first{m.w[3], m.w[3], m.w[1], m.w[0]};
                               const std::array<int32_t, 4> second{m.h[0], m.h[1], m.h[2], bound};
                               m.w = m.w[0] < bound ? first : second;
                               for (int32_t& element : m.w)
                                   element &= 0xffff;
                           });
        return on_each("w = (g < g.wzyx ? w : w.yyzz + " + a.text + ") & 0xffff;", [a](World& w, MemoryItem& m) {
            const int32_t add = value_of(a, w, m);
            const std::array<int32_t, 4> other{m.w[1], m.w[1], m.w[2], m.w[2]}, old = m.w;
            for (size_t e = 0; e < 4; ++e)
                m.w[e] = (m.g[e] < m.g[3 - e] ? old[e] : other[e] + add) & 0xffff;
        });
    }

    MemoryStatement move_elements() {
        const Number a = small();
        const int64_t mask = pick(512);
        switch (pick(4)) {
        case 0:
            return on_each("h = (w.zxy ^ h.yzx) & (int3)(" + number(mask) + ", 77, " + a.text + ");",
                           [a, mask](World& w, MemoryItem& m) {
                               m.h = {(m.w[2] ^ m.h[1]) & static_cast<int32_t>(mask), (m.w[0] ^ m.h[2]) & 77,
                                      (m.w[1] ^ m.h[0]) & value_of(a, w, m)};
                           });
        case 1:
            return on_each("w = (max(w, w.yzwx) - min(w, (int4)(" + a.text + "))) & 0xffff;",
                           [a](World& w, MemoryItem& m) {
                               const int32_t bound = value_of(a, w, m);
                               const std::array<int32_t, 4> old = m.w;
                               for (size_t e = 0; e < 4; ++e)
                                   m.w[e] = (std::max(old[e], old[(e + 1) % 4]) - std::min(old[e], bound)) & 0xffff;
                           });
        case 2:
            return on_each("v0 = (w.x + (w.y & 4095) * 3 - w.z + h.z) & 2047;", [](World&, MemoryItem& m) {
                m.v[0] = (m.w[0] + (m.w[1] & 4095) * 3 - m.w[2] + m.h[2]) & 2047;
            });
        default:
            return on_each("w = h.xxyz + " + a.text + "; w.yw = w.wx;", [a](World& w, MemoryItem& m) {
                const int32_t add = value_of(a, w, m);
                m.w = {m.h[0] + add, m.h[2] + add, m.h[1] + add, m.h[0] + add};
            });
        }
    }
};

}  // namespace polder::compiler::workgroup::test
