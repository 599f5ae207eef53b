// Recording, reading and replaying a trace: the recorded events are read, of a killed process too, and a replay of the
// same trace takes the same decisions.
#include "support/pool_fixture.h"
#include "trace/recording_allocator.h"
#include "trace/replay.h"
#include "trace/trace_file.h"

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <random>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace polder::memory {
namespace {

using namespace test;
using polder::trace::Kind;
using polder::trace::read_trace;
using polder::trace::TimedEvent;
using polder::trace::TraceFile;
using testing::HasSubstr;

class Trace : public testing::Test {
protected:
    Trace() {
        char name[] = "/tmp/polder-trace-XXXXXX";
        const int descriptor = mkstemp(name);
        EXPECT_GE(descriptor, 0);
        ::close(descriptor);
        path = name;
    }
    ~Trace() override {
        memory::trace::end();
        std::filesystem::remove(path);
    }
    [[nodiscard]] TraceFile read() const {
        auto trace = read_trace(path);
        EXPECT_TRUE(trace) << trace.error().detail();
        return trace ? *std::move(trace) : TraceFile{};
    }
    // An allocator of host memory's kind over made-up memory, recorded.
    [[nodiscard]] static std::unique_ptr<Allocator> recorded_allocator(uint64_t capacity = 1024 * MiB) {
        AllocatorOptions options;
        options.space = SpaceId{1};
        memory::trace::Fields fields;
        fields.kind = Kind::space;
        fields.space = options.space;
        fields.size = capacity;
        memory::trace::record(fields);
        auto source = std::make_unique<memory::trace::RecordingSource>(
            std::make_unique<FakeSource>(FakeSource::Behaviour{.capacity = capacity}), options.space);
        return std::make_unique<memory::trace::RecordingAllocator>(make_allocator({}, std::move(source), options),
                                                                   options.space);
    }
    static void record_number(uint64_t number) {
        memory::trace::Fields fields;
        fields.kind = Kind::storage_create;
        fields.storage = number;
        fields.size = number * 2;
        memory::trace::record(fields);
    }

    // Writes the format version of another version of Polder into the file.
    void write_version(char version) const {
        std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(offsetof(polder::trace::FileHeader, version));
        file.put(version);
    }

    std::string path;
};

TEST_F(Trace, OffNothingIsRecorded) {
    EXPECT_FALSE(memory::trace::enabled());
    record_number(1);
    EXPECT_EQ(memory::trace::record_text("nothing"), 0u);
    EXPECT_EQ(std::filesystem::file_size(path), 0u);
}

TEST_F(Trace, EventsAreReadInOrderWithTheirTime) {
    ASSERT_TRUE(memory::trace::begin(path));
    constexpr uint64_t count = 5000;  // several chunks
    for (uint64_t i = 0; i < count; ++i)
        record_number(i);
    memory::trace::end();
    const TraceFile trace = read();
    ASSERT_EQ(trace.events.size(), count);
    EXPECT_GT(trace.chunks, 3u);
    for (uint64_t i = 0; i < count; ++i) {
        EXPECT_EQ(trace.events[i].event.storage, i);
        EXPECT_EQ(trace.events[i].event.size, 2 * i);
        EXPECT_GE(trace.events[i].ns, i == 0 ? 0 : trace.events[i - 1].ns);
        EXPECT_LT(trace.events[i].ns, 60'000'000'000u);
    }
    EXPECT_EQ(trace.header.process, static_cast<uint32_t>(::getpid()));
}

TEST_F(Trace, TextsOfEveryLengthAreRead) {
    ASSERT_TRUE(memory::trace::begin(path));
    std::vector<uint32_t> ids;
    for (size_t length = 0; length < 400; ++length) {
        ids.push_back(memory::trace::record_text(std::string(length, static_cast<char>('a' + length % 26))));
        record_number(length);
    }
    memory::trace::end();
    const TraceFile trace = read();
    EXPECT_EQ(trace.events.size(), 400u);
    for (size_t length = 0; length < 400; ++length)
        EXPECT_EQ(trace.text(ids[length]), std::string(length, static_cast<char>('a' + length % 26)));
}

TEST_F(Trace, ThreadsRecordAtOnce) {
    ASSERT_TRUE(memory::trace::begin(path));
    std::vector<std::thread> threads;
    for (uint64_t t = 0; t < 4; ++t)
        threads.emplace_back([t] {
            for (uint64_t i = 0; i < 3000; ++i)
                record_number(t * 10000 + i);
        });
    for (std::thread& thread : threads)
        thread.join();
    memory::trace::end();
    const TraceFile trace = read();
    ASSERT_EQ(trace.events.size(), 12000u);
    std::map<uint32_t, uint64_t> next;
    for (const TimedEvent& timed : trace.events) {
        const auto known = next.find(timed.thread);
        if (known != next.end()) {
            EXPECT_EQ(timed.event.storage, known->second);
        }
        next[timed.thread] = timed.event.storage + 1;
    }
    EXPECT_EQ(next.size(), 4u);
}

TEST_F(Trace, KilledProcessLeavesWhatItHasRecorded) {
    const pid_t child = ::fork();
    if (child == 0) {
        if (!memory::trace::begin(path))
            ::_exit(1);
        for (uint64_t i = 0; i < 2000; ++i)
            record_number(i);
        ::kill(::getpid(), SIGKILL);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    EXPECT_EQ(read().events.size(), 2000u);
}

// The file of a process that was killed after a chunk was copied and before it was begun again, or during the copy.
TEST_F(Trace, AChunkThatIsThereTwiceIsReadOnce) {
    ASSERT_TRUE(memory::trace::begin(path));
    for (uint64_t i = 0; i < 3000; ++i)
        record_number(i);
    memory::trace::end();
    std::string file;
    {
        std::ifstream in(path, std::ios::binary);
        file.assign(std::istreambuf_iterator<char>(in), {});
    }
    constexpr size_t chunk = 64 << 10;
    const std::string open = file.substr(chunk, chunk);  // the first is the one that stays mapped
    for (const size_t copied : {chunk, chunk / 2, size_t{4096}}) {
        std::string more = open.substr(0, copied);
        more.resize(chunk);
        std::ofstream(path, std::ios::binary) << file << more;
        const TraceFile trace = read();
        ASSERT_EQ(trace.events.size(), 3000u) << copied;
        for (uint64_t i = 0; i < 3000; ++i)
            ASSERT_EQ(trace.events[i].event.storage, i);
    }
}

TEST_F(Trace, AThreadThatEndsLeavesNoMapping) {
    const auto mappings = [&] {
        std::ifstream maps("/proc/self/maps");
        size_t count = 0;
        for (std::string line; std::getline(maps, line);)
            count += line.find(path) != std::string::npos;
        return count;
    };
    ASSERT_TRUE(memory::trace::begin(path));
    std::thread([&] {
        record_number(1);
        EXPECT_EQ(mappings(), 1u);
    }).join();
    EXPECT_EQ(mappings(), 0u);
    memory::trace::end();
    EXPECT_EQ(read().events.size(), 1u);
}

TEST_F(Trace, ChildOfAForkRecordsNothing) {
    ASSERT_TRUE(memory::trace::begin(path));
    record_number(1);
    const pid_t child = ::fork();
    if (child == 0) {
        record_number(2);
        ::_exit(memory::trace::enabled() ? 1 : 0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    record_number(3);
    memory::trace::end();
    const TraceFile trace = read();
    ASSERT_EQ(trace.events.size(), 2u);
    EXPECT_EQ(trace.events[1].event.storage, 3u);
}

TEST_F(Trace, CutOffAnywhere_TheRestIsRead) {
    ASSERT_TRUE(memory::trace::begin(path));
    for (uint64_t i = 0; i < 3000; ++i)
        record_number(i);
    memory::trace::end();
    const uint64_t whole = std::filesystem::file_size(path);
    size_t last = 3000;
    for (uint64_t bytes = whole; bytes > sizeof(polder::trace::FileHeader); bytes = bytes * 9 / 10) {
        std::filesystem::resize_file(path, bytes);
        const TraceFile trace = read();
        EXPECT_LE(trace.events.size(), last);
        last = trace.events.size();
    }
}

TEST_F(Trace, OtherFilesAreRefused) {
    std::ofstream(path) << "not a trace, but long enough to have a header of sixty-four bytes, one would say";
    EXPECT_FALSE(read_trace(path));
    std::filesystem::resize_file(path, 0);
    EXPECT_FALSE(read_trace(path));
    EXPECT_FALSE(read_trace(path + "-missing"));
    ASSERT_TRUE(memory::trace::begin(path));
    memory::trace::end();
    write_version(9);
    const auto refused = read_trace(path);
    ASSERT_FALSE(refused);
    EXPECT_THAT(std::string(refused.error().detail()), HasSubstr("version 9"));
    EXPECT_THAT(std::string(refused.error().detail()), HasSubstr("up to 3"));
    write_version(0);
    EXPECT_FALSE(read_trace(path));
}

TEST_F(Trace, FileThatCannotBeMadeIsAnError) {
    const auto begun = memory::trace::begin("/nonexistent/trace");
    ASSERT_FALSE(begun);
    EXPECT_THAT(std::string(begun.error().detail()), HasSubstr("/nonexistent/trace"));
    EXPECT_FALSE(memory::trace::enabled());
}

// --- replay ---

// A training loop: activations are allocated forwards and freed backwards, parameters stay.
void run_training(Allocator& pool, FakeQueue& queue, int rounds) {
    const auto take = [&](uint64_t size) {
        const auto leased =
            pool.lease(LeaseRequest{ByteCount{size}, aligned}, {LeaseTerms::Consumer::device, &queue, WhenFull::wait});
        EXPECT_TRUE(leased);
        return leased ? leased->block : Block{};
    };
    std::mt19937_64 random(5);
    std::vector<Block> parameters;
    for (uint64_t layer = 0; layer < 20; ++layer)
        parameters.push_back(take(MiB + layer * 100 * KiB));
    uint64_t value = 0;
    for (int round = 0; round < rounds; ++round) {
        std::vector<Block> activations;
        for (uint64_t layer = 0; layer < 20; ++layer)
            activations.push_back(take(2 * MiB + random() % (3 * MiB)));
        while (!activations.empty()) {
            const Block gradient = take(MiB + random() % MiB);
            const driver::Timepoint used = queue.at(++value);
            pool.free(activations.back(), {&used, 1});
            pool.free(gradient, {&used, 1});
            activations.pop_back();
        }
        queue.complete(value - std::min<uint64_t>(value, 3));
    }
    queue.complete(value);
    for (const Block& block : parameters)
        pool.free(block, {});
}

TEST_F(Trace, ReplayCountsWhatWasRecorded_AndDecidesTheSameEachTime) {
    ASSERT_TRUE(memory::trace::begin(path));
    {
        const auto pool = recorded_allocator();
        FakeQueue queue;
        run_training(*pool, queue, 10);
    }
    memory::trace::end();
    const TraceFile trace = read();
    const auto original = polder::trace::recorded(trace);
    ASSERT_EQ(original.size(), 1u);
    EXPECT_EQ(original[0].leases, 20u + 10 * 40);
    EXPECT_EQ(original[0].operations, 2 * original[0].leases);
    for (const char* settings :
         {"backend:bufalloc", "backend:caching", "backend:caching,expandable_segments:True", "backend:bucket"}) {
        polder::trace::ReplayOptions options;
        options.policy = parse_policy(settings, "").policy;
        const auto first = polder::trace::replay(trace, options);
        const auto second = polder::trace::replay(trace, options);
        ASSERT_EQ(first.size(), 1u);
        EXPECT_EQ(first[0].leases, original[0].leases);
        EXPECT_EQ(first[0].operations, original[0].operations);
        EXPECT_EQ(first[0].out_of_memory, 0u);
        EXPECT_EQ(first[0].memory_bytes, 1024 * MiB);
        EXPECT_EQ(first[0].peak_asked_bytes, original[0].peak_asked_bytes);
        EXPECT_GE(first[0].peak_reserved_bytes, first[0].peak_asked_bytes);
        EXPECT_NE(first[0].decisions, 0u);
        EXPECT_EQ(first[0].decisions, second[0].decisions) << settings;
        EXPECT_EQ(first[0].peak_reserved_bytes, second[0].peak_reserved_bytes);
    }
}

TEST_F(Trace, ReplayWithLessMemoryRefuses) {
    ASSERT_TRUE(memory::trace::begin(path));
    {
        const auto pool = recorded_allocator();
        FakeQueue queue;
        run_training(*pool, queue, 2);
    }
    memory::trace::end();
    polder::trace::ReplayOptions options;
    options.memory = ByteCount{48 * MiB};
    const auto results = polder::trace::replay(read(), options);
    ASSERT_EQ(results.size(), 1u);
    EXPECT_GT(results[0].out_of_memory, 0u);
    EXPECT_LE(results[0].peak_reserved_bytes, 48 * MiB);
}

// The replay reserves whole pages like the recorded device, so a part of a page stays unused.
TEST_F(Trace, ReplayGrowsByTheRecordedPage) {
    for (const uint64_t page : {uint64_t{0}, 64 * KiB, 2 * MiB}) {
        ASSERT_TRUE(memory::trace::begin(path));
        memory::trace::Fields fields;
        fields.kind = Kind::space;
        fields.space = SpaceId{1};
        fields.size = 1024 * MiB;
        fields.value = page;
        memory::trace::record(fields);
        fields.kind = Kind::lease;
        fields.size = fields.value = 2 * MiB + 128;
        memory::trace::record(fields);
        memory::trace::end();
        const auto rows = polder::trace::replay(read(), {});
        ASSERT_EQ(rows.size(), 1u);
        EXPECT_EQ(rows[0].peak_reserved_bytes, page == 64 * KiB ? 2 * MiB + 64 * KiB : 4 * MiB);
    }
}

// In one event, with the storages' sizes from their creation.
TEST_F(Trace, WholeUsesOfALaunchAreReadAsEventsOfTheirOwn) {
    ASSERT_TRUE(memory::trace::begin(path));
    record_number(5);
    record_number(9);
    memory::trace::Fields launch;
    launch.kind = Kind::launch;
    launch.space = SpaceId{1};
    launch.flags = polder::trace::whole_uses;
    launch.size = 2;
    using polder::trace::WholeUses;
    launch.address = WholeUses::half(5, polder::trace::reads) |
                     WholeUses::half(9, polder::trace::reads | polder::trace::writes) << 32;
    memory::trace::record(launch);
    record_number(7);
    memory::trace::end();
    const TraceFile trace = read();
    ASSERT_EQ(trace.events.size(), 6u);
    EXPECT_EQ(trace.events[2].event.kind, Kind::launch);
    EXPECT_EQ(trace.events[2].event.address, 0u);
    EXPECT_EQ(trace.events[2].event.flags, 0u);
    const struct {
        uint64_t storage, size;
        uint8_t flags;
    } expected[] = {{5, 10, polder::trace::reads}, {9, 18, polder::trace::reads | polder::trace::writes}};
    for (size_t i = 0; i < 2; ++i) {
        const polder::trace::Event& use = trace.events[3 + i].event;
        EXPECT_EQ(use.kind, Kind::use);
        EXPECT_EQ(use.space, 1u);
        EXPECT_EQ(use.storage, expected[i].storage);
        EXPECT_EQ(use.address, 0u);
        EXPECT_EQ(use.size, expected[i].size);
        EXPECT_EQ(use.flags, expected[i].flags);
    }
    EXPECT_EQ(trace.events[5].event.storage, 7u);
}

TEST_F(Trace, RefusalIsRecordedWithItsReport_AndIsNoFailureOfACommand) {
    ASSERT_TRUE(memory::trace::begin(path));
    {
        const auto pool = recorded_allocator(16 * MiB);
        EXPECT_FALSE(pool->allocate(ByteCount{17 * MiB}, aligned));
    }
    memory::trace::end();
    const TraceFile trace = read();
    EXPECT_EQ(polder::trace::recorded(trace).size(), 0u);  // no blocks
    const auto refused =
        std::ranges::find_if(trace.events, [](const TimedEvent& timed) { return timed.event.kind == Kind::refused; });
    ASSERT_NE(refused, trace.events.end());
    EXPECT_EQ(refused->event.size, 17 * MiB);
    EXPECT_THAT(trace.text(refused->event.storage), HasSubstr("asked for 17825792 bytes"));
}

// Version 1 named no text in the event: the report was the thread's next text.
TEST_F(Trace, Version1IsRead_ItsRefusalsAreNoFailures) {
    ASSERT_TRUE(memory::trace::begin(path));
    record_number(1);
    memory::trace::Fields fields;
    fields.kind = Kind::out_of_memory;
    fields.space = SpaceId{1};
    fields.size = MiB;
    memory::trace::record(fields);
    const uint32_t report = memory::trace::record_text("out of memory in space 1");
    record_number(2);
    EXPECT_NE(memory::trace::record_text("of something else"), report);
    memory::trace::end();
    write_version(1);
    const TraceFile trace = read();
    ASSERT_EQ(trace.events.size(), 3u);
    EXPECT_EQ(trace.events[1].event.kind, Kind::refused);
    EXPECT_EQ(trace.text(trace.events[1].event.storage), "out of memory in space 1");
    EXPECT_EQ(trace.events[2].event.storage, 2u);
}

}  // namespace
}  // namespace polder::memory
