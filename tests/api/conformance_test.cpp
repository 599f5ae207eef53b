#include "support/fixture.h"

#include <CL/cl_ext.h>
#include <array>
#include <regex>

namespace polder::test {
namespace {

// Cases that the Khronos conformance suite found.
using Conformance = ContextTest;

std::string text_of(cl_device_id device, cl_device_info name) {
    size_t size = 0;
    EXPECT_EQ(clGetDeviceInfo(device, name, 0, nullptr, &size), CL_SUCCESS);
    std::string text(size, '\0');
    EXPECT_EQ(clGetDeviceInfo(device, name, size, text.data(), nullptr), CL_SUCCESS);
    text.resize(size - 1);
    return text;
}

TEST_F(Conformance, VersionPassedHasThePrescribedForm) {
    const std::regex form(R"(v\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])-\d{2})");
    for (cl_device_id device : devices)
        EXPECT_TRUE(std::regex_match(text_of(device, CL_DEVICE_LATEST_CONFORMANCE_VERSION_PASSED), form));
}

// cl_khr_subgroups demands that sub-groups progress independently: warps of GPUs do, but a processor's thread executes all of a work-group.
TEST_F(Conformance, SubGroupsClaimIndependentProgressOnGpusAlone) {
    for (cl_device_id device : devices) {
        const std::string extensions = " " + text_of(device, CL_DEVICE_EXTENSIONS) + " ";
        EXPECT_EQ(extensions.find(" cl_khr_subgroups ") != std::string::npos, is_gpu(device));
        cl_bool independent = CL_TRUE;
        EXPECT_EQ(clGetDeviceInfo(device, CL_DEVICE_SUB_GROUP_INDEPENDENT_FORWARD_PROGRESS, sizeof independent,
                                  &independent, nullptr),
                  CL_SUCCESS);
        EXPECT_EQ(independent == CL_TRUE, is_gpu(device));
        cl_uint count = 0;
        EXPECT_EQ(clGetDeviceInfo(device, CL_DEVICE_MAX_NUM_SUB_GROUPS, sizeof count, &count, nullptr), CL_SUCCESS);
        EXPECT_GT(count, 1u);
        size_t sizes[8] = {}, bytes = 0;
        EXPECT_EQ(clGetDeviceInfo(device, CL_DEVICE_SUB_GROUP_SIZES_INTEL, sizeof sizes, sizes, &bytes), CL_SUCCESS);
        // A GPU's sub-groups are warps.
        const std::vector<size_t> expected =
            is_gpu(device) ? std::vector<size_t>{32} : std::vector<size_t>{4, 8, 16, 32, 64};
        EXPECT_EQ(std::vector<size_t>(sizes, sizes + bytes / sizeof(size_t)), expected);
    }
}

TEST_F(Conformance, PartitionIntoOnePartFails) {
    for (cl_device_id device : devices) {
        cl_uint units = 0;
        EXPECT_EQ(clGetDeviceInfo(device, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof units, &units, nullptr), CL_SUCCESS);
        std::array<cl_device_partition_property, 3> equally{CL_DEVICE_PARTITION_EQUALLY,
                                                            static_cast<cl_device_partition_property>(units), 0};
        cl_device_id part = nullptr;
        EXPECT_EQ(clCreateSubDevices(device, equally.data(), 1, &part, nullptr), CL_DEVICE_PARTITION_FAILED);
        EXPECT_EQ(part, nullptr);
    }
}

TEST_F(Conformance, PartitionAlongDomainsThatADeviceDoesNotHaveIsInvalid) {
    const cl_device_partition_property next[] = {CL_DEVICE_PARTITION_BY_AFFINITY_DOMAIN,
                                                 CL_DEVICE_AFFINITY_DOMAIN_NEXT_PARTITIONABLE, 0};
    for (cl_device_id device : devices) {
        cl_device_affinity_domain domains = 0;
        EXPECT_EQ(clGetDeviceInfo(device, CL_DEVICE_PARTITION_AFFINITY_DOMAIN, sizeof domains, &domains, nullptr),
                  CL_SUCCESS);
        cl_uint count = 0;
        if (domains == 0) {
            EXPECT_EQ(clCreateSubDevices(device, next, 0, nullptr, &count), CL_INVALID_VALUE);
        }
    }
}

TEST_F(Conformance, NoQueueOnTheHostIsADefaultQueueOnTheDevice) {
    cl_device_device_enqueue_capabilities capabilities = 0;
    EXPECT_EQ(
        clGetDeviceInfo(devices[0], CL_DEVICE_DEVICE_ENQUEUE_CAPABILITIES, sizeof capabilities, &capabilities, nullptr),
        CL_SUCCESS);
    const cl_int expected = capabilities != 0 ? CL_INVALID_COMMAND_QUEUE : CL_INVALID_OPERATION;
    EXPECT_EQ(clSetDefaultDeviceCommandQueue(context, devices[0], nullptr), expected);
    EXPECT_EQ(clSetDefaultDeviceCommandQueue(context, devices[0], queue), expected);
    EXPECT_EQ(clSetDefaultDeviceCommandQueue(context, devices[0], foreign_handle<cl_command_queue>(context)), expected);
}

TEST_F(Conformance, BuildingForADeviceBuildsForItsParts) {
    std::array<cl_device_id, 3> whole_and_parts{devices[0]};
    const cl_device_partition_property by_one[] = {CL_DEVICE_PARTITION_BY_COUNTS, 1, 1,
                                                   CL_DEVICE_PARTITION_BY_COUNTS_LIST_END, 0};
    if (clCreateSubDevices(devices[0], by_one, 2, &whole_and_parts[1], nullptr) != CL_SUCCESS)
        GTEST_SKIP() << "a device of one compute unit has no parts";
    cl_int error = CL_INVALID_VALUE;
    context = clCreateContext(nullptr, 3, whole_and_parts.data(), nullptr, nullptr, &error);
    ASSERT_EQ(error, CL_SUCCESS);
    const OwnedProgram program = from_source("kernel void nothing() {}");
    EXPECT_EQ(clBuildProgram(program, 1, whole_and_parts.data(), "", nullptr, nullptr), CL_SUCCESS);
    for (cl_device_id device : whole_and_parts) {
        cl_build_status status = CL_BUILD_NONE;
        EXPECT_EQ(clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_STATUS, sizeof status, &status, nullptr),
                  CL_SUCCESS);
        EXPECT_EQ(status, CL_BUILD_SUCCESS);
    }
    for (size_t part : {1, 2}) {
        const OwnedQueue on_part = make_queue(whole_and_parts[part]);
        const OwnedKernel kernel = make_kernel(program, "nothing");
        const size_t once = 1;
        EXPECT_EQ(clEnqueueNDRangeKernel(on_part, kernel, 1, nullptr, &once, nullptr, 0, nullptr, nullptr), CL_SUCCESS);
        EXPECT_EQ(clFinish(on_part), CL_SUCCESS);
        EXPECT_EQ(clReleaseDevice(whole_and_parts[part]), CL_SUCCESS);
    }
}

// half_log and its like once took subnormal numbers for 2^-127; half_tan of large angles was NaN.
TEST_F(Conformance, HalfFunctionsTakeSubnormalNumbersAndLargeAngles) {
    const OwnedProgram program = build(R"(
kernel void compute(global const float* in, global float* out) {
    out[0] = half_log2(in[0]);
    out[1] = half_log(in[0]);
    out[2] = half_log10(in[0]);
    out[3] = half_powr(in[0], 0.5f);
    out[4] = half_tan(in[1]);
})");
    std::vector<float> input{0x1p-141f, -0x1p121f};
    const double expected[] = {-141, -97.7337527, -42.4452294, 0x1.6a09e6p-71};
    for (const cl_device_id device : devices) {
        const OwnedQueue on = make_queue(device);
        const OwnedMem in = make_buffer(2 * sizeof(float), CL_MEM_COPY_HOST_PTR, input.data());
        const OwnedMem out = make_buffer(5 * sizeof(float));
        const OwnedKernel kernel = make_kernel(program, "compute");
        ASSERT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), in.in()), CL_SUCCESS);
        ASSERT_EQ(clSetKernelArg(kernel, 1, sizeof(cl_mem), out.in()), CL_SUCCESS);
        const size_t one = 1;
        ASSERT_EQ(clEnqueueNDRangeKernel(on, kernel, 1, nullptr, &one, nullptr, 0, nullptr, nullptr), CL_SUCCESS);
        const auto found = read<float>(out, 5, on);
        for (size_t i = 0; i < 4; ++i)
            EXPECT_NEAR(found[i] / expected[i], 1, 1e-3) << i << ": " << found[i];
        EXPECT_EQ(found[4], found[4]);
    }
}

// The kernel compares the address and does not access the memory.
TEST_F(Conformance, BufferWhoseAddressAloneMattersIsNotNull) {
    const OwnedProgram program = build(R"(
        kernel void is_there(global float* buffer, global int* answer) {
            answer[get_global_id(0)] = buffer != 0;
        })");
    const OwnedKernel kernel = make_kernel(program, "is_there");
    const OwnedMem buffer = make_buffer(64);
    const OwnedMem answer = make_buffer(sizeof(cl_int));
    const size_t once = 1;
    for (const cl_mem argument : {static_cast<cl_mem>(buffer), static_cast<cl_mem>(nullptr)}) {
        EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), &argument), CL_SUCCESS);
        EXPECT_EQ(clSetKernelArg(kernel, 1, sizeof(cl_mem), answer.in()), CL_SUCCESS);
        EXPECT_EQ(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &once, nullptr, 0, nullptr, nullptr), CL_SUCCESS);
        EXPECT_EQ(read<cl_int>(answer, 1)[0], argument ? 1 : 0);
    }
}

}  // namespace
}  // namespace polder::test
