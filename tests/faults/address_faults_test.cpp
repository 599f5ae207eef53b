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
    // Whether it has executed, on a device that has the address: a kernel that was enqueued may fail later, which its event reports.
    bool run_on(Answers& answers, size_t device, cl_int set) {
        const cl_int value = 1;
        const size_t items = ints;
        cl_event done = nullptr;
        return answers.note(set) && answers.note(clSetKernelArg(add, 1, sizeof value, &value)) &&
               answers.note(
                   clEnqueueNDRangeKernel(queues[device], add, 1, nullptr, &items, nullptr, 0, nullptr, &done)) &&
               has_executed(answers, device, done);
    }
    bool has_executed(Answers& answers, size_t device, cl_event done) {
        answers.note(clFinish(queues[device]));
        cl_int status = CL_QUEUED;
        answers.note(clGetEventInfo(done, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr));
        answers.note(clReleaseEvent(done));
        return answers.note(status);
    }
};

// The host maps the allocation, a kernel of the first device uses it by its address, and one of the last device through a buffer over its memory. Where
// every call has succeeded the bytes are right.
TEST_F(AddressFaults, SharedVirtualMemoryMappedUsedAndUnderABuffer) {
    sweep([&](Answers& answers) {
        auto* const memory = static_cast<cl_int*>(clSVMAlloc(context, CL_MEM_READ_WRITE, bytes, 0));
        if (!memory)
            return;  // the only way in which it reports a failure
        bool all = false;
        if (answers.note(clEnqueueSVMMap(queues[0], CL_TRUE, CL_MAP_WRITE_INVALIDATE_REGION, memory, bytes, 0, nullptr,
                                         nullptr))) {
            std::memcpy(memory, contents.data(), bytes);
            // An unmap that failed for lack of memory is tried again: the mapping must not stay.
            while (!answers.note(clEnqueueSVMUnmap(queues[0], memory, 0, nullptr, nullptr))) {
            }
            all = run_on(answers, 0, clSetKernelArgSVMPointer(add, 0, memory));
        }
        if (const cl_mem buffer = create(answers, CL_MEM_USE_HOST_PTR, memory)) {
            cl_event done = nullptr;
            all = run_kernel(answers, devices.size() - 1, buffer, 2, 0, nullptr, &done) &&
                  has_executed(answers, devices.size() - 1, done) && all;
            answers.note(clReleaseMemObject(buffer));
        }
        all = answers.note(clEnqueueSVMMemcpy(queues[0], CL_TRUE, seen.data(), memory, bytes, 0, nullptr, nullptr)) &&
              all;
        for (size_t i = 0; all && answers.count() == 0 && i < ints; ++i)
            all = seen[i] == contents[i] + 3;
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
        bool all = answers.note(copy(on, CL_TRUE, memory, contents.data(), bytes, 0, nullptr, nullptr));
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
        const cl_uint pattern = 5;
        answers.note(clEnqueueSVMMemFill(queues[0], memory, &pattern, sizeof pattern, bytes, 0, nullptr, nullptr));
        if (!answers.note(clEnqueueSVMFree(queues[0], 1, &memory, nullptr, nullptr, 0, nullptr, nullptr)))
            clSVMFree(context, memory);
        answers.note(clFinish(queues[0]));
    });
}

}  // namespace
}  // namespace polder::test
