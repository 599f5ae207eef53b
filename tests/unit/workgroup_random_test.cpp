// Random structured kernels with barriers in loops, conditionals and after early returns, against an
// interpreter that runs all work-items of a group in lock step.
//
// A program is a tree of statements over private variables v*, variables u* that are the same for all
// work-items, a private array and local memory. Statements that meet a barrier are generated only where
// control is uniform, provably (conditions over u*) or not (conditions that happen to be the same for all).
// POLDER_RANDOM_SEEDS=first:count runs others than the default seeds.

#include "random_seeds.h"
#include "workgroup_harness.h"
#include "workgroup_random_program.h"
#include "workgroup_random_source.h"
#include "workgroup_random_sub_groups.h"

#include <gtest/gtest.h>
#include <span>

namespace polder::compiler::workgroup::test {
namespace {

// In lock step ----------------------------------------------------------------------------------

class Interpreter {
public:
    Interpreter(const Range& range, std::array<uint64_t, 3> group, uint32_t n, std::vector<uint32_t>& out,
                size_t sub_group_size)
        : range_(range), group_(group), n_(n), out_(out), sub_group_size_(sub_group_size) {
        size_t count = 1;
        for (size_t d = 0; d < 3; ++d) {
            size_[d] = std::min(range.local[d], range.global[d] - group[d] * range.local[d]);
            count *= size_[d];
        }
        items_.resize(count);
        shared_.resize(count);
        for (size_t i = 0; i < count; ++i) {
            items_[i].id = {i % size_[0], i / size_[0] % size_[1], i / size_[0] / size_[1]};
            for (size_t v = 0; v < private_count; ++v)
                items_[i].v[v] = static_cast<uint32_t>(i * (v + 1));
            for (size_t u = 0; u < uniform_count; ++u)
                items_[i].u[u] = static_cast<uint32_t>(n + u);
        }
    }

    void run(const std::vector<Statement>& program) {
        Mask all(items_.size(), true);
        execute(program, all);
        for (size_t i = 0; i < items_.size(); ++i) {
            if (!all[i])
                continue;
            const Item& m = items_[i];
            out_[place(i)] = m.v[0] + 3 * m.v[1] + 5 * m.v[2] + 7 * m.v[3] + 11 * m.v[4] + 13 * m.u[0] + 17 * m.u[1] +
                             19 * m.u[2] + m.a[0] + 23 * m.a[1] + 29 * m.a[2] + 31 * m.a[3];
        }
    }

private:
    using Mask = std::vector<bool>;
    struct Item {
        std::array<uint64_t, 3> id{};
        uint32_t v[private_count]{};
        uint32_t u[uniform_count]{};
        uint32_t a[array_size]{1, 2, 3, 4};
    };

    size_t place(size_t i) const {
        const auto at = [&](size_t d) { return group_[d] * range_.local[d] + items_[i].id[d]; };
        return (at(2) * range_.global[1] + at(1)) * range_.global[0] + at(0);
    }

    uint32_t value(const Expression& e, const Item& m) const {
        const auto operand = [&](size_t i) { return value(e.operands[i], m); };
        switch (e.kind) {
        case Expression::constant: return e.value;
        case Expression::private_variable: return m.v[e.value];
        case Expression::uniform_variable: return m.u[e.value];
        case Expression::argument: return n_;
        case Expression::local_id: return static_cast<uint32_t>(m.id[e.value]);
        case Expression::group_id: return static_cast<uint32_t>(group_[e.value]);
        case Expression::local_size: return static_cast<uint32_t>(size_[e.value]);
        case Expression::array: return m.a[operand(0) & 3];
        case Expression::add: return operand(0) + operand(1);
        case Expression::multiply: return operand(0) * operand(1);
        case Expression::exclusive_or: return operand(0) ^ operand(1);
        case Expression::less: return operand(0) < operand(1);
        case Expression::both: return operand(0) & operand(1);
        }
        return 0;
    }

    // Runs `block` for the items in `active`; removes those that return, leave the loop or go to its next round.
    void execute(const std::vector<Statement>& block, Mask& active) {
        for (const Statement& s : block)
            execute(s, active);
    }

    template <class Action>
    void each(const Mask& active, Action action) {
        for (size_t i = 0; i < items_.size(); ++i)
            if (active[i])
                action(i, items_[i]);
    }

    void execute(const Statement& s, Mask& active) {
        const auto e = [&](size_t i, const Item& m) { return value(s.expressions[i], m); };
        switch (s.kind) {
        case Statement::assign: each(active, [&](size_t, Item& m) { m.v[s.target] = e(0, m); }); break;
        case Statement::assign_uniform: each(active, [&](size_t, Item& m) { m.u[s.target] = e(0, m); }); break;
        case Statement::assign_array:
            each(active, [&](size_t, Item& m) {
                const uint32_t to = e(1, m);
                m.a[e(0, m) & 3] = to;
            });
            break;
        case Statement::exchange: {
            each(active, [&](size_t i, Item& m) { shared_[i] = e(0, m); });
            std::vector<uint32_t> got(items_.size());
            each(active, [&](size_t i, Item& m) { got[i] = shared_[(i + (e(1, m) & 15)) % items_.size()]; });
            each(active, [&](size_t i, Item& m) { m.v[s.target] = got[i]; });
            break;
        }
        case Statement::broadcast:
            each(active, [&](size_t i, Item& m) {
                if (i == 0)
                    shared_[0] = e(0, m) & 7;
            });
            each(active, [&](size_t, Item& m) { m.u[s.target] = shared_[0]; });
            break;
        case Statement::sub_group:
            for (size_t first = 0; first < items_.size(); first += sub_group_size_) {
                std::vector<size_t> together;
                for (size_t i = first; i < std::min(first + sub_group_size_, items_.size()); ++i)
                    if (active[i])
                        together.push_back(i);
                if (!together.empty())
                    combine(s, first, together);
            }
            break;
        case Statement::choose: {
            Mask yes(active), no(active);
            each(active, [&](size_t i, Item& m) { (e(0, m) ? no : yes)[i] = false; });
            execute(s.body, yes);
            execute(s.otherwise, no);
            for (size_t i = 0; i < active.size(); ++i)
                active[i] = yes[i] || no[i];
            break;
        }
        case Statement::keep:
        case Statement::keep_loaded: {
            std::vector<uint32_t> kept(items_.size());
            each(active, [&](size_t i, Item& m) {
                if (s.kind == Statement::keep)
                    kept[i] = e(1, m) / (n_ + 1);
                else if (i == 0)
                    shared_[0] = e(1, m) & 7;
            });
            if (s.kind == Statement::keep_loaded)
                kept.assign(kept.size(), shared_[0]);
            execute(s.body, active);
            each(active, [&](size_t i, Item& m) { m.v[s.operation] ^= e(0, m) != 0 ? kept[i] : 0; });
            break;
        }
        case Statement::loop:
        case Statement::forever: repeat(s, active); break;
        case Statement::leave:
            left_.back() = merge(left_.back(), active);
            clear(active);
            break;
        case Statement::next:
            next_.back() = merge(next_.back(), active);
            clear(active);
            break;
        case Statement::finish:
            each(active, [&](size_t i, Item& m) { out_[place(i)] = e(0, m) + s.target; });
            clear(active);
            break;
        }
    }

    // `together`: the work-items of the sub-group from `first` on that take part.
    void combine(const Statement& s, size_t first, const std::vector<size_t>& together) {
        std::vector<uint32_t> x(sub_group_size_), y(sub_group_size_), result(sub_group_size_);
        std::vector<bool> is_active(sub_group_size_);
        for (const size_t i : together) {
            is_active[i - first] = true;
            x[i - first] = value(s.expressions[0], items_[i]);
            y[i - first] = value(s.expressions[1], items_[i]);
        }
        for (const size_t i : together)
            result[i - first] = combined(static_cast<SubGroupFunction>(s.operation), first, i - first, is_active, x, y);
        for (const size_t i : together)
            items_[i].v[s.target] = result[i - first];
    }

    void repeat(const Statement& s, Mask& active) {
        left_.emplace_back(items_.size());
        Mask running(active);
        for (uint32_t round = 0;; ++round) {
            each(running, [&](size_t i, Item& m) {
                const uint32_t limit = value(s.expressions[0], m) & 3;
                if (s.kind == Statement::loop ? round >= limit : round > limit) {
                    running[i] = false;
                    left_.back()[i] = true;
                }
            });
            if (std::find(running.begin(), running.end(), true) == running.end())
                break;
            next_.emplace_back(items_.size());
            execute(s.body, running);
            running = merge(running, next_.back());
            next_.pop_back();
        }
        active = left_.back();
        left_.pop_back();
    }

    static Mask merge(const Mask& a, const Mask& b) {
        Mask result(a);
        for (size_t i = 0; i < b.size(); ++i)
            if (b[i])
                result[i] = true;
        return result;
    }
    static void clear(Mask& mask) { mask.assign(mask.size(), false); }

    const Range& range_;
    std::array<uint64_t, 3> group_;
    std::array<uint64_t, 3> size_{};
    uint32_t n_;
    std::vector<uint32_t>& out_;
    std::vector<Item> items_;
    const size_t sub_group_size_;
    std::vector<uint32_t> shared_;
    std::vector<Mask> left_;
    std::vector<Mask> next_;
};

std::vector<uint32_t> expected(const std::vector<Statement>& program, const Range& range, uint32_t n,
                               size_t sub_group_size) {
    std::vector<uint32_t> out(range.global[0] * range.global[1] * range.global[2], 0xdeadbeef);
    std::array<uint64_t, 3> groups{};
    for (size_t d = 0; d < 3; ++d)
        groups[d] = (range.global[d] + range.local[d] - 1) / range.local[d];
    for (uint64_t z = 0; z < groups[2]; ++z)
        for (uint64_t y = 0; y < groups[1]; ++y)
            for (uint64_t x = 0; x < groups[0]; ++x)
                Interpreter(range, {x, y, z}, n, out, sub_group_size).run(program);
    return out;
}

const Range ranges[] = {
    {1, {37, 1, 1}, {16, 1, 1}},
    {1, {3, 1, 1}, {1, 1, 1}},
    {2, {20, 6, 1}, {8, 4, 1}},
    {3, {5, 4, 7}, {3, 2, 4}},
    {1, {80, 1, 1}, {50, 1, 1}},
    // Narrow ones, whose lanes are rows of y or z or short.
    {2, {16, 8, 1}, {8, 8, 1}},
    {2, {8, 4, 1}, {4, 4, 1}},
    {2, {2, 64, 1}, {1, 64, 1}},
    {2, {16, 32, 1}, {8, 32, 1}},
    {3, {2, 2, 40}, {1, 1, 20}},
    {2, {4, 37, 1}, {2, 17, 1}},
    {3, {3, 4, 16}, {3, 2, 16}},
};

// For code of usual launches: rows of 16 and of 64.
const Range usual_ranges[] = {
    {1, {192, 1, 1}, {64, 1, 1}}, {1, {256, 1, 1}, {128, 1, 1}}, {1, {128, 1, 1}, {128, 1, 1}},
    {2, {32, 6, 1}, {16, 4, 1}},  {2, {128, 3, 1}, {64, 2, 1}},  {2, {4, 128, 1}, {3, 64, 1}},
    {3, {16, 4, 3}, {16, 2, 3}},  {3, {2, 3, 64}, {2, 1, 64}},   {2, {48, 2, 1}, {48, 2, 1}},
};

// Whether code whose optimised IR is `text` may be launched so.
bool is_usual(const Range& range, size_t lane_dimension, const std::string& text) {
    for (const uint64_t multiple : {16, 64})
        if (text.ends_with("; rows of multiples of " + std::to_string(multiple)))
            return (range.local[lane_dimension] | range.global[lane_dimension]) % multiple == 0;
    return false;
}

bool is_whole(const Range& range) {
    return range.global[0] % range.local[0] == 0 && range.global[1] % range.local[1] == 0 &&
           range.global[2] % range.local[2] == 0;
}

using SubGroups = Generator::SubGroups;
using KeptValues = Generator::KeptValues;

// `rows_of_vectors`: usual launches in whose rows one vector is whole, with four vectors at once.
enum class Code : uint8_t {
    lanes,
    two_vectors,
    four_vectors,
    quick,
    long_functions,
    usual,
    usual_of_four_vectors,
    rows_of_vectors
};

void expect_right(Seeds seeds, const char* processor, SubGroups sub_groups = SubGroups::none,
                  KeptValues kept_values = KeptValues::none, Code code = Code::lanes) {
    const auto [first, count] = seeds;
    const bool are_usual = code >= Code::usual;
    const std::string name = code == Code::rows_of_vectors ? "usual_vectors_k" : are_usual ? "usual_k" : "k";
    std::string source = std::string(helpers) + sub_group_helpers;
    std::vector<std::vector<Statement>> programs;
    const auto size_of_sub_groups = [&](uint32_t i) {
        return sub_groups == SubGroups::used ? 4U << (first + i) % 5 : 0;
    };
    const auto calls_of = [&](uint32_t i) {
        return code == Code::long_functions ? Calls::long_functions : (first + i) % 4 == 3 ? Calls::rare : Calls::none;
    };
    for (uint32_t i = 0; i < count; ++i) {
        programs.push_back(Generator(first + i, sub_groups, kept_values).program());
        source += kernel_text(programs.back(), name + std::to_string(i), calls_of(i), size_of_sub_groups(i));
    }
    Compiled compiled(source, processor);
    compiled.run_all_passes();
    compiled.run_at_once(code == Code::two_vectors                                          ? 2
                         : code == Code::four_vectors || (are_usual && code != Code::usual) ? 4
                                                                                            : 0);
    for (uint32_t i = 0; i < count; ++i) {
        const auto failure = [&](const char* what) {
            return std::string(what) + ", seed " + std::to_string(first + i) + "\n" +
                   kernel_text(programs[i], "k", calls_of(i), size_of_sub_groups(i));
        };
        const bool specialised = i % 2 == 0 && !are_usual;
        const Range& only = ranges[i / 2 % std::size(ranges)];
        const auto ends =
            specialised && is_whole(only) ? WorkGroupOptions::Ends::whole : WorkGroupOptions::Ends::ragged;
        const Lanes lanes = code == Code::quick ? Lanes::later
                            : i % 5 == 4        ? Lanes::where_they_pay
                                                : Lanes::wherever_possible;
        ASSERT_EQ(compiled.prepare(name + std::to_string(i), specialised, only.local, ends, lanes), "")
            << failure("not compiled");
        for (const Range& range : are_usual ? std::span<const Range>(usual_ranges) : std::span<const Range>(ranges)) {
            if (are_usual && !is_usual(range, compiled.result().lanes.dimension, compiled.optimised()))
                continue;
            if (specialised && (range.local != only.local || is_whole(range) != is_whole(only)))
                continue;
            for (uint32_t n : {0U, 1U, 6U}) {
                std::vector<uint32_t> out(range.global[0] * range.global[1] * range.global[2], 0xdeadbeef);
                compiled.run(range, Arguments().add(out.data()).add_local(4096).add(n));
                ASSERT_EQ(out, expected(programs[i], range, n, std::max(size_of_sub_groups(i), 1U)))
                    << failure("differs") << "local size " << range.local[0] << "," << range.local[1] << ","
                    << range.local[2] << " n " << n;
            }
        }
    }
}

TEST(WorkGroupRandom, KernelsComputeWhatAnInterpreterInLockStepComputes) { expect_right(seeds_or({1, 25}), ""); }

TEST(WorkGroupRandom, QuickCodeComputesTheSame) {
    expect_right(seeds_or({52000, 25}), "", SubGroups::none, KeptValues::none, Code::quick);
    expect_right(seeds_or({53000, 10}), "", SubGroups::none, KeptValues::used, Code::quick);
}

// Functions that are not inlined are called once for all lanes.
TEST(WorkGroupRandom, LongFunctionsComputeTheSame) {
    expect_right(seeds_or({58000, 12}), "", SubGroups::none, KeptValues::none, Code::long_functions);
    expect_right(seeds_or({59000, 6}), "", SubGroups::none, KeptValues::used, Code::long_functions);
}

TEST(WorkGroupRandom, SeveralVectorsAtOnceComputeTheSame) {
    expect_right(seeds_or({54000, 8}), "", SubGroups::none, KeptValues::none, Code::two_vectors);
    expect_right(seeds_or({55000, 6}), "", SubGroups::none, KeptValues::used, Code::four_vectors);
}

// Code without loops one by one, for work-groups whose rows fill vectors.
TEST(WorkGroupRandom, CodeOfUsualLaunchesComputesTheSame) {
    expect_right(seeds_or({62000, 12}), "", SubGroups::none, KeptValues::none, Code::usual);
    expect_right(seeds_or({63000, 6}), "", SubGroups::none, KeptValues::used, Code::usual);
    expect_right(seeds_or({64000, 8}), "", SubGroups::none, KeptValues::none, Code::usual_of_four_vectors);
    expect_right(seeds_or({380000, 6}), "", SubGroups::none, KeptValues::none, Code::rows_of_vectors);
}

// A value that is the same for all work-items which compute it was kept once for the group, and the others overwrote it.
TEST(WorkGroupRandom, ValuesOfSomeWorkItemsAreKeptOverBarriers) {
    expect_right(seeds_or({31000, 25}), "", SubGroups::none, KeptValues::used);
}

// The registers of a uniform argument of a cold function were lost behind its call (decision 136).
TEST(WorkGroupRandom, RareCallsOfSubGroupsKeepWhatAllLanesShare) {
    expect_right(seeds_or({7100143, 1}), "", SubGroups::used);
}

TEST(WorkGroupRandom, SubGroupsCombineWhatTheActiveLanesHave) {
    expect_right(seeds_or({20000, 30}), "", SubGroups::used);
}

#if defined(__x86_64__)

TEST(WorkGroupRandom, SubGroupsWithVectorsOf128Bits) {
    expect_right(seeds_or({21000, 5}), "x86-64-v2", SubGroups::used);
    // Lanes are moved through memory; places that skipped code had not computed were anywhere.
    expect_right(seeds_or({7080086, 2}), "x86-64-v2", SubGroups::used);
}

TEST(WorkGroupRandom, WithVectorsOf256Bits) {
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("bmi2"))
        GTEST_SKIP() << "needs a processor like Haswell";
    expect_right(seeds_or({7000, 8}), "haswell");
    expect_right(seeds_or({66000, 4}), "haswell", SubGroups::none, KeptValues::none, Code::usual);
}

TEST(WorkGroupRandom, ValuesOfSomeWorkItemsWithVectorsOf128Bits) {
    expect_right(seeds_or({31000, 8}), "x86-64-v2", SubGroups::none, KeptValues::used);
}

TEST(WorkGroupRandom, SeveralVectorsOf128Bits) {
    expect_right(seeds_or({56000, 5}), "x86-64-v2", SubGroups::none, KeptValues::none, Code::two_vectors);
    expect_right(seeds_or({57000, 5}), "x86-64-v2", SubGroups::none, KeptValues::none, Code::four_vectors);
    expect_right(seeds_or({65000, 5}), "x86-64-v2", SubGroups::none, KeptValues::none, Code::usual);
}

TEST(WorkGroupRandom, LongFunctionsWithVectorsOf128And256Bits) {
    expect_right(seeds_or({60000, 5}), "x86-64-v2", SubGroups::none, KeptValues::none, Code::long_functions);
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2"))
        expect_right(seeds_or({61000, 5}), "haswell", SubGroups::none, KeptValues::none, Code::long_functions);
}

TEST(WorkGroupRandom, WithVectorsOf128Bits) { expect_right(seeds_or({8000, 8}), "x86-64-v2"); }

#endif

}  // namespace
}  // namespace polder::compiler::workgroup::test
