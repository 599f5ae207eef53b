// Programs in little address space (RLIMIT_AS, ulimit -v): what does not fit fails with an error of OpenCL.
//
// Each case is a child of the process, which has the context and the built program.
#include "../support/sanitizer.h"
#include "support/fixture.h"

#include <array>
#include <fstream>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace polder::test {
namespace {

constexpr size_t MiB = size_t{1} << 20;

// The address space that this process uses.
size_t address_space() {
    std::ifstream file("/proc/self/statm");
    size_t pages = 0;
    file >> pages;
    return pages * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

bool is_of_resources(cl_int error) {
    return error == CL_OUT_OF_HOST_MEMORY || error == CL_OUT_OF_RESOURCES ||
           error == CL_MEM_OBJECT_ALLOCATION_FAILURE || error == CL_BUILD_PROGRAM_FAILURE;
}

enum Outcome : int { succeeded = 10, refused = 11, strange = 12 };

class LittleMemory : public ContextTest {
protected:
    void SetUp() override {
        if (has_address_sanitizer || has_thread_sanitizer)
            GTEST_SKIP() << "sanitizers need address space of their own";
        ContextTest::SetUp();
        buffer = make_buffer(sizeof(cl_int));
    }
    // In a child that has `more` bytes of address space left.
    template <class Work>
    static int outcome_with(size_t more, Work&& work) {
        const pid_t child = fork();
        if (child == 0) {
            alarm(60);
            const rlim_t limit = address_space() + more;
            const rlimit both{limit, limit};
            setrlimit(RLIMIT_AS, &both);
            const cl_int error = work();
            _exit(error == CL_SUCCESS ? succeeded : is_of_resources(error) ? refused : strange);
        }
        int status = 0;
        EXPECT_EQ(waitpid(child, &status, 0), child);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    }
    // CUDA does not work in a child.
    [[nodiscard]] bool works_in_children() const {
        cl_device_type type = 0;
        EXPECT_EQ(clGetDeviceInfo(devices[0], CL_DEVICE_TYPE, sizeof type, &type, nullptr), CL_SUCCESS);
        return !(type & CL_DEVICE_TYPE_GPU);
    }
    // With no address space left at first, then more and more. What succeeds with less must succeed with more. Returns the result with the most.
    template <class Work>
    static int expect_errors_until_it_succeeds(Work&& work) {
        int last = 0;
        for (const size_t more : {size_t{0}, MiB / 16, MiB / 4, MiB, 4 * MiB, 12 * MiB, 32 * MiB, 96 * MiB, 256 * MiB,
                                  300 * MiB, 512 * MiB, 2048 * MiB}) {
            SCOPED_TRACE(testing::Message() << more << " bytes left");
            last = outcome_with(more, work);
            EXPECT_TRUE(last == succeeded || last == refused) << last;
        }
        return last;
    }

    OwnedMem buffer;
};

TEST_F(LittleMemory, LoadingCodeFailsWithAnError) {
    const OwnedProgram program = build("kernel void k(global int* a) { a[get_global_id(0)] = 5; }");
    const OwnedKernel kernel = make_kernel(program, "k");
    ASSERT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), buffer.in()), CL_SUCCESS);
    ASSERT_EQ(clFinish(queue), CL_SUCCESS);
    const int last = expect_errors_until_it_succeeds([&] {
        const size_t one = 1;
        const cl_int error = clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &one, nullptr, 0, nullptr, nullptr);
        return error == CL_SUCCESS ? clFinish(queue) : error;
    });
    if (works_in_children()) {
        EXPECT_EQ(last, succeeded);
    }
}

TEST_F(LittleMemory, BuildingFailsWithAnError) {
    const int last = expect_errors_until_it_succeeds([&] {
        const char* source = "kernel void k(global float* a) { a[get_global_id(0)] = sin(a[1]); }";
        cl_int error = CL_SUCCESS;
        cl_program program = clCreateProgramWithSource(context, 1, &source, nullptr, &error);
        return error == CL_SUCCESS ? clBuildProgram(program, 0, nullptr, nullptr, nullptr, nullptr) : error;
    });
    EXPECT_EQ(last, succeeded);
}

}  // namespace
}  // namespace polder::test
