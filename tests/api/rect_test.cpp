// The rectangular commands on buffers.
#include "support/fixture.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <numeric>
#include <random>
#include <set>
#include <vector>

namespace polder::test {
namespace {

constexpr size_t huge = ~size_t{0};

using Rects = ContextTest;

struct Rect {
    size_t origin[3];
    size_t row_pitch;
    size_t slice_pitch;
    [[nodiscard]] size_t at(size_t x, size_t y, size_t z) const {
        return (origin[2] + z) * slice_pitch + (origin[1] + y) * row_pitch + origin[0] + x;
    }
};

TEST_F(Rects, CommandsTouchExactlyTheirRows) {
    const size_t region[3] = {5, 4, 3};
    const Rect in_buffer{{3, 2, 1}, 16, 160};
    const Rect in_host{{1, 0, 1}, 9, 45};
    std::vector<uint8_t> host(400);
    std::iota(host.begin(), host.end(), uint8_t{0});
    for (cl_device_id device : devices) {
        OwnedQueue on = make_queue(device);
        OwnedMem buffer = make_buffer(1000);
        write(buffer, std::vector<uint8_t>(1000, 0xee), on);
        ASSERT_EQ(clEnqueueWriteBufferRect(on, buffer, CL_TRUE, in_buffer.origin, in_host.origin, region,
                                           in_buffer.row_pitch, in_buffer.slice_pitch, in_host.row_pitch,
                                           in_host.slice_pitch, host.data(), 0, nullptr, nullptr),
                  CL_SUCCESS);
        std::vector<uint8_t> expected(1000, 0xee);
        for (size_t z = 0; z < 3; ++z)
            for (size_t y = 0; y < 4; ++y)
                for (size_t x = 0; x < 5; ++x)
                    expected[in_buffer.at(x, y, z)] = host[in_host.at(x, y, z)];
        EXPECT_EQ(read<uint8_t>(buffer, 1000, on), expected);

        OwnedMem other = make_buffer(1000);
        write(other, std::vector<uint8_t>(1000, 0x11), on);
        const Rect in_other{{0, 1, 0}, 20, 200};
        ASSERT_EQ(clEnqueueCopyBufferRect(on, buffer, other, in_buffer.origin, in_other.origin, region,
                                          in_buffer.row_pitch, in_buffer.slice_pitch, in_other.row_pitch,
                                          in_other.slice_pitch, 0, nullptr, nullptr),
                  CL_SUCCESS);
        std::vector<uint8_t> expected_other(1000, 0x11);
        for (size_t z = 0; z < 3; ++z)
            for (size_t y = 0; y < 4; ++y)
                for (size_t x = 0; x < 5; ++x)
                    expected_other[in_other.at(x, y, z)] = host[in_host.at(x, y, z)];
        EXPECT_EQ(read<uint8_t>(other, 1000, on), expected_other);

        std::vector<uint8_t> back(400, 0x22);
        std::vector<uint8_t> expected_back = back;
        ASSERT_EQ(clEnqueueReadBufferRect(on, other, CL_TRUE, in_other.origin, in_host.origin, region,
                                          in_other.row_pitch, in_other.slice_pitch, in_host.row_pitch,
                                          in_host.slice_pitch, back.data(), 0, nullptr, nullptr),
                  CL_SUCCESS);
        for (size_t z = 0; z < 3; ++z)
            for (size_t y = 0; y < 4; ++y)
                for (size_t x = 0; x < 5; ++x)
                    expected_back[in_host.at(x, y, z)] = host[in_host.at(x, y, z)];
        EXPECT_EQ(back, expected_back);
    }
}

TEST_F(Rects, ArgumentsAreChecked) {
    OwnedMem buffer = make_buffer(1000);
    std::vector<uint8_t> host(1000);
    const size_t zero[3] = {0, 0, 0};
    const auto read_rect = [&](std::array<size_t, 3> origin, std::array<size_t, 3> region, size_t row, size_t slice) {
        return clEnqueueReadBufferRect(queue, buffer, CL_TRUE, origin.data(), zero, region.data(), row, slice, 0, 0,
                                       host.data(), 0, nullptr, nullptr);
    };
    EXPECT_EQ(read_rect({0, 0, 0}, {10, 10, 10}, 0, 0), CL_SUCCESS);
    EXPECT_EQ(read_rect({0, 0, 0}, {0, 10, 10}, 0, 0), CL_INVALID_VALUE);
    EXPECT_EQ(read_rect({0, 0, 0}, {10, 10, 11}, 0, 0), CL_INVALID_VALUE);
    EXPECT_EQ(read_rect({1, 0, 0}, {10, 10, 10}, 0, 0), CL_INVALID_VALUE);
    EXPECT_EQ(read_rect({0, 0, 0}, {10, 2, 1}, 9, 0), CL_INVALID_VALUE);
    EXPECT_EQ(read_rect({0, 0, 0}, {10, 2, 2}, 10, 19), CL_INVALID_VALUE);
    EXPECT_EQ(read_rect({0, 0, 0}, {10, 2, 2}, 10, 25), CL_INVALID_VALUE);
    EXPECT_EQ(read_rect({huge, 0, 0}, {10, 2, 2}, 10, 20), CL_INVALID_VALUE);
    EXPECT_EQ(read_rect({0, huge / 2, 0}, {10, 2, 2}, 10, 20), CL_INVALID_VALUE);
    EXPECT_EQ(read_rect({0, 0, 0}, {huge, huge, huge}, 0, 0), CL_INVALID_VALUE);
}

TEST_F(Rects, CopyWithinOneBufferMayInterleaveButNotOverlap) {
    OwnedMem buffer = make_buffer(1024);
    std::vector<uint8_t> values(1024);
    std::iota(values.begin(), values.end(), uint8_t{0});
    write(buffer, values);
    const size_t region[3] = {8, 16, 1};
    const size_t left[3] = {0, 0, 0};
    const size_t right[3] = {16, 0, 0};
    const size_t close[3] = {4, 0, 0};
    EXPECT_EQ(
        clEnqueueCopyBufferRect(queue, buffer, buffer, left, close, region, 32, 512, 32, 512, 0, nullptr, nullptr),
        CL_MEM_COPY_OVERLAP);
    EXPECT_EQ(
        clEnqueueCopyBufferRect(queue, buffer, buffer, left, right, region, 32, 512, 64, 1024, 0, nullptr, nullptr),
        CL_INVALID_VALUE);
    ASSERT_EQ(
        clEnqueueCopyBufferRect(queue, buffer, buffer, left, right, region, 32, 512, 32, 512, 0, nullptr, nullptr),
        CL_SUCCESS);
    for (size_t y = 0; y < 16; ++y)
        std::copy_n(values.begin() + y * 32, 8, values.begin() + y * 32 + 16);
    EXPECT_EQ(read<uint8_t>(buffer, 1024), values);
}

// Regions of every kind in a small buffer, with tight and other pitches: a copy is refused where a byte is in both regions, and nowhere else.
// The Khronos suite (bufferreadwriterect) expects that regions with tight pitches overlap as if the pitches were those of the whole buffer.
TEST_F(Rects, CopyWithinOneBuffer_IsRefusedWhereBytesAreInBothRegions) {
    constexpr size_t size = 4096;
    OwnedMem buffer = make_buffer(size);
    std::mt19937 random(3);
    const auto up_to = [&](size_t last) { return std::uniform_int_distribution<size_t>(0, last)(random); };
    size_t refused = 0, accepted = 0;
    for (int round = 0; round < 2000; ++round) {
        const size_t region[3] = {1 + up_to(5), 1 + up_to(4), 1 + up_to(3)};
        const size_t row = up_to(1) ? region[0] + up_to(9) : 0, tight = (row ? row : region[0]) * region[1];
        const size_t slice = up_to(1) ? tight + up_to(2) * (row ? row : region[0]) : 0;
        const size_t from[3] = {up_to(12), up_to(5), up_to(4)}, to[3] = {up_to(12), up_to(5), up_to(4)};
        std::set<size_t> source, target, both;
        const auto add = [&](std::set<size_t>& bytes, const size_t* origin) {
            const size_t row_pitch = row ? row : region[0], slice_pitch = slice ? slice : tight;
            for (size_t z = 0; z < region[2]; ++z)
                for (size_t y = 0; y < region[1]; ++y)
                    for (size_t x = 0; x < region[0]; ++x)
                        bytes.insert((origin[2] + z) * slice_pitch + (origin[1] + y) * row_pitch + origin[0] + x);
        };
        add(source, from);
        add(target, to);
        ASSERT_LT(std::max(*source.rbegin(), *target.rbegin()), size);
        std::ranges::set_intersection(source, target, std::inserter(both, both.end()));
        ++(both.empty() ? accepted : refused);
        ASSERT_EQ(clEnqueueCopyBufferRect(queue, buffer, buffer, from, to, region, row, slice, row, slice, 0, nullptr,
                                          nullptr),
                  both.empty() ? CL_SUCCESS : CL_MEM_COPY_OVERLAP)
            << "round " << round;
    }
    EXPECT_GT(refused, 200u);
    EXPECT_GT(accepted, 200u);
}

struct RectCall {
    const size_t* buffer_origin;
    const size_t* host_origin;
    const size_t* region;
    size_t buffer_row, buffer_slice, host_row, host_slice;
};

// Bad arguments of both commands between a buffer and the host; the values that a copy takes for its source and its destination are
// checked alike.
TEST_F(Rects, CommandsReportEveryBadArgument) {
    constexpr size_t zero[3] = {}, region[3] = {4, 4, 4};
    constexpr size_t no_width[3] = {0, 4, 4}, no_height[3] = {4, 0, 4}, no_depth[3] = {4, 4, 0};
    constexpr size_t far[3] = {0, 0, 13};
    const RectCall bad[] = {
        {nullptr, zero, region, 0, 0, 0, 0}, {zero, nullptr, region, 0, 0, 0, 0}, {zero, zero, nullptr, 0, 0, 0, 0},
        {far, zero, region, 0, 0, 0, 0},     {zero, zero, no_width, 0, 0, 0, 0},  {zero, zero, no_height, 0, 0, 0, 0},
        {zero, zero, no_depth, 0, 0, 0, 0},  {zero, zero, region, 3, 0, 0, 0},    {zero, zero, region, 5, 19, 0, 0},
        {zero, zero, region, 5, 22, 0, 0},   {zero, zero, region, 0, 15, 0, 0},   {zero, zero, region, 0, 0, 3, 0},
        {zero, zero, region, 0, 0, 5, 19},   {zero, zero, region, 0, 0, 5, 22},   {zero, zero, region, 0, 0, 0, 15},
    };
    const OwnedMem buffer = make_buffer(256), other = make_buffer(256);
    std::array<char, 256> host{};
    const auto read_rect = [&](const RectCall& c, void* to) {
        return clEnqueueReadBufferRect(queue, buffer, CL_TRUE, c.buffer_origin, c.host_origin, c.region, c.buffer_row,
                                       c.buffer_slice, c.host_row, c.host_slice, to, 0, nullptr, nullptr);
    };
    const auto write_rect = [&](const RectCall& c, const void* from) {
        return clEnqueueWriteBufferRect(queue, buffer, CL_TRUE, c.buffer_origin, c.host_origin, c.region, c.buffer_row,
                                        c.buffer_slice, c.host_row, c.host_slice, from, 0, nullptr, nullptr);
    };
    const auto copy_rect = [&](const RectCall& c, cl_mem from, cl_mem to) {
        return clEnqueueCopyBufferRect(queue, from, to, c.buffer_origin, c.host_origin, c.region, c.buffer_row,
                                       c.buffer_slice, c.host_row, c.host_slice, 0, nullptr, nullptr);
    };
    for (size_t i = 0; i < std::size(bad); ++i) {
        EXPECT_EQ(read_rect(bad[i], host.data()), CL_INVALID_VALUE) << i;
        EXPECT_EQ(write_rect(bad[i], host.data()), CL_INVALID_VALUE) << i;
        EXPECT_EQ(copy_rect(bad[i], buffer, other), CL_INVALID_VALUE) << i;
    }
    const RectCall good{zero, zero, region, 0, 0, 0, 0};
    EXPECT_EQ(read_rect(good, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(write_rect(good, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(copy_rect({zero, far, region, 0, 0, 0, 0}, buffer, other), CL_INVALID_VALUE);
    // Within one buffer both sides have the same pitches.
    EXPECT_EQ(copy_rect({zero, far, region, 4, 16, 5, 20}, buffer, buffer), CL_INVALID_VALUE);
    EXPECT_EQ(copy_rect({zero, far, region, 4, 16, 4, 20}, buffer, buffer), CL_INVALID_VALUE);
    EXPECT_EQ(copy_rect(good, buffer, buffer), CL_MEM_COPY_OVERLAP);
    EXPECT_EQ(read_rect(good, host.data()), CL_SUCCESS);
    EXPECT_EQ(write_rect(good, host.data()), CL_SUCCESS);
    EXPECT_EQ(copy_rect(good, buffer, other), CL_SUCCESS);
}

TEST_F(Rects, CommandsObeyHostAccessFlags) {
    constexpr size_t zero[3] = {}, region[3] = {4, 4, 1};
    char host[64] = {};
    const auto read_rect = [&](cl_mem buffer) {
        return clEnqueueReadBufferRect(queue, buffer, CL_TRUE, zero, zero, region, 0, 0, 0, 0, host, 0, nullptr,
                                       nullptr);
    };
    const auto write_rect = [&](cl_mem buffer) {
        return clEnqueueWriteBufferRect(queue, buffer, CL_TRUE, zero, zero, region, 0, 0, 0, 0, host, 0, nullptr,
                                        nullptr);
    };
    const auto map_error = [&](cl_mem buffer, cl_map_flags flags) {
        cl_int error = CL_SUCCESS;
        EXPECT_EQ(clEnqueueMapBuffer(queue, buffer, CL_TRUE, flags, 0, 4, 0, nullptr, nullptr, &error), nullptr);
        return error;
    };
    const OwnedMem none = make_buffer(64, CL_MEM_HOST_NO_ACCESS);
    const OwnedMem write_only = make_buffer(64, CL_MEM_HOST_WRITE_ONLY);
    const OwnedMem read_only = make_buffer(64, CL_MEM_HOST_READ_ONLY);
    EXPECT_EQ(read_rect(none), CL_INVALID_OPERATION);
    EXPECT_EQ(read_rect(write_only), CL_INVALID_OPERATION);
    EXPECT_EQ(write_rect(none), CL_INVALID_OPERATION);
    EXPECT_EQ(write_rect(read_only), CL_INVALID_OPERATION);
    EXPECT_EQ(map_error(none, CL_MAP_WRITE_INVALIDATE_REGION), CL_INVALID_OPERATION);
    EXPECT_EQ(map_error(read_only, CL_MAP_WRITE_INVALIDATE_REGION), CL_INVALID_OPERATION);
    EXPECT_EQ(map_error(read_only, CL_MAP_READ | CL_MAP_WRITE), CL_INVALID_OPERATION);
}

}  // namespace
}  // namespace polder::test
