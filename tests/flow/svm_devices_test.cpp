// Shared virtual memory that every device with SVM uses by its address, and the others through buffers.
#include "support/svm_flow.h"

#include <functional>
#include <random>

namespace polder::test {
namespace {

// A list whose nodes point to each other: every device with SVM follows the pointers, which the host has written, and changes what they
// point to. A device without SVM changes the numbers through a buffer in between.
TEST_F(SvmFlow, EveryDeviceWithSvmFollowsPointersThatTheHostStored) {
    struct Node {
        Node* next;
        cl_int value, sum;
    };
    const OwnedProgram walking = build(R"(
        typedef struct node { global struct node* next; int value, sum; } node;
        kernel void walk(global node* first, int step) {
            int sum = 0;
            for (global node* n = first; n; n = n->next) { sum += n->value; n->value += step; n->sum = sum; }
        })");
    constexpr size_t nodes = 40;
    // Each node is an allocation of its own; large ones between them.
    std::vector<Node*> list;
    std::vector<cl_int*> others;
    for (size_t i = 0; i < nodes; ++i) {
        list.push_back(reinterpret_cast<Node*>(allocate(sizeof(Node))));
        others.push_back(allocate(i % 8 == 0 ? size_t{5} << 20 : 100 * (i + 1)));
        ASSERT_NE(list.back(), nullptr);
    }
    for (size_t i = 0; i < nodes; ++i) {
        map(CL_MAP_WRITE_INVALIDATE_REGION, reinterpret_cast<cl_int*>(list[i]), sizeof(Node));
        *list[i] = {i + 1 < nodes ? list[i + 1] : nullptr, static_cast<cl_int>(i), -1};
        unmap(reinterpret_cast<cl_int*>(list[i]));
    }
    finish();
    moved();
    const OwnedKernel walk = make_kernel(walking, "walk");
    ASSERT_EQ(clSetKernelExecInfo(walk, CL_KERNEL_EXEC_INFO_SVM_PTRS, nodes * sizeof(void*), list.data()), CL_SUCCESS);
    cl_int added = 0;
    for (const size_t device : {host, first, second, first, host, second}) {
        if (!has_svm(device))
            continue;
        const cl_int step = static_cast<cl_int>(device) + 1;
        ASSERT_EQ(clSetKernelArgSVMPointer(walk, 0, list[0]), CL_SUCCESS);
        ASSERT_EQ(clSetKernelArg(walk, 1, sizeof step, &step), CL_SUCCESS);
        const size_t one = 1;
        ASSERT_EQ(clEnqueueNDRangeKernel(queues[device], walk, 1, nullptr, &one, nullptr, 0, nullptr, nullptr),
                  CL_SUCCESS);
        finish();
        cl_int sum = 0;
        for (size_t i = 0; i < nodes; ++i) {
            sum += static_cast<cl_int>(i) + added;
            map(CL_MAP_READ, reinterpret_cast<cl_int*>(list[i]), sizeof(Node));
            EXPECT_EQ(list[i]->value, static_cast<cl_int>(i) + added + step) << "device " << device << ", node " << i;
            EXPECT_EQ(list[i]->sum, sum) << "device " << device << ", node " << i;
            unmap(reinterpret_cast<cl_int*>(list[i]));
        }
        added += step;
    }
    EXPECT_EQ(moved(), 0U);
    for (size_t i = 0; i < nodes; ++i) {
        clSVMFree(context, list[i]);
        clSVMFree(context, others[i]);
    }
}

// Copies between an allocation and ordinary buffers that are newest on either device, by either device.
TEST_F(SvmFlow, AllocationsAreCopiedToAndFromBuffersByEveryDevice) {
    for (size_t device = 0; device < 3; ++device) {
        const OwnedMem over = make_buffer(bytes, CL_MEM_USE_HOST_PTR, svm), other = make_buffer(bytes);
        for (size_t holder = 0; holder < 3; ++holder) {
            set(svm, numbers(count));
            run(holder, "add", count, {}, mem(over), cl_int{1});
            finish();
            ASSERT_EQ(clEnqueueCopyBuffer(queues[device], over, other, 0, 64, bytes - 64, 0, nullptr, nullptr),
                      CL_SUCCESS);
            finish();
            run(holder, "add", count, {}, mem(other), cl_int{1});
            finish();
            ASSERT_EQ(clEnqueueCopyBuffer(queues[device], other, over, 64, 0, bytes - 64, 0, nullptr, nullptr),
                      CL_SUCCESS);
            finish();
            const std::vector<cl_int> seen = values(svm);
            for (size_t i = 0; i < count; ++i)
                ASSERT_EQ(seen[i], static_cast<cl_int>(i) + (i < count - 16 ? 3 : 2))
                    << device << " " << holder << " " << i;
            ASSERT_EQ(clEnqueueFillBuffer(queues[device], over, "abc", 1, 8, 16, 0, nullptr, nullptr), CL_SUCCESS);
            const cl_int rows[4] = {1, 2, 3, 4};
            const size_t origin[3] = {0, 0, 0}, region[3] = {8, 2, 1};
            ASSERT_EQ(clEnqueueWriteBufferRect(queues[device], over, CL_TRUE, origin, origin, region, 64, 0, 8, 0,
                                               static_cast<const void*>(rows), 0, nullptr, nullptr),
                      CL_SUCCESS);
            finish();
            const std::vector<cl_int> after = values(svm, 20);
            EXPECT_EQ((std::vector<cl_int>{after[0], after[1], after[16], after[17]}),
                      (std::vector<cl_int>{1, 2, 3, 4}));
            EXPECT_EQ(after[2], 0x61616161);
            EXPECT_EQ(after[6], 9);
        }
    }
}

// Memory that is freed under a kernel of a GPU, and later allocations at the same places.
TEST_F(SvmFlow, AllocationsComeAndGoUnderKernelsOfEveryDevice) {
    for (size_t device = 0; device < 3; ++device) {
        if (!has_svm(device))
            continue;
        for (cl_int round = 0; round < 30; ++round) {
            cl_int* const from = allocate();
            cl_int* const to = allocate(sizeof(cl_int));
            ASSERT_EQ(clEnqueueSVMMemFill(queues[device], from, &round, sizeof round, bytes, 0, nullptr, nullptr),
                      CL_SUCCESS);
            const OwnedKernel sum = make_kernel(program, "add_sum");
            const cl_int number = 64;
            ASSERT_EQ(clSetKernelArgSVMPointer(sum, 0, from), CL_SUCCESS);
            ASSERT_EQ(clSetKernelArgSVMPointer(sum, 1, to), CL_SUCCESS);
            ASSERT_EQ(clSetKernelArg(sum, 2, sizeof number, &number), CL_SUCCESS);
            const size_t one = 1;
            ASSERT_EQ(clEnqueueNDRangeKernel(queues[device], sum, 1, nullptr, &one, nullptr, 0, nullptr, nullptr),
                      CL_SUCCESS);
            clSVMFree(context, from);
            cl_int result = -1;
            ASSERT_EQ(clEnqueueSVMMemcpy(queues[device], CL_TRUE, &result, to, sizeof result, 0, nullptr, nullptr),
                      CL_SUCCESS);
            EXPECT_EQ(result, 64 * round);
            clSVMFree(context, to);
        }
    }
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
            // Any device that has SVM executes the commands on pointers.
            const OwnedQueue& svm_queue = queues[has_svm(device) ? device : host];
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
                const bool by_pointer = has_svm(device) && below(2) == 0;
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
                ASSERT_EQ(clEnqueueSVMMemFill(svm_queue, memory + base + begin, &value, 4, size * 4, waits, after,
                                              done.out()),
                          CL_SUCCESS);
                change(base + begin, size, [&](cl_int& number) { number = value; });
                break;
            case 3: {
                const std::vector<cl_int> written(size, value);
                if (below(2)) {
                    ASSERT_EQ(clEnqueueSVMMemcpy(svm_queue, CL_TRUE, memory + base + begin, written.data(), size * 4,
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
                    ASSERT_EQ(clEnqueueSVMMemcpy(svm_queue, CL_TRUE, seen.data(), memory + base + begin, size * 4,
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
                ASSERT_EQ(clEnqueueSVMMap(svm_queue, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, at, size * 4, waits, after,
                                          nullptr),
                          CL_SUCCESS);
                ASSERT_TRUE(std::equal(at, at + size, model.begin() + static_cast<std::ptrdiff_t>(base + begin)))
                    << "seed " << seed << ", step " << step;
                std::fill_n(at, size, value);
                ASSERT_EQ(clEnqueueSVMUnmap(svm_queue, at, 0, nullptr, done.out()), CL_SUCCESS);
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
