// Programs that end in the ways programs do: with work in flight, with handles released by static destructors,
// with the library closed. Each ends in a process of its own.
#include "support/fixture.h"
#include "support/native_kernels.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <dlfcn.h>
#include <fstream>
#include <thread>
#include <unistd.h>

// For the leak sanitizer: what these programs leave behind, they leave on purpose.
extern "C" int __lsan_is_turned_off() { return 1; }  // NOLINT(bugprone-reserved-identifier)

namespace polder::test {
namespace {

struct Program {
    OwnedContext context;
    OwnedQueue queue;
    OwnedMem buffer;

    Program() {
        std::vector<cl_device_id> devices = all_devices();
        cl_int error = CL_SUCCESS;
        context =
            clCreateContext(nullptr, static_cast<cl_uint>(devices.size()), devices.data(), nullptr, nullptr, &error);
        queue = clCreateCommandQueueWithProperties(context, devices.back(), nullptr, &error);
        buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, size, nullptr, &error);
    }
    void start_work() const {
        const uint32_t pattern = 1;
        for (int i = 0; i < 50; ++i)
            clEnqueueFillBuffer(queue, buffer, &pattern, 4, 0, size, 0, nullptr, nullptr);
        clFlush(queue);
    }
    static constexpr size_t size = 16 << 20;
};

class Exits : public testing::Test {
protected:
    void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};
using ExitsDeathTest = Exits;

TEST_F(ExitsDeathTest, WithWorkInFlightAndNothingReleased) {
    EXPECT_EXIT(
        {
            const auto* leaked = new Program;
            leaked->start_work();
            std::exit(7);
        },
        testing::ExitedWithCode(7), "");
}

TEST_F(ExitsDeathTest, WithHandlesReleasedByStaticDestructors) {
    EXPECT_EXIT(
        {
            static const Program program;
            program.start_work();
            std::exit(7);
        },
        testing::ExitedWithCode(7), "");
}

TEST_F(ExitsDeathTest, FromAnotherThreadWhileOneWaits) {
    EXPECT_EXIT(
        {
            const auto* leaked = new Program;
            leaked->start_work();
            std::thread([leaked] { clFinish(leaked->queue); }).detach();
            std::exit(7);
        },
        testing::ExitedWithCode(7), "");
}

TEST_F(ExitsDeathTest, FromTheCallbackOfAnEvent) {
    EXPECT_EXIT(
        {
            const auto* leaked = new Program;
            cl_event done = nullptr;
            clEnqueueMarkerWithWaitList(leaked->queue, 0, nullptr, &done);
            leaked->start_work();
            clSetEventCallback(done, CL_COMPLETE, [](cl_event, cl_int, void*) { std::exit(7); }, nullptr);
            std::this_thread::sleep_for(std::chrono::seconds(60));
        },
        testing::ExitedWithCode(7), "");
}

TEST_F(ExitsDeathTest, FromTheCallbackOfABuild) {
    EXPECT_EXIT(
        {
            const auto* leaked = new Program;
            const char* source = "kernel void k(global int* a) { a[0] = 1; }";
            cl_program program = clCreateProgramWithSource(leaked->context, 1, &source, nullptr, nullptr);
            alarm(60);  // a wait for itself would have no end
            clBuildProgram(program, 0, nullptr, "", [](cl_program, void*) { std::exit(7); }, nullptr);
            std::this_thread::sleep_for(std::chrono::seconds(60));
        },
        testing::ExitedWithCode(7), "");
}

TEST_F(ExitsDeathTest, FromANativeKernel) {
    if (!executes_native_kernels(all_devices().front()))
        GTEST_SKIP() << "the first device has no native kernels";
    EXPECT_EXIT(
        {
            const auto* leaked = new Program;
            cl_device_id device = all_devices().front();
            cl_command_queue queue = clCreateCommandQueueWithProperties(leaked->context, device, nullptr, nullptr);
            clEnqueueNativeKernel(
                queue, [](void*) { std::exit(7); }, nullptr, 0, 0, nullptr, nullptr, 0, nullptr, nullptr);
            clFinish(queue);
        },
        testing::ExitedWithCode(7), "");
}

TEST_F(ExitsDeathTest, WhileAProgramIsBuilt) {
    EXPECT_EXIT(
        {
            const auto* leaked = new Program;
            const char* source = "kernel void k(global float* a) { a[0] = pow(sin(a[1]), tgamma(a[2])); }";
            for (int i = 0; i < 4; ++i) {
                const std::string options = "-DUNIQUE=" + std::to_string(i);
                cl_program program = clCreateProgramWithSource(leaked->context, 1, &source, nullptr, nullptr);
                clBuildProgram(program, 0, nullptr, options.c_str(), [](cl_program, void*) {}, nullptr);
            }
            std::exit(7);
        },
        testing::ExitedWithCode(7), "");
}

// The library by its path, as a loader opens it.
void* open_polder() {
    const std::string vendors = std::getenv("OCL_ICD_VENDORS");
    std::ifstream icd(vendors + "/polder.icd");
    std::string path;
    std::getline(icd, path);
    return dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
}

TEST_F(ExitsDeathTest, AfterTheLibraryWasClosed) {
    EXPECT_EXIT(
        {
            void* library = open_polder();
            const auto address = dlsym(library, "clGetExtensionFunctionAddress");
            dlclose(library);
            std::exit(library && address ? 7 : 1);
        },
        testing::ExitedWithCode(7), "");
}

// A plug-in that closes the library while its work is in flight; the callback is called after that.
TEST_F(ExitsDeathTest, AfterTheLibraryWasClosedWithWorkInFlight) {
    EXPECT_EXIT(
        {
            void* library = open_polder();
            const auto address =
                reinterpret_cast<void* (*)(const char*)>(dlsym(library, "clGetExtensionFunctionAddress"));
            const auto ids = reinterpret_cast<decltype(&clGetPlatformIDs)>(address("clGetPlatformIDs"));
            const auto device_ids = reinterpret_cast<decltype(&clGetDeviceIDs)>(address("clGetDeviceIDs"));
            const auto make_context = reinterpret_cast<decltype(&clCreateContext)>(address("clCreateContext"));
            const auto make_queue = reinterpret_cast<decltype(&clCreateCommandQueue)>(address("clCreateCommandQueue"));
            const auto make_buffer = reinterpret_cast<decltype(&clCreateBuffer)>(address("clCreateBuffer"));
            const auto fill = reinterpret_cast<decltype(&clEnqueueFillBuffer)>(address("clEnqueueFillBuffer"));
            const auto call_back = reinterpret_cast<decltype(&clSetEventCallback)>(address("clSetEventCallback"));
            const auto flush = reinterpret_cast<decltype(&clFlush)>(address("clFlush"));
            cl_platform_id platform = nullptr;
            ids(1, &platform, nullptr);
            cl_device_id device = nullptr;
            device_ids(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr);
            cl_context context = make_context(nullptr, 1, &device, nullptr, nullptr, nullptr);
            cl_command_queue queue = make_queue(context, device, 0, nullptr);
            cl_mem buffer = make_buffer(context, CL_MEM_READ_WRITE, Program::size, nullptr, nullptr);
            static std::atomic<bool> is_told{false};
            cl_event last = nullptr;
            const uint32_t pattern = 1;
            for (int i = 0; i < 50; ++i)
                fill(queue, buffer, &pattern, 4, 0, Program::size, 0, nullptr, i == 49 ? &last : nullptr);
            call_back(last, CL_COMPLETE, [](cl_event, cl_int, void*) { is_told = true; }, nullptr);
            flush(queue);
            dlclose(library);
            for (int i = 0; i < 6000 && !is_told; ++i)
                std::this_thread::sleep_for(std::chrono::milliseconds(10));
            std::exit(is_told ? 7 : 1);
        },
        testing::ExitedWithCode(7), "");
}

} // namespace
} // namespace polder::test
