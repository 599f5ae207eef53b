// Programs that end in the ways programs do: with work in flight, with handles released by static destructors,
// with the library closed. Each ends in a process of its own.
#include "support/fixture.h"

#include <cstdlib>
#include <dlfcn.h>
#include <fstream>
#include <thread>

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

TEST_F(ExitsDeathTest, AfterTheLibraryWasClosed) {
    EXPECT_EXIT(
        {
            const std::string vendors = std::getenv("OCL_ICD_VENDORS");
            std::ifstream icd(vendors + "/polder.icd");
            std::string path;
            std::getline(icd, path);
            void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
            const auto address = dlsym(library, "clGetExtensionFunctionAddress");
            dlclose(library);
            std::exit(library && address ? 7 : 1);
        },
        testing::ExitedWithCode(7), "");
}

} // namespace
} // namespace polder::test
