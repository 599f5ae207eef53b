// Shared virtual memory and buffers over the same bytes, used by a CPU and devices with memories of their own in every order.
#include "support/flow.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <random>

namespace polder::test {
namespace {

constexpr size_t host = 0, first = 1, second = 2;  // devices
constexpr size_t count = 4096;
constexpr size_t bytes = count * sizeof(cl_int);

constexpr const char* list_kernels = R"(
typedef struct { global int* values; } box;
kernel void add_indirect(global const box* from, int value) { from->values[get_global_id(0)] += value; }
)";

class SvmFlow : public FlowTest {
protected:
    void SetUp() override {
        FlowTest::SetUp();
        svm = allocate();
        ASSERT_NE(svm, nullptr);
    }
    void TearDown() override { clSVMFree(context, svm); }

    cl_int* allocate(size_t size = bytes) {
        return static_cast<cl_int*>(clSVMAlloc(context, CL_MEM_READ_WRITE, size, 0));
    }

    void run_svm(const char* name, cl_int* pointer, size_t items, cl_int value) {
        const OwnedKernel kernel = make_kernel(program, name);
        ASSERT_EQ(clSetKernelArgSVMPointer(kernel, 0, pointer), CL_SUCCESS);
        ASSERT_EQ(clSetKernelArg(kernel, 1, sizeof value, &value), CL_SUCCESS);
        ASSERT_EQ(clEnqueueNDRangeKernel(queues[host], kernel, 1, nullptr, &items, nullptr, 0, nullptr, nullptr),
                  CL_SUCCESS);
    }
    void map(cl_map_flags flags, cl_int* pointer, size_t size = bytes) {
        ASSERT_EQ(clEnqueueSVMMap(queues[host], CL_TRUE, flags, pointer, size, 0, nullptr, nullptr), CL_SUCCESS);
    }
    void unmap(cl_int* pointer) {
        ASSERT_EQ(clEnqueueSVMUnmap(queues[host], pointer, 0, nullptr, nullptr), CL_SUCCESS);
    }
    void finish() {
        for (const OwnedQueue& one : queues)
            ASSERT_EQ(clFinish(one), CL_SUCCESS);
    }
    // Through a map of the pointer.
    std::vector<cl_int> values(cl_int* pointer, size_t number = count) {
        map(CL_MAP_READ, pointer, number * sizeof(cl_int));
        const std::vector<cl_int> seen(pointer, pointer + number);
        unmap(pointer);
        finish();
        return seen;
    }
    void set(cl_int* pointer, const std::vector<cl_int>& to) {
        map(CL_MAP_WRITE_INVALIDATE_REGION, pointer);
        std::ranges::copy(to, pointer);
        unmap(pointer);
        finish();
    }

    cl_int* svm = nullptr;
};

TEST_F(SvmFlow, AKernelOnADeviceReadsThroughABufferWhatTheHostMapped) {
    const OwnedMem buffer = make_buffer(bytes, CL_MEM_USE_HOST_PTR, svm);
    run(first, "add", count, {}, mem(buffer), cl_int{1});  // the device holds the bytes from now on
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
    EXPECT_EQ(moved(), bytes);
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
    EXPECT_EQ(moved(), bytes / 2);  // the half that is stale there
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

TEST_F(SvmFlow, PointersInMemoryAreFollowedWhereTheKernelWasToldOfThem) {
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
    // Told of nothing any more: nothing is brought.
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

TEST_F(SvmFlow, ABufferThatIsReleasedTellsItsDestructorCallbackWhileTheAllocationLives) {
    std::promise<void> told;
    OwnedMem buffer = make_buffer(bytes, CL_MEM_USE_HOST_PTR, svm);
    ASSERT_EQ(clSetMemObjectDestructorCallback(
                  buffer, [](cl_mem, void* user) { static_cast<std::promise<void>*>(user)->set_value(); }, &told),
              CL_SUCCESS);
    run(first, "add", count, {}, mem(buffer), cl_int{1});
    buffer.reset();
    finish();
    told.get_future().wait();
}

TEST_F(SvmFlow, MigrationBringsAnAllocationHome) {
    const OwnedMem buffer = make_buffer(bytes, CL_MEM_USE_HOST_PTR, svm);
    set(svm, numbers(count));
    run(first, "add", count, {}, mem(buffer), cl_int{1});
    finish();
    moved();
    const void* pointers[] = {svm + 100};
    const size_t sizes[] = {400};
    ASSERT_EQ(clEnqueueSVMMigrateMem(queues[host], 1, pointers, sizes, 0, 0, nullptr, nullptr), CL_SUCCESS);
    EXPECT_EQ(moved(), 400u);
    ASSERT_EQ(clEnqueueSVMMigrateMem(queues[host], 1, pointers, nullptr, 0, 0, nullptr, nullptr), CL_SUCCESS);
    EXPECT_EQ(moved(), bytes - 400);
    map(CL_MAP_READ, svm);
    EXPECT_EQ(moved(), 0u);
    unmap(svm);
}

TEST_F(SvmFlow, AnUnmapBehindAFailingEventKeepsTheMapAndTheHostsWrites) {
    const OwnedMem buffer = make_buffer(bytes, CL_MEM_USE_HOST_PTR, svm);
    set(svm, numbers(count));
    run(first, "add", count, {}, mem(buffer), cl_int{1});
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
    // The kernel owns what it waits for: it may start after the gate has been opened and destroyed.
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
    // The CPU executes in the order in which work came.
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
    // The argument still has the address, which may be that of the new allocation: then it is found.
    ASSERT_EQ(clSetKernelArgSVMPointer(kernel, 0, svm), CL_SUCCESS);
    ASSERT_EQ(clEnqueueNDRangeKernel(queues[host], kernel, 1, nullptr, &items, nullptr, 0, nullptr, nullptr),
              CL_SUCCESS);
    EXPECT_EQ(values(svm, 1)[0], 8);
}

// Commands of every kind in random order, each after the one before it, against a model of every number.
TEST_F(SvmFlow, RandomCommandsThroughThePointerAndThroughBuffersAgreeWithAModel) {
    constexpr size_t small = 256;
    for (uint32_t seed = 1; seed <= 40; ++seed) {
        std::mt19937 random(seed);
        const auto below = [&](size_t limit) { return random() % limit; };
        cl_int* const memory = allocate(small * sizeof(cl_int));
        const size_t offset = 32 * (1 + below(3));
        const OwnedMem buffers[] = {make_buffer(small * 4, CL_MEM_USE_HOST_PTR, memory),
                                    make_buffer((small - offset) * 4, CL_MEM_USE_HOST_PTR, memory + offset)};
        std::vector<cl_int> model(small, 0);
        ASSERT_EQ(clEnqueueSVMMemFill(queues[host], memory, model.data(), 4, small * 4, 0, nullptr, nullptr),
                  CL_SUCCESS);
        finish();
        cl_event previous = nullptr;
        for (int step = 0; step < 60; ++step) {
            const size_t which = below(2), device = below(3);
            const size_t base = which ? offset : 0, limit = small - base;
            const size_t begin = below(limit), size = 1 + below(limit - begin);
            const auto value = static_cast<cl_int>(below(1000));
            OwnedEvent done;
            const cl_uint waits = previous ? 1 : 0;
            const cl_event* const after = previous ? &previous : nullptr;
            const auto change = [&](size_t from, size_t number, const std::function<void(cl_int&)>& f) {
                std::for_each_n(model.begin() + static_cast<std::ptrdiff_t>(from), number, f);
            };
            switch (below(7)) {
            case 0:
            case 1: {
                const OwnedKernel kernel = make_kernel(program, "add");
                const bool by_pointer = device == host && below(2) == 0;
                if (by_pointer) {
                    ASSERT_EQ(clSetKernelArgSVMPointer(kernel, 0, memory + base), CL_SUCCESS);
                } else
                    ASSERT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), buffers[which].in()), CL_SUCCESS);
                ASSERT_EQ(clSetKernelArg(kernel, 1, sizeof value, &value), CL_SUCCESS);
                ASSERT_EQ(clEnqueueNDRangeKernel(queues[device], kernel, 1, nullptr, &size, nullptr, waits, after,
                                                 done.out()),
                          CL_SUCCESS);
                change(base, size, [&](cl_int& number) { number += value; });
                break;
            }
            case 2:
                ASSERT_EQ(clEnqueueSVMMemFill(queues[host], memory + base + begin, &value, 4, size * 4, waits, after,
                                              done.out()),
                          CL_SUCCESS);
                change(base + begin, size, [&](cl_int& number) { number = value; });
                break;
            case 3: {
                const std::vector<cl_int> written(size, value);
                if (below(2)) {
                    ASSERT_EQ(clEnqueueSVMMemcpy(queues[host], CL_TRUE, memory + base + begin, written.data(), size * 4,
                                                 waits, after, done.out()),
                              CL_SUCCESS);
                } else
                    ASSERT_EQ(clEnqueueWriteBuffer(queues[device], buffers[which], CL_TRUE, begin * 4, size * 4,
                                                   written.data(), waits, after, done.out()),
                              CL_SUCCESS);
                change(base + begin, size, [&](cl_int& number) { number = value; });
                break;
            }
            case 4: {
                std::vector<cl_int> seen(size);
                if (below(2)) {
                    ASSERT_EQ(clEnqueueSVMMemcpy(queues[host], CL_TRUE, seen.data(), memory + base + begin, size * 4,
                                                 waits, after, done.out()),
                              CL_SUCCESS);
                } else
                    ASSERT_EQ(clEnqueueReadBuffer(queues[device], buffers[which], CL_TRUE, begin * 4, size * 4,
                                                  seen.data(), waits, after, done.out()),
                              CL_SUCCESS);
                ASSERT_TRUE(
                    std::equal(seen.begin(), seen.end(), model.begin() + static_cast<std::ptrdiff_t>(base + begin)))
                    << "seed " << seed << ", step " << step;
                break;
            }
            case 5: {
                cl_int* const at = memory + base + begin;
                ASSERT_EQ(clEnqueueSVMMap(queues[host], CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, at, size * 4, waits, after,
                                          nullptr),
                          CL_SUCCESS);
                ASSERT_TRUE(std::equal(at, at + size, model.begin() + static_cast<std::ptrdiff_t>(base + begin)))
                    << "seed " << seed << ", step " << step;
                std::fill_n(at, size, value);
                ASSERT_EQ(clEnqueueSVMUnmap(queues[host], at, 0, nullptr, done.out()), CL_SUCCESS);
                change(base + begin, size, [&](cl_int& number) { number = value; });
                break;
            }
            default: {
                cl_int error = CL_SUCCESS;
                auto* const at =
                    static_cast<cl_int*>(clEnqueueMapBuffer(queues[device], buffers[which], CL_TRUE, CL_MAP_WRITE,
                                                            begin * 4, size * 4, waits, after, nullptr, &error));
                ASSERT_EQ(at, memory + base + begin);
                at[0] = value;
                ASSERT_EQ(clEnqueueUnmapMemObject(queues[device], buffers[which], at, 0, nullptr, done.out()),
                          CL_SUCCESS);
                change(base + begin, 1, [&](cl_int& number) { number = value; });
                break;
            }
            }
            if (previous)
                clReleaseEvent(previous);
            previous = std::exchange(*done.out(), nullptr);
        }
        clReleaseEvent(previous);
        finish();
        ASSERT_EQ(values(memory, small), model) << "seed " << seed;
        clSVMFree(context, memory);
    }
}

}  // namespace
}  // namespace polder::test
