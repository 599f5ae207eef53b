// Processes that use OpenCL and fork. The child ends by itself, and either computes or gets an error: devices behind another library (CUDA, another
// OpenCL) are lost in the child.
#include "support/fixture.h"
#include "support/native_kernels.h"

#include <array>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

// For the leak sanitizer: a child ends with what its parent made, which it does not release.
extern "C" int __lsan_is_turned_off() { return 1; }  // NOLINT(bugprone-reserved-identifier)

namespace polder::test {
namespace {

class Forks : public ContextTest {
protected:
    void SetUp() override { set_up_with("kernel void doubled(global int* values) { values[get_global_id(0)] *= 2; }"); }
    void set_up_with(const char* source) {
        ContextTest::SetUp();
        program = build(source);
        buffer = make_buffer(count * sizeof(cl_int));
    }

    // Many work-groups, so that workers are woken. Returns the sum of the results, or -1 for an OpenCL error.
    static cl_int compute(cl_command_queue on, cl_program doubling, cl_mem values, size_t size = count) {
        cl_int error = CL_SUCCESS;
        const OwnedKernel kernel = clCreateKernel(doubling, "doubled", &error);
        const cl_int ones = 1;
        if (error || clSetKernelArg(kernel, 0, sizeof values, &values) ||
            clEnqueueFillBuffer(on, values, &ones, sizeof ones, 0, size * sizeof ones, 0, nullptr, nullptr) ||
            clEnqueueNDRangeKernel(on, kernel, 1, nullptr, &size, nullptr, 0, nullptr, nullptr))
            return -1;
        std::vector<cl_int> got(size);
        if (clEnqueueReadBuffer(on, values, CL_TRUE, 0, size * sizeof ones, got.data(), 0, nullptr, nullptr))
            return -1;
        cl_int sum = 0;
        for (const cl_int value : got)
            sum += value;
        return sum;
    }

    // Devices whose memory and threads Polder makes itself: the processor and the simulated ones.
    [[nodiscard]] static bool is_there_in_child(cl_device_id device) {
        std::array<char, 256> name{};
        EXPECT_EQ(clGetDeviceInfo(device, CL_DEVICE_NAME, name.size(), name.data(), nullptr), CL_SUCCESS);
        return executes_native_kernels(device) || std::string_view{name.data()}.starts_with("discrete");
    }
    // Whether the sum that a child computed is right, or an error when the child has lost the device.
    [[nodiscard]] static bool is_right_in_child(cl_device_id device, cl_int sum, cl_int right) {
        return sum == (is_there_in_child(device) ? right : -1);
    }

    // Ends the process as any program does, static destructors included.
    template <class Body>
    static int exit_status_of_child(Body body) {
        const pid_t child = fork();
        if (child == 0) {
            alarm(60);  // a child that hangs is killed
            std::exit(body());
        }
        int status = 0;
        EXPECT_EQ(waitpid(child, &status, 0), child);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    }

    static constexpr size_t count = 1 << 18;
    static constexpr cl_int expected = 2 * static_cast<cl_int>(count);
    OwnedProgram program;
    OwnedMem buffer;
};

TEST_F(Forks, AChildThatUsesNoOpenClEnds) {
    for (cl_device_id device : devices)
        EXPECT_EQ(compute(make_queue(device), program, buffer), expected);
    EXPECT_EQ(exit_status_of_child([] { return 7; }), 7);
}

TEST_F(Forks, AChildComputesWithWhatItsParentMade) {
    std::vector<OwnedQueue> queues;
    for (cl_device_id device : devices) {
        queues.push_back(make_queue(device));
        EXPECT_EQ(compute(queues.back(), program, buffer), expected);
    }
    EXPECT_EQ(exit_status_of_child([&] {
                  for (size_t i = 0; i < queues.size(); ++i)
                      if (!is_right_in_child(devices[i], compute(queues[i], program, buffer), expected))
                          return 1;
                  return 7;
              }),
              7);
    EXPECT_EQ(compute(queue, program, buffer), expected) << "the parent goes on";
}

TEST_F(Forks, AChildComputesWithAContextOfItsOwn) {
    for (cl_device_id device : devices)
        EXPECT_EQ(compute(make_queue(device), program, buffer), expected);
    EXPECT_EQ(exit_status_of_child([&] {
                  set_up_with("kernel void doubled(global int* v) { v[get_global_id(0)] *= 2; /* anew */ }");
                  for (cl_device_id device : devices)
                      if (!is_right_in_child(device, compute(make_queue(device), program, buffer), expected))
                          return 1;
                  return 7;
              }),
              7);
}

TEST_F(Forks, AChildsCallbacksRun) {
    if (!is_there_in_child(devices[0]))
        GTEST_SKIP() << "the first device is lost in a child";
    EXPECT_EQ(compute(queue, program, buffer), expected);
    EXPECT_EQ(exit_status_of_child([&] {
                  static std::atomic<bool> was_called{false};
                  OwnedEvent event;
                  const OwnedEvent gate = make_user_event();
                  if (clEnqueueMarkerWithWaitList(queue, 1, gate.in(), event.out()) ||
                      clSetEventCallback(
                          event, CL_COMPLETE, [](cl_event, cl_int, void*) { was_called = true; }, nullptr) ||
                      clSetUserEventStatus(gate, CL_COMPLETE) || clFinish(queue))
                      return 1;
                  while (!was_called)
                      std::this_thread::sleep_for(std::chrono::milliseconds(1));
                  return 7;
              }),
              7);
}

// Blocks a worker until the test releases it.
struct Gate {
    std::atomic<bool> has_begun{false};
    std::atomic<bool> may_end{false};
    static void CL_CALLBACK pass(void* argument) {
        Gate& gate = **static_cast<Gate**>(argument);
        gate.has_begun = true;
        while (!gate.may_end)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
};

TEST_F(Forks, AChildOfAProcessWithWorkInFlightGetsErrors) {
    if (!executes_native_kernels(devices[0]))
        GTEST_SKIP() << "the first device has no native kernels";
    Gate gate;
    Gate* argument = &gate;
    ASSERT_EQ(
        clEnqueueNativeKernel(queue, Gate::pass, &argument, sizeof argument, 0, nullptr, nullptr, 0, nullptr, nullptr),
        CL_SUCCESS);
    EXPECT_EQ(clFlush(queue), CL_SUCCESS);
    while (!gate.has_begun)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(exit_status_of_child([&] {
                  cl_int error = CL_SUCCESS;
                  const cl_mem refused = clCreateBuffer(context, CL_MEM_READ_WRITE, 4, nullptr, &error);
                  return clFinish(queue) == CL_OUT_OF_RESOURCES && !refused && error == CL_OUT_OF_RESOURCES ? 7 : 1;
              }),
              7);
    gate.may_end = true;
    EXPECT_EQ(clFinish(queue), CL_SUCCESS);
    EXPECT_EQ(compute(queue, program, buffer), expected);
}

TEST_F(Forks, AChildOfAProcessWithAThreadThatWaitsGetsErrors) {
    const OwnedEvent gate = make_user_event();
    std::atomic<bool> waits{false};
    std::thread waiter([&] {
        waits = true;
        EXPECT_EQ(clWaitForEvents(1, gate.in()), CL_SUCCESS);
    });
    while (!waits)
        std::this_thread::yield();
    std::this_thread::sleep_for(
        std::chrono::milliseconds(1));  // the thread is inside by now; if it is not, the child's result is the same
    const int status = exit_status_of_child([&] {
        const cl_int set = clSetUserEventStatus(gate, CL_COMPLETE);
        return set == CL_OUT_OF_RESOURCES ? 7 : set == CL_SUCCESS ? 8 : 1;
    });
    EXPECT_TRUE(status == 7 || status == 8) << status;
    EXPECT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
    waiter.join();
}

// What several threads do again and again until it goes out of scope.
class Hammer {
public:
    template <class... Strokes>
    explicit Hammer(const Strokes&... strokes) {
        (threads_.emplace_back([this, strokes] {
            while (!is_over_)
                strokes();
        }),
         ...);
    }
    ~Hammer() {
        is_over_ = true;
        for (std::thread& thread : threads_)
            thread.join();
    }

private:
    std::atomic<bool> is_over_{false};
    std::vector<std::thread> threads_;
};

TEST_F(Forks, AChildOfAProcessWhoseThreadsAreInsideNeverHangs) {
    const OwnedQueue second = make_queue(devices.back());
    const auto launch_on = [&](cl_command_queue on, cl_mem values) {
        return [&, on, values] { EXPECT_EQ(compute(on, program, values, 1 << 10), 2 << 10); };
    };
    const auto build_anew = [&, number = std::make_shared<int>(0)] {
        const std::string text = "kernel void k(global int* v) { v[0] = " + std::to_string(++*number) + "; }";
        EXPECT_NE(build(text), nullptr);
    };
    const auto create = [&] { EXPECT_NE(make_buffer(4096), nullptr); };
    const OwnedMem other = make_buffer(count * sizeof(cl_int));
    int computing = 0;
    const auto fork_while = [&](int times) {
        for (int i = 0; i < times; ++i) {
            const int status = exit_status_of_child([&] {
                cl_int error = CL_SUCCESS;
                const OwnedMem mine = clCreateBuffer(context, CL_MEM_READ_WRITE, 1 << 12, nullptr, &error);
                if (error == CL_OUT_OF_RESOURCES && clFinish(queue) == CL_OUT_OF_RESOURCES)
                    return 8;
                // A queue that a thread of the parent was using, too.
                const bool is_right =
                    is_right_in_child(devices[0], compute(queue, program, mine, 1 << 10), 2 << 10) &&
                    is_right_in_child(devices.back(), compute(second, program, mine, 1 << 10), 2 << 10);
                return is_right ? 7 : 1;
            });
            ASSERT_TRUE(status == 7 || status == 8) << status;
            computing += status == 7;
        }
    };
    {
        const Hammer hammer(launch_on(queue, buffer), launch_on(second, other), create);
        fork_while(25);
    }
    {
        const Hammer hammer(launch_on(queue, buffer), build_anew, create);
        fork_while(25);
    }
    EXPECT_EQ(compute(queue, program, buffer), expected) << "the parent goes on";
    EXPECT_GT(computing, 0) << "threads whose calls are short are waited for";
}

}  // namespace
}  // namespace polder::test
