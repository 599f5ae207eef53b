// Memory that is known by its address, without host memory: shared virtual memory with kernels, maps and buffers over it, and unified shared memory.
#include "fault_sweep.h"

#include <CL/cl_ext.h>

namespace polder::test {
namespace {

class AddressFaults : public Faults {
protected:
    void SetUp() override {
        Faults::SetUp();
        if (foreign->are_there())
            GTEST_SKIP() << "another implementation has its own addresses";
    }
    template <class Function>
    static Function find(const char* name) {
        return reinterpret_cast<Function>(clGetExtensionFunctionAddressForPlatform(platform(), name));
    }
    bool run_on(Answers& answers, size_t device, cl_int set) {
        const cl_int value = 1;
        const size_t items = ints;
        return answers.note(set) && answers.note(clSetKernelArg(add, 1, sizeof value, &value)) &&
               answers.note(clEnqueueNDRangeKernel(queues[device], add, 1, nullptr, &items, nullptr, 0, nullptr, nullptr));
    }
};

// The last device's kernel uses the allocation, the host maps it, and a buffer over its memory is filled by the first device. Where every call has
// succeeded the bytes are right.
TEST_F(AddressFaults, SharedVirtualMemoryMappedUsedAndUnderABuffer) {
    sweep([&](Answers& answers) {
        auto* const memory = static_cast<cl_int*>(clSVMAlloc(context, CL_MEM_READ_WRITE, bytes, 0));
        if (!memory)
            return;  // the only way in which it reports a failure
        bool all = false;
        if (answers.note(clEnqueueSVMMap(queues[0], CL_TRUE, CL_MAP_WRITE_INVALIDATE_REGION, memory, bytes, 0, nullptr, nullptr))) {
            std::memcpy(memory, contents.data(), bytes);
            // An unmap that failed for lack of memory is tried again: the mapping must not stay.
            while (!answers.note(clEnqueueSVMUnmap(queues[0], memory, 0, nullptr, nullptr))) {
            }
            answers.note(clFinish(queues[0]));
            all = run_on(answers, devices.size() - 1, clSetKernelArgSVMPointer(add, 0, memory));
            answers.note(clFinish(queues.back()));
        }
        const cl_int pattern = 5;
        if (const cl_mem buffer = create(answers, CL_MEM_USE_HOST_PTR, memory)) {
            all = answers.note(clEnqueueFillBuffer(queues[0], buffer, &pattern, sizeof pattern, 0, bytes / 2, 0, nullptr, nullptr)) && all;
            answers.note(clFinish(queues[0]));
            answers.note(clReleaseMemObject(buffer));
        }
        all = answers.note(clEnqueueSVMMemcpy(queues[0], CL_TRUE, seen.data(), memory, bytes, 0, nullptr, nullptr)) && all;
        for (size_t i = 0; all && answers.count() == 0 && i < ints; ++i)
            all = seen[i] == (i < ints / 2 ? pattern : contents[i] + 1);
        EXPECT_TRUE(all || answers.count() != 0);
        clSVMFree(context, memory);
    });
}

TEST_F(AddressFaults, UnifiedSharedMemoryOfADevice) {
    const auto allocate = find<clDeviceMemAllocINTEL_fn>("clDeviceMemAllocINTEL");
    const auto free_memory = find<clMemFreeINTEL_fn>("clMemFreeINTEL");
    const auto set_pointer = find<clSetKernelArgMemPointerINTEL_fn>("clSetKernelArgMemPointerINTEL");
    const auto copy = find<clEnqueueMemcpyINTEL_fn>("clEnqueueMemcpyINTEL");
    ASSERT_TRUE(allocate && free_memory && set_pointer && copy);
    sweep([&](Answers& answers) {
        cl_int error = CL_SUCCESS;
        void* const memory = allocate(context, devices.back(), nullptr, bytes, 0, &error);
        if (!answers.note(error))
            return;
        const cl_command_queue on = queues.back();
        bool all = answers.note(copy(on, CL_FALSE, memory, contents.data(), bytes, 0, nullptr, nullptr));
        all = run_on(answers, devices.size() - 1, set_pointer(add, 0, memory)) && all;
        all = answers.note(copy(on, CL_TRUE, seen.data(), memory, bytes, 0, nullptr, nullptr)) && all;
        for (size_t i = 0; all && answers.count() == 0 && i < ints; ++i)
            all = seen[i] == contents[i] + 1;
        EXPECT_TRUE(all || answers.count() != 0);
        answers.note(clFinish(on));
        answers.note(free_memory(context, memory));
    });
}

// What works before a failure works after it, also when the free itself has to wait for commands.
TEST_F(AddressFaults, FreedBehindCommands) {
    sweep([&](Answers& answers) {
        void* memory = clSVMAlloc(context, CL_MEM_READ_WRITE, bytes, 0);
        if (!memory)
            return;
        run_on(answers, devices.size() - 1, clSetKernelArgSVMPointer(add, 0, memory));
        if (!answers.note(clEnqueueSVMFree(queues.back(), 1, &memory, nullptr, nullptr, 0, nullptr, nullptr)))
            clSVMFree(context, memory);
        answers.note(clFinish(queues.back()));
    });
}

}  // namespace
}  // namespace polder::test
