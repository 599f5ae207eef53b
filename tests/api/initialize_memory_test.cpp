// cl_khr_initialize_memory: contexts whose kernels find local and private memory zeroed.
#include "support/fixture.h"

#include <CL/cl_ext.h>
#include <algorithm>

namespace polder::test {
namespace {

// Constants of newer headers.
constexpr cl_context_properties local_bit = 1, private_bit = 2;

class InitializeMemory : public ContextTest {
protected:
    // Replaces the fixture's context.
    void use_context(cl_context_properties bits) {
        const cl_context_properties properties[] = {CL_CONTEXT_MEMORY_INITIALIZE_KHR, bits, 0};
        cl_int error = CL_INVALID_VALUE;
        queue.reset();
        context.reset();
        context =
            clCreateContext(properties, static_cast<cl_uint>(devices.size()), devices.data(), nullptr, nullptr, &error);
        ASSERT_EQ(error, CL_SUCCESS);
        queue = make_queue(devices[0]);
    }

    cl_int error_of(std::vector<cl_context_properties> properties) {
        cl_int error = CL_SUCCESS;
        OwnedContext made = clCreateContext(properties.data(), static_cast<cl_uint>(devices.size()), devices.data(),
                                            nullptr, nullptr, &error);
        return error;
    }

    // Leaves other bytes than zero in local and private memory of all workers, then returns how many work-items saw
    // something else than zero.
    cl_int violations(cl_program program, const char* name, cl_device_id device) {
        OwnedQueue on = make_queue(device);
        const size_t global = 512, local = 32;
        OwnedMem out = make_buffer(global * sizeof(cl_int));
        for (const char* kernel_name : {"soil", name}) {
            OwnedKernel kernel = make_kernel(program, kernel_name);
            EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), out.in()), CL_SUCCESS);
            EXPECT_EQ(clSetKernelArg(kernel, 1, 4096, nullptr), CL_SUCCESS);
            EXPECT_EQ(clEnqueueNDRangeKernel(on, kernel, 1, nullptr, &global, &local, 0, nullptr, nullptr), CL_SUCCESS);
        }
        cl_int count = 0;
        for (const cl_int seen : read<cl_int>(out, global, on))
            count += seen != 0;
        return count;
    }
};

constexpr const char* source = R"(
    kernel void soil(global int* out, local int* argument) {
        local int own[1024];
        int array[64];
        for (uint i = get_local_id(0); i < 1024; i += get_local_size(0)) own[i] = argument[i] = 0x5a5a5a5a;
        for (int i = 0; i < 64; ++i) array[i] = (int)get_global_id(0) + i + 1;
        barrier(CLK_LOCAL_MEM_FENCE);
        int sum = own[get_local_id(0)];
        for (int i = 0; i < 64; ++i) sum += array[array[i] & 63];
        out[get_global_id(0)] = sum;
    }
    kernel void look_at_local(global int* out, local int* argument) {
        local int own[1024];
        int seen = 0;
        for (uint i = get_local_id(0); i < 1024; i += get_local_size(0)) seen |= own[i] | argument[i];
        barrier(CLK_LOCAL_MEM_FENCE);
        own[get_local_id(0)] = argument[get_local_id(0)] = 1;  // for the next work-group
        barrier(CLK_LOCAL_MEM_FENCE);
        out[get_global_id(0)] = seen | (own[get_local_id(0)] - 1);
    }
    struct Record { int numbers[40]; float4 more; };
    int called(int index) { int values[32]; return values[index & 31]; }
    kernel void look_at_private(global int* out, local int* argument) {
        int array[64];
        struct Record record;
        int scalar;
        float4 vector;
        const int id = (int)get_global_id(0);
        argument[get_local_id(0)] = 1;
        barrier(CLK_LOCAL_MEM_FENCE);
        int seen = scalar | array[id & 63] | record.numbers[id % 40] | as_int(vector.y) | as_int(record.more.z) | called(id);
        for (int round = 0; round < 2; ++round) { int inner[16]; seen |= inner[(id + round) & 15]; }
        out[get_global_id(0)] = seen;
    })";

TEST_F(InitializeMemory, LocalMemoryIsZeroInEveryWorkGroup) {
    use_context(local_bit);
    OwnedProgram program = build(source, "-w");
    for (const cl_device_id device : devices)
        EXPECT_EQ(violations(program, "look_at_local", device), 0);
}

TEST_F(InitializeMemory, PrivateVariablesAreZero) {
    use_context(private_bit | local_bit);
    for (const char* options : {"-w", "-w -cl-opt-disable"}) {
        OwnedProgram program = build(source, options);
        for (const cl_device_id device : devices)
            EXPECT_EQ(violations(program, "look_at_private", device), 0) << options;
    }
}

// Memory of the kernel's own beside an argument's, whose sizes are no multiples of a word; more memory than PTX can reserve; and a last
// work-group that is smaller.
TEST_F(InitializeMemory, LocalMemoryOfEverySizeIsZero) {
    use_context(local_bit);
    const std::string text = R"(
        kernel void k(global int* out, local char* argument, uint bytes) {
            local char odd[OWN];
            local double aligned[2];
            int seen = 0;
            for (uint i = get_local_id(0); i < bytes; i += get_local_size(0)) seen |= argument[i];
            for (uint i = get_local_id(0); i < OWN; i += get_local_size(0)) seen |= odd[i];
            seen |= aligned[get_local_id(0) & 1] != 0.0;
            barrier(CLK_LOCAL_MEM_FENCE);
            for (uint i = get_local_id(0); i < bytes; i += get_local_size(0)) argument[i] = 1;
            for (uint i = get_local_id(0); i < OWN; i += get_local_size(0)) odd[i] = 1;
            aligned[get_local_id(0) & 1] = 1.0;
            out[get_global_id(0)] = seen;
        })";
    const auto check = [&](cl_program from, cl_device_id device) {
        OwnedQueue on = make_queue(device);
        OwnedKernel kernel = make_kernel(from, "k");
        int unwritten[150];
        std::ranges::fill(unwritten, -1);
        OwnedMem out = make_buffer(sizeof unwritten, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, unwritten);
        for (const cl_uint bytes : {1U, 63U, 4099U}) {
            EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), out.in()), CL_SUCCESS);
            EXPECT_EQ(clSetKernelArg(kernel, 1, bytes, nullptr), CL_SUCCESS);
            EXPECT_EQ(clSetKernelArg(kernel, 2, sizeof bytes, &bytes), CL_SUCCESS);
            const size_t global = 150, local = 64;
            EXPECT_EQ(clEnqueueNDRangeKernel(on, kernel, 1, nullptr, &global, &local, 0, nullptr, nullptr), CL_SUCCESS);
            EXPECT_EQ(read<cl_int>(out, 150, on), std::vector<cl_int>(150)) << bytes;
        }
    };
    for (const char* options : {"-cl-std=CL3.0 -DOWN=37", "-cl-std=CL3.0 -DOWN=49999"}) {
        OwnedProgram program = build(text, options);
        for (const cl_device_id device : devices)
            check(program, device);
    }
}

// A binary of a context that does not ask for zeroed memory.
TEST_F(InitializeMemory, ProgramsFromBinariesHaveIt) {
    OwnedProgram before = build(source, "-w");
    std::vector<size_t> sizes(devices.size());
    ASSERT_EQ(clGetProgramInfo(before, CL_PROGRAM_BINARY_SIZES, sizes.size() * sizeof(size_t), sizes.data(), nullptr),
              CL_SUCCESS);
    std::vector<std::vector<unsigned char>> binaries;
    std::vector<unsigned char*> places;
    for (const size_t size : sizes)
        binaries.emplace_back(size);
    for (std::vector<unsigned char>& binary : binaries)
        places.push_back(binary.data());
    ASSERT_EQ(clGetProgramInfo(before, CL_PROGRAM_BINARIES, places.size() * sizeof(void*),
                               static_cast<void*>(places.data()), nullptr),
              CL_SUCCESS);
    before.reset();
    use_context(local_bit | private_bit);
    cl_int error = CL_INVALID_VALUE;
    std::vector<const unsigned char*> given(places.begin(), places.end());
    OwnedProgram program = clCreateProgramWithBinary(context, static_cast<cl_uint>(devices.size()), devices.data(),
                                                     sizes.data(), given.data(), nullptr, &error);
    ASSERT_EQ(error, CL_SUCCESS);
    ASSERT_EQ(clBuildProgram(program, 0, nullptr, "", nullptr, nullptr), CL_SUCCESS);
    for (const cl_device_id device : devices) {
        EXPECT_EQ(violations(program, "look_at_local", device), 0);
        EXPECT_EQ(violations(program, "look_at_private", device), 0);
    }
}

TEST_F(InitializeMemory, PropertiesAreCheckedAndReported) {
    EXPECT_EQ(error_of({CL_CONTEXT_MEMORY_INITIALIZE_KHR, 4, 0}), CL_INVALID_PROPERTY);
    EXPECT_EQ(error_of({CL_CONTEXT_MEMORY_INITIALIZE_KHR, -1, 0}), CL_INVALID_PROPERTY);
    EXPECT_EQ(error_of({CL_CONTEXT_MEMORY_INITIALIZE_KHR, 1, CL_CONTEXT_MEMORY_INITIALIZE_KHR, 1, 0}),
              CL_INVALID_PROPERTY);
    EXPECT_EQ(error_of({CL_CONTEXT_MEMORY_INITIALIZE_KHR, 0, 0}), CL_SUCCESS);
    use_context(private_bit);
    cl_context_properties reported[3] = {};
    EXPECT_EQ(clGetContextInfo(context, CL_CONTEXT_PROPERTIES, sizeof reported, reported, nullptr), CL_SUCCESS);
    EXPECT_EQ(reported[0], CL_CONTEXT_MEMORY_INITIALIZE_KHR);
    EXPECT_EQ(reported[1], private_bit);
    EXPECT_EQ(reported[2], 0);
}

}  // namespace
}  // namespace polder::test
