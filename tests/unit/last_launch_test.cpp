// LastLaunch: the choice for the last sizes is found, for these sizes alone, and never half of two.
#include <runtime/last_launch.h>

#include <atomic>
#include <cstddef>
#include <gtest/gtest.h>
#include <thread>

namespace polder::runtime {
namespace {

// Pointers that are only compared.
template <class T>
const T* pointer(uintptr_t value) {
    return reinterpret_cast<const T*>(value * 64);
}

const size_t global[] = {96, 8, 4};
const size_t local[] = {12, 2, 1};
const LastLaunch::Choice chosen{pointer<KernelOnDevice>(2), pointer<LoadedCode>(3), Size3{24, 2, 1}};

TEST(LastLaunch, NothingIsFoundBeforeTheFirstLaunch) {
    const LastLaunch last;
    LastLaunch::Choice found;
    EXPECT_FALSE(last.find({pointer<Device>(1), 3, global, local}, found));
}

TEST(LastLaunch, SameSizesFindTheChoice) {
    LastLaunch last;
    last.set({pointer<Device>(1), 3, global, local}, chosen);
    LastLaunch::Choice found;
    ASSERT_TRUE(last.find({pointer<Device>(1), 3, global, local}, found));
    EXPECT_EQ(found.on, chosen.on);
    EXPECT_EQ(found.code, chosen.code);
    EXPECT_EQ(found.local, chosen.local);
}

TEST(LastLaunch, WhateverDiffersIsNotFound) {
    LastLaunch last;
    last.set({pointer<Device>(1), 3, global, local}, chosen);
    LastLaunch::Choice found;
    EXPECT_FALSE(last.find({pointer<Device>(2), 3, global, local}, found)) << "device";
    EXPECT_FALSE(last.find({pointer<Device>(1), 2, global, local}, found)) << "dimensions";
    EXPECT_FALSE(last.find({pointer<Device>(1), 3, global, nullptr}, found)) << "without a local size";
    for (size_t d = 0; d < 3; ++d) {
        size_t other[] = {global[0], global[1], global[2]};
        ++other[d];
        EXPECT_FALSE(last.find({pointer<Device>(1), 3, other, local}, found)) << "global size " << d;
        size_t other_local[] = {local[0], local[1], local[2]};
        ++other_local[d];
        EXPECT_FALSE(last.find({pointer<Device>(1), 3, global, other_local}, found)) << "local size " << d;
    }
}

TEST(LastLaunch, SizesBeyondTheDimensionsAreNotRead) {
    LastLaunch last;
    last.set({pointer<Device>(1), 1, global, nullptr}, chosen);
    LastLaunch::Choice found;
    const size_t one[] = {96};
    EXPECT_TRUE(last.find({pointer<Device>(1), 1, one, nullptr}, found));
}

// Two threads write choices whose parts agree; what a third one finds agrees, too.
TEST(LastLaunch, ReadersNeverFindHalfOfTwoChoices) {
    LastLaunch last;
    std::atomic<bool> stop{false};
    const auto write = [&](size_t first) {
        for (size_t n = first; !stop; n += 2) {
            const size_t size[] = {n % 7 + 1};
            last.set(
                {pointer<Device>(1), 1, size, nullptr},
                {pointer<KernelOnDevice>(size[0]), pointer<LoadedCode>(size[0]), Size3{size[0], size[0], size[0]}});
        }
    };
    std::thread even(write, 0);
    std::thread odd(write, 1);
    int hits = 0, halves = 0;
    for (size_t n = 0; hits < 200'000; ++n) {
        const size_t size[] = {n % 7 + 1};
        LastLaunch::Choice found;
        if (!last.find({pointer<Device>(1), 1, size, nullptr}, found))
            continue;
        ++hits;
        halves += found.on != pointer<KernelOnDevice>(size[0]) || found.code != pointer<LoadedCode>(size[0]) ||
                  found.local != Size3{size[0], size[0], size[0]};
    }
    stop = true;
    even.join();
    odd.join();
    EXPECT_EQ(halves, 0);
}

}  // namespace
}  // namespace polder::runtime
