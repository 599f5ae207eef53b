// The parts of the executor of host-executed queues.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <host/host_queue.h>
#include <host/launch.h>
#include <host/operation_log.h>
#include <host/parallel_task.h>
#include <host/processors.h>
#include <host/spin_time.h>
#include <host/stream_copy.h>
#include <thread>

namespace polder::devices {
namespace {

TEST(OperationLog, RecordsOfAllSizesComeOutInOrder) {
    OperationLog log;
    constexpr uint64_t count = 5000;
    std::atomic<uint64_t> appended{0};
    std::thread taker([&] {
        for (uint64_t i = 0; i < count; ++i) {
            while (appended.load(std::memory_order_acquire) <= i)
                std::this_thread::yield();
            const auto& record = static_cast<const FillRecord&>(log.take());
            ASSERT_EQ(record.size, i);
            ASSERT_EQ(reinterpret_cast<uintptr_t>(&record) % OperationLog::record_alignment, 0u);
            // The bytes behind a record belong to it.
            const auto* const extra = reinterpret_cast<const std::byte*>(&record + 1);
            for (uint32_t b = 0; b < record.pattern_bytes; b += 16)
                ASSERT_EQ(extra[b], static_cast<std::byte>(i));
        }
    });
    for (uint64_t i = 0; i < count; ++i) {
        // Some are larger than a chunk.
        const auto extra = static_cast<uint32_t>(i % 100 == 99 ? 40000 : (i * 16) % 512);
        auto* const record = log.append<FillRecord>(extra);
        record->size = i;
        record->pattern_bytes = extra;
        std::memset(reinterpret_cast<std::byte*>(record + 1), static_cast<int>(i & 0xff), extra);
        appended.store(i + 1, std::memory_order_release);
    }
    taker.join();
}

TEST(OperationLog, WhatWasNeverTakenIsFreed) {
    OperationLog log;
    for (int i = 0; i < 1000; ++i)
        log.append<Operation>(256);
    for (int i = 0; i < 300; ++i)
        static_cast<void>(log.take());
}

TEST(ParallelTask, EveryUnitRunsOnceWhateverTheParts) {
    for (const uint32_t threads_max : {1u, 3u, 8u, 20u, 33u, 100u})
        for (const uint64_t units : {1ull, 7ull, 1000ull}) {
            std::vector<std::atomic<int>> visits(units + 5);
            const auto run = [](void* context, UnitRange range, Workspace&) {
                for (uint64_t i = range.begin; i < range.end; ++i)
                    (*static_cast<std::vector<std::atomic<int>>*>(context))[i].fetch_add(1);
            };
            ParallelTask task({.units = {5, units + 5}, .threads_max = threads_max}, &visits, run);
            std::vector<std::thread> threads;
            for (uint32_t t = 0; t < 3; ++t) {
                task.join();
                threads.emplace_back([&task, t] {
                    Workspace workspace(heap_local_memory());
                    task.work(workspace, {.rank = t, .width = 4}, nullptr);
                    task.leave();
                });
            }
            Workspace workspace(heap_local_memory());
            task.work(workspace, {.rank = 3, .width = 4}, nullptr);
            task.wait_for_participants();
            for (uint64_t i = 0; i < visits.size(); ++i)
                ASSERT_EQ(visits[i].load(), i >= 5 ? 1 : 0);
            for (std::thread& thread : threads)
                thread.join();
        }
}

// The units in the order in which one thread alone executes them.
std::vector<uint64_t> order_of(const ParallelTask::Shape& shape, ParallelTask::Place place) {
    std::vector<uint64_t> order;
    const auto run = [](void* context, UnitRange range, Workspace&) {
        for (uint64_t i = range.begin; i < range.end; ++i)
            static_cast<std::vector<uint64_t>*>(context)->push_back(i);
    };
    ParallelTask task(shape, &order, run);
    Workspace workspace(heap_local_memory());
    task.work(workspace, place, nullptr);
    EXPECT_FALSE(task.has_work());
    return order;
}

TEST(ParallelTask, AProcessorBeginsInThePartOfItsRank) {
    const ParallelTask::Shape shape{.units = {0, 10}, .threads_max = 4};
    EXPECT_EQ(order_of(shape, {.rank = 1, .width = 4}), (std::vector<uint64_t>{3, 4, 5, 7, 6, 9, 8, 2, 1, 0}));
    EXPECT_EQ(order_of(shape, {.rank = 3, .width = 4}), (std::vector<uint64_t>{8, 9, 2, 1, 0, 5, 4, 3, 7, 6}));
}

// The first thread executes unit 0 while the second one takes all others.
TEST(ParallelTask, UnitsOfAnothersPartAreTakenFromItsEnd) {
    struct Shared {
        std::vector<uint64_t> taken;
        std::atomic<bool> has_begun{false}, may_end{false};
    } shared;
    const auto run = [](void* context, UnitRange range, Workspace&) {
        auto& all = *static_cast<Shared*>(context);
        if (range.begin == 0) {
            all.has_begun = true;
            all.has_begun.notify_one();
            all.may_end.wait(false);
            return;
        }
        for (uint64_t i = range.begin; i < range.end; ++i)
            all.taken.push_back(i);
    };
    ParallelTask task({.units = {0, 9}, .threads_max = 2}, &shared, run);
    task.join();
    std::thread first([&task] {
        Workspace workspace(heap_local_memory());
        task.work(workspace, {.rank = 0, .width = 2}, nullptr);
        task.leave();
    });
    shared.has_begun.wait(false);
    Workspace workspace(heap_local_memory());
    task.work(workspace, {.rank = 1, .width = 2}, nullptr);
    EXPECT_EQ(shared.taken, (std::vector<uint64_t>{5, 6, 7, 8, 4, 3, 2, 1}));
    shared.may_end = true;
    shared.may_end.notify_one();
    first.join();
    task.wait_for_participants();
}

TEST(ParallelTask, MoreUnitsThanTwoToTheThirtyTwo) {
    const UnitRange units{7, 7 + (uint64_t{5} << 32) + 3};
    std::vector<UnitRange> ranges;
    const auto run = [](void* context, UnitRange range, Workspace&) {
        static_cast<std::vector<UnitRange>*>(context)->push_back(range);
    };
    ParallelTask task({.units = units, .threads_max = 3}, &ranges, run);
    Workspace workspace(heap_local_memory());
    task.work(workspace, {.rank = 1, .width = 3}, nullptr);
    EXPECT_FALSE(task.has_work());
    std::ranges::sort(ranges, {}, &UnitRange::begin);
    uint64_t end = units.begin;
    for (const UnitRange range : ranges) {
        ASSERT_EQ(range.begin, end);
        ASSERT_LT(range.begin, range.end);
        end = range.end;
    }
    EXPECT_EQ(end, units.end);
}

// Neighbouring processors, which are of one NUMA node, share a part.
TEST(ParallelTask, ManyProcessorsShareParts) {
    const ParallelTask::Shape shape{.units = {0, 3200}, .threads_max = 64};
    EXPECT_EQ(order_of(shape, {.rank = 0, .width = 64}).front(), 0u);
    EXPECT_EQ(order_of(shape, {.rank = 1, .width = 64}).front(), 0u);
    EXPECT_EQ(order_of(shape, {.rank = 2, .width = 64}).front(), 100u);
    EXPECT_EQ(order_of(shape, {.rank = 63, .width = 64}).front(), 3100u);
}

TEST(ParallelTask, FewThreadsOnNeighbouringProcessorsBeginInDifferentParts) {
    const ParallelTask::Shape shape{.units = {0, 300}, .threads_max = 3};
    EXPECT_EQ(order_of(shape, {.rank = 4, .width = 16}).front(), 100u);
    EXPECT_EQ(order_of(shape, {.rank = 5, .width = 16}).front(), 200u);
    EXPECT_EQ(order_of(shape, {.rank = 6, .width = 16}).front(), 0u);
}

struct AnyQueue final : PooledQueue {
    bool become_scheduled(QueueState) override { return false; }
    bool claim_scheduled() override { return false; }
    void run_claimed() override {}
    [[nodiscard]] bool has_completed(uint64_t value) const override { return completed >= value; }
    std::atomic<uint64_t> completed{0};
};

// A task of two units, each of which ends when both have begun, or after five seconds.
struct TwoAtOnce {
    std::atomic<int> begun{0}, on_workers{0}, alone{0};
    static void run(void* context, UnitRange range, Workspace&) {
        auto& all = *static_cast<TwoAtOnce*>(context);
        all.begun += static_cast<int>(range.end - range.begin);
        all.on_workers += WorkerPool::is_any_worker_here();
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
        while (all.begun.load() < 2 && std::chrono::steady_clock::now() < deadline)
            std::this_thread::yield();
        all.alone += all.begun.load() < 2;
    }
};

TEST(WorkerPool, AThreadThatWaitsTakesPartInPlaceOfAWorker) {
    WorkerPool pool{{.thread_name = "test", .places = {{}, {}}}};
    AnyQueue queue;
    TwoAtOnce all;
    PooledQueue::HelperHere here(queue, 1, uint64_t{2} << 20);
    std::thread owner([&] {
        Workspace workspace(heap_local_memory());
        ParallelTask task({.units = {0, 2}, .threads_max = 2, .queue = &queue}, &all, TwoAtOnce::run);
        pool.run(task, workspace);
    });
    while (!queue.wants_helpers())
        std::this_thread::yield();
    pool.help_task_of(here);
    owner.join();
    EXPECT_EQ(all.alone, 0);
    EXPECT_EQ(all.on_workers, 0);
    EXPECT_FALSE(queue.wants_helpers());
}

TEST(WorkerPool, AThreadWithLittleStackLeavesTheTaskToWorkers) {
    WorkerPool pool{{.thread_name = "test", .places = {{}, {}}}};
    AnyQueue queue;
    TwoAtOnce all;
    constexpr uint64_t stack_bytes = uint64_t{512} << 10;
    PooledQueue::HelperHere here(queue, 1, stack_bytes);
    std::thread owner([&] {
        Workspace workspace(heap_local_memory());
        ParallelTask task({.units = {0, 2}, .threads_max = 2, .queue = &queue, .stack_bytes = stack_bytes}, &all,
                          TwoAtOnce::run);
        pool.run(task, workspace);
    });
    while (all.begun < 1)
        std::this_thread::yield();
    pool.help_task_of(here);
    owner.join();
    EXPECT_EQ(all.alone, 0);
    EXPECT_EQ(all.on_workers, 1);
}

// Else a thread that waits for a short launch would return only when the next one has ended, which may wait for this thread.
TEST(WorkerPool, AThreadWhoseWaitIsOverTakesNoPartInWhatFollows) {
    WorkerPool pool{{.thread_name = "test", .places = {{}, {}}}};
    AnyQueue queue;
    struct Unit {
        std::atomic<bool> has_begun{false}, may_end{false};
        std::atomic<int> begun_by_waiting{0};
        const std::thread::id waiting = std::this_thread::get_id();
    } units;
    const auto run = [](void* context, UnitRange, Workspace&) {
        auto& all = *static_cast<Unit*>(context);
        all.begun_by_waiting += std::this_thread::get_id() == all.waiting;
        all.has_begun = true;
        while (!all.may_end && std::this_thread::get_id() != all.waiting)
            std::this_thread::yield();
    };
    PooledQueue::HelperHere here(queue, 1, uint64_t{2} << 20);
    std::thread owner([&] {
        Workspace workspace(heap_local_memory());
        ParallelTask task({.units = {0, 64}, .threads_max = 8, .queue = &queue}, &units, run);
        queue.completed = 1;
        pool.run(task, workspace);
    });
    while (!units.has_begun)
        std::this_thread::yield();
    EXPECT_TRUE(queue.wants_helpers());
    pool.help_task_of(here);
    EXPECT_EQ(units.begun_by_waiting, 0);
    EXPECT_TRUE(queue.wants_helpers());
    units.may_end = true;
    owner.join();
}

TEST(SpinTime, GrowsWithShortWaitsAndShrinksWithLongOnes) {
    SpinTime spinning;
    EXPECT_EQ(spinning.limit_ns(), SpinTime::least_ns);
    spinning.waited(2 * SpinTime::least_ns);
    EXPECT_EQ(spinning.limit_ns(), 2 * SpinTime::least_ns);
    for (int i = 0; i < 10; ++i)
        spinning.waited(SpinTime::longest_ns - 1);
    EXPECT_EQ(spinning.limit_ns(), SpinTime::longest_ns);
    spinning.waited(SpinTime::longest_ns);
    EXPECT_EQ(spinning.limit_ns(), SpinTime::longest_ns / 2);
    for (int i = 0; i < 10; ++i)
        spinning.waited(1'000'000'000);
    EXPECT_EQ(spinning.limit_ns(), SpinTime::least_ns);
}

TEST(SpinTime, SleepsAfterItsLimitAndNotBeforeTheWaitIsOver) {
    SpinTime spinning;
    int checks = 0;
    bool has_slept = false;
    spinning.wait([&] { return ++checks == 3; }, [&] { has_slept = true; });
    EXPECT_FALSE(has_slept);
    const uint64_t began_ns = now_ns();
    uint64_t slept_ns = 0;
    spinning.wait([] { return false; }, [&] { slept_ns = now_ns(); });
    EXPECT_GE(slept_ns, began_ns + SpinTime::least_ns);
}

TEST(WorkerPool, ProcessorsOfANodeAreNeighbours) {
    const WorkerPool pool{{.thread_name = "test", .places = {{4, 0}, {5, 1}, {6, 0}, {7, 1}}}};
    EXPECT_EQ(pool.place_of(4).rank, 0u);
    EXPECT_EQ(pool.place_of(6).rank, 1u);
    EXPECT_EQ(pool.place_of(5).rank, 2u);
    EXPECT_EQ(pool.place_of(7).rank, 3u);
    EXPECT_LT(pool.place_of(1234).rank, 4u);
    EXPECT_LT(pool.place_of(-1).rank, 4u);
}

TEST(LaunchWidth, AThreadForEachFiveMicrosecondsOfWorkWhateverTheProcessorHas) {
    constexpr float group_ns = 15.0f;
    EXPECT_EQ(threads_that_pay(group_ns, 1000, 1), 1u);
    EXPECT_EQ(threads_that_pay(group_ns, 1000, 4), 3u);
    EXPECT_EQ(threads_that_pay(group_ns, 1000, 16), 3u);
    EXPECT_EQ(threads_that_pay(group_ns, 1000, 256), 3u);
    EXPECT_EQ(threads_that_pay(group_ns, 100, 16), 1u);
    EXPECT_EQ(threads_that_pay(group_ns, 1'000'000, 16), 16u);
}

TEST(LaunchWidth, GrowsWithTheWorkAndNeverBeyondTheGroups) {
    uint32_t before = 1;
    for (uint64_t groups = 1; groups < 1'000'000; groups = groups * 3 / 2 + 1) {
        const uint32_t threads = threads_that_pay(100.0f, groups, 16);
        EXPECT_GE(threads, before);
        before = threads;
    }
    EXPECT_EQ(threads_that_pay(1e9f, 3, 16), 3u);
    // Unknown: all threads.
    EXPECT_EQ(threads_that_pay(0, 100, 16), 16u);
}

TEST(AddressWindow, MovesWhatLiesWithinAndNothingElse) {
    const AddressWindow window{0x1000, 0x100, 0x5000};
    EXPECT_EQ(window.resolve(uint64_t{0}), 0u);
    EXPECT_EQ(window.resolve(uint64_t{0xfff}), 0xfffu);
    EXPECT_EQ(window.resolve(uint64_t{0x1000}), 0x6000u);
    EXPECT_EQ(window.resolve(uint64_t{0x10ff}), 0x60ffu);
    EXPECT_EQ(window.resolve(uint64_t{0x1100}), 0x1100u);
    EXPECT_EQ(AddressWindow{}.resolve(uint64_t{0x1234}), 0x1234u);
}

TEST(BlockCopies, CopyAnyAlignmentAndSize) {
    for (const size_t to_offset : {0u, 1u, 63u})
        for (const size_t from_offset : {0u, 7u})
            for (const size_t size : {0u, 1u, 63u, 64u, 65u, 1000u, 2047u, 2048u, 4096u, 5001u}) {
                std::vector<std::byte> from(8192);
                for (size_t i = 0; i < from.size(); ++i)
                    from[i] = static_cast<std::byte>(i * 7);
                std::vector<std::byte> to(8192);
                std::vector<std::byte> expected(8192);
                std::memcpy(expected.data() + to_offset, from.data() + from_offset, size);
                stream_copy(to.data() + to_offset, from.data() + from_offset, size);
                ASSERT_EQ(to, expected);
                std::ranges::fill(to, std::byte{});
                cached_copy(to.data() + to_offset, from.data() + from_offset, size);
                ASSERT_EQ(to, expected);
            }
}

TEST(Processors, AreThoseOfTheAffinityMask) {
    cpu_set_t all;
    ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    const std::vector<int> processors = allowed_processors();
    EXPECT_EQ(processors.size(), static_cast<size_t>(CPU_COUNT(&all)));
    for (const int processor : processors)
        EXPECT_TRUE(CPU_ISSET(static_cast<size_t>(processor), &all));
    EXPECT_LE(usable_processors().size(), processors.size());
    EXPECT_GE(usable_processors().size(), 1u);
}

class ControlGroups : public testing::Test {
protected:
    void SetUp() override {
        std::string name = testing::TempDir() + "polder-cgroup-XXXXXX";
        root_ = mkdtemp(name.data());
        files_ = {root_ + "/mount", root_ + "/self"};
        write("mount/kept", "");
    }
    void TearDown() override { std::filesystem::remove_all(root_); }
    void write(const std::string& path, const std::string& text) {
        const std::filesystem::path whole = root_ + "/" + path;
        std::filesystem::create_directories(whole.parent_path());
        std::ofstream(whole) << text << "\n";
    }
    std::string root_;
    ControlGroupFiles files_;
};

TEST_F(ControlGroups, NoFilesMeanNoLimit) {
    EXPECT_EQ(quota_processors(files_), std::nullopt);
    EXPECT_EQ(quota_memory_bytes(files_), std::nullopt);
}

TEST_F(ControlGroups, Version2_TheTightestGroupOnTheWayUpCountsAndIsRoundedUp) {
    write("self", "0::/outer/inner");
    write("mount/outer/inner/cpu.max", "max 100000");
    write("mount/outer/cpu.max", "150000 100000");
    write("mount/cpu.max", "800000 100000");
    write("mount/outer/memory.max", "123456789");
    write("mount/outer/inner/memory.max", "max");
    EXPECT_EQ(quota_processors(files_), 2u);
    EXPECT_EQ(quota_memory_bytes(files_), 123456789u);
}

TEST_F(ControlGroups, Version2_LessThanOneProcessorIsOne) {
    write("self", "0::/");
    write("mount/cpu.max", "20000 100000");
    EXPECT_EQ(quota_processors(files_), 1u);
}

TEST_F(ControlGroups, Version1_IsReadFromItsControllersFolders) {
    write("self", "5:cpu,cpuacct:/job\n4:memory:/job\n0::/");
    write("mount/cpu/job/cpu.cfs_quota_us", "250000");
    write("mount/cpu/job/cpu.cfs_period_us", "100000");
    write("mount/memory/job/memory.limit_in_bytes", "1073741824");
    EXPECT_EQ(quota_processors(files_), 3u);
    EXPECT_EQ(quota_memory_bytes(files_), 1073741824u);
}

TEST_F(ControlGroups, Version1_MinusOneIsNoQuota) {
    write("self", "5:cpu,cpuacct:/");
    write("mount/cpu/cpu.cfs_quota_us", "-1");
    write("mount/cpu/cpu.cfs_period_us", "100000");
    EXPECT_EQ(quota_processors(files_), std::nullopt);
}

TEST_F(ControlGroups, MalformedFilesMeanNoLimit) {
    write("self", "nonsense");
    write("mount/cpu.max", "many 0");
    write("mount/memory.max", "");
    EXPECT_EQ(quota_processors(files_), std::nullopt);
    EXPECT_EQ(quota_memory_bytes(files_), std::nullopt);
}

}  // namespace
}  // namespace polder::devices
