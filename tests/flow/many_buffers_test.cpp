// Very many small buffers in one context over the processor and a discrete device: 100,000, or POLDER_TEST_BUFFERS. They are used for the
// first time in one order and released in another. Where the device's memory does not hold half of them, they are evicted. Counts are exact, sampled bytes are right, and at the end no memory is in use.
// Prints the bytes of host memory and the nanoseconds for each buffer; only the bytes are checked, loosely.
#include "../api/support/fixture.h"
#include "../support/sanitizer.h"

#include <CL/cl_ext_polder.h>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <unistd.h>
#include <vector>

namespace polder::test {
namespace {

constexpr size_t buffer_bytes = 64;
constexpr size_t block_bytes = 128;  // memory for such a buffer
constexpr size_t host_bytes_max = 3000;  // of each buffer: its objects, and its bytes

size_t resident_bytes() {
    std::ifstream file("/proc/self/statm");
    size_t pages = 0, resident = 0;
    file >> pages >> resident;
    return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

// 0 to count - 1 in an order without pattern that `which` chooses.
class Order {
public:
    Order(size_t count, size_t which) : count_(count), step_(which) {
        while (std::gcd(step_, count_) != 1)
            ++step_;
    }
    size_t operator()(size_t index) const { return index * step_ % count_; }

private:
    size_t count_, step_;
};

class ManyBuffers : public ContextTest {
protected:
    static size_t count() {
        const char* const asked = std::getenv("POLDER_TEST_BUFFERS");
        return asked ? std::strtoull(asked, nullptr, 10) : 100'000;
    }
    void SetUp() override {
        ContextTest::SetUp();
        ASSERT_EQ(devices.size(), 2u) << "POCL_DEVICES must be \"cpu discrete\"";
        queues_.push_back(make_queue(devices[0]));
        queues_.push_back(make_queue(devices[1]));
        list_ = reinterpret_cast<clGetMemoryStatisticsPOLDER_fn>(
            clGetExtensionFunctionAddressForPlatform(platform(), "clGetMemoryStatisticsPOLDER"));
        budgets_ = reinterpret_cast<clGetMemoryBudgetsPOLDER_fn>(
            clGetExtensionFunctionAddressForPlatform(platform(), "clGetMemoryBudgetsPOLDER"));
    }
    std::vector<cl_memory_statistics_polder> statistics() {
        std::vector<cl_memory_statistics_polder> entries(2);
        EXPECT_EQ(list_(context, 2, entries.data(), nullptr), CL_SUCCESS);
        return entries;
    }
    std::vector<cl_memory_budget_polder> budgets() {
        std::vector<cl_memory_budget_polder> entries(2);
        EXPECT_EQ(budgets_(context, 2, entries.data(), nullptr), CL_SUCCESS);
        return entries;
    }
    uint64_t promised_bytes() { return budgets()[0].promised_bytes; }
    // Whether the device's memory is large enough for what is used there: half of the buffers.
    bool all_fit() { return budgets()[1].total_bytes >= count() / 2 * block_bytes; }
    // Otherwise buffers are evicted to host memory.
    void expect_blocks(const std::vector<cl_memory_statistics_polder>& before) {
        const auto now = statistics();
        const uint64_t half = count() / 2;
        if (all_fit()) {
            for (size_t space = 0; space < 2; ++space)
                EXPECT_EQ(now[space].live_blocks, before[space].live_blocks + half);
            return;
        }
        const uint64_t room = budgets()[1].total_bytes / block_bytes;
        EXPECT_GE(now[0].live_blocks, before[0].live_blocks + 2 * half - room);
        EXPECT_LE(now[1].live_blocks, room);
        EXPECT_GE(now[1].live_blocks, room * 9 / 10);
        EXPECT_GE(budgets()[1].evicted_bytes, (half - room) * buffer_bytes);
    }
    void finish() {
        for (const OwnedQueue& each : queues_)
            ASSERT_EQ(clFinish(each), CL_SUCCESS);
    }
    // Buffer `index` gets its number on one of the devices, and so memory there.
    void use(size_t index) {
        const auto number = static_cast<cl_uint>(index);
        ASSERT_EQ(clEnqueueFillBuffer(queues_[index % 2], buffers_[index], &number, sizeof number, 0, buffer_bytes, 0,
                                      nullptr, nullptr),
                  CL_SUCCESS);
    }
    void expect_number(size_t index, size_t device) {
        EXPECT_EQ(read<cl_uint>(buffers_[index], buffer_bytes / sizeof(cl_uint), queues_[device]),
                  std::vector<cl_uint>(buffer_bytes / sizeof(cl_uint), static_cast<cl_uint>(index)));
    }
    void create(size_t index) { buffers_[index] = make_buffer(buffer_bytes); }
    template <class F>
    void timed(const char* what, F&& f) {
        const auto begin = std::chrono::steady_clock::now();
        f();
        const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - begin;
        std::printf("%-24s %8.0f ns for each buffer\n", what, time.count() / static_cast<double>(buffers_.size()));
    }

    std::vector<OwnedQueue> queues_;
    std::vector<OwnedMem> buffers_;
    clGetMemoryStatisticsPOLDER_fn list_ = nullptr;
    clGetMemoryBudgetsPOLDER_fn budgets_ = nullptr;
};

TEST_F(ManyBuffers, AreUsedAndReleasedInDifferentOrders) {
    const size_t all = count();
    ASSERT_EQ(all % 4, 0u);
    const auto before = statistics();
    buffers_.resize(all);
    const size_t resident_before = resident_bytes();
    timed("created", [&] {
        for (size_t i = 0; i < all; ++i)
            create(i);
    });
    const size_t created_bytes = resident_bytes() - resident_before;
    EXPECT_EQ(promised_bytes(), all * buffer_bytes);
    const Order first_use(all, all / 3);
    timed("first used", [&] {
        for (size_t i = 0; i < all; ++i)
            use(first_use(i));
        finish();
    });
    const size_t used_bytes = resident_bytes() - resident_before;
    expect_blocks(before);
    std::printf("%zu bytes of memory for each buffer when created, %zu when used\n", created_bytes / all,
                used_bytes / all);
    if (!has_address_sanitizer && !has_thread_sanitizer) {
        EXPECT_LT(used_bytes / all, host_bytes_max);
    }
    timed("used again", [&] {
        for (size_t i = 0; i < all; ++i)
            use(i);
        finish();
    });
    for (size_t i = 0; i < 1000; ++i)
        expect_number(first_use(i), i % 2);

    // Half of them are replaced, then all are released.
    const Order release(all, all / 5 * 2);
    for (size_t i = 0; i < all / 2; ++i)
        buffers_[release(i)].reset();
    finish();
    EXPECT_EQ(promised_bytes(), all / 2 * buffer_bytes);
    for (size_t i = 0; i < all / 2; ++i) {
        create(release(i));
        use(release(i));
    }
    finish();
    for (size_t i = 0; i < 1000; ++i)
        expect_number(release(all / 2 - 500 + i), i / 2 % 2);
    timed("released", [&] {
        for (size_t i = 0; i < all; ++i)
            buffers_[first_use(release(i))].reset();
    });
    finish();
    EXPECT_EQ(promised_bytes(), 0u);
    const auto after = statistics();
    for (size_t space = 0; space < 2; ++space) {
        EXPECT_EQ(after[space].live_blocks, before[space].live_blocks);
        EXPECT_EQ(after[space].allocated_bytes, before[space].allocated_bytes);
        EXPECT_EQ(after[space].pending_blocks, 0u);
    }
}

}  // namespace
}  // namespace polder::test
