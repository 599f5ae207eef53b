// Launches in a trace: a reader finds those that repeat an earlier one with their uses and in their order.
#include "trace/trace_file.h"

#include <memory/launch_trace.h>
#include <memory/storage.h>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <random>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace polder::memory {
namespace {

using polder::trace::Kind;
using polder::trace::read_trace;
using polder::trace::TraceFile;

// Only what a trace asks of a storage: its number and its size.
class NumberedStorage final : public Storage {
public:
    explicit NumberedStorage(uint64_t bytes) : bytes_(bytes) {}
    [[nodiscard]] ByteCount size() const override { return ByteCount{bytes_}; }
    [[nodiscard]] Domain& domain() const override { std::abort(); }
    [[nodiscard]] std::byte* map_address() const override { return nullptr; }
    void pin_map() override {}
    void unpin_map() override {}
    void on_destroyed(CompletionCallback) override {}
    [[nodiscard]] bool run_when_idle(ByteRange, CompletionCallback) noexcept override { return false; }
    [[nodiscard]] bool is_idle(ByteRange) noexcept override { return true; }
    void wait_until_idle() override {}
    void add_handle() noexcept override {}
    void remove_handle() noexcept override {}
    [[nodiscard]] bool validate() const override { return true; }

private:
    uint64_t bytes_;
};

// A launch as it was recorded, to be compared with what a trace has.
struct RecordedLaunch {
    uint32_t text;
    uint32_t space;
    uint64_t value;
    std::vector<Use> uses;
};
void record(const RecordedLaunch& launch) {
    memory::trace::record_launch(launch.uses, {nullptr, launch.value}, SpaceId{launch.space}, launch.text);
}
uint8_t bits_of(Access access) {
    return static_cast<uint8_t>((reads(access) ? polder::trace::reads : 0) |
                                (writes(access) ? polder::trace::writes : 0));
}
// The launches of the trace, in the order of its events, each followed by its uses.
void expect_launches(const TraceFile& trace, std::span<const RecordedLaunch> launches) {
    size_t next = 0;
    for (size_t i = 0; i < trace.events.size(); ++i) {
        const polder::trace::Event& event = trace.events[i].event;
        if (event.kind != Kind::launch)
            continue;
        ASSERT_LT(next, launches.size());
        const RecordedLaunch& launch = launches[next++];
        ASSERT_EQ(event.value, launch.value) << next;
        ASSERT_EQ(event.storage, launch.text) << next;
        ASSERT_EQ(event.space, launch.space) << next;
        ASSERT_EQ(event.other_space, 0u);
        ASSERT_EQ(event.flags, 0u);
        ASSERT_EQ(event.address, 0u);
        ASSERT_EQ(event.size, launch.uses.size());
        for (const Use& expected : launch.uses) {
            ASSERT_LT(++i, trace.events.size());
            const polder::trace::Event& use = trace.events[i].event;
            ASSERT_EQ(use.kind, Kind::use) << next;
            ASSERT_EQ(use.storage, expected.storage->number());
            ASSERT_EQ(use.address, expected.range.begin);
            ASSERT_EQ(use.size, expected.range.size());
            ASSERT_EQ(use.flags, bits_of(expected.access));
            ASSERT_EQ(trace.events[i].ns, trace.events[i - 1].ns);
        }
    }
    EXPECT_EQ(next, launches.size());
}

class LaunchTrace : public testing::Test {
protected:
    LaunchTrace() {
        char name[] = "/tmp/polder-trace-XXXXXX";
        const int descriptor = mkstemp(name);
        EXPECT_GE(descriptor, 0);
        ::close(descriptor);
        path = name;
    }
    ~LaunchTrace() override {
        memory::trace::end();
        std::filesystem::remove(path);
    }
    [[nodiscard]] TraceFile read() const {
        auto trace = read_trace(path);
        EXPECT_TRUE(trace) << trace.error().detail();
        return trace ? *std::move(trace) : TraceFile{};
    }
    static void record_number(uint64_t number) {
        memory::trace::Fields fields;
        fields.kind = Kind::storage_create;
        fields.storage = number;
        fields.size = number * 2;
        memory::trace::record(fields);
    }

    static void record_storage(const Storage& storage) {
        memory::trace::Fields fields;
        fields.kind = Kind::storage_create;
        fields.storage = storage.number();
        fields.size = storage.size().value;
        memory::trace::record(fields);
    }

    std::string path;
};

// The first launch of a recording refers to no launch of the one before, though the thread has repeated it until then.
TEST_F(LaunchTrace, EachRecordingHasItsLaunchesInFull) {
    const auto storage = make_ref<NumberedStorage>(4096);
    uint64_t value = 0;
    for (int recording = 0; recording < 3; ++recording) {
        ASSERT_TRUE(memory::trace::begin(path));
        std::vector<RecordedLaunch> launches;
        while (launches.size() < 50) {
            launches.push_back({1, 0, ++value, {{storage.get(), {1024, 4096}, Access::write}}});
            record(launches.back());
        }
        memory::trace::end();
        expect_launches(read(), launches);
    }
}

// More kernels than slots, values that jump, other events in between, and several chunks.
TEST_F(LaunchTrace, LaunchesThatRepeatAreReadOneByOne) {
    for (const uint32_t kernels : {1u, 3u, 30u, 400u}) {
        ASSERT_TRUE(memory::trace::begin(path));
        const auto storage = make_ref<NumberedStorage>(4096);
        std::mt19937_64 random(kernels);
        std::vector<RecordedLaunch> launches;
        record_storage(*storage);
        uint64_t value = 0;
        while (launches.size() < 8000) {
            value += random() % 50 == 0 ? 1000 : random() % 3;
            const auto text = static_cast<uint32_t>(1 + random() % kernels);
            launches.push_back(
                {text, static_cast<uint32_t>(random() % 2), value, {{storage.get(), {0, 4096}, Access::write}}});
            record(launches.back());
            if (random() % 20 == 0)
                record_number(1'000'000 + random() % 100);
        }
        memory::trace::end();
        const TraceFile trace = read();
        EXPECT_EQ(trace.chunks > 2, kernels >= 30) << "a jump of the values costs an event for each kernel";
        expect_launches(trace, launches);
    }
}

// Up to more uses than a slot has room for, of whole storages and of parts, with every access; the ends of chunks fall between a launch and
// its uses.
TEST_F(LaunchTrace, LaunchesOfManyBuffersAreReadWithTheirUses) {
    ASSERT_TRUE(memory::trace::begin(path));
    std::vector<Ref<NumberedStorage>> storages;
    for (size_t i = 0; i < 20; ++i) {
        storages.push_back(make_ref<NumberedStorage>(4096));
        record_storage(*storages.back());
    }
    std::mt19937_64 random(7);
    std::vector<RecordedLaunch> kinds;
    for (const size_t count : {0, 1, 2, 3, 3, 12, 16, 17, 20}) {
        RecordedLaunch launch{static_cast<uint32_t>(1 + kinds.size()), 1, 0, {}};
        for (size_t i = 0; i < count; ++i) {
            const uint64_t begin = random() % 2 * 1024;
            launch.uses.push_back(
                {storages[i].get(), {begin, random() % 2 == 0 ? 4096u : 2048u}, static_cast<Access>(1 + random() % 4)});
        }
        kinds.push_back(launch);
    }
    std::vector<RecordedLaunch> launches;
    for (uint64_t value = 1; value < 6000; ++value) {
        RecordedLaunch& launch = kinds[random() % kinds.size()];
        // Sometimes one property of a use differs.
        if (random() % 50 == 0 && !launch.uses.empty()) {
            Use& use = launch.uses[random() % launch.uses.size()];
            switch (random() % 4) {
            case 0: use.storage = storages[random() % storages.size()].get(); break;
            case 1: use.range.begin = random() % 2048; break;
            case 2: use.range.end = 2048 + random() % 2048; break;
            default: use.access = static_cast<Access>(1 + random() % 4);
            }
        }
        launch.value = value;
        launches.push_back(launch);
        record(launch);
    }
    memory::trace::end();
    const TraceFile trace = read();
    EXPECT_GT(trace.chunks, 2u);
    expect_launches(trace, launches);
}

// The kernels of a program, and the buffers of a kernel, take turns: each launch takes four bytes.
TEST_F(LaunchTrace, SixtyKernelsAndSixtyBuffersInTurnsRepeat) {
    ASSERT_TRUE(memory::trace::begin(path));
    std::vector<Ref<NumberedStorage>> storages;
    for (size_t i = 0; i < 60; ++i) {
        storages.push_back(make_ref<NumberedStorage>(4096));
        record_storage(*storages.back());
    }
    std::vector<RecordedLaunch> launches;
    const auto launch = [&](uint32_t text, size_t storage) {
        launches.push_back({text, 0, launches.size(), {{storages[storage].get(), {0, 4096}, Access::read_write}}});
        record(launches.back());
    };
    for (uint32_t round = 0; round < 50; ++round)
        for (uint32_t text = 1; text <= 60; ++text)
            launch(text, 0);
    for (uint32_t round = 0; round < 50; ++round)
        for (size_t storage = 0; storage < storages.size(); ++storage)
            launch(1, storage);
    memory::trace::end();
    const TraceFile trace = read();
    EXPECT_EQ(trace.chunks, 1u) << "6,000 launches: 120 events of their own and 735 for the others";
    expect_launches(trace, launches);
}

// A launch that follows quickly has no time of its own; one after a pause has.
TEST_F(LaunchTrace, TimesStayInOrder_AndAreExactWhenLaunchesAreSlow) {
    ASSERT_TRUE(memory::trace::begin(path));
    std::vector<RecordedLaunch> launches;
    for (uint64_t value = 1; value <= 64; ++value) {
        launches.push_back({1, 0, value, {}});
        record(launches.back());
    }
    record_number(5);
    for (uint64_t value = 65; value <= 84; ++value) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        launches.push_back({1, 0, value, {}});
        record(launches.back());
    }
    memory::trace::end();
    const TraceFile trace = read();
    expect_launches(trace, launches);
    ASSERT_EQ(trace.events.size(), 85u);
    // Launches without a time are at most fast_ticks apart, slow ones are a million ticks apart.
    for (size_t i = 1; i < trace.events.size(); ++i) {
        EXPECT_GE(trace.events[i].ns, trace.events[i - 1].ns);
        if (i <= 65)
            continue;
        EXPECT_GT(trace.events[i].event.ticks - trace.events[i - 1].event.ticks, 2 * polder::trace::Repeat::fast_ticks)
            << i;
    }
}

// The first launches after a pause, whose times were not read, may be placed before it, but not those of more than two events.
TEST_F(LaunchTrace, APauseIsSeenWithinTwoEvents) {
    constexpr uint64_t before = 100;
    constexpr uint64_t after = 100;
    constexpr uint64_t pause_ns = 50'000'000;
    constexpr uint64_t launches_of_two_events = uint64_t{2} * polder::trace::Repeat::most;
    for (uint64_t extra = 0; extra < launches_of_two_events; ++extra) {
        SCOPED_TRACE(extra);
        ASSERT_TRUE(memory::trace::begin(path));
        std::vector<RecordedLaunch> launches;
        const auto launch_often = [&](uint64_t count) {
            for (uint64_t i = 0; i < count; ++i) {
                launches.push_back({1, 0, launches.size() + 1, {}});
                record(launches.back());
            }
        };
        launch_often(before + extra);
        std::this_thread::sleep_for(std::chrono::nanoseconds(pause_ns));
        launch_often(after);
        memory::trace::end();
        const TraceFile trace = read();
        expect_launches(trace, launches);
        ASSERT_EQ(trace.events.size(), launches.size());
        for (size_t i = 1; i < trace.events.size(); ++i)
            EXPECT_GE(trace.events[i].ns, trace.events[i - 1].ns) << i;
        EXPECT_GE(trace.events[before + extra + launches_of_two_events].ns - trace.events[0].ns, pause_ns);
    }
}

// The format of version 2: 16 slots, times in ticks.
TEST_F(LaunchTrace, Version2IsRead) {
    {
        std::ofstream file(path, std::ios::binary);
        polder::trace::FileHeader header{};
        std::memcpy(header.magic, polder::trace::magic, sizeof header.magic);
        header.version = 2;
        header.chunk_bytes = 4096;
        std::vector<std::byte> bytes(8192);
        std::memcpy(bytes.data(), &header, sizeof header);
        polder::trace::ChunkHeader chunk{};
        chunk.magic = polder::trace::chunk_magic;
        chunk.ns_per_tick = 1;
        chunk.number = 1;
        std::memcpy(bytes.data() + 4096, &chunk, sizeof chunk);
        polder::trace::Event launch{};
        launch.ticks = 1000;
        launch.kind = Kind::launch;
        launch.other_space = 9;
        launch.flags = polder::trace::whole_uses;
        launch.storage = 3;
        launch.size = 1;
        launch.address = polder::trace::WholeUses::half(7, polder::trace::writes);
        launch.value = 10;
        polder::trace::Event repeats{};
        repeats.ticks = 2000;
        repeats.kind = Kind::repeats;
        repeats.flags = 2;
        const uint32_t made[] = {1u << 22 | 9u << 28, ((1u << 22) - 1) | 2u << 22 | 9u << 28};
        std::memcpy(reinterpret_cast<std::byte*>(&repeats) + offsetof(polder::trace::Event, storage), made,
                    sizeof made);
        std::memcpy(bytes.data() + 4096 + sizeof chunk, &launch, sizeof launch);
        std::memcpy(bytes.data() + 4096 + sizeof chunk + sizeof launch, &repeats, sizeof repeats);
        file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    }
    const TraceFile trace = read();
    ASSERT_EQ(trace.events.size(), 6u);
    const uint64_t ns[] = {1000, 2000, 2000 + (1 << 22) - 1}, values[] = {10, 11, 13};
    for (size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(trace.events[2 * i].event.kind, Kind::launch);
        EXPECT_EQ(trace.events[2 * i].ns, ns[i]);
        EXPECT_EQ(trace.events[2 * i].event.value, values[i]);
        EXPECT_EQ(trace.events[2 * i + 1].event.kind, Kind::use);
        EXPECT_EQ(trace.events[2 * i + 1].event.storage, 7u);
    }
}

TEST_F(LaunchTrace, KilledProcessLeavesItsLastRepeatedLaunch) {
    const pid_t child = ::fork();
    if (child == 0) {
        if (!memory::trace::begin(path))
            ::_exit(1);
        for (uint64_t value = 1; value <= 12; ++value)
            record({1, 0, value, {}});
        ::kill(::getpid(), SIGKILL);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    const TraceFile trace = read();
    ASSERT_EQ(trace.events.size(), 12u);
    EXPECT_EQ(trace.events.back().event.value, 12u);
}

}  // namespace
}  // namespace polder::memory
