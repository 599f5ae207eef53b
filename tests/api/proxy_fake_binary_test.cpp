// Program binaries for a device of the tests' own OpenCL implementation: Polder's, and those that the implementation made (decision 207).
#include "support/images.h"

#include <array>
#include <cstring>
#include <fake_icd.h>
#include <find.h>
#include <polder/kernel_abi.h>

namespace polder::test {
namespace {

// kernel void add_bytes(global int* data, int value) { data[get_global_id(0)] += value; }, with the layout of arguments that the fake
// implementation makes of its own.
struct AddBytes {
    cl_int* data;
    cl_int value;
    static void run(const std::byte* arguments, const LaunchContext* launch, const uint64_t* group, std::byte*,
                    std::byte*) {
        AddBytes add;
        std::memcpy(&add, arguments, sizeof add);
        for (uint64_t i = 0; i < launch->local_size[0]; ++i)
            add.data[group[0] * launch->local_size[0] + i] += add.value;
    }
};
constexpr const char* source =
    "kernel void add_bytes(global int* data, int value) { data[get_global_id(0)] += value; }";
constexpr size_t count = 256;

class ProxyBinary : public ContextTest {
protected:
    using Bytes = std::vector<unsigned char>;

    void SetUp() override {
        using Kind = driver::KernelParameter::Kind;
        const fake_icd::Kernel kernel{
            AddBytes::run, 0, 0, {{Kind::global_pointer, 0, 8}, {Kind::value, offsetof(AddBytes, value), 4}}};
        fake_icd::find<fake_icd::RegisterKernel>("fake_icd_register_kernel")("add_bytes", &kernel);
        ContextTest::SetUp();
        ASSERT_EQ(devices.size(), 2u) << "POCL_DEVICES must be \"cpu proxy\"";
        foreign = make_queue(devices[1]);
    }
    static uint64_t calls(const char* call) { return fake_icd::find<fake_icd::Calls>("fake_icd_calls")(call); }
    static Bytes of_implementation(const std::string& text) {
        const std::string bytes = "fake binary\n" + text;
        return {bytes.begin(), bytes.end()};
    }
    cl_program create(cl_device_id device, const Bytes& bytes, cl_int expected = CL_SUCCESS) {
        cl_int status = 1;
        cl_int error = 1;
        const cl_program program = from_binary(device, bytes, &status, &error);
        EXPECT_EQ(error, expected);
        EXPECT_EQ(status, expected);
        return program;
    }
    // The program's binary for its device number `device` of `devices_of_program`.
    static Bytes binary_of(cl_program program, size_t device, size_t devices_of_program) {
        std::vector<size_t> sizes(devices_of_program);
        EXPECT_EQ(
            clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizes.size() * sizeof(size_t), sizes.data(), nullptr),
            CL_SUCCESS);
        Bytes bytes(sizes[device]);
        std::vector<unsigned char*> places(devices_of_program);
        places[device] = bytes.data();
        EXPECT_EQ(clGetProgramInfo(program, CL_PROGRAM_BINARIES, places.size() * sizeof(unsigned char*), places.data(),
                                   nullptr),
                  CL_SUCCESS);
        return bytes;
    }
    void expect_that_it_adds(cl_program program) {
        const OwnedMem buffer = make_buffer(count * sizeof(cl_int));
        write(buffer, std::vector<cl_int>(count, 30));
        const OwnedKernel kernel = make_kernel(program, "add_bytes");
        const cl_mem handle = buffer;
        const cl_int value = 12;
        ASSERT_EQ(clSetKernelArg(kernel, 0, sizeof handle, &handle), CL_SUCCESS);
        ASSERT_EQ(clSetKernelArg(kernel, 1, sizeof value, &value), CL_SUCCESS);
        const size_t local = 64;
        ASSERT_EQ(clEnqueueNDRangeKernel(foreign, kernel, 1, nullptr, &count, &local, 0, nullptr, nullptr), CL_SUCCESS);
        EXPECT_EQ(read<cl_int>(buffer, count), std::vector<cl_int>(count, 42));
    }
    static cl_int build_it(cl_program program) { return clBuildProgram(program, 0, nullptr, "", nullptr, nullptr); }

    OwnedQueue foreign;
};

TEST_F(ProxyBinary, OfPolderHoldsWhatTheImplementationCompiled) {
    const OwnedProgram program = build(source);
    const Bytes bytes = binary_of(program, 1, 2);
    const uint64_t sources = calls("clCreateProgramWithSource");
    const uint64_t binaries = calls("clCreateProgramWithBinary");
    const OwnedProgram again = create(devices[1], bytes);
    ASSERT_EQ(build_it(again), CL_SUCCESS);
    EXPECT_EQ(calls("clCreateProgramWithSource"), sources);
    EXPECT_EQ(calls("clCreateProgramWithBinary"), binaries + 1);
    expect_that_it_adds(again);
    EXPECT_EQ(binary_of(again, 0, 1), bytes);
}

TEST_F(ProxyBinary, OfTheImplementationBecomesAProgram) {
    const OwnedProgram program = create(devices[1], of_implementation(source));
    ASSERT_EQ(build_it(program), CL_SUCCESS);
    expect_that_it_adds(program);
    // As a binary of Polder's, for the same device and no other.
    const Bytes bytes = binary_of(program, 0, 1);
    const OwnedProgram again = create(devices[1], bytes);
    ASSERT_EQ(build_it(again), CL_SUCCESS);
    expect_that_it_adds(again);
    const OwnedProgram elsewhere = create(devices[0], bytes);
    EXPECT_NE(build_it(elsewhere), CL_SUCCESS);
    char log[1024] = {};
    EXPECT_EQ(clGetProgramBuildInfo(elsewhere, devices[0], CL_PROGRAM_BUILD_LOG, sizeof log, log, nullptr), CL_SUCCESS);
    EXPECT_NE(std::strstr(log, "machine code of another device"), nullptr) << log;
}

TEST_F(ProxyBinary, ArgumentsAreCheckedByWhatTheImplementationTakes) {
    const OwnedProgram program =
        create(devices[1], of_implementation("kernel void k(global int* a, local int* b, long c) {}"));
    ASSERT_EQ(build_it(program), CL_SUCCESS);
    const OwnedKernel kernel = make_kernel(program, "k");
    const OwnedMem buffer = make_buffer(64);
    const cl_mem handle = buffer;
    const cl_ulong number = 5;
    EXPECT_EQ(clSetKernelArg(kernel, 0, 4, &handle), CL_INVALID_ARG_SIZE);
    EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof number, &number), CL_INVALID_MEM_OBJECT);
    EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof handle, &handle), CL_SUCCESS);
    EXPECT_EQ(clSetKernelArg(kernel, 1, 64, &handle), CL_INVALID_ARG_VALUE);
    EXPECT_EQ(clSetKernelArg(kernel, 1, 64, nullptr), CL_SUCCESS);
    EXPECT_EQ(clSetKernelArg(kernel, 2, 4, &number), CL_INVALID_ARG_SIZE);
    // With some implementations an image looks like a value.
    EXPECT_EQ(clSetKernelArg(kernel, 2, sizeof handle, &handle), CL_INVALID_ARG_VALUE);
    EXPECT_EQ(clSetKernelArg(kernel, 2, sizeof number, &number), CL_SUCCESS);
}

TEST_F(ProxyBinary, ImagesAndSamplersAreCheckedByWhatTheImplementationTakes) {
    const OwnedProgram program = create(
        devices[1], of_implementation("kernel void k(read_only image2d_t a, write_only image3d_t b, sampler_t s) {}"));
    ASSERT_EQ(build_it(program), CL_SUCCESS);
    const OwnedKernel kernel = make_kernel(program, "k");
    const cl_image_format format{CL_RGBA, CL_UNORM_INT8};
    const auto make = [&](cl_mem_object_type type, cl_mem_flags flags) {
        cl_image_desc description{};
        description.image_type = type;
        description.image_width = description.image_height = description.image_depth = 2;
        return clCreateImage(context, flags, &format, &description, nullptr, nullptr);
    };
    const OwnedMem flat = make(CL_MEM_OBJECT_IMAGE2D, 0), volume = make(CL_MEM_OBJECT_IMAGE3D, 0);
    const OwnedMem to_write = make(CL_MEM_OBJECT_IMAGE2D, CL_MEM_WRITE_ONLY);
    const OwnedMem to_read = make(CL_MEM_OBJECT_IMAGE3D, CL_MEM_READ_ONLY);
    const OwnedSampler sampler = clCreateSampler(context, CL_FALSE, CL_ADDRESS_CLAMP, CL_FILTER_NEAREST, nullptr);
    const auto set = [&](cl_uint index, cl_mem image) { return clSetKernelArg(kernel, index, sizeof image, &image); };
    EXPECT_EQ(set(0, flat), CL_SUCCESS);
    EXPECT_EQ(set(0, volume), CL_INVALID_MEM_OBJECT);
    EXPECT_EQ(set(0, to_write), CL_INVALID_ARG_VALUE);
    EXPECT_EQ(set(1, volume), CL_SUCCESS);
    EXPECT_EQ(set(1, flat), CL_INVALID_MEM_OBJECT);
    EXPECT_EQ(set(1, to_read), CL_INVALID_ARG_VALUE);
    EXPECT_EQ(set(2, flat), CL_INVALID_SAMPLER);
    const cl_sampler handle = sampler;
    EXPECT_EQ(clSetKernelArg(kernel, 2, sizeof handle, &handle), CL_SUCCESS);
}

TEST_F(ProxyBinary, ThatNobodyMadeIsRefused) {
    const std::string text = "neither Polder nor the other implementation has made this";
    const Bytes nonsense(text.begin(), text.end());
    for (const cl_device_id device : devices)
        EXPECT_EQ(create(device, nonsense, CL_INVALID_BINARY), nullptr);
    EXPECT_EQ(create(devices[0], of_implementation(source), CL_INVALID_BINARY), nullptr);
    EXPECT_EQ(create(devices[1], of_implementation("kernel void k(any image) {}"), CL_INVALID_BINARY), nullptr);
    expect_that_it_adds(build(source));
}

}  // namespace
}  // namespace polder::test
