// clMemBlockingFreeINTEL (cl_intel_unified_shared_memory): what it waits for, and what not.
#include "support/usm.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <utility>

namespace polder::test {
namespace {

TEST_F(Usm, BlockingFreeWaitsForCommandsThatAnEventHoldsBack) {
    for (size_t i = 0; i < devices.size(); ++i) {
        const OwnedQueue on = make_queue(devices[i]);
        cl_int* const memory = device_memory(i);
        const OwnedEvent gate = make_user_event();
        const OwnedKernel kernel = kernel_with("add", memory, 1);
        OwnedEvent done;
        const size_t items = count;
        ASSERT_EQ(clEnqueueNDRangeKernel(on, kernel, 1, nullptr, &items, nullptr, 1, gate.in(), done.out()),
                  CL_SUCCESS);
        std::thread opener([&] { EXPECT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS); });
        EXPECT_EQ(free_blocking(context, memory), CL_SUCCESS);
        cl_int status = CL_QUEUED;
        EXPECT_EQ(clGetEventInfo(done, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr), CL_SUCCESS);
        EXPECT_EQ(status, CL_COMPLETE);
        opener.join();
    }
}

// It waits for commands, not for objects: a command buffer or a buffer over the memory may still exist.
TEST_F(Usm, BlockingFreeReturnsWhileObjectsReferToTheMemory) {
    for (size_t i = 0; i < devices.size(); ++i) {
        const OwnedQueue on = make_queue(devices[i]);
        for (const bool is_released : {false, true}) {
            cl_int* const memory = device_memory(i);
            OwnedCommandBuffer commands = recorded(on, kernel_with("add", memory, 1));
            OwnedEvent done;
            ASSERT_EQ(enqueue_command_buffer(commands, done.out()), CL_SUCCESS);
            ASSERT_EQ(clWaitForEvents(1, done.in()), CL_SUCCESS);
            if (is_released)
                commands.reset();
            EXPECT_EQ(free_blocking(context, memory), CL_SUCCESS);
        }
    }
    cl_int error = CL_INVALID_VALUE;
    const OwnedContext alone = clCreateContext(nullptr, 1, devices.data(), nullptr, nullptr, &error);
    ASSERT_EQ(error, CL_SUCCESS);
    if (has_host_memory(0)) {
        void* const memory = host_alloc(alone, nullptr, bytes, 0, &error);
        ASSERT_EQ(error, CL_SUCCESS);
        const OwnedMem over = clCreateBuffer(alone, CL_MEM_USE_HOST_PTR, bytes, memory, &error);
        ASSERT_EQ(error, CL_SUCCESS);
        EXPECT_EQ(free_blocking(alone, memory), CL_SUCCESS);
    }
}

// One command of each kind that can use the memory is held back.
TEST_F(Usm, BlockingFreeWaitsForEveryKindOfCommandThatIsHeldBack) {
    for (size_t i = 0; i < devices.size(); ++i) {
        const OwnedQueue on = make_queue(devices[i]);
        std::vector<cl_int> values(count);
        const cl_int pattern = 3;
        using Enqueue = std::function<cl_int(cl_int * memory, const cl_event* gate, cl_event* done)>;
        OwnedCommandBuffer commands;
        const std::vector<std::pair<const char*, Enqueue>> kinds{
            {"copy from",
             [&](cl_int* memory, const cl_event* gate, cl_event* done) {
                 return copy(on, CL_FALSE, values.data(), memory, bytes, 1, gate, done);
             }},
            {"copy to",
             [&](cl_int* memory, const cl_event* gate, cl_event* done) {
                 return copy(on, CL_FALSE, memory, values.data(), bytes, 1, gate, done);
             }},
            {"copy within",
             [&](cl_int* memory, const cl_event* gate, cl_event* done) {
                 return copy(on, CL_FALSE, memory, memory + count / 2, bytes / 2, 1, gate, done);
             }},
            {"fill", [&](cl_int* memory, const cl_event* gate,
                         cl_event* done) { return fill(on, memory, &pattern, sizeof pattern, bytes, 1, gate, done); }},
            {"command buffer", [&](cl_int* memory, const cl_event* gate, cl_event* done) {
                 commands = recorded(on, kernel_with("add", memory, 1));
                 return functions().Enqueue(0, nullptr, commands, 1, gate, done);
             }}};
        for (const auto& [name, enqueue] : kinds) {
            cl_int* const memory = device_memory(i);
            const OwnedEvent gate = make_user_event();
            OwnedEvent done;
            ASSERT_EQ(enqueue(memory, gate.in(), done.out()), CL_SUCCESS) << name;
            std::atomic<bool> is_open{false};
            std::thread opener([&] {
                std::this_thread::sleep_for(std::chrono::milliseconds(50));  // a free that does not wait is faster
                is_open = true;
                EXPECT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
            });
            EXPECT_EQ(free_blocking(context, memory), CL_SUCCESS) << name;
            EXPECT_TRUE(is_open) << name;
            opener.join();
            EXPECT_EQ(clWaitForEvents(1, done.in()), CL_SUCCESS) << name;
        }
    }
}

}  // namespace
}  // namespace polder::test
