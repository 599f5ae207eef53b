// What /proc says about memory, in the three modes of overcommitting.
#include "allocation/system_memory.h"

#include <gtest/gtest.h>

namespace polder::memory {
namespace {

constexpr const char* meminfo = "MemTotal:       24684212 kB\n"
                                "MemFree:        18000000 kB\n"
                                "MemAvailable:   20000000 kB\n"
                                "CommitLimit:    12342104 kB\n"
                                "Committed_AS:   10342104 kB\n";

TEST(SystemMemory, WhereAddressesCostNothingTheAvailableMemoryCounts) {
    for (const char* mode : {"0\n", "1\n", ""}) {
        const SystemMemory memory = SystemMemory::parse(meminfo, mode);
        EXPECT_FALSE(memory.counts_promises);
        EXPECT_EQ(memory.usable(), ByteCount{uint64_t{20000000} << 10});
    }
}

TEST(SystemMemory, WherePromisesCountTheCommitLimitBounds) {
    const SystemMemory memory = SystemMemory::parse(meminfo, "2\n");
    EXPECT_TRUE(memory.counts_promises);
    EXPECT_EQ(memory.usable(), ByteCount{uint64_t{2000000} << 10});
    const SystemMemory full = SystemMemory::parse("MemAvailable: 5 kB\nCommitLimit: 4 kB\nCommitted_AS: 9 kB\n", "2");
    EXPECT_EQ(full.usable(), ByteCount{0});
    const SystemMemory plenty =
        SystemMemory::parse("MemAvailable: 5 kB\nCommitLimit: 99 kB\nCommitted_AS: 9 kB\n", "2");
    EXPECT_EQ(plenty.usable(), ByteCount{5 << 10});
}

TEST(SystemMemory, TextsWithoutFiguresAreNotKnown) {
    for (const char* text : {"", "MemAvailable:", "MemAvailable: kB"})
        EXPECT_EQ(SystemMemory::parse(text, "0").available, ByteCount{0}) << text;
}

TEST(SystemMemory, ThisMachineHasSome) { EXPECT_GT(SystemMemory::now().available, ByteCount{0}); }

}  // namespace
}  // namespace polder::memory
