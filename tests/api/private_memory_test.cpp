// Kernels with large private arrays that live across barriers, of which every work-item of a group has one at the same time.
#include "support/fixture.h"

#include <CL/cl_ext.h>
#include <algorithm>
#include <vector>

namespace polder::test {
namespace {

constexpr const char* source = R"(
#define BODY(ints, meet) \
    int a[ints]; \
    const int g = get_global_id(0); \
    for (int i = 0; i < ints; i += step) a[i] = i + g; \
    meet; \
    int sum = 0; \
    for (int i = 0; i < ints; i += step) sum += a[(i + step) % (ints)]; \
    out[g] = (sum << 8) + get_local_size(0);
kernel void large(global uint* out, int step) { BODY(1 << 22, barrier(CLK_GLOBAL_MEM_FENCE)) }
kernel void larger(global uint* out, int step) { BODY(1 << 24, work_group_barrier(CLK_GLOBAL_MEM_FENCE)) }
kernel void small(global uint* out, int step) { BODY(1 << 10, barrier(CLK_GLOBAL_MEM_FENCE)) }
kernel void alone(global uint* out, int step) { BODY(1 << 14, ) }
__attribute__((reqd_work_group_size(4096, 1, 1)))
kernel void required(global uint* out, int step) { BODY(1 << 22, barrier(CLK_GLOBAL_MEM_FENCE)) }
)";
constexpr size_t large_bytes = size_t{4} << 22;

class PrivateMemory : public ContextTest {
protected:
    void SetUp() override {
        ContextTest::SetUp();
        program = build(source, "-cl-std=CL3.0");
        out = make_buffer(4096 * sizeof(cl_uint));
    }
    OwnedKernel ready(const char* name) {
        OwnedKernel kernel = make_kernel(program, name);
        const cl_int step = 1 << 20;
        EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), out.in()), CL_SUCCESS);
        EXPECT_EQ(clSetKernelArg(kernel, 1, sizeof step, &step), CL_SUCCESS);
        return kernel;
    }
    static size_t group_size(cl_kernel kernel, cl_device_id device) {
        size_t size = 0;
        EXPECT_EQ(clGetKernelWorkGroupInfo(kernel, device, CL_KERNEL_WORK_GROUP_SIZE, sizeof size, &size, nullptr),
                  CL_SUCCESS);
        return size;
    }
    template <class T>
    static T info(cl_device_id device, cl_device_info name) {
        T value{};
        EXPECT_EQ(clGetDeviceInfo(device, name, sizeof value, &value, nullptr), CL_SUCCESS);
        return value;
    }
    static cl_int launch(cl_command_queue on, cl_kernel kernel, size_t global, size_t local) {
        return clEnqueueNDRangeKernel(on, kernel, 1, nullptr, &global, local ? &local : nullptr, 0, nullptr, nullptr);
    }
    // The result of kernel `large`: the elements 0, 2^20, 2 * 2^20 and 3 * 2^20 are i + g.
    static cl_uint sum(size_t g) { return (6u << 20) + 4 * static_cast<cl_uint>(g); }

    OwnedProgram program;
    OwnedMem out;
};

TEST_F(PrivateMemory, ThatIsLarge_LimitsTheGroupsOfAKernel) {
    for (const cl_device_id device : devices) {
        const OwnedKernel large = ready("large"), larger = ready("larger");
        const auto device_max = info<size_t>(device, CL_DEVICE_MAX_WORK_GROUP_SIZE);
        const auto memory = info<cl_ulong>(device, CL_DEVICE_GLOBAL_MEM_SIZE);
        const auto units = info<cl_uint>(device, CL_DEVICE_MAX_COMPUTE_UNITS);
        const size_t most = group_size(large, device);
        if (memory / units >= (cl_ulong{4} * 4096 * large_bytes))
            GTEST_SKIP() << "the device has more than 256 GiB for each compute unit";
        EXPECT_GE(most, 1u);
        EXPECT_LT(most, device_max);
        // All groups that execute at once use at most a quarter of the memory, beyond what a stack has.
        EXPECT_TRUE(most == 1 || most * large_bytes <= memory / units / 4);
        EXPECT_LE(group_size(larger, device), std::max<size_t>(1, most / 3));
        OwnedQueue on = make_queue(device);
        EXPECT_EQ(launch(on, large, most + 1, most + 1), CL_INVALID_WORK_GROUP_SIZE);
        const size_t local = std::min<size_t>(most, 4);
        ASSERT_EQ(launch(on, large, 3 * local, local), CL_SUCCESS);
        const auto results = read<cl_uint>(out, 3 * local, on);
        for (size_t g = 0; g < results.size(); ++g)
            EXPECT_EQ(results[g], (sum(g) << 8) + local) << g;
    }
}

TEST_F(PrivateMemory, ThatIsLarge_LimitsTheSizeThatIsChosen) {
    const auto suggest = reinterpret_cast<clGetKernelSuggestedLocalWorkSizeKHR_fn>(
        clGetExtensionFunctionAddressForPlatform(platform(), "clGetKernelSuggestedLocalWorkSizeKHR"));
    ASSERT_NE(suggest, nullptr);
    for (const cl_device_id device : devices) {
        const OwnedKernel large = ready("large"), small = ready("small");
        OwnedQueue on = make_queue(device);
        // Enough for groups of 64 work-items.
        const size_t global = std::min<size_t>(4096, 512 * info<cl_uint>(device, CL_DEVICE_MAX_COMPUTE_UNITS));
        const size_t most = group_size(large, device);
        size_t suggested = 0;
        ASSERT_EQ(suggest(on, large, 1, nullptr, &global, &suggested), CL_SUCCESS);
        EXPECT_LE(suggested, std::min<size_t>(most, 16)) << "16 lanes of 32 bits at most";
        ASSERT_EQ(launch(on, large, global, 0), CL_SUCCESS);
        const auto results = read<cl_uint>(out, global, on);
        for (size_t g = 0; g < results.size(); ++g)
            EXPECT_EQ(results[g], (sum(g) << 8) + suggested) << g;
        // 4 KiB are no reason for smaller groups.
        size_t usual = 0;
        const size_t many = 4096 * info<cl_uint>(device, CL_DEVICE_MAX_COMPUTE_UNITS);
        ASSERT_EQ(suggest(on, small, 1, nullptr, &many, &usual), CL_SUCCESS);
        EXPECT_EQ(usual, 256u);
    }
}

TEST_F(PrivateMemory, WithoutBarriersOrSmall_LimitsNothing) {
    for (const cl_device_id device : devices)
        for (const char* const name : {"alone", "small"})
            EXPECT_EQ(group_size(ready(name), device), info<size_t>(device, CL_DEVICE_MAX_WORK_GROUP_SIZE)) << name;
}

TEST_F(PrivateMemory, OfARequiredGroupThatExceedsTheLimit_FailsTheLaunch) {
    for (const cl_device_id device : devices) {
        if (info<size_t>(device, CL_DEVICE_MAX_WORK_GROUP_SIZE) < 4096 || group_size(ready("large"), device) >= 4096)
            GTEST_SKIP() << "such groups do not exist, or may be executed";
        const OwnedKernel required = ready("required");
        EXPECT_EQ(group_size(required, device), 4096u);
        OwnedQueue on = make_queue(device);
        EXPECT_EQ(launch(on, required, 4096, 4096), CL_OUT_OF_RESOURCES);
        EXPECT_EQ(launch(on, required, 4096, 0), CL_OUT_OF_RESOURCES);
        EXPECT_EQ(clFinish(on), CL_SUCCESS);
    }
}

TEST_F(PrivateMemory, OfAProgramFromABinary_HasTheSameLimits) {
    const size_t most = group_size(ready("large"), devices[0]);
    std::vector<size_t> sizes(devices.size());
    ASSERT_EQ(clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizes.size() * sizeof(size_t), sizes.data(), nullptr),
              CL_SUCCESS);
    std::vector<std::vector<unsigned char>> binaries;
    std::vector<unsigned char*> places;
    for (const size_t size : sizes)
        binaries.emplace_back(size);
    for (auto& binary : binaries)
        places.push_back(binary.data());
    ASSERT_EQ(clGetProgramInfo(program, CL_PROGRAM_BINARIES, places.size() * sizeof(void*), places.data(), nullptr),
              CL_SUCCESS);
    cl_int error = CL_SUCCESS;
    const unsigned char* first = places[0];
    program = clCreateProgramWithBinary(context, 1, devices.data(), sizes.data(), &first, nullptr, &error);
    ASSERT_EQ(error, CL_SUCCESS);
    ASSERT_EQ(clBuildProgram(program, 1, devices.data(), "", nullptr, nullptr), CL_SUCCESS);
    EXPECT_EQ(group_size(ready("large"), devices[0]), most);
}

}  // namespace
}  // namespace polder::test
