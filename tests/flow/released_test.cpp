// Buffers in the application's memory (CL_MEM_USE_HOST_PTR) that are released before the commands that use them are complete.
#include "../api/support/native_kernels.h"
#include "support/flow.h"

#include <algorithm>
#include <atomic>
#include <thread>

namespace polder::test {
namespace {

constexpr size_t first = 1;  // device
constexpr size_t count = 16384;
constexpr size_t bytes = count * sizeof(cl_int);

// The parameter: the distance from an aligned address. Buffers use aligned memory in place.
class ReleasedInFlight : public FlowTest, public testing::WithParamInterface<size_t> {
protected:
    void SetUp() override {
        FlowTest::SetUp();
        const uintptr_t aligned = (reinterpret_cast<uintptr_t>(room_.data()) + 127) & ~uintptr_t{127};
        memory = reinterpret_cast<cl_int*>(aligned + GetParam());
        std::fill_n(memory, count, 5);
        buffer = make_buffer(bytes, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, memory);
        run(first, "add", count, {}, mem(buffer), cl_int{1});
        ASSERT_EQ(clFinish(queues[first]), CL_SUCCESS);
        cl_int error = CL_INVALID_VALUE;
        gate = clCreateUserEvent(context, &error);
        ASSERT_EQ(error, CL_SUCCESS);
    }
    void* map(cl_bool blocking, cl_map_flags flags, cl_event wait = nullptr) {
        cl_int error = CL_INVALID_VALUE;
        void* const mapped = clEnqueueMapBuffer(queues[first], buffer, blocking, flags, 0, bytes, wait ? 1 : 0,
                                                wait ? &wait : nullptr, nullptr, &error);
        EXPECT_EQ(error, CL_SUCCESS);
        EXPECT_EQ(mapped, memory);
        return mapped;
    }
    void release_and_open_gate() {
        buffer = OwnedMem();
        ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
        ASSERT_EQ(clFinish(queues[first]), CL_SUCCESS);
    }
    [[nodiscard]] std::vector<cl_int> content() const { return {memory, memory + count}; }
    static std::vector<cl_int> all(cl_int value) { return std::vector<cl_int>(count, value); }

    cl_int* memory = nullptr;
    OwnedMem buffer;
    OwnedEvent gate;

private:
    std::vector<std::byte> room_ = std::vector<std::byte>(bytes + 256);
};

TEST_P(ReleasedInFlight, WhatTheHostHasWrittenIsUsed) {
    const OwnedMem out = make_buffer(bytes);
    void* const mapped = map(CL_TRUE, CL_MAP_READ | CL_MAP_WRITE);
    EXPECT_EQ(content(), all(6));
    std::fill_n(memory, count, 7);
    ASSERT_EQ(clEnqueueUnmapMemObject(queues[first], buffer, mapped, 1, gate.in(), nullptr), CL_SUCCESS);
    ASSERT_EQ(clEnqueueCopyBuffer(queues[first], buffer, out, 0, 0, bytes, 0, nullptr, nullptr), CL_SUCCESS);
    release_and_open_gate();
    EXPECT_EQ(read<cl_int>(out, count, queues[first]), all(7));
}

TEST_P(ReleasedInFlight, AMapThatIsHeldBackHasTheBytes) {
    map(CL_FALSE, CL_MAP_READ, gate);
    release_and_open_gate();
    EXPECT_EQ(content(), all(6));
}

TEST_P(ReleasedInFlight, AMigrationThatIsHeldBackHasTheBytes) {
    ASSERT_EQ(
        clEnqueueMigrateMemObjects(queues[first], 1, buffer.in(), CL_MIGRATE_MEM_OBJECT_HOST, 1, gate.in(), nullptr),
        CL_SUCCESS);
    release_and_open_gate();
    EXPECT_EQ(content(), all(6));
}

// clReleaseMemObject returns while the commands go on, even if they wait for the application.
TEST_P(ReleasedInFlight, ReleasingWaitsForNoCommand) {
    if (!executes_native_kernels(devices[0]))
        GTEST_SKIP() << "no native kernels";
    static std::atomic<bool> go;
    go = false;
    OwnedEvent waits;
    ASSERT_EQ(clEnqueueNativeKernel(
                  queues[0],
                  [](void*) {
                      while (!go)
                          std::this_thread::yield();
                  },
                  nullptr, 0, 0, nullptr, nullptr, 0, nullptr, waits.out()),
              CL_SUCCESS);
    ASSERT_EQ(clFlush(queues[0]), CL_SUCCESS);
    run(first, "add", count, {waits}, mem(buffer), cl_int{1});
    OwnedEvent moved;
    ASSERT_EQ(
        clEnqueueMigrateMemObjects(queues[first], 1, buffer.in(), CL_MIGRATE_MEM_OBJECT_HOST, 0, nullptr, moved.out()),
        CL_SUCCESS);
    ASSERT_EQ(clFlush(queues[first]), CL_SUCCESS);
    buffer = OwnedMem();
    go = true;
    ASSERT_EQ(clWaitForEvents(1, moved.in()), CL_SUCCESS);
    EXPECT_EQ(content(), all(7));
    release_and_open_gate();
}

INSTANTIATE_TEST_SUITE_P(Alignment, ReleasedInFlight, testing::Values(0, 4));

}  // namespace
}  // namespace polder::test
