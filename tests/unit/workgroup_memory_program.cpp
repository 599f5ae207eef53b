#include "workgroup_memory_vectors.h"

#include <algorithm>

namespace polder::compiler::workgroup::test {
namespace {

std::string text_of(const MemoryBlock& block) {
    std::string result;
    for (const auto& statement : block) {
        if (!statement->is_there)
            continue;
        if (statement->is_open) {
            for (const MemoryBlock& body : statement->bodies)
                result += text_of(body);
            continue;
        }
        std::string text = statement->text;
        for (size_t i = 0; i < statement->bodies.size(); ++i) {
            const size_t place = text.find("%" + number(static_cast<int64_t>(i + 1)));
            text.replace(place, 2, text_of(statement->bodies[i]));
        }
        result += text + "\n";
    }
    return result;
}

using Structures = MemoryProgram::Structures;

class Maker : public VectorMaker {
public:
    Maker(uint32_t seed, Structures structures) : VectorMaker(seed), structures_(structures) {
        has_tables_ = structures == Structures::constant_tables;
    }

    MemoryBlock block(int depth, bool is_uniform, bool in_loop) {
        MemoryBlock result;
        const uint32_t count = depth == 0 ? 3 + pick(4) : 1 + pick(2);
        for (uint32_t i = 0; i < count; ++i)
            result.push_back(std::make_shared<MemoryStatement>(statement(depth, is_uniform, in_loop)));
        // The last statements of a kernel: a wrong cut (cuts.cpp) changes results only where no barrier follows.
        if (depth == 0 && pick(4) == 0) {
            result.push_back(std::make_shared<MemoryStatement>(exchange()));
            result.push_back(std::make_shared<MemoryStatement>(switch_under_guard()));
        }
        return result;
    }

private:
    // Statements -----------------------------------------------------------------------------------

    // `v = e`, so small that sums of it do not overflow.
    MemoryStatement assign() {
        const uint32_t v = pick(6);
        const NumberType type = variable_types[v];
        Number e = whole(type.bits < 32 ? int_ : type, 3);
        if (type.is_signed && type.bits >= 32 && e.limit > 4096)
            e = masked(e, 2047);
        e = cast(e, type);
        return on_each("v" + number(v) + " = " + e.text + ";",
                       [v, value = e.value](World& w, MemoryItem& m) { m.v[v] = value(w, m); });
    }

    MemoryStatement assign_real() {
        const uint32_t f = pick(2);
        Real e = real(3);
        // Powers of two are kept by a conversion to int and back.
        e = {"(float)((int)" + e.text + " & 4095)",
             [value = e.value](const World& w, const MemoryItem& m) {
                 return static_cast<float>(static_cast<int32_t>(value(w, m)) & 4095);
             },
             4095};
        return on_each("f" + number(f) + " = " + e.text + ";",
                       [f, value = e.value](World& w, MemoryItem& m) { m.f[f] = value(w, m); });
    }

    MemoryStatement assign_vector() {
        const Number a = masked(whole(int_, 2), 255), b = masked(whole(int_, 1), 255);
        switch (pick(4)) {
        case 0:
            return on_each("w = (int4)(" + a.text + ", " + b.text + ", w.x & 255, w.z & 255);",
                           [a, b](World& w, MemoryItem& m) {
                               m.w = {static_cast<int32_t>(a.value(w, m)), static_cast<int32_t>(b.value(w, m)),
                                      m.w[0] & 255, m.w[2] & 255};
                           });
        case 1:
            return on_each("w = (w.yxwz & 1023) * 3 + " + a.text + ";", [a](World& w, MemoryItem& m) {
                const auto add = static_cast<int32_t>(a.value(w, m));
                m.w = {(m.w[1] & 1023) * 3 + add, (m.w[0] & 1023) * 3 + add, (m.w[3] & 1023) * 3 + add,
                       (m.w[2] & 1023) * 3 + add};
            });
        case 2:
            return on_each("w ^= ((global const int4*)ints)[" + a.text + "];", [a](World& w, MemoryItem& m) {
                const auto at = static_cast<size_t>(a.value(w, m)) * 4;
                for (size_t i = 0; i < 4; ++i)
                    m.w[i] ^= w.buffers.ints[at + i];
            });
        default:
            return on_each("v0 = w[" + a.text + " & 3] & 2047;", [a](World& w, MemoryItem& m) {
                m.v[0] = m.w[static_cast<size_t>(a.value(w, m) & 3)] & 2047;
            });
        }
    }

    // Another work-item's value, behind barriers.
    MemoryStatement exchange() {
        const Number e = whole(long_, 2);
        const int64_t away = pick(9);
        const uint32_t v = pick(2) ? 3 : 1;
        const NumberType type = variable_types[v];
        MemoryStatement result{"barrier(CLK_LOCAL_MEM_FENCE); s[get_local_linear_id()] = " + e.text +
                               "; barrier(CLK_LOCAL_MEM_FENCE); v" + number(v) + " = (" + type.name +
                               ")s[(get_local_linear_id() + " + number(away) +
                               ") % (get_local_size(0) * get_local_size(1))];"};
        result.run = [=](World& w, Mask& active, LoopMasks*) {
            for (size_t i = 0; i < w.items.size(); ++i)
                if (active[i])
                    w.shared[i] = e.value(w, w.items[i]);
            for (size_t i = 0; i < w.items.size(); ++i)
                if (active[i])
                    w.items[i].v[v] = type.wrap(w.shared[(i + static_cast<size_t>(away)) % w.items.size()]);
        };
        return result;
    }

    MemoryStatement choose(int depth, bool is_uniform, bool in_loop) {
        const bool stays = is_uniform && pick(3) == 0;
        const Number condition = stays ? uniform_comparison() : comparison(2);
        MemoryStatement result{"if " + condition.text + " {\n%1} else {\n%2}"};
        result.may_open = true;
        // A divergent break would make the rest of a uniform loop divergent.
        const bool may_leave = in_loop && (stays || !is_uniform);
        result.bodies = {block(depth + 1, stays, may_leave),
                         pick(2) ? block(depth + 1, stays, may_leave) : MemoryBlock{}};
        result.run = [condition, bodies = result.bodies](World& w, Mask& active, LoopMasks* loop) {
            Mask first = active, second = active;
            for (size_t i = 0; i < active.size(); ++i) {
                const bool is_true = active[i] && condition.value(w, w.items[i]) != 0;
                first[i] = is_true;
                second[i] = active[i] && !is_true;
            }
            run_block(bodies[0], w, first, loop);
            run_block(bodies[1], w, second, loop);
            for (size_t i = 0; i < active.size(); ++i)
                active[i] = first[i] || second[i];
        };
        return result;
    }

    // Without break and continue of a loop inside: a switch has its own.
    MemoryStatement select_case(int depth, bool is_uniform) {
        const bool is_same = pick(2);
        const int64_t away = pick(4);
        const Number which =
            is_same ? Number{"((n + " + number(away) + ") & 3)",
                             [away](const World& w, const MemoryItem&) { return (w.n + away) & 3; }, int_, 3}
                    : masked(whole(int_, 2), 3);
        const bool stays = is_uniform && is_same;
        MemoryStatement result{"switch " + which.text +
                               " {\ncase 0: {\n%1} break;\ncase 1:\ncase 3: {\n%2} break;\ndefault: {\n%3}\n}"};
        result.may_open = true;
        result.bodies = {block(depth + 1, stays, false), block(depth + 1, stays, false),
                         block(depth + 1, stays, false)};
        result.run = [which, bodies = result.bodies](World& w, Mask& active, LoopMasks*) {
            std::vector<int64_t> values(active.size());
            for (size_t i = 0; i < active.size(); ++i)
                values[i] = active[i] ? which.value(w, w.items[i]) : -1;
            for (size_t body = 0; body < 3; ++body) {
                Mask here(active.size());
                for (size_t i = 0; i < active.size(); ++i)
                    here[i] = values[i] >= 0 && (values[i] == 0 ? 0U : values[i] == 2 ? 2U : 1U) == body;
                run_block(bodies[body], w, here, nullptr);
            }
        };
        return result;
    }

    MemoryStatement loop(int depth, bool is_uniform) {
        const bool stays = is_uniform && pick(2) == 0;
        const int64_t extra = pick(3);
        const Number rounds =
            stays ? Number{"((n & 3) + " + number(extra) + ")",
                           [extra](const World& w, const MemoryItem&) { return (w.n & 3) + extra; }, int_, 6}
                  : masked(whole(int_, 2), 3);
        const uint32_t name = loops_++;
        const std::string t = "t" + number(name), limit = "r" + number(static_cast<int64_t>(names_++));
        MemoryStatement result{"{ int " + limit + " = " + rounds.text + "; for (int " + t + " = 0; " + t + " < " +
                                   limit + "; ++" + t + ") {\n%1} }",
                               {block(depth + 1, stays, true)}};
        --loops_;
        result.run = [=, bodies = result.bodies](World& w, Mask& active, LoopMasks*) {
            std::vector<int64_t> limits(active.size());
            for (size_t i = 0; i < active.size(); ++i)
                limits[i] = active[i] ? rounds.value(w, w.items[i]) : 0;
            LoopMasks own{Mask(active.size())};
            for (int64_t round = 0;; ++round) {
                Mask inside(active.size());
                bool any = false;
                for (size_t i = 0; i < active.size(); ++i) {
                    inside[i] = active[i] && !own.left[i] && round < limits[i];
                    any |= inside[i];
                    w.items[i].t[name] = inside[i] ? round : w.items[i].t[name];
                }
                if (!any)
                    break;
                run_block(bodies[0], w, inside, &own);
            }
        };
        return result;
    }

    MemoryStatement leave(bool is_uniform) {
        const bool ends = pick(2);
        const Number condition = is_uniform ? uniform_comparison() : comparison(1);
        MemoryStatement result{"if " + condition.text + (ends ? " break;" : " continue;")};
        result.run = [=](World& w, Mask& active, LoopMasks* loop) {
            for (size_t i = 0; i < active.size(); ++i)
                if (active[i] && condition.value(w, w.items[i]) != 0) {
                    if (ends)
                        loop->left[i] = true;
                    active[i] = false;
                }
        };
        return result;
    }

    MemoryStatement targeted(bool is_uniform) {
        switch (pick(16)) {
        case 0:
        case 1: return keep_far();
        case 2: return read_far();
        case 3:
        case 4: return cut_to_32_bits();
        case 5: return guarded_difference();
        case 6: return guarded_product();
        case 7: return store_between_loads();
        case 8: return access_between_stores();
        case 9: return store_twice();
        case 10:
        case 11: return count_rounds();
        case 12: return switch_under_guard();
        case 13: return is_uniform ? exchange() : assign_common();
        default: return assign_common();
        }
    }

    MemoryStatement statement(int depth, bool is_uniform, bool in_loop) {
        if (structures_ == Structures::used && pick(3) == 0)
            return structured();
        if (structures_ == Structures::vectors && pick(5) < 3)
            return vectors();
        if (pick(4) == 0)
            return targeted(is_uniform);
        const uint32_t choice = pick(depth < 3 ? 29 : 20);
        if (choice < 3)
            return assign();
        if (choice < 5)
            return assign_real();
        if (choice < 7)
            return assign_vector();
        if (choice < 11)
            return read();
        if (choice < 14)
            return write();
        if (choice < 16)
            return read_and_write_own();
        if (choice < 18)
            return use_array();
        if (choice == 18)
            return divide();
        if (choice == 19)
            return is_uniform ? exchange() : read();
        if (choice < 23)
            return choose(depth, is_uniform, in_loop);
        if (choice == 23)
            return select_case(depth, is_uniform);
        if (choice < 27)
            return loop(depth, is_uniform);
        return in_loop ? leave(is_uniform) : read();
    }

    const Structures structures_;
};

// Removes whole statements first, then only what is around their bodies, then what is inside those that remain.
bool minimise_block(const MemoryBlock& block, const std::function<bool()>& still_fails) {
    const auto try_to_set = [&](bool& flag, bool value) {
        flag = value;
        if (still_fails())
            return true;
        flag = !value;
        return false;
    };
    bool changed = false;
    for (const auto& statement : block) {
        if (!statement->is_there)
            continue;
        if (try_to_set(statement->is_there, false)) {
            changed = true;
            continue;
        }
        if (statement->may_open && !statement->is_open)
            changed |= try_to_set(statement->is_open, true);
        for (const MemoryBlock& body : statement->bodies)
            changed |= minimise_block(body, still_fails);
    }
    return changed;
}

}  // namespace

// A guard around all statements: its OpenCL C, and whether a work-item passes it.
struct MemoryGuard {
    const char* text;
    bool (*lets_pass)(const MemoryItem& item, int64_t n);
};

namespace {

constexpr MemoryGuard memory_guards[] = {
    {"(int)get_global_id(0) >= n && (int)get_global_id(0) < 3 * n + 7",
     [](const MemoryItem& item, int64_t n) {
         const auto x = static_cast<int64_t>(item.global[0]);
         return x >= n && x < 3 * n + 7;
     }},
    {"get_global_id(0) < (size_t)(4 * n + 15)",
     [](const MemoryItem& item, int64_t n) { return static_cast<int64_t>(item.global[0]) < 4 * n + 15; }},
    {"(uint)get_local_id(0) - 2u <= (uint)n + 7u",
     [](const MemoryItem& item, int64_t n) {
         const auto x = static_cast<int64_t>(item.local[0]);
         return x >= 2 && x - 2 <= n + 7;
     }},
    {"(int)get_global_id(0) != n && get_global_id(1) < 5",
     [](const MemoryItem& item, int64_t n) { return static_cast<int64_t>(item.global[0]) != n && item.global[1] < 5; }},
    {"(long)((int)get_local_id(0) - n) > -5L",
     [](const MemoryItem& item, int64_t n) { return static_cast<int64_t>(item.local[0]) - n > -5; }},
};

}  // namespace

MemoryProgram::MemoryProgram(uint32_t seed, Structures structures)
    : block_(Maker(seed, structures).block(0, true, false)), has_vectors_(structures == Structures::vectors),
      has_tables_(structures == Structures::constant_tables),
      reads_constants_(structures != Structures::none && seed % 2 == 1) {}
MemoryProgram::~MemoryProgram() = default;

void MemoryProgram::guard(uint32_t seed) {
    if (text("k").find("barrier") == std::string::npos)
        guard_ = &memory_guards[seed % std::size(memory_guards)];
}

std::string MemoryProgram::text(const std::string& name) const {
    std::string source =
        "#pragma OPENCL EXTENSION cl_khr_fp16 : enable\nkernel void " + name +
        "(global const char* chars, global const ushort* shorts, global const int* ints, " +
        "global const long* longs, global const float* floats, global int* out, global uchar* bytes, " +
        "global long* shifted, global ulong* result, local long* s, int n) {\n" +
        "size_t at = get_global_id(1) * get_global_size(0) + get_global_id(0);\n" +
        (guard_ ? std::string("if (!(") + guard_->text + ")) return;\n" : std::string());
    if (has_tables_)
        for (const ConstantNumbers& table : constant_numbers) {
            source += "constant " + std::string(table.type) + " " + table.name + "[] = {";
            for (int64_t i = 0; i < table.size; ++i)
                source += number(ConstantNumbers::element(i)) + ",";
            source += "};\n";
        }
    for (size_t v = 0; v < std::size(variable_types); ++v)
        source += std::string(variable_types[v].name) + " v" + std::to_string(v) + " = (" + variable_types[v].name +
                  ")(get_local_id(0) * " + std::to_string(v + 1) + ");\n";
    source +=
        std::string("int u0 = n & 7, u1 = 1; float f0 = 1, f1 = get_local_id(0); int4 w = (int4)(1, 2, 3, "
                    "get_local_id(1));\n") +
        "int p[8] = {0, 1, 2, 3, 4, 5, 6, 7};\n" +
        (has_vectors_ ? "int3 h = (int3)(1, 2, 3); float4 g = (float4)(1, 2, 3, 4); long2 l = (long2)(5, 6);\n" : "");
    for (int t = 0; t < 8; ++t)
        source += "int t" + std::to_string(t) + " = 0;\n";
    source +=
        text_of(block_) +
        "result[at] = (ulong)v0 + 3 * (ulong)v1 + 5 * (ulong)v2 + 7 * v3 + 11 * (ulong)v4 + 13 * (ulong)v5 + 17 * "
        "(ulong)(long)f0 + "
        "19 * (ulong)(long)f1 + 23 * (ulong)w.x + 29 * (ulong)w.y + 31 * (ulong)w.z + 37 * (ulong)w.w + 41 * "
        "(ulong)p[n & 7] + 43 * (ulong)p[4] + 47 * (ulong)u0 + 53 * (ulong)u1" +
        (has_vectors_ ? " + 59 * (ulong)h.x + 61 * (ulong)h.y + 67 * (ulong)h.z + 71 * (ulong)(long)g.x + 73 * "
                        "(ulong)(long)g.w"
                        " + 79 * (ulong)l.x + 83 * (ulong)l.y"
                      : "") +
        ";\n}\n";
    const std::string global = "global const ";
    for (size_t at = 0; reads_constants_ && (at = source.find(global, at)) != std::string::npos;)
        source.replace(at, global.size(), "constant ");
    return source;
}

void MemoryProgram::run(const Range& range, int32_t n, MemoryBuffers& buffers) const {
    for (uint64_t y = 0; y < range.global[1]; y += range.local[1])
        for (uint64_t x = 0; x < range.global[0]; x += range.local[0]) {
            World world{range,
                        n,
                        buffers,
                        {},
                        {},
                        {std::min(range.local[0], range.global[0] - x), std::min(range.local[1], range.global[1] - y)}};
            for (uint64_t ly = 0; ly < world.size[1]; ++ly)
                for (uint64_t lx = 0; lx < world.size[0]; ++lx) {
                    MemoryItem item;
                    item.local = {lx, ly};
                    item.global = {x + lx, y + ly};
                    for (size_t v = 0; v < item.v.size(); ++v)
                        item.v[v] = variable_types[v].wrap(static_cast<int64_t>(lx * (v + 1)));
                    item.u = {n & 7, 1};
                    item.f = {1, static_cast<float>(lx)};
                    item.w = {1, 2, 3, static_cast<int32_t>(ly)};
                    world.items.push_back(item);
                }
            world.shared.resize(world.items.size());
            Mask all(world.items.size(), true);
            for (size_t i = 0; i < all.size(); ++i)
                all[i] = guard_ == nullptr || guard_->lets_pass(world.items[i], n);
            run_block(block_, world, all, nullptr);
            for (size_t i = 0; i < all.size(); ++i) {
                if (!all[i])
                    continue;
                const MemoryItem& m = world.items[i];
                const auto u = [](int64_t value) { return static_cast<uint64_t>(value); };
                buffers.result[world.place(m)] =
                    u(m.v[0]) + 3 * u(m.v[1]) + 5 * u(m.v[2]) + 7 * u(m.v[3]) + 11 * u(m.v[4]) + 13 * u(m.v[5]) +
                    17 * u(static_cast<int64_t>(m.f[0])) + 19 * u(static_cast<int64_t>(m.f[1])) + 23 * u(m.w[0]) +
                    29 * u(m.w[1]) + 31 * u(m.w[2]) + 37 * u(m.w[3]) + 41 * u(m.p[static_cast<size_t>(n & 7)]) +
                    43 * u(m.p[4]) + 47 * u(m.u[0]) + 53 * u(m.u[1]);
                if (has_vectors_)
                    buffers.result[world.place(m)] +=
                        59 * u(m.h[0]) + 61 * u(m.h[1]) + 67 * u(m.h[2]) + 71 * u(static_cast<int64_t>(m.g[0])) +
                        73 * u(static_cast<int64_t>(m.g[3])) + 79 * u(m.l[0]) + 83 * u(m.l[1]);
            }
        }
}

void MemoryProgram::minimise(const std::function<bool()>& still_fails) {
    while (minimise_block(block_, still_fails)) {
    }
}

}  // namespace polder::compiler::workgroup::test
