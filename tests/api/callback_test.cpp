// What an application's callbacks do: use the API, the calls that wait included, and release the last references. The
// specification leaves the waiting calls undefined there, but programs make them.
#include "support/fixture.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <string_view>
#include <thread>

namespace polder::test {
namespace {

constexpr const char* source = "kernel void put(global int* to, int value) { to[get_global_id(0)] = value; }";

// Waits until a callback has reached a step, or for a limit far beyond the time that it needs.
void wait_for(const std::atomic<bool>& reached) {
    for (int i = 0; i < 6000 && !reached; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_TRUE(reached);
}

// A piece of work for a callback, and whether it is done.
struct Work {
    std::function<void()> body;
    std::atomic<bool> is_done{false};

    void run() {
        body();
        is_done = true;
    }
    static void CL_CALLBACK of_event(cl_event, cl_int, void* work) { static_cast<Work*>(work)->run(); }
    static void CL_CALLBACK of_buffer(cl_mem, void* work) { static_cast<Work*>(work)->run(); }
    static void CL_CALLBACK of_context(cl_context, void* work) { static_cast<Work*>(work)->run(); }
    static void CL_CALLBACK of_program(cl_program, void* work) { static_cast<Work*>(work)->run(); }
    static void CL_CALLBACK of_error(const char*, const void*, size_t, void* work) { static_cast<Work*>(work)->run(); }
};

class Callbacks : public ContextTest {
protected:
    // Builds, launches, maps, waits and reads back, on every device.
    void use_everything(cl_int value) {
        const OwnedProgram program = build(source);
        const OwnedKernel kernel = make_kernel(program, "put");
        const OwnedMem buffer = make_buffer(64);
        for (const cl_device_id device : devices) {
            const OwnedQueue on = make_queue(device);
            const size_t size = 16;
            OwnedEvent launched;
            EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), buffer.in()), CL_SUCCESS);
            EXPECT_EQ(clSetKernelArg(kernel, 1, sizeof value, &value), CL_SUCCESS);
            EXPECT_EQ(clEnqueueNDRangeKernel(on, kernel, 1, nullptr, &size, nullptr, 0, nullptr, launched.out()),
                      CL_SUCCESS);
            EXPECT_EQ(clWaitForEvents(1, launched.in()), CL_SUCCESS);
            EXPECT_EQ(read<cl_int>(buffer, 16, on), std::vector<cl_int>(16, value));
            cl_int error = CL_INVALID_VALUE;
            void* const mapped =
                clEnqueueMapBuffer(on, buffer, CL_TRUE, CL_MAP_READ, 0, 64, 0, nullptr, nullptr, &error);
            EXPECT_EQ(error, CL_SUCCESS);
            EXPECT_EQ(clEnqueueUnmapMemObject(on, buffer, mapped, 0, nullptr, nullptr), CL_SUCCESS);
            EXPECT_EQ(clFinish(on), CL_SUCCESS);
        }
    }
};

TEST_F(Callbacks, OfEventsMayUseEverything_TheirOwnQueueIncluded) {
    for (const cl_device_id device : devices) {
        const OwnedQueue on = make_queue(device);
        const OwnedMem buffer = make_buffer(64);
        const cl_int one = 1, two = 2;
        OwnedEvent first;
        ASSERT_EQ(clEnqueueFillBuffer(on, buffer, &one, 4, 0, 64, 0, nullptr, first.out()), CL_SUCCESS);
        Work work{[&] {
            use_everything(3);
            EXPECT_EQ(clEnqueueFillBuffer(on, buffer, &two, 4, 0, 64, 0, nullptr, nullptr), CL_SUCCESS);
            EXPECT_EQ(clFinish(on), CL_SUCCESS);
            EXPECT_EQ(read<cl_int>(buffer, 1, on)[0], 2);
        }};
        ASSERT_EQ(clSetEventCallback(first, CL_COMPLETE, Work::of_event, &work), CL_SUCCESS);
        ASSERT_EQ(clFlush(on), CL_SUCCESS);
        wait_for(work.is_done);
    }
}

TEST_F(Callbacks, OfUserEventsAndSubmissionsMayWaitForWhatTheyHeldBack) {
    const OwnedMem buffer = make_buffer(64);
    const OwnedEvent gate = make_user_event();
    const cl_int one = 1;
    OwnedEvent filled;
    ASSERT_EQ(clEnqueueFillBuffer(queue, buffer, &one, 4, 0, 64, 1, gate.in(), filled.out()), CL_SUCCESS);
    Work submitted{[&] { EXPECT_EQ(clFinish(queue), CL_SUCCESS); }};
    ASSERT_EQ(clSetEventCallback(filled, CL_SUBMITTED, Work::of_event, &submitted), CL_SUCCESS);
    ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
    wait_for(submitted.is_done);
    EXPECT_EQ(read<cl_int>(buffer, 1)[0], 1);
}

TEST_F(Callbacks, OfEventsMayReleaseTheLastReferenceOfEverything) {
    for (const cl_device_id device : devices) {
        cl_int error = CL_INVALID_VALUE;
        const cl_context own = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &error);
        ASSERT_EQ(error, CL_SUCCESS);
        const cl_command_queue on = clCreateCommandQueueWithProperties(own, device, nullptr, &error);
        const cl_mem buffer = clCreateBuffer(own, CL_MEM_READ_WRITE, 1 << 20, nullptr, &error);
        Work gone{[] {}};
        ASSERT_EQ(clSetContextDestructorCallback(own, Work::of_context, &gone), CL_SUCCESS);
        const cl_int one = 1;
        cl_event filled = nullptr;
        ASSERT_EQ(clEnqueueFillBuffer(on, buffer, &one, 4, 0, 1 << 20, 0, nullptr, &filled), CL_SUCCESS);
        Work work{[&] {
            EXPECT_EQ(clReleaseContext(own), CL_SUCCESS);
            EXPECT_EQ(clReleaseMemObject(buffer), CL_SUCCESS);
            EXPECT_EQ(clReleaseCommandQueue(on), CL_SUCCESS);
            EXPECT_EQ(clReleaseEvent(filled), CL_SUCCESS);
        }};
        ASSERT_EQ(clSetEventCallback(filled, CL_COMPLETE, Work::of_event, &work), CL_SUCCESS);
        // From here on, objects that the callback releases must not be used: it may already have run.
        wait_for(work.is_done);
        wait_for(gone.is_done);
    }
}

TEST_F(Callbacks, OfBuffersAndContextsThatGoMayUseOthers) {
    cl_int error = CL_INVALID_VALUE;
    cl_context own = clCreateContext(nullptr, 1, devices.data(), nullptr, nullptr, &error);
    ASSERT_EQ(error, CL_SUCCESS);
    Work context_work{[&] { use_everything(4); }};
    ASSERT_EQ(clSetContextDestructorCallback(own, Work::of_context, &context_work), CL_SUCCESS);
    const cl_mem buffer = clCreateBuffer(own, CL_MEM_READ_WRITE, 64, nullptr, &error);
    Work buffer_work{[&] {
        use_everything(5);
        EXPECT_EQ(clReleaseContext(own), CL_SUCCESS);
    }};
    ASSERT_EQ(clSetMemObjectDestructorCallback(buffer, Work::of_buffer, &buffer_work), CL_SUCCESS);
    ASSERT_EQ(clReleaseMemObject(buffer), CL_SUCCESS);
    wait_for(buffer_work.is_done);
    wait_for(context_work.is_done);
}

TEST_F(Callbacks, OfBuildsMayBuildAndReleaseWhatWasBuilt) {
    cl_int error = CL_INVALID_VALUE;
    const char* text = source;
    const cl_program program = clCreateProgramWithSource(context, 1, &text, nullptr, &error);
    ASSERT_EQ(error, CL_SUCCESS);
    Work work{[&] {
        EXPECT_EQ(clReleaseKernel(clCreateKernel(program, "put", &error)), CL_SUCCESS);
        use_everything(6);
        EXPECT_EQ(clBuildProgram(program, 0, nullptr, "", nullptr, nullptr), CL_SUCCESS);
        EXPECT_EQ(clReleaseProgram(program), CL_SUCCESS);
    }};
    ASSERT_EQ(clBuildProgram(program, 0, nullptr, "", Work::of_program, &work), CL_SUCCESS);
    wait_for(work.is_done);
}

TEST_F(Callbacks, OfErrorsSayWhichArgumentWasReleased) {
    std::string reported;
    cl_int error = CL_SUCCESS;
    const auto notify = [](const char* text, const void*, size_t, void* user) {
        static_cast<std::string*>(user)->append(text);
    };
    context = clCreateContext(nullptr, 1, devices.data(), notify, &reported, &error);
    ASSERT_EQ(error, CL_SUCCESS);
    queue = make_queue(devices[0]);
    const OwnedProgram program = build("kernel void copy(global const int* from, global int* to) { *to = *from; }");
    const OwnedKernel kernel = make_kernel(program, "copy");
    const OwnedMem stays = make_buffer(4);
    EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), stays.in()), CL_SUCCESS);
    {
        const OwnedMem gone = make_buffer(4);
        EXPECT_EQ(clSetKernelArg(kernel, 1, sizeof(cl_mem), gone.in()), CL_SUCCESS);
    }
    testing::internal::CaptureStderr();
    constexpr size_t one = 1;
    EXPECT_EQ(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &one, nullptr, 0, nullptr, nullptr),
              CL_INVALID_KERNEL_ARGS);
    const std::string printed = testing::internal::GetCapturedStderr();
    EXPECT_NE(reported.find("kernel copy: the buffer of argument 1 "), std::string::npos) << reported;
    // The return code and the callback inform the program. Only POCL_DEBUG asks for messages on stderr.
    const char* const debug = std::getenv("POCL_DEBUG");
    if (!debug) {
        EXPECT_EQ(printed, "");
    } else if (std::string_view(debug) == "api") {
        EXPECT_NE(printed.find("clEnqueueNDRangeKernel: -52: kernel copy: the buffer of argument 1 "),
                  std::string::npos)
            << printed;
    }
}

TEST_F(Callbacks, OfErrorsMayUseTheContextThatReportsThem) {
    Work work{[&] { use_everything(7); }};
    cl_int error = CL_INVALID_VALUE;
    queue.reset();
    context =
        clCreateContext(nullptr, static_cast<cl_uint>(devices.size()), devices.data(), Work::of_error, &work, &error);
    ASSERT_EQ(error, CL_SUCCESS);
    queue = make_queue(devices[0]);
    const OwnedProgram program = build(source);
    const OwnedKernel kernel = make_kernel(program, "put");
    const cl_int value = 1;
    {
        const OwnedMem gone = make_buffer(64);
        ASSERT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), gone.in()), CL_SUCCESS);
    }
    ASSERT_EQ(clSetKernelArg(kernel, 1, sizeof value, &value), CL_SUCCESS);
    const size_t one = 1;
    EXPECT_EQ(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &one, nullptr, 0, nullptr, nullptr),
              CL_INVALID_KERNEL_ARGS);
    wait_for(work.is_done);
}

} // namespace
} // namespace polder::test
