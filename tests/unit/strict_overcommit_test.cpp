// A process on a system with vm.overcommit_memory=2, whose /proc is a directory of the test: from the files to the figures that an
// application sees, and to the addresses that must not count before they are used. A process of its own, because the mode is read once.
#include "allocation/sparse.h"
#include "allocation/system_memory.h"
#include "support/memory_world.h"

#include <memory/allocation_policy.h>
#include <memory/region_source.h>
#include <memory/space.h>

#include <cinttypes>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <sys/resource.h>

namespace polder::memory {
namespace {

constexpr uint64_t MiB = uint64_t{1} << 20;

class StrictOvercommit : public testing::Test {
protected:
    static void SetUpTestSuite() {
        static char name[] = "/tmp/polder_proc_XXXXXX";
        ASSERT_NE(::mkdtemp(name), nullptr);
        directory = name;
        std::filesystem::create_directories(directory + "/sys/vm");
        std::ofstream(directory + "/sys/vm/overcommit_memory") << "2\n";
        SystemMemory::read_from(directory.c_str());
    }
    static void TearDownTestSuite() { std::filesystem::remove_all(directory); }
    void SetUp() override { say_committed(900); }

    // Writes a /proc with `mib` committed of a limit of 1000 MiB; much more memory is available.
    static void say_committed(uint64_t mib) {
        std::ofstream(directory + "/meminfo")
            << "MemTotal: 16777216 kB\nMemAvailable: 8388608 kB\nCommitLimit: " << 1000 * 1024
            << " kB\nCommitted_AS: " << mib * 1024 << " kB\n";
    }
    // "rw" or "--", as the system reports the page's mapping.
    static std::string access_of(DeviceAddress address) {
        std::ifstream maps("/proc/self/maps");
        for (std::string line; std::getline(maps, line);) {
            uint64_t begin = 0, end = 0;
            char access[8] = "";
            if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %4s", &begin, &end, access) == 3 &&
                address.value >= begin && address.value < end)
                return std::string(access, 2);
        }
        return "not mapped";
    }

    // Private memory of this process that may be written.
    static uint64_t data_bytes() {
        std::ifstream status("/proc/self/status");
        uint64_t kib = 0;
        for (std::string line; std::getline(status, line);)
            if (std::sscanf(line.c_str(), "VmData: %" SCNu64, &kib) == 1)
                break;
        return kib * 1024;
    }

    static inline std::string directory;
};

TEST_F(StrictOvercommit, WhatIsLeftOfTheCommitLimitIsAvailable) {
    EXPECT_TRUE(SystemMemory::promises_count());
    EXPECT_EQ(HostRegionSource().available(), ByteCount{100 * MiB});
    say_committed(1000);
    EXPECT_EQ(HostRegionSource().available(), ByteCount{0});
    say_committed(1100);  // the limit has been lowered
    EXPECT_EQ(HostRegionSource().available(), ByteCount{0});
}

TEST_F(StrictOvercommit, FreeFiguresFollow) {
    const auto space = Space::host(nullptr);
    EXPECT_LE(space->free_bytes(), ByteCount{100 * MiB});
    EXPECT_LE(space->budget().available, ByteCount{100 * MiB});
    say_committed(990);
    EXPECT_LE(space->free_bytes(), ByteCount{10 * MiB});
    EXPECT_LE(space->budget().available, ByteCount{10 * MiB});
    // The system has already counted reserved memory, and it is still free for buffers.
    const auto block = space->pool().allocate(ByteCount{MiB}, Alignment{128});
    ASSERT_TRUE(block);
    const uint64_t reserved = space->pool().statistics().reserved.value;
    space->pool().free(*block, {});
    say_committed(1000);
    EXPECT_EQ(space->free_bytes(), ByteCount{reserved});
}

TEST_F(StrictOvercommit, StretchesOfAddressesAreNotWritableBeforeTheyAreUsed) {
    const uint64_t page = SparseMemory::page().value;
    const auto stretch = Stretch::reserve(ByteCount{uint64_t{1} << 30});
    ASSERT_TRUE(stretch);
    const DeviceAddress begin = (*stretch)->address();
    EXPECT_EQ(access_of(begin), "--");
    EXPECT_EQ(access_of(begin.plus((uint64_t{1} << 30) - 1)), "--");
    ASSERT_TRUE((*stretch)->back({4 * page, 6 * page}));
    EXPECT_EQ(access_of(begin.plus(4 * page)), "rw");
    EXPECT_EQ(access_of(begin.plus(6 * page - 1)), "rw");
    EXPECT_EQ(access_of(begin.plus(4 * page - 1)), "--");
    EXPECT_EQ(access_of(begin.plus(6 * page)), "--");
    *static_cast<volatile std::byte*>(begin.plus(5 * page).host()) = std::byte{1};
}

// The limit on a process's data refuses what the accounting of the system would refuse. What was counted for the part is taken back.
TEST_F(StrictOvercommit, APartThatTheSystemRefusesCountsForNothing) {
    constexpr uint64_t GiB = 1024 * MiB;
    test::MemoryWorld world{{}};
    Allocator& pool = world.space(0).pool();
    pool.set_limit(ByteCount{8 * GiB});
    const auto storage = world.storage(4 * GiB);
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_DATA, &before), 0);
    const rlimit little{data_bytes() + 256 * MiB, before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_DATA, &little), 0);
    const bool is_there = world.domain->reserve_map(*storage, {0, 2 * GiB}).has_value();
    ASSERT_EQ(setrlimit(RLIMIT_DATA, &before), 0);
    EXPECT_FALSE(is_there);
    EXPECT_EQ(pool.statistics().live.value, 0U);
    EXPECT_TRUE(world.domain->reserve_map(*storage, {0, 1}).has_value());
    EXPECT_EQ(pool.statistics().live.value, SparseMemory::page().value);
}

}  // namespace
}  // namespace polder::memory
