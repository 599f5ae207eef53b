#include "support/fixture.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

namespace polder::test {
namespace {

constexpr size_t huge = ~size_t{0};

class Buffers : public ContextTest {
protected:
    cl_int create_error(cl_mem_flags flags, size_t size, void* host = nullptr) {
        cl_int error = CL_SUCCESS;
        cl_mem made = clCreateBuffer(context, flags, size, host, &error);
        EXPECT_EQ(made != nullptr, error == CL_SUCCESS);
        if (made)
            clReleaseMemObject(made);
        return error;
    }
    cl_int sub_buffer_error(cl_mem parent, cl_mem_flags flags, size_t origin, size_t size) {
        const cl_buffer_region region{origin, size};
        cl_int error = CL_SUCCESS;
        cl_mem made = clCreateSubBuffer(parent, flags, CL_BUFFER_CREATE_TYPE_REGION, &region, &error);
        if (made)
            clReleaseMemObject(made);
        return error;
    }
    // The alignment of sub-buffers that all devices can use.
    size_t base_alignment() {
        cl_uint most = 0;
        for (const cl_device_id device : devices) {
            cl_uint bits = 0;
            EXPECT_EQ(clGetDeviceInfo(device, CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof bits, &bits, nullptr), CL_SUCCESS);
            most = std::max(most, bits);
        }
        return most / 8;
    }
};

TEST_F(Buffers, CreationReportsEveryBadArgument) {
    char host[64];
    EXPECT_EQ(create_error(CL_MEM_READ_WRITE, 0), CL_INVALID_BUFFER_SIZE);
    EXPECT_EQ(create_error(CL_MEM_READ_WRITE, huge), CL_INVALID_BUFFER_SIZE);
    EXPECT_EQ(create_error(CL_MEM_READ_WRITE | CL_MEM_READ_ONLY, 64), CL_INVALID_VALUE);
    EXPECT_EQ(create_error(CL_MEM_WRITE_ONLY | CL_MEM_READ_ONLY, 64), CL_INVALID_VALUE);
    EXPECT_EQ(create_error(CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS, 64), CL_INVALID_VALUE);
    EXPECT_EQ(create_error(CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR, 64, host), CL_INVALID_VALUE);
    EXPECT_EQ(create_error(CL_MEM_USE_HOST_PTR | CL_MEM_ALLOC_HOST_PTR, 64, host), CL_INVALID_VALUE);
    EXPECT_EQ(create_error(cl_mem_flags{1} << 40, 64), CL_INVALID_VALUE);
    EXPECT_EQ(create_error(CL_MEM_USE_HOST_PTR, 64), CL_INVALID_HOST_PTR);
    EXPECT_EQ(create_error(CL_MEM_COPY_HOST_PTR, 64), CL_INVALID_HOST_PTR);
    EXPECT_EQ(create_error(CL_MEM_READ_WRITE, 64, host), CL_INVALID_HOST_PTR);
    EXPECT_EQ(create_error(CL_MEM_COPY_HOST_PTR | CL_MEM_ALLOC_HOST_PTR, 64, host), CL_SUCCESS);
    cl_int error = CL_SUCCESS;
    EXPECT_EQ(clCreateBuffer(foreign_handle<cl_context>(context), CL_MEM_READ_WRITE, 64, nullptr, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_CONTEXT);
    const cl_mem_properties unknown[] = {0x7777, 1, 0};
    EXPECT_EQ(clCreateBufferWithProperties(context, unknown, CL_MEM_READ_WRITE, 64, nullptr, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_PROPERTY);
}

TEST_F(Buffers, SubBufferCreationReportsEveryBadArgument) {
    const size_t unit = base_alignment();
    OwnedMem parent = make_buffer(4 * unit);
    EXPECT_EQ(sub_buffer_error(parent, 0, 0, 0), CL_INVALID_BUFFER_SIZE);
    EXPECT_EQ(sub_buffer_error(parent, 0, 0, 4 * unit + 1), CL_INVALID_VALUE);
    EXPECT_EQ(sub_buffer_error(parent, 0, unit, huge), CL_INVALID_VALUE);
    EXPECT_EQ(sub_buffer_error(parent, 0, huge - 1, 4), CL_INVALID_VALUE);
    EXPECT_EQ(sub_buffer_error(parent, 0, 1, 4), CL_MISALIGNED_SUB_BUFFER_OFFSET);
    char host[4];
    static_cast<void>(host);
    EXPECT_EQ(sub_buffer_error(parent, CL_MEM_COPY_HOST_PTR, 0, 4), CL_INVALID_VALUE);
    cl_int error = CL_SUCCESS;
    EXPECT_EQ(clCreateSubBuffer(parent, 0, CL_BUFFER_CREATE_TYPE_REGION, nullptr, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_VALUE);
    const cl_buffer_region region{0, unit};
    EXPECT_EQ(clCreateSubBuffer(parent, 0, 0x1, &region, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_VALUE);
    OwnedMem child = sub_buffer(parent, unit, unit);
    EXPECT_EQ(clCreateSubBuffer(child, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_MEM_OBJECT);
    OwnedMem read_only = make_buffer(unit, CL_MEM_READ_ONLY | CL_MEM_HOST_READ_ONLY);
    EXPECT_EQ(sub_buffer_error(read_only, CL_MEM_WRITE_ONLY, 0, 4), CL_INVALID_VALUE);
    EXPECT_EQ(sub_buffer_error(read_only, CL_MEM_HOST_WRITE_ONLY, 0, 4), CL_INVALID_VALUE);
    OwnedMem write_only = make_buffer(unit, CL_MEM_WRITE_ONLY | CL_MEM_HOST_WRITE_ONLY);
    EXPECT_EQ(sub_buffer_error(write_only, CL_MEM_READ_ONLY, 0, 4), CL_INVALID_VALUE);
    EXPECT_EQ(sub_buffer_error(write_only, CL_MEM_HOST_READ_ONLY, 0, 4), CL_INVALID_VALUE);
}

TEST_F(Buffers, QueriesAnswerWhatWasGiven) {
    const size_t unit = base_alignment();
    alignas(4096) static std::array<std::byte, 1 << 16> host;
    OwnedMem parent = make_buffer(host.size(), CL_MEM_USE_HOST_PTR | CL_MEM_READ_ONLY, host.data());
    OwnedMem child = sub_buffer(parent, unit, unit);
    EXPECT_EQ(mem_info<cl_mem_object_type>(child, CL_MEM_TYPE), cl_mem_object_type{CL_MEM_OBJECT_BUFFER});
    EXPECT_EQ(mem_info<cl_mem_flags>(child, CL_MEM_FLAGS), cl_mem_flags{CL_MEM_USE_HOST_PTR | CL_MEM_READ_ONLY});
    EXPECT_EQ(mem_info<size_t>(child, CL_MEM_SIZE), unit);
    EXPECT_EQ(mem_info<void*>(parent, CL_MEM_HOST_PTR), host.data());
    EXPECT_EQ(mem_info<void*>(child, CL_MEM_HOST_PTR), host.data() + unit);
    EXPECT_EQ(mem_info<cl_mem>(child, CL_MEM_ASSOCIATED_MEMOBJECT), parent);
    EXPECT_EQ(mem_info<cl_mem>(parent, CL_MEM_ASSOCIATED_MEMOBJECT), nullptr);
    EXPECT_EQ(mem_info<size_t>(child, CL_MEM_OFFSET), unit);
    EXPECT_EQ(mem_info<cl_context>(child, CL_MEM_CONTEXT), context);
    EXPECT_EQ(mem_info<cl_uint>(parent, CL_MEM_REFERENCE_COUNT), 1u);
    EXPECT_EQ(mem_info<cl_bool>(parent, CL_MEM_USES_SVM_POINTER), cl_bool{CL_FALSE});
    EXPECT_EQ(mem_info<cl_uint>(parent, CL_MEM_MAP_COUNT), 0u);
    cl_uint small = 0;
    EXPECT_EQ(clGetMemObjectInfo(parent, CL_MEM_SIZE, 1, &small, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clGetMemObjectInfo(parent, 0x1, 4, &small, nullptr), CL_INVALID_VALUE);
}

TEST_F(Buffers, CommandsReportBadRangesAndPointers) {
    OwnedMem buffer = make_buffer(64);
    OwnedMem other = make_buffer(64);
    char host[64] = {};
    const uint32_t pattern = 1;
    EXPECT_EQ(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 1, 64, host, 0, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 65, 0, host, 0, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clEnqueueReadBuffer(queue, buffer, CL_TRUE, huge, 2, host, 0, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 2, huge, host, 0, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, 64, nullptr, 0, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 64, 1, host, 0, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, 64, nullptr, 0, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clEnqueueCopyBuffer(queue, buffer, other, 1, 0, 64, 0, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clEnqueueCopyBuffer(queue, buffer, other, 0, huge, 64, 0, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clEnqueueCopyBuffer(queue, buffer, buffer, 0, 8, 16, 0, nullptr, nullptr), CL_MEM_COPY_OVERLAP);
    EXPECT_EQ(clEnqueueFillBuffer(queue, buffer, nullptr, 4, 0, 64, 0, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clEnqueueFillBuffer(queue, buffer, &pattern, 3, 0, 63, 0, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clEnqueueFillBuffer(queue, buffer, &pattern, 0, 0, 64, 0, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clEnqueueFillBuffer(queue, buffer, host, 256, 0, 64, 0, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clEnqueueFillBuffer(queue, buffer, &pattern, 4, 2, 4, 0, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clEnqueueFillBuffer(queue, buffer, &pattern, 4, 0, 6, 0, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clEnqueueFillBuffer(queue, buffer, &pattern, 4, 64, 4, 0, nullptr, nullptr), CL_INVALID_VALUE);
    const auto foreign = foreign_handle<cl_mem>(context);
    EXPECT_EQ(clEnqueueReadBuffer(queue, foreign, CL_TRUE, 0, 4, host, 0, nullptr, nullptr), CL_INVALID_MEM_OBJECT);
    EXPECT_EQ(clEnqueueReadBuffer(foreign_handle<cl_command_queue>(context), buffer, CL_TRUE, 0, 4, host, 0, nullptr,
                                  nullptr),
              CL_INVALID_COMMAND_QUEUE);
    EXPECT_EQ(clReleaseMemObject(foreign), CL_INVALID_MEM_OBJECT);
    cl_int error = CL_SUCCESS;
    OwnedContext elsewhere = clCreateContext(nullptr, 1, devices.data(), nullptr, nullptr, &error);
    OwnedMem stranger = clCreateBuffer(elsewhere, CL_MEM_READ_WRITE, 64, nullptr, &error);
    EXPECT_EQ(clEnqueueReadBuffer(queue, stranger, CL_TRUE, 0, 4, host, 0, nullptr, nullptr), CL_INVALID_CONTEXT);
    EXPECT_EQ(clEnqueueCopyBuffer(queue, buffer, stranger, 0, 0, 4, 0, nullptr, nullptr), CL_INVALID_CONTEXT);
}

TEST_F(Buffers, CommandsOfNoBytesDoNothing) {
    OwnedMem buffer = make_buffer(64);
    char byte = 'x';
    EXPECT_EQ(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 64, 0, &byte, 0, nullptr, nullptr), CL_SUCCESS);
    EXPECT_EQ(clEnqueueWriteBuffer(queue, buffer, CL_TRUE, 0, 0, &byte, 0, nullptr, nullptr), CL_SUCCESS);
    EXPECT_EQ(clEnqueueFillBuffer(queue, buffer, &byte, 1, 0, 0, 0, nullptr, nullptr), CL_SUCCESS);
    EXPECT_EQ(byte, 'x');
}

TEST_F(Buffers, HostAccessFlagsForbidWhatTheySay) {
    OwnedMem no_access = make_buffer(64, CL_MEM_HOST_NO_ACCESS);
    OwnedMem write_only = make_buffer(64, CL_MEM_HOST_WRITE_ONLY);
    OwnedMem read_only = make_buffer(64, CL_MEM_HOST_READ_ONLY);
    char host[64] = {};
    for (cl_mem unreadable : {static_cast<cl_mem>(no_access), static_cast<cl_mem>(write_only)}) {
        EXPECT_EQ(clEnqueueReadBuffer(queue, unreadable, CL_TRUE, 0, 4, host, 0, nullptr, nullptr),
                  CL_INVALID_OPERATION);
        cl_int error = CL_SUCCESS;
        EXPECT_EQ(clEnqueueMapBuffer(queue, unreadable, CL_TRUE, CL_MAP_READ, 0, 4, 0, nullptr, nullptr, &error),
                  nullptr);
        EXPECT_EQ(error, CL_INVALID_OPERATION);
    }
    for (cl_mem unwritable : {static_cast<cl_mem>(no_access), static_cast<cl_mem>(read_only)}) {
        EXPECT_EQ(clEnqueueWriteBuffer(queue, unwritable, CL_TRUE, 0, 4, host, 0, nullptr, nullptr),
                  CL_INVALID_OPERATION);
        cl_int error = CL_SUCCESS;
        EXPECT_EQ(clEnqueueMapBuffer(queue, unwritable, CL_TRUE, CL_MAP_WRITE, 0, 4, 0, nullptr, nullptr, &error),
                  nullptr);
        EXPECT_EQ(error, CL_INVALID_OPERATION);
    }
}

TEST_F(Buffers, WhatIsWrittenOnAnyDeviceIsReadOnEveryOther) {
    OwnedMem buffer = make_buffer(4096 * sizeof(uint32_t));
    std::vector<uint32_t> values(4096);
    for (cl_device_id writer : devices)
        for (cl_device_id reader : devices) {
            std::iota(values.begin(), values.end(), values.back() + 1);
            OwnedQueue on_writer = make_queue(writer);
            OwnedQueue on_reader = make_queue(reader);
            write(buffer, values, on_writer);
            EXPECT_EQ(read<uint32_t>(buffer, values.size(), on_reader), values);
        }
}

TEST_F(Buffers, CopyMovesExactlyItsRange) {
    for (cl_device_id device : devices) {
        OwnedQueue on = make_queue(device);
        OwnedMem from = make_buffer(1000);
        OwnedMem to = make_buffer(1000);
        std::vector<uint8_t> pattern(1000);
        std::iota(pattern.begin(), pattern.end(), uint8_t{0});
        write(from, pattern, on);
        write(to, std::vector<uint8_t>(1000, 0xee), on);
        ASSERT_EQ(clEnqueueCopyBuffer(on, from, to, 13, 500, 77, 0, nullptr, nullptr), CL_SUCCESS);
        std::vector<uint8_t> expected(1000, 0xee);
        std::copy_n(pattern.begin() + 13, 77, expected.begin() + 500);
        EXPECT_EQ(read<uint8_t>(to, 1000, on), expected);
        // Within one buffer.
        ASSERT_EQ(clEnqueueCopyBuffer(on, to, to, 500, 10, 77, 0, nullptr, nullptr), CL_SUCCESS);
        std::copy_n(pattern.begin() + 13, 77, expected.begin() + 10);
        EXPECT_EQ(read<uint8_t>(to, 1000, on), expected);
    }
}

TEST_F(Buffers, FillRepeatsPatternsOfEverySize) {
    std::array<uint8_t, 128> pattern;
    std::iota(pattern.begin(), pattern.end(), uint8_t{1});
    for (cl_device_id device : devices) {
        OwnedQueue on = make_queue(device);
        for (size_t size = 1; size <= 128; size *= 2) {
            OwnedMem buffer = make_buffer(128 * 9);
            write(buffer, std::vector<uint8_t>(128 * 9, 0), on);
            ASSERT_EQ(clEnqueueFillBuffer(on, buffer, pattern.data(), size, size, size * 7, 0, nullptr, nullptr),
                      CL_SUCCESS);
            std::vector<uint8_t> expected(128 * 9, 0);
            for (size_t i = 0; i < size * 7; ++i)
                expected[size + i] = pattern[i % size];
            EXPECT_EQ(read<uint8_t>(buffer, 128 * 9, on), expected) << "pattern of " << size;
        }
    }
}

TEST_F(Buffers, CopyHostPointerIsCopiedAtCreation) {
    std::vector<uint32_t> host(1000, 1);
    OwnedMem buffer = make_buffer(4000, CL_MEM_COPY_HOST_PTR, host.data());
    std::fill(host.begin(), host.end(), 2);
    for (cl_device_id device : devices) {
        OwnedQueue on = make_queue(device);
        EXPECT_EQ(read<uint32_t>(buffer, 1000, on), std::vector<uint32_t>(1000, 1));
    }
}

// The specification allows it when no command uses the buffer (clEnqueueReadBuffer, note on CL_MEM_USE_HOST_PTR).
TEST_F(Buffers, AreReadIntoAndWrittenFromTheMemoryThatTheyUse) {
    constexpr size_t columns = 32, rows = 32, bytes = columns * rows * sizeof(uint32_t);
    alignas(4096) static std::array<uint32_t, columns * rows> host;
    for (cl_device_id device : devices) {
        host.fill(1);
        OwnedMem buffer = make_buffer(bytes, CL_MEM_USE_HOST_PTR, host.data());
        OwnedQueue on = make_queue(device);
        const uint32_t two = 2;
        ASSERT_EQ(clEnqueueFillBuffer(on, buffer, &two, sizeof two, 0, bytes, 0, nullptr, nullptr), CL_SUCCESS);
        ASSERT_EQ(clEnqueueReadBuffer(on, buffer, CL_TRUE, 0, bytes, host.data(), 0, nullptr, nullptr), CL_SUCCESS);
        EXPECT_EQ(host[0], 2u);
        EXPECT_EQ(host.back(), 2u);
        ASSERT_EQ(clEnqueueReadBuffer(on, buffer, CL_TRUE, 128, 256, host.data() + 32, 0, nullptr, nullptr),
                  CL_SUCCESS);
        host[40] = 3;
        ASSERT_EQ(clEnqueueWriteBuffer(on, buffer, CL_TRUE, 128, 256, host.data() + 32, 0, nullptr, nullptr),
                  CL_SUCCESS);
        const size_t origin[] = {16, 4, 0}, region[] = {64, 8, 1}, pitch = columns * sizeof(uint32_t);
        ASSERT_EQ(clEnqueueReadBufferRect(on, buffer, CL_TRUE, origin, origin, region, pitch, 0, pitch, 0, host.data(),
                                          0, nullptr, nullptr),
                  CL_SUCCESS);
        std::vector<uint32_t> expected(columns * rows, 2);
        expected[40] = 3;
        EXPECT_EQ(read<uint32_t>(buffer, columns * rows, on), expected);
    }
}

TEST_F(Buffers, SubBuffersAreWindowsOnTheirParent) {
    const size_t unit = base_alignment();
    OwnedMem parent = make_buffer(4 * unit);
    write(parent, std::vector<uint8_t>(4 * unit, 0));
    OwnedMem window = sub_buffer(parent, unit, 2 * unit);
    parent.reset();  // the sub-buffer keeps it
    for (cl_device_id device : devices) {
        OwnedQueue on = make_queue(device);
        write(window, std::vector<uint8_t>(2 * unit, 3), on);
        EXPECT_EQ(read<uint8_t>(window, 2 * unit, on), std::vector<uint8_t>(2 * unit, 3));
        uint8_t beyond = 0;
        EXPECT_EQ(clEnqueueReadBuffer(on, window, CL_TRUE, 2 * unit, 1, &beyond, 0, nullptr, nullptr),
                  CL_INVALID_VALUE);
    }
}

TEST_F(Buffers, MigrationArgumentsAreChecked) {
    OwnedMem buffer = make_buffer(64);
    EXPECT_EQ(clEnqueueMigrateMemObjects(queue, 0, buffer.in(), 0, 0, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clEnqueueMigrateMemObjects(queue, 1, nullptr, 0, 0, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clEnqueueMigrateMemObjects(queue, 1, buffer.in(), 1 << 10, 0, nullptr, nullptr), CL_INVALID_VALUE);
    const auto foreign = foreign_handle<cl_mem>(context);
    EXPECT_EQ(clEnqueueMigrateMemObjects(queue, 1, &foreign, 0, 0, nullptr, nullptr), CL_INVALID_MEM_OBJECT);
}

TEST_F(Buffers, MigrationKeepsTheContent) {
    OwnedMem buffer = make_buffer(4096);
    write(buffer, std::vector<uint8_t>(4096, 4));
    for (cl_device_id device : devices) {
        OwnedQueue on = make_queue(device);
        ASSERT_EQ(clEnqueueMigrateMemObjects(on, 1, buffer.in(), 0, 0, nullptr, nullptr), CL_SUCCESS);
        ASSERT_EQ(clEnqueueMigrateMemObjects(on, 1, buffer.in(), CL_MIGRATE_MEM_OBJECT_HOST, 0, nullptr, nullptr),
                  CL_SUCCESS);
        EXPECT_EQ(read<uint8_t>(buffer, 4096, on), std::vector<uint8_t>(4096, 4));
    }
}

TEST_F(Buffers, HandlesMadeAndReleasedByThreadsThatEnd_AreDistinctAndKnownToBeReleased) {
    constexpr int count = 200;
    std::vector<cl_mem> kept;
    for (int round = 0; round < 5; ++round) {
        std::vector<cl_mem> made(count);
        std::thread([&] {
            for (cl_mem& object : made)
                object = clCreateBuffer(context, CL_MEM_READ_WRITE, 64, nullptr, nullptr);
        }).join();
        // Half of the handles stay alive while the cells of the others are used again.
        std::thread([&] {
            for (int i = 0; i < count; i += 2)
                EXPECT_EQ(clReleaseMemObject(made[i]), CL_SUCCESS);
            for (int i = 0; i < count; i += 2)
                EXPECT_EQ(clReleaseMemObject(made[i]), CL_INVALID_MEM_OBJECT);
        }).join();
        for (int i = 1; i < count; i += 2)
            kept.push_back(made[i]);
    }
    std::vector<cl_mem> sorted = kept;
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(std::adjacent_find(sorted.begin(), sorted.end()), sorted.end());
    for (cl_mem object : kept) {
        EXPECT_EQ(mem_info<cl_uint>(object, CL_MEM_REFERENCE_COUNT), 1u);
        EXPECT_EQ(clReleaseMemObject(object), CL_SUCCESS);
    }
}

TEST_F(Buffers, DestructorCallbacksRunLastRegisteredFirstOnceWorkIsDone) {
    static std::atomic<int> sequence;
    static std::atomic<int> first_seen;
    static std::atomic<int> second_seen;
    sequence = first_seen = second_seen = 0;
    const auto first = [](cl_mem, void*) { first_seen = ++sequence; };
    const auto second = [](cl_mem, void*) { second_seen = ++sequence; };
    {
        OwnedMem buffer = make_buffer(1 << 20);
        EXPECT_EQ(clSetMemObjectDestructorCallback(buffer, nullptr, nullptr), CL_INVALID_VALUE);
        EXPECT_EQ(clSetMemObjectDestructorCallback(foreign_handle<cl_mem>(context), first, nullptr),
                  CL_INVALID_MEM_OBJECT);
        ASSERT_EQ(clSetMemObjectDestructorCallback(buffer, first, nullptr), CL_SUCCESS);
        ASSERT_EQ(clSetMemObjectDestructorCallback(buffer, second, nullptr), CL_SUCCESS);
        const uint8_t one = 1;
        ASSERT_EQ(clEnqueueFillBuffer(queue, buffer, &one, 1, 0, 1 << 20, 0, nullptr, nullptr), CL_SUCCESS);
        ASSERT_EQ(clFinish(queue), CL_SUCCESS);
        EXPECT_EQ(sequence, 0);
    }
    EXPECT_EQ(second_seen, 1);
    EXPECT_EQ(first_seen, 2);
}

TEST_F(Buffers, SubBufferFlagsCannotGiveMoreThanTheParentHas) {
    struct Case {
        cl_mem_flags parent;
        cl_mem_flags refused;
    };
    for (const Case& flags :
         {Case{CL_MEM_WRITE_ONLY, CL_MEM_READ_WRITE}, Case{CL_MEM_WRITE_ONLY, CL_MEM_READ_ONLY},
          Case{CL_MEM_READ_ONLY, CL_MEM_READ_WRITE}, Case{CL_MEM_READ_ONLY, CL_MEM_WRITE_ONLY},
          Case{CL_MEM_HOST_WRITE_ONLY, CL_MEM_HOST_READ_ONLY}, Case{CL_MEM_HOST_READ_ONLY, CL_MEM_HOST_WRITE_ONLY},
          Case{CL_MEM_HOST_NO_ACCESS, CL_MEM_HOST_READ_ONLY}, Case{CL_MEM_HOST_NO_ACCESS, CL_MEM_HOST_WRITE_ONLY},
          Case{CL_MEM_READ_WRITE, CL_MEM_USE_HOST_PTR}, Case{CL_MEM_READ_WRITE, CL_MEM_ALLOC_HOST_PTR},
          Case{CL_MEM_READ_WRITE, CL_MEM_COPY_HOST_PTR}, Case{CL_MEM_READ_WRITE, CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY},
          Case{CL_MEM_READ_WRITE, cl_mem_flags{1} << 40}}) {
        const OwnedMem parent = make_buffer(64, flags.parent);
        EXPECT_EQ(sub_buffer_error(parent, flags.refused, 0, 4), CL_INVALID_VALUE)
            << std::hex << flags.parent << " " << flags.refused;
        EXPECT_EQ(sub_buffer_error(parent, flags.parent, 0, 4), CL_SUCCESS) << std::hex << flags.parent;
    }
}

TEST_F(Buffers, LargerThanOnAnyDeviceAreRefused) {
    cl_ulong most = 0;
    for (const cl_device_id device : devices) {
        cl_ulong of_device = 0;
        ASSERT_EQ(clGetDeviceInfo(device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof of_device, &of_device, nullptr),
                  CL_SUCCESS);
        most = std::max(most, of_device);
    }
    EXPECT_EQ(create_error(CL_MEM_READ_WRITE, most + 1), CL_INVALID_BUFFER_SIZE);
}

TEST_F(Buffers, CopiesBetweenSubBuffersThatOverlapAreRefused) {
    const size_t unit = base_alignment();
    const OwnedMem parent = make_buffer(4 * unit);
    const OwnedMem first = sub_buffer(parent, 0, 2 * unit);
    const OwnedMem second = sub_buffer(parent, unit, 2 * unit);
    EXPECT_EQ(clEnqueueCopyBuffer(queue, first, second, unit, 0, 16, 0, nullptr, nullptr), CL_MEM_COPY_OVERLAP);
    EXPECT_EQ(clEnqueueCopyBuffer(queue, parent, second, unit, 0, 16, 0, nullptr, nullptr), CL_MEM_COPY_OVERLAP);
    EXPECT_EQ(clEnqueueCopyBuffer(queue, first, second, 0, 0, unit, 0, nullptr, nullptr), CL_SUCCESS);
    const size_t at_unit[3] = {unit, 0, 0}, zero[3] = {}, region[3] = {16, 2, 1};
    EXPECT_EQ(clEnqueueCopyBufferRect(queue, first, second, at_unit, zero, region, 32, 64, 32, 64, 0, nullptr, nullptr),
              CL_MEM_COPY_OVERLAP);
}

TEST_F(Buffers, OfOtherContextsAreRefusedByEveryCommand) {
    constexpr size_t zero[3] = {}, region[3] = {4, 1, 1};
    cl_int error = CL_INVALID_VALUE;
    const OwnedContext elsewhere = clCreateContext(nullptr, 1, devices.data(), nullptr, nullptr, &error);
    const OwnedMem stranger = clCreateBuffer(elsewhere, CL_MEM_READ_WRITE, 64, nullptr, &error);
    ASSERT_EQ(error, CL_SUCCESS);
    const OwnedMem mine = make_buffer(64);
    char host[64] = {};
    EXPECT_EQ(clEnqueueReadBuffer(queue, stranger, CL_TRUE, 0, 4, host, 0, nullptr, nullptr), CL_INVALID_CONTEXT);
    EXPECT_EQ(clEnqueueWriteBuffer(queue, stranger, CL_TRUE, 0, 4, host, 0, nullptr, nullptr), CL_INVALID_CONTEXT);
    EXPECT_EQ(
        clEnqueueReadBufferRect(queue, stranger, CL_TRUE, zero, zero, region, 0, 0, 0, 0, host, 0, nullptr, nullptr),
        CL_INVALID_CONTEXT);
    EXPECT_EQ(
        clEnqueueWriteBufferRect(queue, stranger, CL_TRUE, zero, zero, region, 0, 0, 0, 0, host, 0, nullptr, nullptr),
        CL_INVALID_CONTEXT);
    EXPECT_EQ(clEnqueueCopyBuffer(queue, stranger, mine, 0, 0, 4, 0, nullptr, nullptr), CL_INVALID_CONTEXT);
    EXPECT_EQ(clEnqueueCopyBuffer(queue, mine, stranger, 0, 0, 4, 0, nullptr, nullptr), CL_INVALID_CONTEXT);
    EXPECT_EQ(clEnqueueCopyBufferRect(queue, stranger, mine, zero, zero, region, 0, 0, 0, 0, 0, nullptr, nullptr),
              CL_INVALID_CONTEXT);
    EXPECT_EQ(clEnqueueCopyBufferRect(queue, mine, stranger, zero, zero, region, 0, 0, 0, 0, 0, nullptr, nullptr),
              CL_INVALID_CONTEXT);
    EXPECT_EQ(clEnqueueFillBuffer(queue, stranger, host, 4, 0, 4, 0, nullptr, nullptr), CL_INVALID_CONTEXT);
    EXPECT_EQ(clEnqueueMapBuffer(queue, stranger, CL_TRUE, CL_MAP_READ, 0, 4, 0, nullptr, nullptr, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_CONTEXT);
    EXPECT_EQ(clEnqueueUnmapMemObject(queue, stranger, host, 0, nullptr, nullptr), CL_INVALID_CONTEXT);
    EXPECT_EQ(clEnqueueMigrateMemObjects(queue, 1, stranger.in(), 0, 0, nullptr, nullptr), CL_INVALID_CONTEXT);
}

} // namespace
} // namespace polder::test
