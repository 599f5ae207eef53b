// cl_intel_unified_shared_memory: host and shared allocations, which the host and kernels use at the same address without maps.
#include "support/usm.h"

#include <algorithm>
#include <cstring>

namespace polder::test {
namespace {

TEST_F(Usm, TheHostUsesHostMemoryWithoutMapsWhicheverDeviceCopies) {
    cl_int* const memory = host_memory();
    cl_int* const shared = static_cast<cl_int*>(shared_alloc(context, devices[0], nullptr, bytes, 0, nullptr));
    ASSERT_NE(shared, nullptr);
    for (size_t i = 0; i < devices.size(); ++i) {
        const OwnedQueue on = make_queue(devices[i]);
        cl_int* const there = device_memory(i);
        std::ranges::copy(numbers(7), memory);
        ASSERT_EQ(copy(on, CL_TRUE, there, memory, bytes, 0, nullptr, nullptr), CL_SUCCESS);
        launch(on, kernel_with("add", there, 1));
        ASSERT_EQ(copy(on, CL_TRUE, memory, there, bytes, 0, nullptr, nullptr), CL_SUCCESS);
        EXPECT_EQ(std::vector<cl_int>(memory, memory + count), numbers(8)) << i;
        ASSERT_EQ(copy(on, CL_TRUE, shared, memory, bytes, 0, nullptr, nullptr), CL_SUCCESS);
        EXPECT_EQ(std::vector<cl_int>(shared, shared + count), numbers(8)) << i;
        launch(queue, kernel_with("add", shared, 1));
        ASSERT_EQ(clFinish(queue), CL_SUCCESS);
        EXPECT_EQ(shared[count - 1], cl_int{count} + 8);
        EXPECT_EQ(free_blocking(context, there), CL_SUCCESS);
    }
    EXPECT_EQ(free_memory(context, memory), CL_SUCCESS);
    EXPECT_EQ(free_memory(context, shared), CL_SUCCESS);
}

// Kernels of every device that has host memory, with the host's writes between them: nothing is mapped or copied. The kinds come from
// one heap of the context; the large ones have memory of their own there.
TEST_F(Usm, KernelsUseHostMemoryWhereTheHostUsesIt) {
    for (const size_t size : {bytes, size_t{5} << 20}) {
        cl_int* const whole[] = {host_memory(size),
                                 static_cast<cl_int*>(shared_alloc(context, devices[0], nullptr, size, 0, nullptr))};
        ASSERT_NE(whole[1], nullptr);
        // What is used is at the end.
        const size_t begin = size / sizeof(cl_int) - count, last = count - 1;
        cl_int* const parts[] = {whole[0] + begin, whole[1] + begin};
        for (size_t i = 0; i < devices.size(); ++i) {
            if (!has_host_memory(i))
                continue;
            const OwnedQueue on = make_queue(devices[i]);
            for (int round = 0; round < 3; ++round) {
                for (cl_int* const part : parts) {
                    std::fill_n(part, count, 5);
                    launch(on, kernel_with("add", part, 1), last);
                    ASSERT_EQ(clFinish(on), CL_SUCCESS);
                    EXPECT_EQ(std::count(part, part + last, 6), static_cast<std::ptrdiff_t>(last)) << i;
                    EXPECT_EQ(part[last], 5) << i;
                    std::fill_n(part, count, 5);
                }
                const cl_int pattern = 9;
                ASSERT_EQ(fill(on, parts[0] + 1, &pattern, sizeof pattern, 2 * sizeof pattern, 0, nullptr, nullptr),
                          CL_SUCCESS);
                ASSERT_EQ(copy(on, CL_TRUE, parts[1] + 3, parts[0], 3 * sizeof pattern, 0, nullptr, nullptr),
                          CL_SUCCESS);
                EXPECT_EQ((std::vector<cl_int>(parts[1], parts[1] + 7)), (std::vector<cl_int>{5, 5, 5, 5, 9, 9, 5}))
                    << i;
            }
        }
        EXPECT_EQ(free_blocking(context, whole[0]), CL_SUCCESS);
        EXPECT_EQ(free_memory(context, whole[1]), CL_SUCCESS);
    }
}

// A table in host memory names allocations of both kinds, whose numbers kernels of every device change: by list and by kind.
TEST_F(Usm, KernelsFollowPointersThatTheHostStored) {
    cl_int* parts[] = {host_memory(), host_memory(),
                       static_cast<cl_int*>(shared_alloc(context, nullptr, nullptr, bytes, 0, nullptr))};
    ASSERT_NE(parts[2], nullptr);
    auto* const table = reinterpret_cast<cl_int**>(host_memory(sizeof parts));
    std::ranges::copy(parts, table);
    for (cl_int* const part : parts)
        std::ranges::copy(numbers(0), part);
    cl_int added = 0;
    for (size_t i = 0; i < devices.size(); ++i) {
        if (!has_host_memory(i))
            continue;
        const OwnedQueue on = make_queue(devices[i]);
        for (const bool by_list : {true, false}) {
            const OwnedKernel kernel = make_kernel(program, "follow");
            const cl_int entries = 3, value = 1;
            ASSERT_EQ(set_pointer(kernel, 0, table), CL_SUCCESS);
            ASSERT_EQ(clSetKernelArg(kernel, 1, sizeof entries, &entries), CL_SUCCESS);
            ASSERT_EQ(clSetKernelArg(kernel, 2, sizeof value, &value), CL_SUCCESS);
            const cl_bool yes = CL_TRUE;
            if (by_list) {
                ASSERT_EQ(clSetKernelExecInfo(kernel, CL_KERNEL_EXEC_INFO_USM_PTRS_INTEL, sizeof parts, parts),
                          CL_SUCCESS);
            } else
                for (const cl_kernel_exec_info kind :
                     {CL_KERNEL_EXEC_INFO_INDIRECT_HOST_ACCESS_INTEL, CL_KERNEL_EXEC_INFO_INDIRECT_SHARED_ACCESS_INTEL})
                    ASSERT_EQ(clSetKernelExecInfo(kernel, kind, sizeof yes, &yes), CL_SUCCESS);
            launch(on, kernel);
            // Freed while a kernel uses it: the numbers of the next allocation are not the kernel's.
            if (!by_list) {
                EXPECT_EQ(free_blocking(context, parts[1]), CL_SUCCESS);
                table[1] = parts[1] = host_memory();
                std::ranges::copy(numbers(added + 1), parts[1]);
            }
            ASSERT_EQ(clFinish(on), CL_SUCCESS);
            ++added;
            for (const cl_int* const part : parts)
                EXPECT_EQ(std::vector<cl_int>(part, part + count), numbers(added)) << i;
        }
    }
    for (cl_int* const part : parts)
        EXPECT_EQ(free_memory(context, part), CL_SUCCESS);
    EXPECT_EQ(free_memory(context, table), CL_SUCCESS);
}

// The work-items of one device at a time.
TEST_F(Usm, AtomicOperationsOfADeviceCountInHostMemory) {
    const OwnedProgram counting = build("kernel void tally(global int* at) { atomic_inc(at + get_global_id(0) % 3); }");
    cl_int* const memory = host_memory();
    std::fill_n(memory, 3, 0);
    cl_int sum = 0;
    for (size_t i = 0; i < devices.size(); ++i) {
        if (!has_host_memory(i))
            continue;
        const OwnedQueue on = make_queue(devices[i]);
        const OwnedKernel kernel = make_kernel(counting, "tally");
        ASSERT_EQ(set_pointer(kernel, 0, memory), CL_SUCCESS);
        launch(on, kernel, 3 * count);
        ASSERT_EQ(clFinish(on), CL_SUCCESS);
        sum += cl_int{count};
        EXPECT_EQ((std::vector<cl_int>(memory, memory + 3)), (std::vector<cl_int>{sum, sum, sum})) << i;
    }
    EXPECT_EQ(free_memory(context, memory), CL_SUCCESS);
}

TEST_F(Usm, BuffersOverUnifiedMemoryAreForContextsWhereEveryDeviceUsesItInPlace) {
    cl_int* const memory = host_memory();
    cl_int error = CL_SUCCESS;
    const OwnedMem over = clCreateBuffer(context, CL_MEM_USE_HOST_PTR, bytes, memory, &error);
    const bool all_have = [this] {
        for (size_t i = 0; i < devices.size(); ++i)
            if (!has_host_memory(i))
                return false;
        return true;
    }();
    EXPECT_EQ(error, all_have ? CL_SUCCESS : CL_INVALID_HOST_PTR);
    // The host sees without a map what kernels write through the buffer.
    std::fill_n(memory, count, 1);
    for (size_t i = 0; all_have && i < devices.size(); ++i) {
        const OwnedQueue on = make_queue(devices[i]);
        const OwnedKernel kernel = make_kernel(program, "add");
        const cl_int value = 1;
        ASSERT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), over.in()), CL_SUCCESS);
        ASSERT_EQ(clSetKernelArg(kernel, 1, sizeof value, &value), CL_SUCCESS);
        launch(on, kernel);
        ASSERT_EQ(clFinish(on), CL_SUCCESS);
        EXPECT_EQ(std::count(memory, memory + count, static_cast<cl_int>(i) + 2), cl_int{count}) << i;
    }
    const OwnedMem copied = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, bytes, memory, &error);
    EXPECT_EQ(error, CL_SUCCESS);
    EXPECT_EQ(free_memory(context, memory), CL_SUCCESS);
    if (devices.size() > 1) {
        cl_int* const there = device_memory(1);
        EXPECT_EQ(clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, bytes, there, &error), nullptr);
        EXPECT_EQ(error, CL_INVALID_HOST_PTR);
        EXPECT_EQ(free_memory(context, there), CL_SUCCESS);
    }
}

}  // namespace
}  // namespace polder::test
