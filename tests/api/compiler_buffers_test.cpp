// LLVM's tables are blocks of malloc. This holds where LLVM is inside of the library.
#include "support/fixture.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>

namespace {
std::atomic<int> aligned_blocks{0};
}

// Replaces the C library's for the whole process: the C++ library's operator new with an alignment calls it.
extern "C" void* aligned_alloc(size_t alignment, size_t size) {
    ++aligned_blocks;
    void* memory = nullptr;
    return posix_memalign(&memory, std::max(alignment, sizeof(void*)), size) == 0 ? memory : nullptr;
}

namespace polder::test {
namespace {

TEST(CompilerBuffers, TablesOfTheCompiler_AreNotAlignedSpecially) {
    const cl_device_id device = all_devices().front();
    cl_context context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, nullptr);
    const char* source = "kernel void k(global int* a) { a[get_global_id(0)] = 3; }";
    cl_program program = clCreateProgramWithSource(context, 1, &source, nullptr, nullptr);
    aligned_blocks = 0;
    ASSERT_EQ(clBuildProgram(program, 0, nullptr, "", nullptr, nullptr), CL_SUCCESS);
    EXPECT_LT(aligned_blocks, 100);
    clReleaseProgram(program);
    clReleaseContext(context);
}

}  // namespace
}  // namespace polder::test
