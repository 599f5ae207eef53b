// A device that computes in host memory, coherently: its buffers and the host's are one block, in every order of first use.
#include "unified_memory_fixture.h"

#include <algorithm>
#include <array>
#include <functional>

namespace polder::test {
namespace {

class Linked : public UnifiedMemoryTest {
protected:
    cl_memory_space_polder host_memory() {
        const auto function = reinterpret_cast<clGetMemorySpacesPOLDER_fn>(
            clGetExtensionFunctionAddressForPlatform(platform(), "clGetMemorySpacesPOLDER"));
        std::vector<cl_memory_space_polder> all(3);
        EXPECT_EQ(function(context, 3, all.data(), nullptr), CL_SUCCESS);
        return all[0];
    }
};

TEST_F(Linked, OneBlockAndNoBytes) {
    for (const size_t first : {host, shared}) {
        const cl_uint blocks = host_memory().live_blocks;
        const OwnedMem buffer = make_buffer(bytes);
        const cl_int zero = 0;
        ASSERT_EQ(clEnqueueFillBuffer(queues_[first], buffer, &zero, 4, 0, bytes, 0, nullptr, nullptr), CL_SUCCESS);
        ASSERT_EQ(clFinish(queues_[first]), CL_SUCCESS);
        add(shared, buffer, 1);
        add(host, buffer, 2);
        add(shared, buffer, 4);
        auto* const mapped = static_cast<cl_int*>(map(shared, buffer, CL_MAP_READ | CL_MAP_WRITE));
        EXPECT_EQ(mapped[count - 1], 7);
        mapped[0] = 100;
        unmap(shared, buffer, mapped);
        add(shared, buffer, 1);
        void* const again = map(host, buffer, CL_MAP_READ);
        EXPECT_EQ(static_cast<cl_int*>(again)[0], 101);
        EXPECT_EQ(again, mapped);
        unmap(host, buffer, again);
        EXPECT_TRUE(transfers().empty());
        EXPECT_EQ(host_memory().live_blocks, blocks + 1);
    }
}

TEST_F(Linked, TheApplicationsMemoryIsUsedInPlace) {
    std::vector<cl_int> memory(count + 64, 5);
    auto* const mine = reinterpret_cast<cl_int*>((reinterpret_cast<uintptr_t>(memory.data()) + 127) & ~uintptr_t{127});
    const cl_uint blocks = host_memory().live_blocks;
    const OwnedMem buffer = make_buffer(bytes, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, mine);
    add(shared, buffer, 1);
    EXPECT_EQ(map(shared, buffer, CL_MAP_READ), mine);
    EXPECT_EQ(mine[17], 6);
    unmap(shared, buffer, mine);
    EXPECT_TRUE(transfers().empty());
    EXPECT_EQ(host_memory().live_blocks, blocks);
}

TEST_F(Linked, ToADeviceWithAMemoryOfItsOwnThereIsOneCopy) {
    const OwnedMem buffer = make_buffer(bytes);
    const cl_int zero = 0;
    ASSERT_EQ(clEnqueueFillBuffer(queues_[shared], buffer, &zero, 4, 0, bytes, 0, nullptr, nullptr), CL_SUCCESS);
    add(shared, buffer, 1);
    add(separate, buffer, 2);
    ASSERT_EQ(transfers().size(), 1u);
    EXPECT_EQ(transfers()[0].from_space, 0u);
    EXPECT_EQ(transfers()[0].moved_bytes, bytes);
    add(shared, buffer, 4);
    ASSERT_EQ(transfers().size(), 2u);
    EXPECT_EQ(transfers()[1].to_space, 0u);
    EXPECT_EQ(transfers()[1].moved_bytes, bytes);
    EXPECT_EQ(read<cl_int>(buffer, count, queues_[shared]), std::vector<cl_int>(count, 7));
}

// Fine-grained memory, through the pointer and through a buffer over it, with no map: on the host, the processor and the device in every order. A context that
// also has the device with a memory of its own gets none.
TEST_F(Linked, FineGrainedMemoryIsTheSameBytesThroughPointersAndBuffers) {
    ASSERT_EQ(clSVMAlloc(context, CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER, bytes, 0), nullptr);
    queues_.clear();
    devices.pop_back();
    cl_int error = CL_INVALID_VALUE;
    context = clCreateContext(nullptr, 2, devices.data(), nullptr, nullptr, &error);
    ASSERT_EQ(error, CL_SUCCESS);
    for (const cl_device_id device : devices)
        queues_.push_back(make_queue(device));
    program_ = build("kernel void add(global int* data, int value) { data[get_global_id(0)] += value; }");
    const OwnedKernel by_pointer = make_kernel(program_, "add");
    auto* const memory =
        static_cast<cl_int*>(clSVMAlloc(context, CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER, bytes, 0));
    ASSERT_NE(memory, nullptr);
    {
        const OwnedMem buffer = make_buffer(bytes, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, memory);
        using Step = std::function<void()>;
        const auto pointer_on = [&](size_t device) {
            const cl_int one = 1;
            ASSERT_EQ(clSetKernelArgSVMPointer(by_pointer, 0, memory), CL_SUCCESS);
            ASSERT_EQ(clSetKernelArg(by_pointer, 1, sizeof one, &one), CL_SUCCESS);
            ASSERT_EQ(
                clEnqueueNDRangeKernel(queues_[device], by_pointer, 1, nullptr, &count, nullptr, 0, nullptr, nullptr),
                CL_SUCCESS);
            ASSERT_EQ(clFinish(queues_[device]), CL_SUCCESS);
        };
        const std::array<Step, 5> steps{[&] { std::for_each_n(memory, count, [](cl_int& each) { ++each; }); },
                                        [&] { add(host, buffer, 1); }, [&] { add(shared, buffer, 1); },
                                        [&] { pointer_on(host); }, [&] { pointer_on(shared); }};
        std::fill_n(memory, count, 0);
        cl_int expected = 0;
        for (const Step& first : steps)
            for (const Step& next : steps) {
                first();
                next();
                expected += 2;
                ASSERT_EQ(std::count(memory, memory + count, expected), static_cast<ptrdiff_t>(count));
                ASSERT_EQ(read<cl_int>(buffer, count, queues_[shared]), std::vector<cl_int>(count, expected));
            }
        EXPECT_TRUE(transfers().empty());
    }
    clSVMFree(context, memory);
}

}  // namespace
}  // namespace polder::test
