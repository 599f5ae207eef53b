#include "support/fixture.h"
#include "support/native_kernels.h"

#include <CL/cl_ext.h>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

namespace polder::test {
namespace {

constexpr const char* source = R"(
kernel void ids(global uint* out) {
    size_t x = get_global_id(0) - get_global_offset(0), y = get_global_id(1) - get_global_offset(1);
    size_t i = x + get_global_size(0) * (y + get_global_size(1) * (get_global_id(2) - get_global_offset(2)));
    out[i] = (uint)get_global_id(0) + 1000 * (uint)get_global_id(1) + 1000000 * (uint)get_global_id(2);
}
kernel void sizes(global uint* out) {
    out[get_global_id(0)] = (uint)(get_local_size(0) + 100 * get_group_id(0));
}
__attribute__((reqd_work_group_size(4, 1, 1))) kernel void fixed(global uint* out) {
    out[get_global_id(0)] = (uint)get_local_size(0);
}
kernel void greedy(global uint* out, local uint* scratch) { out[0] = (uint)(size_t)scratch; }
)";

class Launches : public ContextTest {
protected:
    void SetUp() override {
        ContextTest::SetUp();
        uniform = build(source, "-cl-std=CL1.2 -DX='CL1.2'");
        any = build(source, "-cl-std=CL3.0");
        buffer = make_buffer(4096 * sizeof(cl_uint));
    }
    OwnedKernel ready(cl_program program, const char* name) {
        OwnedKernel kernel = make_kernel(program, name);
        EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), buffer.in()), CL_SUCCESS);
        return kernel;
    }
    cl_int launch(cl_kernel kernel, const std::vector<size_t>& global, const std::vector<size_t>& local = {},
                  const std::vector<size_t>& offset = {}) {
        return clEnqueueNDRangeKernel(queue, kernel, static_cast<cl_uint>(global.size()),
                                      offset.empty() ? nullptr : offset.data(), global.data(),
                                      local.empty() ? nullptr : local.data(), 0, nullptr, nullptr);
    }
    OwnedProgram uniform, any;
    OwnedMem buffer;
};

// Narrow groups get code of their own: at once, or after a while; other sizes must not get it.
TEST_F(Launches, InGroupsOfEverySize_RunCodeThatFitsThem) {
    OwnedKernel kernel = ready(any, "ids");
    const auto expect_ids = [&](size_t x, size_t y, const std::vector<size_t>& local) {
        std::vector<cl_uint> out(x * y), expected(x * y);
        ASSERT_EQ(launch(kernel, {x, y}, local), CL_SUCCESS);
        ASSERT_EQ(clEnqueueReadBuffer(queue, buffer, CL_TRUE, 0, out.size() * 4, out.data(), 0, nullptr, nullptr),
                  CL_SUCCESS);
        for (size_t i = 0; i < out.size(); ++i)
            expected[i] = static_cast<cl_uint>(i % x + 1000 * (i / x));
        ASSERT_EQ(out, expected) << local[0] << "x" << local[1];
    };
    for (int round = 0; round < 2; ++round) {
        expect_ids(64, 64, {8, 8});
        expect_ids(60, 31, {8, 8});
        expect_ids(64, 64, {16, 16});
        expect_ids(33, 60, {1, 60});
        expect_ids(64, 64, {4, 2});
    }
    for (int i = 0; i < 20; ++i)
        ASSERT_EQ(launch(kernel, {64, 64}, {4, 2}), CL_SUCCESS);
    expect_ids(64, 64, {4, 2});
    expect_ids(64, 64, {2, 4});
}

TEST_F(Launches, ReportEveryBadArgument) {
    OwnedKernel kernel = ready(uniform, "ids");
    const size_t one = 1;
    const auto enqueue = [&](cl_command_queue on, cl_kernel what, cl_uint dimensions, cl_uint count,
                             const cl_event* list) {
        return clEnqueueNDRangeKernel(on, what, dimensions, nullptr, &one, nullptr, count, list, nullptr);
    };
    EXPECT_EQ(enqueue(foreign_handle<cl_command_queue>(context), kernel, 1, 0, nullptr), CL_INVALID_COMMAND_QUEUE);
    EXPECT_EQ(enqueue(queue, foreign_handle<cl_kernel>(context), 1, 0, nullptr), CL_INVALID_KERNEL);
    EXPECT_EQ(enqueue(queue, kernel, 0, 0, nullptr), CL_INVALID_WORK_DIMENSION);
    EXPECT_EQ(enqueue(queue, kernel, 4, 0, nullptr), CL_INVALID_WORK_DIMENSION);
    EXPECT_EQ(enqueue(queue, kernel, 1, 1, nullptr), CL_INVALID_EVENT_WAIT_LIST);
    OwnedEvent event = make_user_event();
    EXPECT_EQ(enqueue(queue, kernel, 1, 0, event.in()), CL_INVALID_EVENT_WAIT_LIST);
    const cl_event foreign = foreign_handle<cl_event>(context);
    EXPECT_EQ(enqueue(queue, kernel, 1, 1, &foreign), CL_INVALID_EVENT_WAIT_LIST);
    OwnedKernel unset = make_kernel(uniform, "ids");
    EXPECT_EQ(enqueue(queue, unset, 1, 0, nullptr), CL_INVALID_KERNEL_ARGS);
    EXPECT_EQ(clSetUserEventStatus(event, CL_COMPLETE), CL_SUCCESS);
}

TEST_F(Launches, ReportQueuesAndEventsOfOtherContexts) {
    OwnedKernel kernel = ready(uniform, "ids");
    const size_t one = 1;
    cl_int error = CL_SUCCESS;
    OwnedContext other = clCreateContext(nullptr, 1, devices.data(), nullptr, nullptr, &error);
    OwnedQueue elsewhere = clCreateCommandQueueWithProperties(other, devices[0], nullptr, &error);
    EXPECT_EQ(clEnqueueNDRangeKernel(elsewhere, kernel, 1, nullptr, &one, nullptr, 0, nullptr, nullptr),
              CL_INVALID_CONTEXT);
    OwnedEvent event = clCreateUserEvent(other, &error);
    EXPECT_EQ(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &one, nullptr, 1, event.in(), nullptr),
              CL_INVALID_CONTEXT);
    EXPECT_EQ(clSetUserEventStatus(event, CL_COMPLETE), CL_SUCCESS);
}

TEST_F(Launches, ReportEveryBadSize) {
    OwnedKernel kernel = ready(uniform, "ids");
    size_t max = 0;
    ASSERT_EQ(clGetDeviceInfo(devices[0], CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof max, &max, nullptr), CL_SUCCESS);
    EXPECT_EQ(launch(kernel, {16}, {0}), CL_INVALID_WORK_GROUP_SIZE);
    EXPECT_EQ(launch(kernel, {16}, {5}), CL_INVALID_WORK_GROUP_SIZE);
    EXPECT_EQ(launch(kernel, {2 * max, 2}, {max, 2}), CL_INVALID_WORK_GROUP_SIZE);
    EXPECT_EQ(launch(kernel, {2 * max}, {2 * max}), CL_INVALID_WORK_ITEM_SIZE);
    EXPECT_EQ(launch(kernel, {16}, {}, {SIZE_MAX - 8}), CL_INVALID_GLOBAL_OFFSET);
    EXPECT_EQ(launch(kernel, {SIZE_MAX, SIZE_MAX}), CL_INVALID_GLOBAL_WORK_SIZE);
    OwnedKernel fixed = ready(uniform, "fixed");
    EXPECT_EQ(launch(fixed, {16}, {8}), CL_INVALID_WORK_GROUP_SIZE);
    EXPECT_EQ(launch(fixed, {16}, {4}), CL_SUCCESS);
    EXPECT_EQ(launch(fixed, {16}), CL_SUCCESS);
    EXPECT_EQ(read<cl_uint>(buffer, 16), std::vector<cl_uint>(16, 4));
}

TEST_F(Launches, ReportMoreLocalMemoryThanThereIs) {
    OwnedKernel kernel = ready(uniform, "greedy");
    cl_ulong max = 0;
    ASSERT_EQ(clGetDeviceInfo(devices[0], CL_DEVICE_LOCAL_MEM_SIZE, sizeof max, &max, nullptr), CL_SUCCESS);
    // A device may have more than programs should plan with, but not this much.
    ASSERT_EQ(clSetKernelArg(kernel, 1, 16 * max, nullptr), CL_SUCCESS);
    EXPECT_EQ(launch(kernel, {1}), CL_OUT_OF_RESOURCES);
}

TEST_F(Launches, ReportABufferThatWasReleased) {
    OwnedKernel kernel = make_kernel(uniform, "ids");
    {
        OwnedMem gone = make_buffer(64);
        ASSERT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), gone.in()), CL_SUCCESS);
    }
    EXPECT_EQ(launch(kernel, {16}), CL_INVALID_KERNEL_ARGS);
    // With a new argument the launch succeeds.
    EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), buffer.in()), CL_SUCCESS);
    EXPECT_EQ(launch(kernel, {16}), CL_SUCCESS);
    EXPECT_EQ(clFinish(queue), CL_SUCCESS);
}

TEST_F(Launches, DoNotMissAReleasedBufferThatTheKernelNeverTouches) {
    const OwnedProgram program = build("kernel void one(global int* out, global int* unused) { out[0] = 5; }");
    const OwnedKernel kernel = make_kernel(program, "one");
    {
        const OwnedMem gone = make_buffer(64);
        EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), buffer.in()), CL_SUCCESS);
        EXPECT_EQ(clSetKernelArg(kernel, 1, sizeof(cl_mem), gone.in()), CL_SUCCESS);
    }
    EXPECT_EQ(launch(kernel, {1}), CL_SUCCESS);
    EXPECT_EQ(read<cl_int>(buffer, 1)[0], 5);
}

TEST_F(Launches, ArgumentsDoNotKeepABuffer) {
    std::atomic<bool> is_gone = false;
    OwnedMem released = make_buffer(64);
    const auto gone = [](cl_mem, void* user) { static_cast<std::atomic<bool>*>(user)->store(true); };
    EXPECT_EQ(clSetMemObjectDestructorCallback(released, gone, &is_gone), CL_SUCCESS);
    const OwnedKernel kernel = make_kernel(uniform, "ids");
    EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), released.in()), CL_SUCCESS);
    cl_int error = CL_SUCCESS;
    const OwnedKernel clone = clCloneKernel(kernel, &error);
    EXPECT_EQ(error, CL_SUCCESS);
    cl_uint references = 0;
    EXPECT_EQ(clGetMemObjectInfo(released, CL_MEM_REFERENCE_COUNT, sizeof references, &references, nullptr),
              CL_SUCCESS);
    EXPECT_EQ(references, 1u);
    // An enqueued launch does keep it: the application may release at once.
    const OwnedEvent gate = make_user_event();
    const size_t items = 16;
    EXPECT_EQ(clEnqueueNDRangeKernel(queue, clone, 1, nullptr, &items, nullptr, 1, gate.in(), nullptr), CL_SUCCESS);
    released.reset();
    EXPECT_FALSE(is_gone);
    EXPECT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
    EXPECT_EQ(clFinish(queue), CL_SUCCESS);
    for (int i = 0; i < 10000 && !is_gone; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_TRUE(is_gone);
    EXPECT_EQ(launch(kernel, {items}), CL_INVALID_KERNEL_ARGS);
}

TEST_F(Launches, WhatWaitsForAUserEventKeepsItsKernelProgramAndArguments) {
    const OwnedEvent gate = make_user_event();
    OwnedMem other = make_buffer(64);
    {
        const OwnedProgram program =
            build("kernel void put(global int* out, int value) { out[get_global_id(0)] = value; }");
        const OwnedKernel kernel = make_kernel(program, "put");
        const cl_int first = 7, second = 8;
        const size_t items = 16;
        EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), buffer.in()), CL_SUCCESS);
        EXPECT_EQ(clSetKernelArg(kernel, 1, sizeof first, &first), CL_SUCCESS);
        EXPECT_EQ(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &items, nullptr, 1, gate.in(), nullptr),
                  CL_SUCCESS);
        // The launch has the arguments of the time when it was enqueued.
        EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), other.in()), CL_SUCCESS);
        EXPECT_EQ(clSetKernelArg(kernel, 1, sizeof second, &second), CL_SUCCESS);
    }
    other.reset();
    EXPECT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
    EXPECT_EQ(read<cl_int>(buffer, 16), std::vector<cl_int>(16, 7));
}

// Every work-item runs once, whatever its group is.
TEST_F(Launches, EveryWorkItemRunsOnceInSizesWithoutDivisors) {
    const OwnedProgram program = build(R"(
        kernel void count(global uint* runs) {
            atomic_inc(runs + get_global_id(0) + get_global_size(0) * (get_global_id(1) + get_global_size(1) * get_global_id(2)));
        })");
    const OwnedKernel kernel = make_kernel(program, "count");
    for (const std::vector<size_t>& global :
         {std::vector<size_t>{100003}, {8 * 5003}, {1009, 97}, {3, 5003}, {31, 37, 41}, {1, 1, 5003}})
        for (const size_t local : {0, 1}) {
            size_t total = 1;
            for (const size_t extent : global)
                total *= extent;
            const OwnedMem runs = make_buffer(total * sizeof(cl_uint));
            const cl_uint zero = 0;
            EXPECT_EQ(clEnqueueFillBuffer(queue, runs, &zero, sizeof zero, 0, total * sizeof zero, 0, nullptr, nullptr),
                      CL_SUCCESS);
            EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), runs.in()), CL_SUCCESS);
            EXPECT_EQ(launch(kernel, global, std::vector<size_t>(local ? global.size() : 0, local)), CL_SUCCESS);
            EXPECT_EQ(read<cl_uint>(runs, total), std::vector<cl_uint>(total, 1));
        }
}

TEST_F(Launches, GlobalIdsThatAProgramAddsUpByItself_AreThoseOfEveryWorkItemOnce) {
    constexpr const char* text = R"(
        kernel void count(global uint* runs) {
            int i = get_group_id(0) * get_local_size(0) + get_local_id(0);
            atomic_inc(runs + i);
        })";
    constexpr size_t size = 10007;
    const OwnedMem runs = make_buffer(size * sizeof(cl_uint));
    for (const char* version : {"-cl-std=CL1.2", "-cl-std=CL3.0"}) {
        const OwnedProgram program = build(text, version);
        const OwnedKernel kernel = make_kernel(program, "count");
        EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), runs.in()), CL_SUCCESS);
        for (const bool is_named : {false, true}) {
            const cl_uint zero = 0;
            EXPECT_EQ(clEnqueueFillBuffer(queue, runs, &zero, sizeof zero, 0, size * sizeof zero, 0, nullptr, nullptr),
                      CL_SUCCESS);
            const size_t offset = 3, one = 1;
            EXPECT_EQ(clEnqueueNDRangeKernel(queue, kernel, 1, &offset, &size, is_named ? &one : nullptr, 0, nullptr,
                                             nullptr),
                      CL_SUCCESS);
            // The sums are the ids without the offset. In OpenCL C 3.0 the suggested groups may end with a smaller one, whose sums differ.
            if (is_named || version == std::string{"-cl-std=CL1.2"}) {
                EXPECT_EQ(read<cl_uint>(runs, size), std::vector<cl_uint>(size, 1));
            }
        }
    }
}

// A kernel that queries its group gets the size of the launch, or the size that the query suggests when the launch had none.
TEST_F(Launches, AKernelThatLooksSeesTheSizeThatTheQuerySuggests) {
    const OwnedProgram of_program[] = {build(source, "-cl-std=CL1.2"), build(source, "-cl-std=CL3.0")};
    const auto suggest = reinterpret_cast<clGetKernelSuggestedLocalWorkSizeKHR_fn>(
        clGetExtensionFunctionAddressForPlatform(platform(), "clGetKernelSuggestedLocalWorkSizeKHR"));
    ASSERT_NE(suggest, nullptr);
    for (const OwnedProgram& program : of_program)
        for (const size_t size : {size_t{1009}, size_t{4093}, size_t{4096}}) {
            const OwnedKernel kernel = ready(program, "sizes");
            size_t suggested = 0;
            EXPECT_EQ(suggest(queue, kernel, 1, nullptr, &size, &suggested), CL_SUCCESS);
            EXPECT_EQ(launch(kernel, {size}), CL_SUCCESS);
            EXPECT_EQ(read<cl_uint>(buffer, 1)[0] % 10000, suggested);
            EXPECT_EQ(launch(kernel, {size}, {1}), CL_SUCCESS);
            EXPECT_EQ(read<cl_uint>(buffer, 1)[0], 1u);
            // It is a size that the application may name.
            EXPECT_EQ(launch(kernel, {size}, {suggested}), CL_SUCCESS);
        }
}

TEST_F(Launches, WithoutWorkItemsOnlyWait) {
    OwnedKernel kernel = ready(uniform, "ids");
    OwnedEvent event;
    EXPECT_EQ(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, nullptr, nullptr, 0, nullptr, event.out()), CL_SUCCESS);
    cl_command_type type = 0;
    EXPECT_EQ(clGetEventInfo(event, CL_EVENT_COMMAND_TYPE, sizeof type, &type, nullptr), CL_SUCCESS);
    EXPECT_EQ(type, cl_command_type{CL_COMMAND_NDRANGE_KERNEL});
    EXPECT_EQ(clWaitForEvents(1, event.in()), CL_SUCCESS);
    EXPECT_EQ(launch(kernel, {16, 0}), CL_SUCCESS);
    EXPECT_EQ(clFinish(queue), CL_SUCCESS);
}

TEST_F(Launches, EveryWorkItemHasItsId) {
    OwnedKernel kernel = ready(uniform, "ids");
    ASSERT_EQ(launch(kernel, {5, 3, 7}, {}, {1, 2, 3}), CL_SUCCESS);
    const std::vector<cl_uint> got = read<cl_uint>(buffer, 5 * 3 * 7);
    size_t i = 0;
    for (cl_uint z = 3; z < 10; ++z)
        for (cl_uint y = 2; y < 5; ++y)
            for (cl_uint x = 1; x < 6; ++x)
                EXPECT_EQ(got[i++], x + 1000 * y + 1000000 * z);
}

TEST_F(Launches, OfLaterLanguagesMayHaveASmallerLastGroup) {
    OwnedKernel kernel = ready(any, "sizes");
    ASSERT_EQ(launch(kernel, {10}, {4}), CL_SUCCESS);
    EXPECT_EQ(read<cl_uint>(buffer, 10), (std::vector<cl_uint>{4, 4, 4, 4, 104, 104, 104, 104, 202, 202}));
    OwnedProgram forbidden = build(source, "-cl-std=CL3.0 -cl-uniform-work-group-size");
    OwnedKernel refused = ready(forbidden, "sizes");
    EXPECT_EQ(launch(refused, {10}, {4}), CL_INVALID_WORK_GROUP_SIZE);
}

TEST_F(Launches, WithoutASizeOfEarlierLanguagesAreUniform) {
    OwnedKernel kernel = ready(uniform, "sizes");
    for (const size_t global : {1u, 7u, 96u, 97u, 1000u, 2048u}) {
        ASSERT_EQ(launch(kernel, {global}), CL_SUCCESS);
        const std::vector<cl_uint> got = read<cl_uint>(buffer, global);
        const cl_uint local = got[0] % 100;
        for (const cl_uint value : got)
            EXPECT_EQ(value % 100, local) << global;
    }
}

TEST_F(Launches, TaskIsOneWorkItem) {
    OwnedKernel kernel = ready(uniform, "ids");
    OwnedEvent event;
    ASSERT_EQ(clEnqueueTask(queue, kernel, 0, nullptr, event.out()), CL_SUCCESS);
    cl_command_type type = 0;
    EXPECT_EQ(clGetEventInfo(event, CL_EVENT_COMMAND_TYPE, sizeof type, &type, nullptr), CL_SUCCESS);
    EXPECT_EQ(type, cl_command_type{CL_COMMAND_TASK});
    EXPECT_EQ(clEnqueueTask(queue, foreign_handle<cl_kernel>(context), 0, nullptr, nullptr), CL_INVALID_KERNEL);
    EXPECT_EQ(clEnqueueTask(foreign_handle<cl_command_queue>(context), kernel, 0, nullptr, nullptr),
              CL_INVALID_COMMAND_QUEUE);
    EXPECT_EQ(clWaitForEvents(1, event.in()), CL_SUCCESS);
}

TEST_F(Launches, SubBufferMustBeAligned) {
    cl_uint align_bits = 0;
    ASSERT_EQ(clGetDeviceInfo(devices[0], CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof align_bits, &align_bits, nullptr),
              CL_SUCCESS);
    const cl_buffer_region region{align_bits / 8, 256};
    cl_int error = CL_SUCCESS;
    OwnedMem part = clCreateSubBuffer(buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &error);
    ASSERT_EQ(error, CL_SUCCESS);
    OwnedKernel kernel = make_kernel(uniform, "ids");
    ASSERT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), part.in()), CL_SUCCESS);
    write(buffer, std::vector<cl_uint>(4096, 9));
    ASSERT_EQ(launch(kernel, {4}), CL_SUCCESS);
    const size_t first = region.origin / sizeof(cl_uint);
    const std::vector<cl_uint> got = read<cl_uint>(buffer, first + 5);
    EXPECT_EQ(got[first - 1], 9u);
    EXPECT_EQ(got[first + 3], 3u);
    EXPECT_EQ(got[first + 4], 9u);
}

TEST_F(Launches, SuggestedSizeDividesAndIsUsed) {
    const auto suggest = reinterpret_cast<clGetKernelSuggestedLocalWorkSizeKHR_fn>(
        clGetExtensionFunctionAddressForPlatform(platform(), "clGetKernelSuggestedLocalWorkSizeKHR"));
    ASSERT_NE(suggest, nullptr);
    OwnedKernel kernel = ready(uniform, "sizes");
    size_t global[] = {1024}, local[] = {0};
    ASSERT_EQ(suggest(queue, kernel, 1, nullptr, global, local), CL_SUCCESS);
    ASSERT_GT(local[0], 0u);
    EXPECT_EQ(global[0] % local[0], 0u);
    EXPECT_EQ(suggest(foreign_handle<cl_command_queue>(context), kernel, 1, nullptr, global, local),
              CL_INVALID_COMMAND_QUEUE);
    EXPECT_EQ(suggest(queue, foreign_handle<cl_kernel>(context), 1, nullptr, global, local), CL_INVALID_KERNEL);
    EXPECT_EQ(suggest(queue, kernel, 0, nullptr, global, local), CL_INVALID_WORK_DIMENSION);
    EXPECT_EQ(suggest(queue, kernel, 1, nullptr, nullptr, local), CL_INVALID_GLOBAL_WORK_SIZE);
    EXPECT_EQ(suggest(queue, kernel, 1, nullptr, global, nullptr), CL_INVALID_VALUE);
    size_t zero[] = {0}, far[] = {SIZE_MAX - 1};
    EXPECT_EQ(suggest(queue, kernel, 1, nullptr, zero, local), CL_INVALID_GLOBAL_WORK_SIZE);
    EXPECT_EQ(suggest(queue, kernel, 1, far, global, local), CL_INVALID_GLOBAL_OFFSET);
    OwnedKernel unset = make_kernel(uniform, "ids");
    EXPECT_EQ(suggest(queue, unset, 1, nullptr, global, local), CL_INVALID_KERNEL_ARGS);
}

struct NativeBlock {
    cl_int* place;
    cl_int value;
};
void CL_CALLBACK store(void* data) {
    NativeBlock block;
    std::memcpy(&block, data, sizeof block);
    *block.place = block.value;
}

TEST_F(Launches, NativeKernelsReportEveryBadArgument) {
    NativeBlock block{nullptr, 5};
    cl_mem list[] = {buffer};
    const void* places[] = {&block.place};
    const auto enqueue = [&](cl_command_queue on, void(CL_CALLBACK * function)(void*), void* data, size_t size,
                             cl_uint count, const cl_mem* buffers, const void** where) {
        return clEnqueueNativeKernel(on, function, data, size, count, buffers, where, 0, nullptr, nullptr);
    };
    EXPECT_EQ(enqueue(foreign_handle<cl_command_queue>(context), store, &block, sizeof block, 1, list, places),
              CL_INVALID_COMMAND_QUEUE);
    EXPECT_EQ(enqueue(queue, nullptr, &block, sizeof block, 1, list, places), CL_INVALID_VALUE);
    EXPECT_EQ(enqueue(queue, store, nullptr, sizeof block, 0, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(enqueue(queue, store, nullptr, 0, 1, list, places), CL_INVALID_VALUE);
    EXPECT_EQ(enqueue(queue, store, &block, 0, 0, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(enqueue(queue, store, &block, sizeof block, 1, nullptr, places), CL_INVALID_VALUE);
    EXPECT_EQ(enqueue(queue, store, &block, sizeof block, 1, list, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(enqueue(queue, store, &block, sizeof block, 0, list, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(enqueue(queue, store, &block, sizeof block, 0, nullptr, places), CL_INVALID_VALUE);
    if (!executes_native_kernels(devices[0])) {
        EXPECT_EQ(enqueue(queue, store, &block, sizeof block, 1, list, places), CL_INVALID_OPERATION);
        return;
    }
    cl_mem foreign[] = {foreign_handle<cl_mem>(context)};
    EXPECT_EQ(enqueue(queue, store, &block, sizeof block, 1, foreign, places), CL_INVALID_MEM_OBJECT);
    ASSERT_EQ(enqueue(queue, store, &block, sizeof block, 1, list, places), CL_SUCCESS);
    EXPECT_EQ(read<cl_int>(buffer, 1)[0], 5);
}

TEST_F(Launches, AsTasksReportEveryBadArgument) {
    OwnedKernel fixed = ready(uniform, "fixed");
    EXPECT_EQ(clEnqueueTask(queue, fixed, 0, nullptr, nullptr), CL_INVALID_WORK_GROUP_SIZE);
    const OwnedKernel unset = make_kernel(uniform, "ids");
    EXPECT_EQ(clEnqueueTask(queue, unset, 0, nullptr, nullptr), CL_INVALID_KERNEL_ARGS);
    OwnedKernel kernel = ready(uniform, "ids");
    cl_int error = CL_SUCCESS;
    const OwnedContext other = clCreateContext(nullptr, 1, devices.data(), nullptr, nullptr, &error);
    const OwnedQueue elsewhere = clCreateCommandQueueWithProperties(other, devices[0], nullptr, &error);
    EXPECT_EQ(clEnqueueTask(elsewhere, kernel, 0, nullptr, nullptr), CL_INVALID_CONTEXT);
    const auto suggest = reinterpret_cast<clGetKernelSuggestedLocalWorkSizeKHR_fn>(
        clGetExtensionFunctionAddressForPlatform(platform(), "clGetKernelSuggestedLocalWorkSizeKHR"));
    const size_t size = 16;
    size_t local = 0;
    EXPECT_EQ(suggest(elsewhere, kernel, 1, nullptr, &size, &local), CL_INVALID_CONTEXT);
    EXPECT_EQ(suggest(queue, kernel, 4, nullptr, &size, &local), CL_INVALID_WORK_DIMENSION);
}

TEST_F(Launches, OnADeviceThatTheProgramWasNotBuiltForAreRefused) {
    if (devices.size() < 2)
        GTEST_SKIP() << "needs two devices";
    const OwnedProgram program = from_source(source);
    ASSERT_EQ(clBuildProgram(program, 1, devices.data(), "", nullptr, nullptr), CL_SUCCESS);
    OwnedKernel kernel = ready(program, "ids");
    const OwnedQueue other = make_queue(devices[1]);
    const size_t size = 16;
    size_t local = 0;
    EXPECT_EQ(clEnqueueNDRangeKernel(other, kernel, 1, nullptr, &size, nullptr, 0, nullptr, nullptr),
              CL_INVALID_PROGRAM_EXECUTABLE);
    EXPECT_EQ(clEnqueueTask(other, kernel, 0, nullptr, nullptr), CL_INVALID_PROGRAM_EXECUTABLE);
    const auto suggest = reinterpret_cast<clGetKernelSuggestedLocalWorkSizeKHR_fn>(
        clGetExtensionFunctionAddressForPlatform(platform(), "clGetKernelSuggestedLocalWorkSizeKHR"));
    EXPECT_EQ(suggest(other, kernel, 1, nullptr, &size, &local), CL_INVALID_PROGRAM_EXECUTABLE);
    // Queries for that device fail, too.
    EXPECT_EQ(clGetKernelWorkGroupInfo(kernel, devices[1], CL_KERNEL_WORK_GROUP_SIZE, 0, nullptr, nullptr),
              CL_INVALID_DEVICE);
    EXPECT_EQ(launch(kernel, {size}), CL_SUCCESS);
}

TEST_F(Launches, NativeKernelsReportObjectsAndPlacesThatTheyCannotUse) {
    if (!executes_native_kernels(devices[0]))
        GTEST_SKIP() << "needs native kernels";
    cl_int error = CL_SUCCESS;
    const OwnedContext other = clCreateContext(nullptr, 1, devices.data(), nullptr, nullptr, &error);
    const OwnedMem stranger = clCreateBuffer(other, CL_MEM_READ_WRITE, 64, nullptr, &error);
    NativeBlock block{nullptr, 5};
    const void* places[] = {&block.place};
    const auto enqueue = [&](cl_mem buffer_of_call, const void** where) {
        return clEnqueueNativeKernel(queue, store, &block, sizeof block, 1, &buffer_of_call, where, 0, nullptr,
                                     nullptr);
    };
    EXPECT_EQ(enqueue(stranger, places), CL_INVALID_CONTEXT);
    // Only buffers have an address that a native kernel can use.
    const cl_image_format format{CL_R, CL_FLOAT};
    cl_image_desc description{};
    description.image_type = CL_MEM_OBJECT_IMAGE1D;
    description.image_width = 16;
    const OwnedMem image = clCreateImage(context, CL_MEM_READ_WRITE, &format, &description, nullptr, &error);
    ASSERT_EQ(error, CL_SUCCESS);
    EXPECT_EQ(enqueue(image, places), CL_INVALID_MEM_OBJECT);
    const OwnedMem pipe = clCreatePipe(context, 0, 4, 4, nullptr, &error);
    ASSERT_EQ(error, CL_SUCCESS);
    EXPECT_EQ(enqueue(pipe, places), CL_INVALID_MEM_OBJECT);
    // The address of a buffer goes into the block, not elsewhere.
    const void* outside[] = {&places};
    EXPECT_EQ(enqueue(buffer, outside), CL_INVALID_VALUE);
}

}  // namespace
}  // namespace polder::test
