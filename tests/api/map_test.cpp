// Maps and unmaps of buffers, and buffers over the application's own memory.
#include "support/fixture.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace polder::test {
namespace {

constexpr size_t huge = ~size_t{0};

class Maps : public ContextTest {};

TEST_F(Maps, MapsSeeAndMakeTheNewestBytes) {
    for (cl_device_id device : devices) {
        OwnedQueue on = make_queue(device);
        OwnedMem buffer = make_buffer(4096);
        write(buffer, std::vector<uint8_t>(4096, 1), on);
        cl_int error = CL_INVALID_VALUE;
        auto* bytes = static_cast<uint8_t*>(
            clEnqueueMapBuffer(on, buffer, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 100, 50, 0, nullptr, nullptr, &error));
        ASSERT_EQ(error, CL_SUCCESS);
        EXPECT_EQ(bytes[0], 1);
        EXPECT_EQ(mem_info<cl_uint>(buffer, CL_MEM_MAP_COUNT), 1u);
        std::memset(bytes, 2, 50);
        ASSERT_EQ(clEnqueueUnmapMemObject(on, buffer, bytes, 0, nullptr, nullptr), CL_SUCCESS);
        EXPECT_EQ(mem_info<cl_uint>(buffer, CL_MEM_MAP_COUNT), 0u);
        std::vector<uint8_t> expected(4096, 1);
        std::fill_n(expected.begin() + 100, 50, uint8_t{2});
        EXPECT_EQ(read<uint8_t>(buffer, 4096, on), expected);
        EXPECT_EQ(clEnqueueUnmapMemObject(on, buffer, bytes, 0, nullptr, nullptr), CL_INVALID_VALUE);
    }
}

TEST_F(Maps, SeveralMapsAtOnceAreEachUnmapped) {
    OwnedMem buffer = make_buffer(4096);
    write(buffer, std::vector<uint8_t>(4096, 1));
    cl_int error = CL_SUCCESS;
    void* first = clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_READ, 0, 1024, 0, nullptr, nullptr, &error);
    void* second = clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_READ, 512, 1024, 0, nullptr, nullptr, &error);
    void* third = clEnqueueMapBuffer(queue, buffer, CL_TRUE, CL_MAP_WRITE_INVALIDATE_REGION, 2048, 1024, 0, nullptr,
                                     nullptr, &error);
    EXPECT_EQ(mem_info<cl_uint>(buffer, CL_MEM_MAP_COUNT), 3u);
    EXPECT_EQ(static_cast<char*>(second) - static_cast<char*>(first), 512);
    std::memset(third, 7, 1024);
    for (void* mapped : {first, second, third})
        EXPECT_EQ(clEnqueueUnmapMemObject(queue, buffer, mapped, 0, nullptr, nullptr), CL_SUCCESS);
    const auto values = read<uint8_t>(buffer, 4096);
    EXPECT_EQ(values[2047], 1);
    EXPECT_EQ(values[2048], 7);
    EXPECT_EQ(values[3071], 7);
    EXPECT_EQ(values[3072], 1);
}

// The bytes never moved to the host, so the map fails with its command: no map stays registered, and no bytes can be
// published.
TEST_F(Maps, AMapBehindAFailedEventMapsNothing) {
    for (cl_device_id device : devices) {
        OwnedQueue on = make_queue(device);
        OwnedMem buffer = make_buffer(4096);
        write(buffer, std::vector<uint8_t>(4096, 7), on);
        const OwnedEvent gate = make_user_event();
        OwnedEvent mapped;
        cl_int error = CL_INVALID_VALUE;
        void* const pointer =
            clEnqueueMapBuffer(on, buffer, CL_FALSE, CL_MAP_WRITE, 0, 4096, 1, gate.in(), mapped.out(), &error);
        ASSERT_EQ(error, CL_SUCCESS);
        // Of two unmap commands, one is enqueued before the map has failed.
        OwnedEvent unmapped;
        ASSERT_EQ(clEnqueueUnmapMemObject(on, buffer, pointer, 0, nullptr, unmapped.out()), CL_SUCCESS);
        ASSERT_EQ(clSetUserEventStatus(gate, -1), CL_SUCCESS);
        EXPECT_EQ(clWaitForEvents(1, mapped.in()), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
        EXPECT_EQ(clWaitForEvents(1, unmapped.in()), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
        EXPECT_EQ(clEnqueueUnmapMemObject(on, buffer, pointer, 0, nullptr, nullptr), CL_INVALID_VALUE);
        EXPECT_EQ(mem_info<cl_uint>(buffer, CL_MEM_MAP_COUNT), 0u);
        EXPECT_EQ(read<uint8_t>(buffer, 4096, on), std::vector<uint8_t>(4096, 7));
        void* const again = clEnqueueMapBuffer(on, buffer, CL_TRUE, CL_MAP_WRITE, 0, 4096, 0, nullptr, nullptr, &error);
        ASSERT_EQ(error, CL_SUCCESS);
        EXPECT_EQ(clEnqueueUnmapMemObject(on, buffer, again, 0, nullptr, nullptr), CL_SUCCESS);
        EXPECT_EQ(clFinish(on), CL_SUCCESS);
    }
}

TEST_F(Maps, AnUnmapBehindAFailedEventLeavesTheBytesMapped) {
    for (cl_device_id device : devices) {
        OwnedQueue on = make_queue(device);
        OwnedMem buffer = make_buffer(4096);
        write(buffer, std::vector<uint8_t>(4096, 8), on);
        cl_int error = CL_INVALID_VALUE;
        auto* const bytes = static_cast<uint8_t*>(
            clEnqueueMapBuffer(on, buffer, CL_TRUE, CL_MAP_WRITE, 0, 4096, 0, nullptr, nullptr, &error));
        ASSERT_EQ(error, CL_SUCCESS);
        std::memset(bytes, 101, 4096);
        const OwnedEvent gate = make_user_event();
        OwnedEvent unmapped;
        ASSERT_EQ(clEnqueueUnmapMemObject(on, buffer, bytes, 1, gate.in(), unmapped.out()), CL_SUCCESS);
        ASSERT_EQ(clSetUserEventStatus(gate, -1), CL_SUCCESS);
        EXPECT_EQ(clWaitForEvents(1, unmapped.in()), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
        EXPECT_EQ(mem_info<cl_uint>(buffer, CL_MEM_MAP_COUNT), 1u);
        EXPECT_EQ(clEnqueueUnmapMemObject(on, buffer, bytes, 0, nullptr, nullptr), CL_SUCCESS);
        EXPECT_EQ(read<uint8_t>(buffer, 4096, on), std::vector<uint8_t>(4096, 101));
    }
}

TEST_F(Maps, OfTwoMapsOfOnePointerTheFirstUnmapPublishesWhatWasWritten) {
    for (cl_device_id device : devices) {
        OwnedQueue on = make_queue(device);
        OwnedMem buffer = make_buffer(100);
        write(buffer, std::vector<uint8_t>(100, 1), on);
        cl_int error = CL_INVALID_VALUE;
        auto* const bytes = static_cast<uint8_t*>(
            clEnqueueMapBuffer(on, buffer, CL_TRUE, CL_MAP_WRITE, 0, 100, 0, nullptr, nullptr, &error));
        ASSERT_EQ(error, CL_SUCCESS);
        ASSERT_EQ(clEnqueueMapBuffer(on, buffer, CL_TRUE, CL_MAP_READ, 0, 50, 0, nullptr, nullptr, &error), bytes);
        std::memset(bytes, 2, 100);
        EXPECT_EQ(clEnqueueUnmapMemObject(on, buffer, bytes, 0, nullptr, nullptr), CL_SUCCESS);
        // A copy reads the device's own bytes, where it has the newest.
        OwnedMem copy = make_buffer(100);
        EXPECT_EQ(clEnqueueCopyBuffer(on, buffer, copy, 0, 0, 100, 0, nullptr, nullptr), CL_SUCCESS);
        EXPECT_EQ(read<uint8_t>(copy, 100, on), std::vector<uint8_t>(100, 2));
        EXPECT_EQ(clEnqueueUnmapMemObject(on, buffer, bytes, 0, nullptr, nullptr), CL_SUCCESS);
        EXPECT_EQ(read<uint8_t>(buffer, 100, on), std::vector<uint8_t>(100, 2));
        EXPECT_EQ(clEnqueueUnmapMemObject(on, buffer, bytes, 0, nullptr, nullptr), CL_INVALID_VALUE);
    }
}

TEST_F(Maps, MapArgumentsAreChecked) {
    OwnedMem buffer = make_buffer(64);
    cl_int error = CL_SUCCESS;
    const auto map_error = [&](cl_map_flags flags, size_t offset, size_t size) {
        EXPECT_EQ(clEnqueueMapBuffer(queue, buffer, CL_TRUE, flags, offset, size, 0, nullptr, nullptr, &error),
                  nullptr);
        return error;
    };
    EXPECT_EQ(map_error(CL_MAP_READ, 0, 0), CL_INVALID_VALUE);
    EXPECT_EQ(map_error(CL_MAP_READ, 1, 64), CL_INVALID_VALUE);
    EXPECT_EQ(map_error(CL_MAP_READ, 1, huge), CL_INVALID_VALUE);
    EXPECT_EQ(map_error(CL_MAP_READ | CL_MAP_WRITE_INVALIDATE_REGION, 0, 64), CL_INVALID_VALUE);
    EXPECT_EQ(map_error(cl_map_flags{1} << 30, 0, 64), CL_INVALID_VALUE);
    char never_mapped = 0;
    EXPECT_EQ(clEnqueueUnmapMemObject(queue, buffer, &never_mapped, 0, nullptr, nullptr), CL_INVALID_VALUE);
}

// Once with memory that devices of the host can use in place, once with memory that is not aligned for it.
TEST_F(Maps, UseHostPointerIsWhatMapsReturnAndSync) {
    alignas(4096) static std::array<uint8_t, 8192> storage;
    for (cl_device_id device : devices)
        for (size_t offset : {size_t{0}, size_t{1}}) {
            OwnedQueue on = make_queue(device);
            uint8_t* const host = storage.data() + offset;
            std::fill_n(host, 4096, uint8_t{5});
            OwnedMem buffer = make_buffer(4096, CL_MEM_USE_HOST_PTR, host);
            EXPECT_EQ(read<uint8_t>(buffer, 4096, on), std::vector<uint8_t>(4096, 5));
            const uint8_t six = 6;
            ASSERT_EQ(clEnqueueFillBuffer(on, buffer, &six, 1, 1024, 1024, 0, nullptr, nullptr), CL_SUCCESS);
            cl_int error = CL_SUCCESS;
            void* mapped = clEnqueueMapBuffer(on, buffer, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, 4096, 0, nullptr,
                                              nullptr, &error);
            ASSERT_EQ(mapped, host);
            EXPECT_EQ(host[1023], 5);
            EXPECT_EQ(host[1024], 6);
            host[0] = 9;
            ASSERT_EQ(clEnqueueUnmapMemObject(on, buffer, mapped, 0, nullptr, nullptr), CL_SUCCESS);
            EXPECT_EQ(read<uint8_t>(buffer, 1, on).front(), 9);
        }
}

TEST_F(Maps, OverlappingRegionsAreNotMappedForWritingTwice) {
    const OwnedMem buffer = make_buffer(4096);
    cl_int error = CL_SUCCESS;
    const auto map = [&](cl_map_flags flags, size_t offset, size_t size) {
        return clEnqueueMapBuffer(queue, buffer, CL_TRUE, flags, offset, size, 0, nullptr, nullptr, &error);
    };
    void* const written = map(CL_MAP_WRITE, 1024, 1024);
    ASSERT_EQ(error, CL_SUCCESS);
    for (const cl_map_flags flags : {cl_map_flags{CL_MAP_WRITE}, cl_map_flags{CL_MAP_READ | CL_MAP_WRITE},
                                     cl_map_flags{CL_MAP_WRITE_INVALIDATE_REGION}}) {
        EXPECT_EQ(map(flags, 2047, 1), nullptr);
        EXPECT_EQ(error, CL_INVALID_OPERATION);
        EXPECT_EQ(map(flags, 0, 4096), nullptr);
        EXPECT_EQ(error, CL_INVALID_OPERATION);
    }
    EXPECT_EQ(mem_info<cl_uint>(buffer, CL_MEM_MAP_COUNT), 1u);
    // Beside it, or only to be read.
    std::vector<void*> maps = {written, map(CL_MAP_WRITE, 0, 1024), map(CL_MAP_WRITE, 2048, 1024),
                               map(CL_MAP_READ, 1024, 1024)};
    for (void* const mapped : maps) {
        ASSERT_NE(mapped, nullptr);
        EXPECT_EQ(clEnqueueUnmapMemObject(queue, buffer, mapped, 0, nullptr, nullptr), CL_SUCCESS);
    }
    // A range whose unmap is enqueued may be mapped again at once.
    void* const again = map(CL_MAP_WRITE, 0, 4096);
    EXPECT_EQ(error, CL_SUCCESS);
    EXPECT_EQ(clEnqueueUnmapMemObject(queue, buffer, again, 0, nullptr, nullptr), CL_SUCCESS);
    EXPECT_EQ(clFinish(queue), CL_SUCCESS);
}

} // namespace
} // namespace polder::test
