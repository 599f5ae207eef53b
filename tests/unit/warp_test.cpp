// lib/kernel's sub-group functions for GPUs (nvptx/sub_group.cl), compiled for the host: each work-item of a warp is a thread, and
// the instructions of a warp are functions in which the threads meet. An instruction that some of its members never reach, or whose
// members disagree, fails; a shuffle from outside the members gives a wrong value, as on the processor.
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <gtest/gtest.h>
#include <limits>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr uint32_t warp_size = 32;
constexpr uint32_t undefined = 0xdeadbeef;

// The work-items of one sub-group of a work-group.
class Warp {
public:
    using Values = std::array<uint32_t, warp_size>;

    // The values of the members, when all of them have arrived.
    Values exchange(uint32_t lane, uint32_t members, uint32_t value) {
        std::unique_lock lock(mutex_);
        if (arrived_ == 0)
            members_ = members;
        if (members != members_ || !(members >> lane & 1))
            die("the members of an instruction disagree");
        values_[lane] = value;
        arrived_ |= 1u << lane;
        if (arrived_ == members) {
            complete_ = values_;
            arrived_ = 0;
            ++generation_;
            changed_.notify_all();
        } else {
            const uint64_t mine = generation_;
            if (!changed_.wait_for(lock, std::chrono::seconds(60), [&] { return generation_ != mine; }))
                die("some members of an instruction never come");
        }
        return complete_;
    }

private:
    [[noreturn]] static void die(const char* why) {
        std::fprintf(stderr, "%s\n", why);
        std::abort();
    }
    std::mutex mutex_;
    std::condition_variable changed_;
    uint32_t members_ = 0, arrived_ = 0;
    uint64_t generation_ = 0;
    Values values_{}, complete_{};
};

// State of the calling thread: where it is, and which work-items are active there.
struct Place {
    Warp* warp = nullptr;
    uint32_t lane = 0;
    uint32_t active = 0;
};
thread_local Place here;
// State of the work-group: its size, and which of its sub-groups the threads are.
uint32_t group_size = warp_size;
uint32_t sub_group = 0;
bool has_reductions = false;

template <class Combine>
uint32_t reduce(uint32_t x, uint32_t members, Combine combine) {
    const Warp::Values values = here.warp->exchange(here.lane, members, x);
    uint32_t result = values[static_cast<size_t>(std::countr_zero(members))];
    for (uint32_t lane = static_cast<uint32_t>(std::countr_zero(members)) + 1; lane < warp_size; ++lane)
        if (members >> lane & 1)
            result = combine(result, values[lane]);
    return result;
}

}  // namespace

// The instructions.
extern "C" {
uint32_t _polder_sub_group_lane() { return here.lane; }
uint32_t _polder_sub_group_number() { return sub_group; }
uint32_t _polder_sub_group_width() { return warp_size; }
uint32_t _polder_warp_active() { return here.active; }
uint32_t _polder_warp_has_reductions() { return has_reductions ? 1 : 0; }
uint32_t _polder_warp_ballot(uint32_t members, uint32_t predicate) {
    const Warp::Values values = here.warp->exchange(here.lane, members, predicate);
    uint32_t bits = 0;
    for (uint32_t lane = 0; lane < warp_size; ++lane)
        if ((members >> lane & 1) && values[lane] != 0)
            bits |= 1u << lane;
    return bits;
}
uint32_t _polder_warp_shuffle(uint32_t members, uint32_t x, uint32_t lane) {
    const Warp::Values values = here.warp->exchange(here.lane, members, x);
    return members >> lane % warp_size & 1 ? values[lane % warp_size] : undefined;
}
void _polder_warp_sync(uint32_t members) { here.warp->exchange(here.lane, members, 0); }
uint32_t _polder_warp_reduce_add(uint32_t x, uint32_t members) { return reduce(x, members, std::plus<>{}); }
uint32_t _polder_warp_reduce_and(uint32_t x, uint32_t members) { return reduce(x, members, std::bit_and<>{}); }
uint32_t _polder_warp_reduce_or(uint32_t x, uint32_t members) { return reduce(x, members, std::bit_or<>{}); }
uint32_t _polder_warp_reduce_xor(uint32_t x, uint32_t members) { return reduce(x, members, std::bit_xor<>{}); }
uint32_t _polder_warp_reduce_umin(uint32_t x, uint32_t members) {
    return reduce(x, members, [](uint32_t a, uint32_t b) { return std::min(a, b); });
}
uint32_t _polder_warp_reduce_umax(uint32_t x, uint32_t members) {
    return reduce(x, members, [](uint32_t a, uint32_t b) { return std::max(a, b); });
}
uint32_t _polder_warp_reduce_min(uint32_t x, uint32_t members) {
    return reduce(x, members, [](uint32_t a, uint32_t b) {
        return static_cast<uint32_t>(std::min(static_cast<int32_t>(a), static_cast<int32_t>(b)));
    });
}
uint32_t _polder_warp_reduce_max(uint32_t x, uint32_t members) {
    return reduce(x, members, [](uint32_t a, uint32_t b) {
        return static_cast<uint32_t>(std::max(static_cast<int32_t>(a), static_cast<int32_t>(b)));
    });
}
}

// What the functions call of OpenCL C. The names of C++ are those of OpenCL C.
#pragma GCC diagnostic ignored "-Wmissing-declarations"
#ifdef __clang__
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#endif
size_t get_local_size(unsigned d) { return d == 0 ? group_size : 1; }
size_t get_enqueued_local_size(unsigned d) { return d == 0 ? group_size : 1; }
unsigned clz(unsigned x) { return static_cast<unsigned>(std::countl_zero(x)); }
unsigned long clz(unsigned long x) { return static_cast<unsigned long>(std::countl_zero(x)); }
unsigned long ctz(unsigned long x) { return static_cast<unsigned long>(std::countr_zero(x)); }
unsigned long popcount(unsigned long x) { return static_cast<unsigned long>(std::popcount(x)); }
#define POLDER_MIN_MAX(T)                                                                                              \
    T min(T a, T b) { return b < a ? b : a; }                                                                          \
    T max(T a, T b) { return a < b ? b : a; }
POLDER_MIN_MAX(char)
POLDER_MIN_MAX(unsigned char)
POLDER_MIN_MAX(short)
POLDER_MIN_MAX(unsigned short)
POLDER_MIN_MAX(int)
POLDER_MIN_MAX(unsigned)
POLDER_MIN_MAX(long)
POLDER_MIN_MAX(unsigned long)

// The functions themselves.
#define POLDER_SCANS(PREFIX, NAME, T)                                                                                  \
    T PREFIX##_reduce_##NAME(T);                                                                                       \
    T PREFIX##_scan_inclusive_##NAME(T);                                                                               \
    T PREFIX##_scan_exclusive_##NAME(T);
#define POLDER_BOTH(NAME, T)                                                                                           \
    POLDER_SCANS(sub_group, NAME, T)                                                                                   \
    POLDER_SCANS(sub_group_non_uniform, NAME, T)                                                                       \
    T sub_group_clustered_reduce_##NAME(T, unsigned);
#define POLDER_DECLARE(T)                                                                                              \
    POLDER_BOTH(add, T)                                                                                                \
    POLDER_BOTH(min, T)                                                                                                \
    POLDER_BOTH(max, T)                                                                                                \
    POLDER_SCANS(sub_group_non_uniform, mul, T)                                                                        \
    T sub_group_clustered_reduce_mul(T, unsigned);                                                                     \
    T sub_group_broadcast(T, unsigned);                                                                                \
    T sub_group_shuffle(T, unsigned);                                                                                  \
    T sub_group_shuffle_xor(T, unsigned);                                                                              \
    T sub_group_broadcast_first(T);                                                                                    \
    T sub_group_rotate(T, int);                                                                                        \
    int sub_group_non_uniform_all_equal(T);
POLDER_DECLARE(char)
POLDER_DECLARE(unsigned short)
POLDER_DECLARE(int)
POLDER_DECLARE(unsigned)
POLDER_DECLARE(long)
POLDER_DECLARE(float)
POLDER_DECLARE(double)
POLDER_SCANS(sub_group_non_uniform, xor, int)
POLDER_SCANS(sub_group_non_uniform, and, unsigned short)
POLDER_SCANS(sub_group_non_uniform, or, long)
POLDER_SCANS(sub_group_non_uniform, logical_xor, int)
using uint4 = unsigned __attribute__((vector_size(16)));
uint4 sub_group_ballot(int);
int sub_group_all(int);
int sub_group_any(int);
int sub_group_elect();
unsigned get_sub_group_size();
unsigned get_num_sub_groups();
void sub_group_barrier(unsigned);

namespace {

// The participants: the work-group's size, which of its sub-groups, and the work-items that are active under divergent control.
struct Case {
    uint32_t group_size;
    uint32_t sub_group;
    uint32_t active;
    bool has_reductions;
};

class Warps : public testing::TestWithParam<Case> {
protected:
    void SetUp() override {
        group_size = GetParam().group_size;
        sub_group = GetParam().sub_group;
        has_reductions = GetParam().has_reductions;
        size_ = std::min(warp_size, group_size - sub_group * warp_size);
        members_ = size_ == warp_size ? ~0u : (1u << size_) - 1;
        active_ = GetParam().active & members_;
    }
    // Calls `body(lane)` in a thread for each of the work-items `active`.
    template <class Body>
    static void run(uint32_t active, Body body) {
        Warp warp;
        std::vector<std::thread> threads;
        for (uint32_t lane = 0; lane < warp_size; ++lane)
            if (active >> lane & 1)
                threads.emplace_back([&, lane] {
                    here = {&warp, lane, active};
                    body(lane);
                });
        for (std::thread& thread : threads)
            thread.join();
    }

    template <class T>
    static T input(uint32_t lane) {
        return static_cast<T>(static_cast<int>(lane * 37 % 5) - 2 + (lane % 4 == 0 ? 3 : 0));
    }

    template <class T>
    struct Scans {
        T (*reduce)(T);
        T (*inclusive)(T);
        T (*exclusive)(T);
    };
    template <class T, class Combine>
    void check_scans(const char* name, const Scans<T>& scans, uint32_t active, T identity, Combine combine) {
        std::array<T, warp_size> reduced{}, inclusive{}, exclusive{};
        run(active, [&](uint32_t lane) {
            reduced[lane] = scans.reduce(input<T>(lane));
            inclusive[lane] = scans.inclusive(input<T>(lane));
            exclusive[lane] = scans.exclusive(input<T>(lane));
        });
        T so_far = identity;
        std::array<T, warp_size> before{}, with{};
        for (uint32_t lane = 0; lane < warp_size; ++lane)
            if (active >> lane & 1) {
                before[lane] = so_far;
                with[lane] = so_far = static_cast<T>(combine(so_far, input<T>(lane)));
            }
        for (uint32_t lane = 0; lane < warp_size; ++lane)
            if (active >> lane & 1) {
                EXPECT_EQ(reduced[lane], so_far) << name << " " << lane;
                EXPECT_EQ(inclusive[lane], with[lane]) << name << " " << lane;
                EXPECT_EQ(exclusive[lane], before[lane]) << name << " " << lane;
            }
    }

    template <class T, class Combine>
    void check_clusters(const char* name, T (*clustered)(T, unsigned), T identity, Combine combine) {
        for (const uint32_t cluster : {1u, 4u, 16u, 32u}) {
            std::array<T, warp_size> results{};
            run(active_, [&](uint32_t lane) { results[lane] = clustered(input<T>(lane), cluster); });
            for (uint32_t lane = 0; lane < warp_size; ++lane) {
                if (!(active_ >> lane & 1))
                    continue;
                T expected = identity;
                for (uint32_t i = lane / cluster * cluster; i < lane / cluster * cluster + cluster; ++i)
                    if (active_ >> i & 1)
                        expected = static_cast<T>(combine(expected, input<T>(i)));
                EXPECT_EQ(results[lane], expected) << name << " of " << cluster << " " << lane;
            }
        }
    }

#define POLDER_SCANS_OF(PREFIX, NAME)                                                                                  \
    Scans<T> { PREFIX##_reduce_##NAME, PREFIX##_scan_inclusive_##NAME, PREFIX##_scan_exclusive_##NAME }
    template <class T>
    void check_arithmetic() {
        const T lowest = std::is_integral_v<T> ? std::numeric_limits<T>::min() : -std::numeric_limits<T>::infinity();
        const T highest = std::is_integral_v<T> ? std::numeric_limits<T>::max() : std::numeric_limits<T>::infinity();
        // Results of integers are the low bits, which signed arithmetic would not give when it overflows.
        const auto widened = [](T x) {
            if constexpr (std::is_integral_v<T>)
                return static_cast<uint64_t>(x);
            else
                return x;
        };
        const auto add = [=](T a, T b) { return static_cast<T>(widened(a) + widened(b)); };
        const auto multiply = [=](T a, T b) { return static_cast<T>(widened(a) * widened(b)); };
        const auto smaller = [](T a, T b) { return std::min(a, b); };
        const auto larger = [](T a, T b) { return std::max(a, b); };
        check_scans("add", POLDER_SCANS_OF(sub_group, add), members_, T{0}, add);
        check_scans("min", POLDER_SCANS_OF(sub_group, min), members_, highest, smaller);
        check_scans("max", POLDER_SCANS_OF(sub_group, max), members_, lowest, larger);
        check_scans("add", POLDER_SCANS_OF(sub_group_non_uniform, add), active_, T{0}, add);
        check_scans("mul", POLDER_SCANS_OF(sub_group_non_uniform, mul), active_, T{1}, multiply);
        check_scans("min", POLDER_SCANS_OF(sub_group_non_uniform, min), active_, highest, smaller);
        check_scans("max", POLDER_SCANS_OF(sub_group_non_uniform, max), active_, lowest, larger);
        check_clusters<T>("clustered add", sub_group_clustered_reduce_add, T{0}, add);
        check_clusters<T>("clustered mul", sub_group_clustered_reduce_mul, T{1}, multiply);
        check_clusters<T>("clustered max", sub_group_clustered_reduce_max, lowest, larger);
    }

    template <class T>
    void check_shuffles() {
        const auto first = static_cast<uint32_t>(std::countr_zero(active_));
        run(members_,
            [&](uint32_t) { EXPECT_EQ(sub_group_broadcast(input<T>(here.lane), size_ - 1), input<T>(size_ - 1)); });
        run(active_, [&](uint32_t lane) {
            EXPECT_EQ(sub_group_broadcast_first(input<T>(lane)), input<T>(first));
            EXPECT_EQ(sub_group_shuffle(input<T>(lane), first), input<T>(first));
            EXPECT_EQ(sub_group_shuffle_xor(input<T>(lane), 0), input<T>(lane));
            EXPECT_EQ(sub_group_non_uniform_all_equal(T{7}), 1);
            EXPECT_EQ(sub_group_non_uniform_all_equal(static_cast<T>(lane == first)), std::popcount(active_) == 1);
        });
        // In a work-group of several sub-groups all have the size of a whole one.
        const uint32_t turn = std::min(warp_size, group_size);
        run(members_, [&](uint32_t lane) {
            const T x = sub_group_rotate(input<T>(lane), 3);
            if ((lane + 3) % turn < size_) {
                EXPECT_EQ(x, input<T>((lane + 3) % turn)) << lane;
            }
        });
    }

    uint32_t size_ = 0, members_ = 0, active_ = 0;
};

TEST_P(Warps, Reductions_AndScans_AreThoseOfTheWorkItemsThatTakePart) {
    check_arithmetic<char>();
    check_arithmetic<unsigned short>();
    check_arithmetic<int>();
    check_arithmetic<long>();
    check_arithmetic<float>();
    {
        using T = int;
        check_scans("xor", POLDER_SCANS_OF(sub_group_non_uniform, xor), active_, 0, std::bit_xor<T>{});
        check_scans("logical xor", POLDER_SCANS_OF(sub_group_non_uniform, logical_xor), active_, 0,
                    [](int a, int b) { return (a != 0) != (b != 0) ? 1 : 0; });
    }
    {
        using T = unsigned short;
        check_scans("and", POLDER_SCANS_OF(sub_group_non_uniform, and), active_, T{0xffff}, std::bit_and<T>{});
    }
    using T = long;
    check_scans("or", POLDER_SCANS_OF(sub_group_non_uniform, or), active_, T{0}, std::bit_or<T>{});
}

TEST_P(Warps, Shuffles_GiveTheValueOfAnother) {
    check_shuffles<char>();
    check_shuffles<unsigned short>();
    check_shuffles<int>();
    check_shuffles<long>();
    check_shuffles<float>();
    check_shuffles<double>();
}

TEST_P(Warps, Votes_CountWhoTakesPart) {
    const auto first = static_cast<uint32_t>(std::countr_zero(active_));
    run(active_, [&](uint32_t lane) {
        EXPECT_EQ(sub_group_ballot(lane % 3 == 0)[0], active_ & 0x49249249u);
        EXPECT_EQ(sub_group_elect(), lane == first);
    });
    run(members_, [&](uint32_t lane) {
        EXPECT_EQ(sub_group_all(1), 1);
        EXPECT_EQ(sub_group_all(lane != 0), 0);
        EXPECT_EQ(sub_group_any(lane == size_ - 1), 1);
        EXPECT_EQ(sub_group_any(0), 0);
        EXPECT_EQ(get_sub_group_size(), size_);
        EXPECT_EQ(get_num_sub_groups(), (group_size + warp_size - 1) / warp_size);
        sub_group_barrier(1);
    });
}

std::string name_of(const testing::TestParamInfo<Case>& info) {
    const Case& of = info.param;
    return "Of" + std::to_string(of.group_size) + "At" + std::to_string(of.sub_group) + "Active" +
           std::to_string(of.active) + (of.has_reductions ? "WithInstructions" : "");
}
INSTANTIATE_TEST_SUITE_P(, Warps,
                         testing::Values(Case{64, 0, ~0u, false}, Case{64, 1, ~0u, true}, Case{84, 2, ~0u, false},
                                         Case{84, 2, ~0u, true}, Case{64, 0, 0xb6db6db6, false},
                                         Case{32, 0, 0x80000001, true}, Case{7, 0, 0x55, false}, Case{1, 0, 1, false}),
                         name_of);

}  // namespace
