// What is reported of a memory that is full. In a trace, a refusal after which an eviction succeeds is no failure of a command.
// Needs POCL_DEBUG=memory.
#include "support/memory_world.h"
#include "trace/replay.h"
#include "trace/trace_file.h"

#include <memory/trace.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>
#include <string>
#include <unistd.h>
#include <vector>

namespace polder::memory {
namespace {

using polder::trace::Kind;
using test::MemoryWorld;

constexpr uint64_t KiB = 1024;

class RecordedEviction : public testing::Test {
protected:
    RecordedEviction() {
        char name[] = "/tmp/polder-trace-XXXXXX";
        const int descriptor = ::mkstemp(name);
        EXPECT_GE(descriptor, 0);
        ::close(descriptor);
        path_ = name;
        EXPECT_TRUE(trace::begin(path_));
    }
    ~RecordedEviction() override {
        trace::end();
        std::filesystem::remove(path_);
    }
    [[nodiscard]] polder::trace::TraceFile recorded() const {
        trace::end();
        auto read = polder::trace::read_trace(path_);
        EXPECT_TRUE(read);
        return read ? *std::move(read) : polder::trace::TraceFile{};
    }
    static int64_t count(const polder::trace::TraceFile& file, Kind kind) {
        return std::ranges::count_if(
            file.events, [kind](const polder::trace::TimedEvent& timed) { return timed.event.kind == kind; });
    }

private:
    std::string path_;
};

TEST_F(RecordedEviction, WhatAnEvictionServesIsARefusalAndNoFailure) {
    {
        MemoryWorld world{{.memory_bytes = 64 * KiB, .domain = {}}};
        std::vector<Ref<Storage>> storages;
        for (int i = 0; i < 16; ++i) {
            storages.push_back(world.storage(16 * KiB));
            world.kernel(world.on(1), {{storages.back().get(), {0, 16 * KiB}, Access::write}});
        }
        world.world.run();
    }
    const polder::trace::TraceFile file = recorded();
    EXPECT_GE(count(file, Kind::refused), 12);
    EXPECT_GE(count(file, Kind::evict), 12);
    EXPECT_EQ(count(file, Kind::out_of_memory), 0);
    for (const polder::trace::ReplayOfSpace& space : polder::trace::recorded(file))
        EXPECT_EQ(space.out_of_memory, 0u);
}

TEST_F(RecordedEviction, CommandThatFitsNowhereFailsOnce) {
    {
        MemoryWorld world{{.memory_bytes = 64 * KiB, .domain = {}}};
        const Ref<Storage> large[] = {world.storage(40 * KiB), world.storage(40 * KiB)};
        const Use both[] = {{large[0].get(), {0, 40 * KiB}}, {large[1].get(), {0, 40 * KiB}}};
        EXPECT_FALSE(world.domain->reserve(both, SpaceId{1}));
    }
    const polder::trace::TraceFile file = recorded();
    ASSERT_EQ(count(file, Kind::out_of_memory), 1);
    const auto failure = std::ranges::find_if(
        file.events, [](const polder::trace::TimedEvent& timed) { return timed.event.kind == Kind::out_of_memory; });
    EXPECT_EQ(failure->event.space, 1u);
    EXPECT_EQ(failure->event.size, 80 * KiB);
    EXPECT_TRUE(std::ranges::any_of(
        file.texts, [](const auto& text) { return text.second.starts_with("out of memory in space 1"); }));
}

// Twice the memory is used in turns, so that half of the memory's size returns with each round and more.
TEST(ReportedEviction, ThatMoreIsUsedThanThereIsRoomFor_Once) {
    testing::internal::CaptureStderr();
    {
        MemoryWorld world{{.memory_bytes = 64 * KiB, .domain = {}}};
        std::vector<Ref<Storage>> storages;
        for (int i = 0; i < 8; ++i)
            storages.push_back(world.storage(16 * KiB));
        for (int round = 0; round < 20; ++round)
            for (const Ref<Storage>& storage : storages)
                world.kernel(world.on(1), {{storage.get(), {0, 16 * KiB}, Access::read_write}});
        world.world.run();
    }
    const std::string log = testing::internal::GetCapturedStderr();
    const std::string report = "space 1: the buffers in use need more than its 65536 bytes";
    ASSERT_NE(log.find(report), std::string::npos) << "POCL_DEBUG=memory?";
    EXPECT_EQ(log.find(report), log.rfind(report));
    EXPECT_EQ(log.find("space 0: the buffers in use"), std::string::npos);
}

}  // namespace
}  // namespace polder::memory
