// LastLaunch: the choice for the last sizes is found, for these sizes alone, and never half of two. For the last, readers and writers
// execute their atomic operations one by one in all orders that differ by one interruption of each.
#include <runtime/last_launch.h>

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <gtest/gtest.h>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

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

// --- steps of readers and writers in chosen orders ---

// Makes threads execute their atomic operations in the order of a plan, one at a time.
class Steps {
public:
    using Thread = size_t;
    // The next `count` operations are those of `thread`, or all that it has left.
    struct Turn {
        Thread thread;
        size_t count;
    };
    static constexpr size_t all = ~size_t{0};

    // Runs functions as threads 0, 1, ... After the plan, each of them runs to its end, in this order.
    static void run(const std::vector<std::function<void()>>& functions, std::vector<Turn> plan) {
        for (Thread thread = 0; thread < functions.size(); ++thread)
            plan.push_back({thread, all});
        Steps steps(functions.size(), std::move(plan));
        std::vector<std::thread> threads;
        for (Thread thread = 0; thread < functions.size(); ++thread)
            threads.emplace_back([&, thread] {
                current = {&steps, thread};
                functions[thread]();
                current = {};
                steps.end(thread);
            });
        for (std::thread& thread : threads)
            thread.join();
    }
    // Before each atomic operation. Threads that `run` has not started go on.
    static void before_operation() {
        if (current.steps)
            current.steps->take(current.thread);
    }

private:
    Steps(size_t count, std::vector<Turn> plan) : ended_(count, false), plan_(std::move(plan)) {}

    [[nodiscard]] bool may_run(Thread thread) {
        while (at_ < plan_.size() && (plan_[at_].count == 0 || ended_[plan_[at_].thread]))
            ++at_;
        return at_ < plan_.size() && plan_[at_].thread == thread;
    }
    // The previous operation is complete when its thread comes here again.
    void finish_operation(Thread thread) {
        if (executing_ == thread)
            executing_ = none;
        changed_.notify_all();
    }
    void take(Thread thread) {
        std::unique_lock lock(mutex_);
        finish_operation(thread);
        changed_.wait(lock, [&] { return executing_ == none && may_run(thread); });
        executing_ = thread;
        if (plan_[at_].count != all)
            --plan_[at_].count;
    }
    void end(Thread thread) {
        const std::lock_guard lock(mutex_);
        ended_[thread] = true;
        finish_operation(thread);
    }

    struct Current {
        Steps* steps = nullptr;
        Thread thread = 0;
    };
    static thread_local Current current;
    static constexpr Thread none = ~Thread{0};

    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<bool> ended_;
    std::vector<Turn> plan_;
    size_t at_ = 0;  // the current turn
    Thread executing_ = none;
};
thread_local Steps::Current Steps::current;

// std::atomic whose operations are steps.
template <class T>
class SteppedAtomic {
public:
    SteppedAtomic() = default;
    explicit(false) SteppedAtomic(T value) : value_(value) {}
    T load(std::memory_order order) const {
        Steps::before_operation();
        return value_.load(order);
    }
    void store(T value, std::memory_order order) {
        Steps::before_operation();
        value_.store(value, order);
    }
    bool compare_exchange_strong(T& expected, T value, std::memory_order order) {
        Steps::before_operation();
        return value_.compare_exchange_strong(expected, value, order);
    }

private:
    std::atomic<T> value_{};
};
using SteppedLaunch = BasicLastLaunch<SteppedAtomic>;

// More than the operations of a reader or a writer.
constexpr size_t operations_max = 13;

const size_t same_global[] = {96};
const SteppedLaunch::Sizes same_sizes{pointer<Device>(1), 1, same_global, nullptr};

// Choices for the same sizes, no part of which two have in common.
SteppedLaunch::Choice choice_of(uintptr_t number) {
    return {pointer<KernelOnDevice>(number), pointer<LoadedCode>(number), Size3{number, number, number}};
}

// A reader, and writers of the choices 2 and 3 for the same sizes, execute their steps as `plan` says, from an entry that has choice 1.
// Returns which choice the reader found: 0 for none, -1 for parts of several.
int found_by_reader(const std::vector<Steps::Turn>& plan) {
    SteppedLaunch last;
    last.set(same_sizes, choice_of(1));
    SteppedLaunch::Choice found;
    bool is_found = false;
    Steps::run({[&] { is_found = last.find(same_sizes, found); }, [&] { last.set(same_sizes, choice_of(2)); },
                [&] { last.set(same_sizes, choice_of(3)); }},
               plan);
    const auto is = [&](const SteppedLaunch::Choice& found_choice, uintptr_t number) {
        const SteppedLaunch::Choice whole = choice_of(number);
        return found_choice.on == whole.on && found_choice.code == whole.code && found_choice.local == whole.local;
    };
    // The writers have left a whole choice, too.
    SteppedLaunch::Choice left;
    const bool is_left = last.find(same_sizes, left);
    EXPECT_TRUE(is_left && (is(left, 2) || is(left, 3)));
    if (!is_found)
        return 0;
    for (int number = 1; number <= 3; ++number)
        if (is(found, static_cast<uintptr_t>(number)))
            return number;
    return -1;
}

constexpr Steps::Thread reader = 0, writer = 1, other_writer = 2;

// The writer is interrupted after each of its steps, or not; the reader before each of its own.
TEST(LastLaunch, AReaderNeverFindsHalfOfWhatAWriterStores) {
    for (size_t read = 0; read <= operations_max; ++read)
        for (size_t written = 0; written <= operations_max; ++written) {
            const int found = found_by_reader({{reader, read}, {writer, written}, {reader, Steps::all}});
            ASSERT_GE(found, 0) << "after " << read << " steps of the reader and " << written << " of the writer";
            ASSERT_LT(found, 3);
            if (written == 0 || read == operations_max) {
                ASSERT_EQ(found, 1) << "nothing was written while the reader looked";
            } else if (read == 0 && written == operations_max) {
                ASSERT_EQ(found, 2) << "everything was written before";
            }
        }
}

// A second writer comes after each step of the first, which goes on after it.
TEST(LastLaunch, ASecondWriterLeavesTheEntryToTheFirst) {
    for (size_t read = 0; read <= operations_max; ++read)
        for (size_t written = 0; written <= operations_max; ++written)
            ASSERT_GE(found_by_reader({{reader, read},
                                       {writer, written},
                                       {other_writer, Steps::all},
                                       {writer, Steps::all},
                                       {reader, Steps::all}}),
                      0)
                << "after " << read << " steps of the reader and " << written << " of the first writer";
}

// The second writer begins when the first is done, and the reader goes on after each of its steps.
TEST(LastLaunch, AReaderNeverFindsHalfOfTwoWriters) {
    for (size_t read = 0; read <= operations_max; ++read)
        for (size_t written = 0; written <= operations_max; ++written)
            ASSERT_GE(
                found_by_reader({{reader, read}, {writer, Steps::all}, {other_writer, written}, {reader, Steps::all}}),
                0)
                << "after " << read << " steps of the reader and " << written << " of the second writer";
}

}  // namespace
}  // namespace polder::runtime
