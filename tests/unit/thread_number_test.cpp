// Numbers of threads: distinct among those that live, and as low as possible.
#include <base/thread_number.h>

#include <algorithm>
#include <barrier>
#include <gtest/gtest.h>
#include <set>
#include <thread>
#include <vector>

namespace polder {
namespace {

// The numbers of `count` threads that live at the same time.
std::vector<uint32_t> numbers_of(uint32_t count) {
    std::vector<uint32_t> numbers(count);
    std::vector<std::thread> threads;
    std::barrier all{count};
    for (uint32_t& number : numbers)
        threads.emplace_back([&] {
            number = thread_number();
            all.arrive_and_wait();
        });
    for (std::thread& thread : threads)
        thread.join();
    return numbers;
}

TEST(ThreadNumber, StaysTheSame) { EXPECT_EQ(thread_number(), thread_number()); }

// So short-lived threads share no copy with a thread that stays, as long as there are fewer threads than copies of the data.
TEST(ThreadNumber, ThreadsThatLiveHaveTheLowestNumbers) {
    static_cast<void>(thread_number());
    for (int round = 0; round < 100; ++round) {
        const std::vector<uint32_t> numbers = numbers_of(7);
        EXPECT_EQ(std::set<uint32_t>(numbers.begin(), numbers.end()).size(), numbers.size());
        EXPECT_EQ(*std::ranges::max_element(numbers), 7u);
        EXPECT_EQ(std::ranges::count(numbers, thread_number()), 0);
    }
}

TEST(ThreadNumber, ManyThreadsHaveDistinctNumbers) {
    const std::vector<uint32_t> numbers = numbers_of(1500);
    EXPECT_EQ(std::set<uint32_t>(numbers.begin(), numbers.end()).size(), numbers.size());
}

// A thread-local object of the application, whose destructor calls OpenCL.
struct CallsInDestructor {
    uint32_t* number = nullptr;
    ~CallsInDestructor() {
        if (number)
            *number = thread_number();
    }
};

// The object is older than the thread's number, so its destructor runs after the number was given back, when another thread may have it.
TEST(ThreadNumber, ADestructorAfterTheNumberWasGivenBackHasANumberOfNoLivingThread) {
    uint32_t before = 0;
    uint32_t in_destructor = 0;
    std::thread([&] {
        static thread_local CallsInDestructor object;
        object.number = &in_destructor;
        before = thread_number();
    }).join();
    EXPECT_NE(in_destructor, before);
    const std::vector<uint32_t> numbers = numbers_of(20);
    EXPECT_EQ(std::ranges::count(numbers, before), 1);
    EXPECT_EQ(std::ranges::count(numbers, in_destructor), 0);
}

}  // namespace
}  // namespace polder
