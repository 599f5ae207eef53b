// cl_polder_memory_statistics: every function with all errors, and figures that follow what a program does.
#include "support/fixture.h"

#include <CL/cl_ext_polder.h>
#include <cstring>
#include <vector>

namespace polder::test {
namespace {

class MemoryStatistics : public ContextTest {
protected:
    void SetUp() override {
        ContextTest::SetUp();
        find(statistics, "clGetMemoryStatisticsPOLDER");
        find(spaces, "clGetMemorySpacesPOLDER");
        find(reset, "clResetMemoryPeaksPOLDER");
        find(trim, "clTrimMemoryPOLDER");
        find(budgets, "clGetMemoryBudgetsPOLDER");
    }
    template <class Function>
    void find(Function& function, const char* name) {
        function = reinterpret_cast<Function>(clGetExtensionFunctionAddressForPlatform(platform(), name));
        ASSERT_NE(function, nullptr) << name;
    }
    std::vector<cl_memory_statistics_polder> all() {
        cl_uint count = 0;
        EXPECT_EQ(statistics(context, 0, nullptr, &count), CL_SUCCESS);
        std::vector<cl_memory_statistics_polder> entries(count);
        EXPECT_EQ(statistics(context, count, entries.data(), nullptr), CL_SUCCESS);
        return entries;
    }
    // The statistics of the last device, which is the CPU or one with a memory of its own.
    cl_memory_statistics_polder last() { return all().back(); }
    void use(cl_mem buffer, size_t bytes) {
        const OwnedQueue on_last = make_queue(devices.back());
        const cl_uchar zero = 0;
        ASSERT_EQ(clEnqueueFillBuffer(on_last, buffer, &zero, 1, 0, bytes, 0, nullptr, nullptr), CL_SUCCESS);
        ASSERT_EQ(clFinish(on_last), CL_SUCCESS);
    }

    clGetMemoryStatisticsPOLDER_fn statistics = nullptr;
    clGetMemorySpacesPOLDER_fn spaces = nullptr;
    clResetMemoryPeaksPOLDER_fn reset = nullptr;
    clTrimMemoryPOLDER_fn trim = nullptr;
    clGetMemoryBudgetsPOLDER_fn budgets = nullptr;
};

TEST_F(MemoryStatistics, VersionIsThree) {
    size_t size = 0;
    ASSERT_EQ(clGetPlatformInfo(platform(), CL_PLATFORM_EXTENSIONS_WITH_VERSION, 0, nullptr, &size), CL_SUCCESS);
    std::vector<cl_name_version> extensions(size / sizeof(cl_name_version));
    ASSERT_EQ(clGetPlatformInfo(platform(), CL_PLATFORM_EXTENSIONS_WITH_VERSION, size, extensions.data(), nullptr),
              CL_SUCCESS);
    bool found = false;
    for (const cl_name_version& extension : extensions)
        if (std::strcmp(extension.name, CL_POLDER_MEMORY_STATISTICS_EXTENSION_NAME) == 0)
            found = extension.version == CL_POLDER_MEMORY_STATISTICS_EXTENSION_VERSION;
    EXPECT_TRUE(found);
}

TEST_F(MemoryStatistics, ListingRefusesBadArguments) {
    cl_memory_statistics_polder entry;
    cl_uint count = 0;
    EXPECT_EQ(statistics(nullptr, 1, &entry, nullptr), CL_INVALID_CONTEXT);
    EXPECT_EQ(statistics(foreign_handle<cl_context>(context), 1, &entry, nullptr), CL_INVALID_CONTEXT);
    EXPECT_EQ(statistics(context, 0, &entry, &count), CL_INVALID_VALUE);
    EXPECT_EQ(statistics(context, 1, nullptr, &count), CL_INVALID_VALUE);
    EXPECT_EQ(statistics(context, 0, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(statistics(context, 1, &entry, nullptr), CL_SUCCESS);
    EXPECT_EQ(entry.space, 0u);
}

TEST_F(MemoryStatistics, ResettingRefusesBadArguments) {
    EXPECT_EQ(reset(nullptr, 0, CL_MEMORY_PEAK_ALLOCATED_POLDER), CL_INVALID_CONTEXT);
    EXPECT_EQ(reset(context, 61, CL_MEMORY_PEAK_ALLOCATED_POLDER), CL_INVALID_VALUE);
    EXPECT_EQ(reset(context, 0, 0), CL_INVALID_VALUE);
    EXPECT_EQ(reset(context, 0, 4), CL_INVALID_VALUE);
    EXPECT_EQ(reset(context, 0, CL_MEMORY_PEAK_ALLOCATED_POLDER | 8), CL_INVALID_VALUE);
    EXPECT_EQ(reset(context, CL_MEMORY_SPACE_ALL_POLDER, CL_MEMORY_PEAK_RESERVED_POLDER), CL_SUCCESS);
}

TEST_F(MemoryStatistics, TrimmingRefusesBadArguments) {
    EXPECT_EQ(trim(nullptr, 0), CL_INVALID_CONTEXT);
    EXPECT_EQ(trim(foreign_handle<cl_context>(context), 0), CL_INVALID_CONTEXT);
    EXPECT_EQ(trim(context, 61), CL_INVALID_VALUE);
    EXPECT_EQ(trim(context, 0), CL_SUCCESS);
    EXPECT_EQ(trim(context, CL_MEMORY_SPACE_ALL_POLDER), CL_SUCCESS);
}

TEST_F(MemoryStatistics, SpacesAreThoseOfTheOtherList) {
    cl_uint count = 0;
    ASSERT_EQ(spaces(context, 0, nullptr, &count), CL_SUCCESS);
    std::vector<cl_memory_space_polder> others(count);
    ASSERT_EQ(spaces(context, count, others.data(), nullptr), CL_SUCCESS);
    const auto mine = all();
    ASSERT_EQ(mine.size(), others.size());
    for (size_t i = 0; i < mine.size(); ++i)
        EXPECT_EQ(mine[i].space, others[i].space);
}

TEST_F(MemoryStatistics, FiguresFollowABuffer) {
    constexpr size_t bytes = size_t{8} << 20;
    const cl_memory_statistics_polder before = last();
    {
        const OwnedMem buffer = make_buffer(bytes);
        use(buffer, bytes);
        const cl_memory_statistics_polder now = last();
        EXPECT_GE(now.allocated_bytes, before.allocated_bytes + bytes);
        EXPECT_GE(now.active_bytes, now.allocated_bytes);
        // Large buffers in host memory may have pages of their own instead of a block.
        if (now.space != 0) {
            EXPECT_EQ(now.allocations, before.allocations + 1);
            EXPECT_EQ(now.live_blocks, before.live_blocks + 1);
            EXPECT_GE(now.reserved_bytes, now.active_bytes);
            EXPECT_GE(now.regions, 1u);
        }
        EXPECT_GE(now.allocated_peak_bytes, now.allocated_bytes);
        EXPECT_GE(now.reserved_peak_bytes, now.reserved_bytes);
    }
    const cl_memory_statistics_polder after = last();
    EXPECT_EQ(after.frees - before.frees, after.allocations - before.allocations);
    EXPECT_EQ(after.allocated_bytes, before.allocated_bytes);
    EXPECT_EQ(after.live_blocks, before.live_blocks);
}

TEST_F(MemoryStatistics, PeaksAreResetApart) {
    constexpr size_t bytes = size_t{8} << 20;
    {
        const OwnedMem buffer = make_buffer(bytes);
        use(buffer, bytes);
    }
    const cl_memory_statistics_polder before = last();
    ASSERT_GE(before.allocated_peak_bytes, before.allocated_bytes + bytes);
    ASSERT_EQ(reset(context, before.space, CL_MEMORY_PEAK_ALLOCATED_POLDER), CL_SUCCESS);
    const cl_memory_statistics_polder now = last();
    EXPECT_LE(now.allocated_peak_bytes, before.allocated_peak_bytes - bytes);
    EXPECT_EQ(now.reserved_peak_bytes, before.reserved_peak_bytes);
    ASSERT_EQ(trim(context, CL_MEMORY_SPACE_ALL_POLDER), CL_SUCCESS);
    EXPECT_EQ(last().reserved_peak_bytes, before.reserved_peak_bytes);
    ASSERT_EQ(reset(context, CL_MEMORY_SPACE_ALL_POLDER, CL_MEMORY_PEAK_RESERVED_POLDER), CL_SUCCESS);
    EXPECT_EQ(last().reserved_peak_bytes, last().reserved_bytes);
}

TEST_F(MemoryStatistics, BudgetsRefuseBadArguments) {
    cl_memory_budget_polder entry;
    cl_uint count = 0;
    EXPECT_EQ(budgets(nullptr, 1, &entry, nullptr), CL_INVALID_CONTEXT);
    EXPECT_EQ(budgets(context, 0, &entry, &count), CL_INVALID_VALUE);
    EXPECT_EQ(budgets(context, 1, nullptr, &count), CL_INVALID_VALUE);
    EXPECT_EQ(budgets(context, 0, nullptr, nullptr), CL_INVALID_VALUE);
}

TEST_F(MemoryStatistics, BudgetsFollowABuffer) {
    constexpr size_t bytes = size_t{8} << 20;
    const auto last_budget = [&] {
        cl_uint count = 0;
        EXPECT_EQ(budgets(context, 0, nullptr, &count), CL_SUCCESS);
        std::vector<cl_memory_budget_polder> entries(count);
        EXPECT_EQ(budgets(context, count, entries.data(), nullptr), CL_SUCCESS);
        return entries.back();
    };
    const cl_memory_budget_polder before = last_budget();
    EXPECT_LE(before.limit_bytes, before.total_bytes);
    EXPECT_LE(before.used_by_others_bytes, before.total_bytes);
    {
        const OwnedMem buffer = make_buffer(bytes);
        EXPECT_EQ(last_budget().promised_bytes, before.promised_bytes + bytes);
        EXPECT_EQ(last_budget().committed_bytes, before.committed_bytes) << "without memory until it is used";
        use(buffer, bytes);
        const cl_memory_budget_polder now = last_budget();
        EXPECT_GE(now.committed_bytes, before.committed_bytes + bytes);
        EXPECT_GE(now.resident_bytes, bytes) << "the bytes were written";
        EXPECT_LE(now.available_bytes + bytes, now.total_bytes);
    }
    EXPECT_EQ(last_budget().promised_bytes, before.promised_bytes);
    EXPECT_EQ(last_budget().committed_bytes, before.committed_bytes);
}

TEST_F(MemoryStatistics, TrimmingGivesUnusedMemoryBack) {
    constexpr size_t bytes = size_t{32} << 20;
    {
        const OwnedMem buffer = make_buffer(bytes);
        use(buffer, bytes);
    }
    const cl_memory_statistics_polder before = last();
    ASSERT_EQ(trim(context, before.space), CL_SUCCESS);
    const cl_memory_statistics_polder now = last();
    EXPECT_LE(now.reserved_bytes, before.reserved_bytes);
    if (now.live_blocks == 0) {
        EXPECT_EQ(now.reserved_bytes, 0u);
    }
    // Memory is reserved again.
    const OwnedMem buffer = make_buffer(bytes);
    use(buffer, bytes);
}

}  // namespace
}  // namespace polder::test
