#include <base/made_once.h>

#include <atomic>
#include <gtest/gtest.h>
#include <memory>
#include <new>
#include <thread>
#include <vector>

namespace polder {
namespace {

using Numbers = MadeOnce<int, std::unique_ptr<int>>;

Result<std::unique_ptr<int>> number(int value) { return std::make_unique<int>(value); }

TEST(MadeOnce, MakesAValueForTheFirstThreadAlone) {
    Numbers numbers;
    std::atomic<int> made{0};
    std::atomic<bool> is_making{false};
    std::vector<const std::unique_ptr<int>*> got(8);
    std::vector<std::thread> threads;
    for (auto& place : got)
        threads.emplace_back([&] {
            const auto value = numbers.get(7, [&] {
                ++made;
                is_making = true;
                std::this_thread::sleep_for(std::chrono::milliseconds(20));
                return number(7);
            });
            place = value ? *value : nullptr;
        });
    for (std::thread& thread : threads)
        thread.join();
    EXPECT_EQ(made, 1);
    for (const auto* each : got) {
        ASSERT_NE(each, nullptr);
        EXPECT_EQ(each, got.front());
        EXPECT_EQ(**each, 7);
    }
}

TEST(MadeOnce, AnotherValueDoesNotWait) {
    Numbers numbers;
    std::atomic<bool> is_begun{false};
    std::atomic<bool> may_end{false};
    std::thread slow([&] {
        EXPECT_TRUE(numbers.get(1, [&] {
            is_begun = true;
            is_begun.notify_all();
            may_end.wait(false);
            return number(1);
        }));
    });
    is_begun.wait(false);
    EXPECT_TRUE(numbers.is_begun(1));
    EXPECT_EQ(numbers.find(1), nullptr);
    EXPECT_FALSE(numbers.is_begun(2));
    EXPECT_TRUE(numbers.get(2, [] { return number(2); }));  // would never return
    EXPECT_NE(numbers.find(2), nullptr);
    may_end = true;
    may_end.notify_all();
    slow.join();
    EXPECT_NE(numbers.find(1), nullptr);
}

TEST(MadeOnce, AFailureOrAnExceptionLeavesTheValueToTheNext) {
    Numbers numbers;
    const auto failed = numbers.get(3, []() -> Result<std::unique_ptr<int>> { return fail(Status::out_of_resources); });
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().status(), Status::out_of_resources);
    EXPECT_FALSE(numbers.is_begun(3));
    EXPECT_THROW(static_cast<void>(numbers.get(3, []() -> Result<std::unique_ptr<int>> { throw std::bad_alloc{}; })),
                 std::bad_alloc);
    EXPECT_FALSE(numbers.is_begun(3));
    const auto made = numbers.get(3, [] { return number(3); });
    ASSERT_TRUE(made);
    EXPECT_EQ(***made, 3);
}

TEST(MadeOnce, AThreadThatWaitedForAFailureMakesTheValueItself) {
    Numbers numbers;
    std::atomic<int> tries{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([&] {
            static_cast<void>(numbers.get(5, [&]() -> Result<std::unique_ptr<int>> {
                std::this_thread::sleep_for(std::chrono::milliseconds(2));
                if (++tries < 3)
                    return fail(Status::out_of_resources);
                return number(5);
            }));
        });
    for (std::thread& thread : threads)
        thread.join();
    EXPECT_EQ(tries, 3);
    EXPECT_NE(numbers.find(5), nullptr);
}

}  // namespace
}  // namespace polder
