// Shared virtual memory and buffers over the same bytes, used by a CPU, devices with memories of their own and GPUs that use it in place, in
// every order.
#include "support/svm_flow.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <random>

namespace polder::test {
namespace {

constexpr const char* list_kernels = R"(
typedef struct { global int* values; } box;
kernel void add_indirect(global const box* from, int value) { from->values[get_global_id(0)] += value; }
)";

TEST_F(SvmFlow, AKernelOnADeviceReadsThroughABufferWhatTheHostMapped) {
    const OwnedMem buffer = make_buffer(bytes, CL_MEM_USE_HOST_PTR, svm);
    run(first, "add", count, {}, mem(buffer),
        cl_int{1});  // from now on a device with memory of its own holds the bytes
    finish();
    set(svm, numbers(count));
    run(first, "add", count, {}, mem(buffer), cl_int{1});
    std::vector<cl_int> expected = numbers(count);
    for (cl_int& value : expected)
        ++value;
    EXPECT_EQ(read<cl_int>(buffer, count, queues[first]), expected);
    EXPECT_EQ(values(svm), expected);
}

TEST_F(SvmFlow, SvmCommandsSeeWhatADeviceWroteThroughABuffer) {
    const OwnedMem buffer = make_buffer(bytes, CL_MEM_USE_HOST_PTR, svm);
    cl_int* const other = allocate();
    set(svm, numbers(count));
    run(first, "add", count, {}, mem(buffer), cl_int{10});
    finish();
    moved();
    ASSERT_EQ(clEnqueueSVMMemcpy(queues[host], CL_TRUE, other, svm, bytes, 0, nullptr, nullptr), CL_SUCCESS);
    EXPECT_EQ(moved(), moved_by(first, bytes));
    EXPECT_EQ(values(other, 1)[0], 11);
    std::vector<cl_int> plain(count);
    ASSERT_EQ(clEnqueueSVMMemcpy(queues[host], CL_TRUE, plain.data(), svm, bytes, 0, nullptr, nullptr), CL_SUCCESS);
    EXPECT_EQ(plain[count - 1], cl_int{count} + 10);
    clSVMFree(context, other);
}

TEST_F(SvmFlow, ADeviceSeesThroughABufferWhatSvmCommandsWrote) {
    const OwnedMem buffer = make_buffer(bytes, CL_MEM_USE_HOST_PTR, svm);
    set(svm, numbers(count));
    run(first, "add", count, {}, mem(buffer), cl_int{0});
    finish();
    const cl_int seven = 7;
    ASSERT_EQ(clEnqueueSVMMemFill(queues[host], svm, &seven, sizeof seven, bytes / 2, 0, nullptr, nullptr), CL_SUCCESS);
    finish();
    moved();
    run(first, "add", count, {}, mem(buffer), cl_int{1});
    EXPECT_EQ(moved(), moved_by(first, bytes / 2));  // the half that is stale there
    std::vector<cl_int> expected = numbers(count);
    for (size_t i = 0; i < count; ++i)
        expected[i] = i < count / 2 ? 8 : expected[i] + 1;
    EXPECT_EQ(read<cl_int>(buffer, count, queues[second]), expected);
    const std::vector<cl_int> fresh(count, 3);
    ASSERT_EQ(clEnqueueSVMMemcpy(queues[host], CL_TRUE, svm, fresh.data(), bytes, 0, nullptr, nullptr), CL_SUCCESS);
    run(second, "add", count, {}, mem(buffer), cl_int{1});
    EXPECT_EQ(read<cl_int>(buffer, count, queues[second]), std::vector<cl_int>(count, 4));
}

TEST_F(SvmFlow, AKernelWithTheSvmPointerSeesWhatADeviceWrote) {
    const OwnedMem buffer = make_buffer(bytes, CL_MEM_USE_HOST_PTR, svm);
    set(svm, numbers(count));
    run(first, "add", count, {}, mem(buffer), cl_int{1});
    finish();
    run_svm("add", svm + 16, count - 16, 1);  // a pointer into the allocation
    finish();
    run(second, "add", count, {}, mem(buffer), cl_int{1});
    finish();
    std::vector<cl_int> expected = numbers(count);
    for (size_t i = 0; i < count; ++i)
        expected[i] += i < 16 ? 2 : 3;
    EXPECT_EQ(values(svm), expected);
}

TEST_F(SvmFlow, PointersInMemoryAreFollowedWhereTheKernelListsThem) {
    const OwnedMem buffer = make_buffer(bytes, CL_MEM_USE_HOST_PTR, svm);
    set(svm, numbers(count));
    run(first, "add", count, {}, mem(buffer), cl_int{1});
    finish();
    auto** const box = static_cast<cl_int**>(clSVMAlloc(context, CL_MEM_READ_WRITE, sizeof(cl_int*), 0));
    ASSERT_NE(box, nullptr);
    ASSERT_EQ(clEnqueueSVMMap(queues[host], CL_TRUE, CL_MAP_WRITE, box, sizeof *box, 0, nullptr, nullptr), CL_SUCCESS);
    *box = svm;
    ASSERT_EQ(clEnqueueSVMUnmap(queues[host], box, 0, nullptr, nullptr), CL_SUCCESS);
    const OwnedProgram lists = build(list_kernels);
    const OwnedKernel kernel = make_kernel(lists, "add_indirect");
    const cl_int value = 5;
    void* const reached[] = {svm};
    const size_t items = count;
    ASSERT_EQ(clSetKernelArgSVMPointer(kernel, 0, box), CL_SUCCESS);
    ASSERT_EQ(clSetKernelArg(kernel, 1, sizeof value, &value), CL_SUCCESS);
    ASSERT_EQ(clSetKernelExecInfo(kernel, CL_KERNEL_EXEC_INFO_SVM_PTRS, sizeof reached, reached), CL_SUCCESS);
    ASSERT_EQ(clEnqueueNDRangeKernel(queues[host], kernel, 1, nullptr, &items, nullptr, 0, nullptr, nullptr),
              CL_SUCCESS);
    finish();
    run(second, "add", count, {}, mem(buffer), cl_int{1});
    EXPECT_EQ(read<cl_int>(buffer, 1, queues[second])[0], 1 + 1 + 5 + 1);
    // The kernel lists no pointers any more, so nothing is moved for them.
    ASSERT_EQ(clSetKernelExecInfo(kernel, CL_KERNEL_EXEC_INFO_SVM_PTRS, 0, nullptr), CL_SUCCESS);
    moved();
    ASSERT_EQ(clEnqueueNDRangeKernel(queues[host], kernel, 1, nullptr, &items, nullptr, 0, nullptr, nullptr),
              CL_SUCCESS);
    EXPECT_EQ(moved(), 0u);
    clSVMFree(context, box);
}

TEST_F(SvmFlow, BuffersAtOffsetsOfOneAllocationAndTheirPartsShareItsBytes) {
    constexpr size_t at = 512;  // numbers
    const OwnedMem whole = make_buffer(bytes, CL_MEM_USE_HOST_PTR, svm);
    const OwnedMem part = make_buffer(bytes - at * 4, CL_MEM_USE_HOST_PTR, svm + at);
    const OwnedMem part_of_part = sub_buffer(part, at * 4, at * 4);
    EXPECT_EQ(mem_info<size_t>(part, CL_MEM_OFFSET), 0u);
    EXPECT_EQ(mem_info<size_t>(part_of_part, CL_MEM_OFFSET), at * 4);
    EXPECT_EQ(mem_info<void*>(part_of_part, CL_MEM_HOST_PTR), svm + 2 * at);
    set(svm, numbers(count));
    run(first, "add", count - at, {}, mem(part), cl_int{100});
    finish();
    run(second, "add", at, {}, mem(part_of_part), cl_int{1000});
    finish();
    run(host, "add", count, {}, mem(whole), cl_int{10000});
    finish();
    std::vector<cl_int> expected = numbers(count);
    for (size_t i = 0; i < count; ++i)
        expected[i] += 10000 + (i >= at ? 100 : 0) + (i >= 2 * at && i < 3 * at ? 1000 : 0);
    EXPECT_EQ(values(svm), expected);
    cl_int error = CL_SUCCESS;
    void* const mapped =
        clEnqueueMapBuffer(queues[host], part_of_part, CL_TRUE, CL_MAP_READ, 4, 8, 0, nullptr, nullptr, &error);
    EXPECT_EQ(mapped, svm + 2 * at + 1);
    EXPECT_EQ(clEnqueueUnmapMemObject(queues[host], part_of_part, mapped, 0, nullptr, nullptr), CL_SUCCESS);
    finish();
}

TEST_F(SvmFlow, AReleasedBufferCallsItsDestructorCallbackWhileTheAllocationLives) {
    std::promise<void> is_called;
    OwnedMem buffer = make_buffer(bytes, CL_MEM_USE_HOST_PTR, svm);
    ASSERT_EQ(clSetMemObjectDestructorCallback(
                  buffer, [](cl_mem, void* user) { static_cast<std::promise<void>*>(user)->set_value(); }, &is_called),
              CL_SUCCESS);
    run(first, "add", count, {}, mem(buffer), cl_int{1});
    buffer.reset();
    finish();
    is_called.get_future().wait();
}

TEST_F(SvmFlow, MigrationMovesAnAllocationToTheHost) {
    const OwnedMem buffer = make_buffer(bytes, CL_MEM_USE_HOST_PTR, svm);
    set(svm, numbers(count));
    run(first, "add", count, {}, mem(buffer), cl_int{1});
    finish();
    moved();
    const void* pointers[] = {svm + 100};
    const size_t sizes[] = {400};
    ASSERT_EQ(clEnqueueSVMMigrateMem(queues[host], 1, pointers, sizes, 0, 0, nullptr, nullptr), CL_SUCCESS);
    EXPECT_EQ(moved(), moved_by(first, 400));
    ASSERT_EQ(clEnqueueSVMMigrateMem(queues[host], 1, pointers, nullptr, 0, 0, nullptr, nullptr), CL_SUCCESS);
    EXPECT_EQ(moved(), moved_by(first, bytes - 400));
    map(CL_MAP_READ, svm);
    EXPECT_EQ(moved(), 0u);
    unmap(svm);
}

TEST_F(SvmFlow, AnUnmapBehindAFailingEventKeepsTheMapAndTheHostsWrites) {
    const OwnedMem buffer = make_buffer(bytes, CL_MEM_USE_HOST_PTR, svm);
    set(svm, numbers(count));
    run(first, "add", count, {}, mem(buffer), cl_int{1});
    finish();
    map(CL_MAP_WRITE, svm);
    svm[0] = 1000;
    const OwnedEvent gate = make_user_event();
    ASSERT_EQ(clEnqueueSVMUnmap(queues[host], svm, 1, gate.in(), nullptr), CL_SUCCESS);
    ASSERT_EQ(clSetUserEventStatus(gate, -1), CL_SUCCESS);
    unmap(svm);
    finish();
    EXPECT_EQ(read<cl_int>(buffer, 1, queues[first])[0], 1000);
    run(first, "add", count, {}, mem(buffer), cl_int{1});
    EXPECT_EQ(read<cl_int>(buffer, 2, queues[first]), (std::vector<cl_int>{1001, 4}));
}

// --- freed memory waits for the work in flight ---

// Blocks the CPU's queue until it is opened.
class Gate {
public:
    // The kernel keeps the state that it waits for, because it may start after the gate has been opened and destroyed.
    explicit Gate(cl_command_queue queue) {
        using Opened = std::shared_future<void>;
        auto* opened = new Opened(opened_.get_future());
        EXPECT_EQ(clEnqueueNativeKernel(
                      queue,
                      [](void* data) {
                          const std::unique_ptr<Opened> owned(*static_cast<Opened**>(data));
                          owned->wait();
                      },
                      &opened, sizeof opened, 0, nullptr, nullptr, 0, nullptr, nullptr),
                  CL_SUCCESS);
        EXPECT_EQ(clFlush(queue), CL_SUCCESS);
    }
    void open() { opened_.set_value(); }

private:
    std::promise<void> opened_;
};

TEST_F(SvmFlow, MemoryFreedUnderAKernelIsNotGivenToOthersBeforeItsEnd) {
    Gate gate(queues[host]);
    run_svm("add", svm, count, 1);
    ASSERT_EQ(clFlush(queues[host]), CL_SUCCESS);
    clSVMFree(context, svm);
    svm = allocate();
    ASSERT_NE(svm, nullptr);
    std::fill_n(svm, count, 7);
    gate.open();
    finish();
    EXPECT_EQ(std::vector<cl_int>(svm, svm + count), std::vector<cl_int>(count, 7));
}

TEST_F(SvmFlow, AContextThatIsReleasedUnderAKernelKeepsItsMemoryUntilTheEnd) {
    cl_int error = CL_INVALID_VALUE;
    OwnedContext other = clCreateContext(nullptr, 1, devices.data(), nullptr, nullptr, &error);
    ASSERT_EQ(error, CL_SUCCESS);
    OwnedQueue of_other = clCreateCommandQueueWithProperties(other, devices[host], nullptr, &error);
    const char* source = flow_kernels;
    OwnedProgram compiled = clCreateProgramWithSource(other, 1, &source, nullptr, &error);
    ASSERT_EQ(clBuildProgram(compiled, 0, nullptr, "", nullptr, nullptr), CL_SUCCESS);
    OwnedKernel kernel = clCreateKernel(compiled, "add", &error);
    constexpr size_t large = size_t{3} << 20;
    void* const theirs = clSVMAlloc(other, CL_MEM_READ_WRITE, large, 0);
    const cl_int one = 1;
    const size_t items = large / sizeof(cl_int);
    ASSERT_EQ(clSetKernelArgSVMPointer(kernel, 0, theirs), CL_SUCCESS);
    ASSERT_EQ(clSetKernelArg(kernel, 1, sizeof one, &one), CL_SUCCESS);
    Gate gate(of_other);
    ASSERT_EQ(clEnqueueNDRangeKernel(of_other, kernel, 1, nullptr, &items, nullptr, 0, nullptr, nullptr), CL_SUCCESS);
    OwnedEvent last;
    ASSERT_EQ(clEnqueueMarkerWithWaitList(of_other, 0, nullptr, last.out()), CL_SUCCESS);
    ASSERT_EQ(clFlush(of_other), CL_SUCCESS);
    last.reset();
    kernel.reset();
    compiled.reset();
    of_other.reset();
    other.reset();
    cl_int* const ours = allocate(large);
    ASSERT_NE(ours, nullptr);
    std::fill_n(ours, items, 7);
    gate.open();
    // The CPU executes operations in the order of their submission.
    run_svm("add", svm, count, 1);
    finish();
    const OwnedMem settled = make_buffer(bytes);
    for (int i = 0; i < 100; ++i)
        run(host, "add", count, {}, mem(settled), cl_int{1});
    finish();
    EXPECT_EQ(std::count(ours, ours + items, 7), static_cast<std::ptrdiff_t>(items));
    clSVMFree(context, ours);
}

TEST_F(SvmFlow, AKernelHeldBackByAnEventKeepsTheMemoryThatIsFreed) {
    const OwnedEvent gate = make_user_event();
    const OwnedKernel kernel = make_kernel(program, "add");
    const cl_int one = 1;
    const size_t items = count;
    ASSERT_EQ(clSetKernelArgSVMPointer(kernel, 0, svm), CL_SUCCESS);
    ASSERT_EQ(clSetKernelArg(kernel, 1, sizeof one, &one), CL_SUCCESS);
    ASSERT_EQ(clEnqueueNDRangeKernel(queues[host], kernel, 1, nullptr, &items, nullptr, 1, gate.in(), nullptr),
              CL_SUCCESS);
    clSVMFree(context, svm);
    svm = allocate();
    std::fill_n(svm, count, 7);
    ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
    finish();
    EXPECT_EQ(std::vector<cl_int>(svm, svm + count), std::vector<cl_int>(count, 7));
    // The argument still has the old address, which the new allocation may have: then the kernel uses the new allocation.
    ASSERT_EQ(clSetKernelArgSVMPointer(kernel, 0, svm), CL_SUCCESS);
    ASSERT_EQ(clEnqueueNDRangeKernel(queues[host], kernel, 1, nullptr, &items, nullptr, 0, nullptr, nullptr),
              CL_SUCCESS);
    EXPECT_EQ(values(svm, 1)[0], 8);
}

}  // namespace
}  // namespace polder::test
