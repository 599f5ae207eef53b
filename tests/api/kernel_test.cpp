#include "support/fixture.h"

#include <CL/cl_ext.h>
#include <algorithm>

namespace polder::test {
namespace {

constexpr const char* source = R"(
typedef struct { int a; float b; } pair;
__attribute__((reqd_work_group_size(4, 2, 1))) kernel void fixed(global int* out) {
    out[get_global_linear_id()] = (int)get_local_size(0);
}
kernel void all(global int* g, constant int* c, local int* l, int i, float4 v, pair p) {
    l[get_local_id(0)] = i;
    barrier(CLK_LOCAL_MEM_FENCE);
    g[get_global_id(0)] = l[0] + (c ? c[0] : 1000) + (int)v.w + p.a;
}
kernel void named(global const float* restrict input, global volatile uint* output, const int count) {
    output[0] = (uint)input[count];
}
)";

class Kernels : public ContextTest {
protected:
    void SetUp() override {
        ContextTest::SetUp();
        program = build(source, "-cl-std=CL3.0 -cl-kernel-arg-info");
        buffer = make_buffer(1024);
        kernel = make_kernel(program, "all");
    }
    template <class T>
    T work_group_value(cl_kernel of, cl_kernel_work_group_info name) {
        T value{};
        EXPECT_EQ(clGetKernelWorkGroupInfo(of, devices[0], name, sizeof value, &value, nullptr), CL_SUCCESS);
        return value;
    }
    // One that all devices have; 16, if they do.
    size_t sub_group_size() {
        constexpr cl_device_info sub_group_sizes = 0x4108;  // CL_DEVICE_SUB_GROUP_SIZES_INTEL
        const auto all_have = [&](size_t wanted) {
            return std::ranges::all_of(devices, [&](cl_device_id device) {
                size_t sizes[16] = {}, bytes = 0;
                EXPECT_EQ(clGetDeviceInfo(device, sub_group_sizes, sizeof sizes, sizes, &bytes), CL_SUCCESS);
                return std::count(sizes, sizes + bytes / sizeof(size_t), wanted) != 0;
            });
        };
        for (const size_t size : {size_t{16}, size_t{32}})
            if (all_have(size))
                return size;
        ADD_FAILURE() << "no size of sub-groups that all devices have";
        return 1;
    }

    OwnedProgram program;
    OwnedMem buffer;
    OwnedKernel kernel;
};

TEST_F(Kernels, CreationReportsEveryBadArgument) {
    cl_int error = CL_SUCCESS;
    EXPECT_EQ(clCreateKernel(foreign_handle<cl_program>(context), "all", &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_PROGRAM);
    EXPECT_EQ(clCreateKernel(program, nullptr, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_VALUE);
    EXPECT_EQ(clCreateKernel(program, "none", &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_KERNEL_NAME);
    const OwnedProgram unbuilt = from_source(source);
    EXPECT_EQ(clCreateKernel(unbuilt, "all", &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_PROGRAM_EXECUTABLE);
}

TEST_F(Kernels, ArgumentsAboveTheLimitAreRefusedAtCreation) {
    size_t most = 0;
    EXPECT_EQ(clGetDeviceInfo(devices[0], CL_DEVICE_MAX_PARAMETER_SIZE, sizeof most, &most, nullptr), CL_SUCCESS);
    const std::string table = "typedef struct { int a[" + std::to_string((most - 8) / 4) + "]; } table;\n";
    const OwnedProgram tables = build(table + R"(
        kernel void most(global int* out, table t) { out[0] = t.a[get_global_id(0)]; }
        kernel void more(global int* out, table t, char c) { out[0] = t.a[get_global_id(0)] + c; })");
    const OwnedKernel just_fits = make_kernel(tables, "most");
    std::vector<cl_int> values(most / 4 - 2, 7);
    EXPECT_EQ(clSetKernelArg(just_fits, 0, sizeof(cl_mem), buffer.in()), CL_SUCCESS);
    EXPECT_EQ(clSetKernelArg(just_fits, 1, most - 8, values.data()), CL_SUCCESS);
    const size_t one = 1;
    EXPECT_EQ(clEnqueueNDRangeKernel(queue, just_fits, 1, nullptr, &one, nullptr, 0, nullptr, nullptr), CL_SUCCESS);
    EXPECT_EQ(read<cl_int>(buffer, 1)[0], 7);

    cl_int error = CL_SUCCESS;
    EXPECT_EQ(clCreateKernel(tables, "more", &error), nullptr);
    EXPECT_EQ(error, CL_OUT_OF_RESOURCES);
    cl_kernel kernels[2] = {};
    EXPECT_EQ(clCreateKernelsInProgram(tables, 2, kernels, nullptr), CL_OUT_OF_RESOURCES);
}

TEST_F(Kernels, AllOfAProgramAreCreatedAtOnce) {
    cl_uint count = 0;
    ASSERT_EQ(clCreateKernelsInProgram(program, 0, nullptr, &count), CL_SUCCESS);
    EXPECT_EQ(count, 3u);
    cl_kernel kernels[3] = {};
    EXPECT_EQ(clCreateKernelsInProgram(program, 2, kernels, &count), CL_INVALID_VALUE);
    EXPECT_EQ(clCreateKernelsInProgram(foreign_handle<cl_program>(context), 3, kernels, &count), CL_INVALID_PROGRAM);
    ASSERT_EQ(clCreateKernelsInProgram(program, 3, kernels, &count), CL_SUCCESS);
    for (const cl_kernel one : kernels)
        EXPECT_EQ(clReleaseKernel(one), CL_SUCCESS);
}

TEST_F(Kernels, ArgumentsReportEveryBadValue) {
    const cl_int number = 1;
    EXPECT_EQ(clSetKernelArg(foreign_handle<cl_kernel>(context), 0, sizeof(cl_mem), buffer.in()), CL_INVALID_KERNEL);
    EXPECT_EQ(clSetKernelArg(kernel, 6, sizeof number, &number), CL_INVALID_ARG_INDEX);
    EXPECT_EQ(clSetKernelArg(kernel, 0, 4, buffer.in()), CL_INVALID_ARG_SIZE);
    const cl_mem foreign = foreign_handle<cl_mem>(context);
    EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof foreign, &foreign), CL_INVALID_MEM_OBJECT);
    EXPECT_EQ(clSetKernelArg(kernel, 2, 16, &number), CL_INVALID_ARG_VALUE);
    EXPECT_EQ(clSetKernelArg(kernel, 3, 8, &number), CL_INVALID_ARG_SIZE);
    EXPECT_EQ(clSetKernelArg(kernel, 3, sizeof number, nullptr), CL_INVALID_ARG_VALUE);
    cl_int error = CL_SUCCESS;
    OwnedContext other = clCreateContext(nullptr, 1, devices.data(), nullptr, nullptr, &error);
    OwnedMem elsewhere = clCreateBuffer(other, CL_MEM_READ_WRITE, 16, nullptr, &error);
    EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), elsewhere.in()), CL_INVALID_CONTEXT);
}

TEST_F(Kernels, ArgumentsOfEveryKindArrive) {
    const cl_int i = 30, offset[] = {4};
    const cl_float4 v{{0, 0, 0, 5}};
    const struct {
        cl_int a;
        cl_float b;
    } pair{3, 0};
    OwnedMem constant =
        make_buffer(sizeof offset, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, const_cast<cl_int*>(offset));
    ASSERT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), buffer.in()), CL_SUCCESS);
    ASSERT_EQ(clSetKernelArg(kernel, 1, sizeof(cl_mem), constant.in()), CL_SUCCESS);
    ASSERT_EQ(clSetKernelArg(kernel, 2, 8 * sizeof(cl_int), nullptr), CL_SUCCESS);
    ASSERT_EQ(clSetKernelArg(kernel, 3, sizeof i, &i), CL_SUCCESS);
    ASSERT_EQ(clSetKernelArg(kernel, 4, sizeof v, &v), CL_SUCCESS);
    ASSERT_EQ(clSetKernelArg(kernel, 5, sizeof pair, &pair), CL_SUCCESS);
    const size_t global = 8, local = 4;
    for (const cl_device_id device : devices) {
        OwnedQueue on = make_queue(device);
        ASSERT_EQ(clEnqueueNDRangeKernel(on, kernel, 1, nullptr, &global, &local, 0, nullptr, nullptr), CL_SUCCESS);
        EXPECT_EQ(read<cl_int>(buffer, 8, on), std::vector<cl_int>(8, 42));
    }
    // A null buffer is a null pointer; a clone has its own arguments.
    cl_int error = CL_SUCCESS;
    OwnedKernel clone = clCloneKernel(kernel, &error);
    ASSERT_EQ(error, CL_SUCCESS);
    ASSERT_EQ(clSetKernelArg(clone, 1, sizeof(cl_mem), nullptr), CL_SUCCESS);
    ASSERT_EQ(clEnqueueNDRangeKernel(queue, clone, 1, nullptr, &global, &local, 0, nullptr, nullptr), CL_SUCCESS);
    EXPECT_EQ(read<cl_int>(buffer, 8), std::vector<cl_int>(8, 1038));
    ASSERT_EQ(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &global, &local, 0, nullptr, nullptr), CL_SUCCESS);
    EXPECT_EQ(read<cl_int>(buffer, 8), std::vector<cl_int>(8, 42));
    EXPECT_EQ(clCloneKernel(foreign_handle<cl_kernel>(context), &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_KERNEL);
}

TEST_F(Kernels, PendingLaunchKeepsTheArgumentsItWasEnqueuedWith) {
    OwnedProgram setter = build("kernel void put(global int* out, int value) { out[0] = value; }");
    OwnedKernel put = make_kernel(setter, "put");
    OwnedEvent gate = make_user_event();
    cl_int value = 1;
    ASSERT_EQ(clSetKernelArg(put, 0, sizeof(cl_mem), buffer.in()), CL_SUCCESS);
    ASSERT_EQ(clSetKernelArg(put, 1, sizeof value, &value), CL_SUCCESS);
    const size_t one = 1;
    ASSERT_EQ(clEnqueueNDRangeKernel(queue, put, 1, nullptr, &one, nullptr, 1, gate.in(), nullptr), CL_SUCCESS);
    value = 2;
    ASSERT_EQ(clSetKernelArg(put, 1, sizeof value, &value), CL_SUCCESS);
    ASSERT_EQ(clSetUserEventStatus(gate, CL_COMPLETE), CL_SUCCESS);
    EXPECT_EQ(read<cl_int>(buffer, 1)[0], 1);
}

TEST_F(Kernels, SvmPointersReportEveryBadArgument) {
    cl_device_svm_capabilities svm = 0;
    ASSERT_EQ(clGetDeviceInfo(devices[0], CL_DEVICE_SVM_CAPABILITIES, sizeof svm, &svm, nullptr), CL_SUCCESS);
    int anything = 0;
    EXPECT_EQ(clSetKernelArgSVMPointer(foreign_handle<cl_kernel>(context), 0, &anything), CL_INVALID_KERNEL);
    if (!svm) {
        EXPECT_EQ(clSetKernelArgSVMPointer(kernel, 0, &anything), CL_INVALID_OPERATION);
        return;
    }
    EXPECT_EQ(clSetKernelArgSVMPointer(kernel, 6, &anything), CL_INVALID_ARG_INDEX);
    EXPECT_EQ(clSetKernelArgSVMPointer(kernel, 3, &anything), CL_INVALID_ARG_VALUE);
    EXPECT_EQ(clSetKernelArgSVMPointer(kernel, 0, &anything), CL_SUCCESS);
    void* pointers[] = {&anything};
    EXPECT_EQ(clSetKernelExecInfo(foreign_handle<cl_kernel>(context), CL_KERNEL_EXEC_INFO_SVM_PTRS, sizeof pointers,
                                  pointers),
              CL_INVALID_KERNEL);
    EXPECT_EQ(clSetKernelExecInfo(kernel, 0x1, sizeof pointers, pointers), CL_INVALID_VALUE);
    EXPECT_EQ(clSetKernelExecInfo(kernel, CL_KERNEL_EXEC_INFO_SVM_PTRS, 3, pointers), CL_INVALID_VALUE);
    EXPECT_EQ(clSetKernelExecInfo(kernel, CL_KERNEL_EXEC_INFO_SVM_PTRS, 8, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clSetKernelExecInfo(kernel, CL_KERNEL_EXEC_INFO_SVM_PTRS, sizeof pointers, pointers), CL_SUCCESS);
    const cl_bool yes = CL_TRUE;
    EXPECT_EQ(clSetKernelExecInfo(kernel, CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM, 1, &yes), CL_INVALID_VALUE);
    EXPECT_EQ(clSetKernelExecInfo(kernel, CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM, sizeof yes, &yes), CL_SUCCESS);
}

TEST_F(Kernels, QueriesAnswer) {
    char name[16] = {};
    EXPECT_EQ(clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, sizeof name, name, nullptr), CL_SUCCESS);
    EXPECT_STREQ(name, "all");
    cl_uint count = 0;
    EXPECT_EQ(clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, sizeof count, &count, nullptr), CL_SUCCESS);
    EXPECT_EQ(count, 6u);
    EXPECT_EQ(clRetainKernel(kernel), CL_SUCCESS);
    EXPECT_EQ(clGetKernelInfo(kernel, CL_KERNEL_REFERENCE_COUNT, sizeof count, &count, nullptr), CL_SUCCESS);
    EXPECT_EQ(count, 2u);
    EXPECT_EQ(clReleaseKernel(kernel), CL_SUCCESS);
    cl_program its_program = nullptr;
    EXPECT_EQ(clGetKernelInfo(kernel, CL_KERNEL_PROGRAM, sizeof its_program, &its_program, nullptr), CL_SUCCESS);
    EXPECT_EQ(its_program, program);
    OwnedKernel fixed = make_kernel(program, "fixed");
    char attributes[64] = {};
    EXPECT_EQ(clGetKernelInfo(fixed, CL_KERNEL_ATTRIBUTES, sizeof attributes, attributes, nullptr), CL_SUCCESS);
    EXPECT_NE(std::string(attributes).find("reqd_work_group_size(4"), std::string::npos) << attributes;
    EXPECT_EQ(clGetKernelInfo(foreign_handle<cl_kernel>(context), CL_KERNEL_NUM_ARGS, sizeof count, &count, nullptr),
              CL_INVALID_KERNEL);
    EXPECT_EQ(clGetKernelInfo(kernel, 0x1, sizeof count, &count, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, 1, &count, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clRetainKernel(foreign_handle<cl_kernel>(context)), CL_INVALID_KERNEL);
    EXPECT_EQ(clReleaseKernel(foreign_handle<cl_kernel>(context)), CL_INVALID_KERNEL);
}

TEST_F(Kernels, ArgumentQueriesAnswer) {
    OwnedKernel named = make_kernel(program, "named");
    const auto text = [&](cl_uint index, cl_kernel_arg_info name) {
        char value[32] = {};
        EXPECT_EQ(clGetKernelArgInfo(named, index, name, sizeof value, value, nullptr), CL_SUCCESS);
        return std::string(value);
    };
    EXPECT_EQ(text(0, CL_KERNEL_ARG_NAME), "input");
    EXPECT_EQ(text(0, CL_KERNEL_ARG_TYPE_NAME), "float*");
    EXPECT_EQ(text(1, CL_KERNEL_ARG_TYPE_NAME), "uint*");
    EXPECT_EQ(text(2, CL_KERNEL_ARG_TYPE_NAME), "int");
    cl_kernel_arg_type_qualifier qualifier = 0;
    EXPECT_EQ(clGetKernelArgInfo(named, 0, CL_KERNEL_ARG_TYPE_QUALIFIER, sizeof qualifier, &qualifier, nullptr),
              CL_SUCCESS);
    EXPECT_EQ(qualifier, cl_kernel_arg_type_qualifier{CL_KERNEL_ARG_TYPE_CONST | CL_KERNEL_ARG_TYPE_RESTRICT});
    cl_kernel_arg_address_qualifier space = 0;
    EXPECT_EQ(clGetKernelArgInfo(named, 1, CL_KERNEL_ARG_ADDRESS_QUALIFIER, sizeof space, &space, nullptr), CL_SUCCESS);
    EXPECT_EQ(space, cl_kernel_arg_address_qualifier{CL_KERNEL_ARG_ADDRESS_GLOBAL});
    cl_kernel_arg_access_qualifier access = 0;
    EXPECT_EQ(clGetKernelArgInfo(named, 1, CL_KERNEL_ARG_ACCESS_QUALIFIER, sizeof access, &access, nullptr),
              CL_SUCCESS);
    EXPECT_EQ(access, cl_kernel_arg_access_qualifier{CL_KERNEL_ARG_ACCESS_NONE});
    EXPECT_EQ(clGetKernelArgInfo(named, 3, CL_KERNEL_ARG_NAME, 0, nullptr, nullptr), CL_INVALID_ARG_INDEX);
    EXPECT_EQ(clGetKernelArgInfo(named, 0, 0x1, 0, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clGetKernelArgInfo(named, 0, CL_KERNEL_ARG_ADDRESS_QUALIFIER, 1, &space, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clGetKernelArgInfo(foreign_handle<cl_kernel>(context), 0, CL_KERNEL_ARG_NAME, 0, nullptr, nullptr),
              CL_INVALID_KERNEL);
}

TEST_F(Kernels, ArgumentQueriesNeedTheirBuildOption) {
    OwnedProgram plain = build(source, "-cl-std=CL3.0");
    OwnedKernel named = make_kernel(plain, "named");
    for (const cl_kernel_arg_info name : {CL_KERNEL_ARG_NAME, CL_KERNEL_ARG_TYPE_NAME, CL_KERNEL_ARG_ADDRESS_QUALIFIER})
        EXPECT_EQ(clGetKernelArgInfo(named, 0, name, 0, nullptr, nullptr), CL_KERNEL_ARG_INFO_NOT_AVAILABLE);
    EXPECT_EQ(clGetKernelArgInfo(named, 3, CL_KERNEL_ARG_NAME, 0, nullptr, nullptr), CL_INVALID_ARG_INDEX);
}

TEST_F(Kernels, WorkGroupQueriesAnswer) {
    OwnedKernel fixed = make_kernel(program, "fixed");
    EXPECT_EQ((work_group_value<std::array<size_t, 3>>(fixed, CL_KERNEL_COMPILE_WORK_GROUP_SIZE)),
              (std::array<size_t, 3>{4, 2, 1}));
    EXPECT_EQ((work_group_value<std::array<size_t, 3>>(kernel, CL_KERNEL_COMPILE_WORK_GROUP_SIZE)),
              (std::array<size_t, 3>{0, 0, 0}));
    EXPECT_GE(work_group_value<size_t>(kernel, CL_KERNEL_WORK_GROUP_SIZE), 1u);
    EXPECT_GE(work_group_value<size_t>(kernel, CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE), 1u);
    ASSERT_EQ(clSetKernelArg(kernel, 2, 512, nullptr), CL_SUCCESS);
    EXPECT_GE(work_group_value<cl_ulong>(kernel, CL_KERNEL_LOCAL_MEM_SIZE), 512u);
    cl_ulong private_bytes = 0;
    EXPECT_EQ(clGetKernelWorkGroupInfo(kernel, devices[0], CL_KERNEL_PRIVATE_MEM_SIZE, sizeof private_bytes,
                                       &private_bytes, nullptr),
              CL_SUCCESS);
    size_t three[3];
    EXPECT_EQ(clGetKernelWorkGroupInfo(kernel, devices[0], CL_KERNEL_GLOBAL_WORK_SIZE, sizeof three, three, nullptr),
              CL_INVALID_VALUE);
    EXPECT_EQ(clGetKernelWorkGroupInfo(kernel, devices[0], 0x1, sizeof three, three, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clGetKernelWorkGroupInfo(kernel, devices[0], CL_KERNEL_WORK_GROUP_SIZE, 1, three, nullptr),
              CL_INVALID_VALUE);
    EXPECT_EQ(clGetKernelWorkGroupInfo(kernel, foreign_handle<cl_device_id>(context), CL_KERNEL_WORK_GROUP_SIZE,
                                       sizeof three, three, nullptr),
              CL_INVALID_DEVICE);
    EXPECT_EQ(clGetKernelWorkGroupInfo(kernel, nullptr, CL_KERNEL_WORK_GROUP_SIZE, sizeof three, three, nullptr),
              devices.size() > 1 ? CL_INVALID_DEVICE : CL_SUCCESS);
    EXPECT_EQ(clGetKernelWorkGroupInfo(foreign_handle<cl_kernel>(context), devices[0], CL_KERNEL_WORK_GROUP_SIZE,
                                       sizeof three, three, nullptr),
              CL_INVALID_KERNEL);
}

TEST_F(Kernels, SubGroupQueriesAnswer) {
    const size_t size = sub_group_size();
    const OwnedProgram made = build("kernel __attribute__((intel_reqd_sub_group_size(SIZE))) void sized() {}\n"
                                    "kernel __attribute__((intel_reqd_sub_group_size(SIZE))) "
                                    "__attribute__((reqd_work_group_size(12, 4, 1))) void square() {}",
                                    ("-DSIZE=" + std::to_string(size)).c_str());
    const OwnedKernel sized = make_kernel(made, "sized"), square = make_kernel(made, "square");
    size_t value = 0;
    const auto query = [&](cl_kernel of, cl_kernel_sub_group_info name, size_t input_size, const void* input) {
        return clGetKernelSubGroupInfo(of, devices[0], name, input_size, input, sizeof value, &value, nullptr);
    };
    const auto expect = [&](cl_kernel of, cl_kernel_sub_group_info name, size_t input_size, const void* input,
                            size_t expected) {
        EXPECT_EQ(query(of, name, input_size, input), CL_SUCCESS) << name;
        EXPECT_EQ(value, expected) << name;
    };
    const size_t local[] = {10, 4}, small[] = {5}, two = 2, none = 0, huge = ~size_t{0};
    expect(sized, CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE, sizeof local, local, std::min<size_t>(size, 40));
    expect(sized, CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE, sizeof small, small, 5);
    expect(sized, CL_KERNEL_SUB_GROUP_COUNT_FOR_NDRANGE, sizeof local, local, (40 + size - 1) / size);
    expect(sized, CL_KERNEL_LOCAL_SIZE_FOR_SUB_GROUP_COUNT, sizeof two, &two, 2 * size);
    expect(sized, CL_KERNEL_LOCAL_SIZE_FOR_SUB_GROUP_COUNT, sizeof none, &none, 0);
    expect(sized, CL_KERNEL_LOCAL_SIZE_FOR_SUB_GROUP_COUNT, sizeof huge, &huge, 0);
    expect(sized, CL_KERNEL_COMPILE_NUM_SUB_GROUPS, 0, nullptr, 0);
    expect(sized, CL_KERNEL_COMPILE_SUB_GROUP_SIZE_INTEL, 0, nullptr, size);
    expect(kernel, CL_KERNEL_COMPILE_SUB_GROUP_SIZE_INTEL, 0, nullptr, 0);
    size_t group_max = 0;
    EXPECT_EQ(
        clGetKernelWorkGroupInfo(sized, devices[0], CL_KERNEL_WORK_GROUP_SIZE, sizeof group_max, &group_max, nullptr),
        CL_SUCCESS);
    expect(sized, CL_KERNEL_MAX_NUM_SUB_GROUPS, 0, nullptr, group_max / size);
    const size_t all = (12 * 4 + size - 1) / size;
    expect(square, CL_KERNEL_MAX_NUM_SUB_GROUPS, 0, nullptr, all);
    // The result would have one dimension, and this kernel cannot be launched with one.
    expect(square, CL_KERNEL_LOCAL_SIZE_FOR_SUB_GROUP_COUNT, sizeof all, &all, 0);
    size_t sizes[2] = {};
    EXPECT_EQ(clGetKernelSubGroupInfo(square, devices[0], CL_KERNEL_LOCAL_SIZE_FOR_SUB_GROUP_COUNT, sizeof all, &all,
                                      sizeof sizes, sizes, nullptr),
              CL_SUCCESS);
    EXPECT_EQ(sizes[0], 12u);
    EXPECT_EQ(sizes[1], 4u);
    EXPECT_EQ(query(kernel, CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE, 0, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(query(kernel, CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE, 3, local), CL_INVALID_VALUE);
    EXPECT_EQ(query(kernel, CL_KERNEL_LOCAL_SIZE_FOR_SUB_GROUP_COUNT, 0, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(query(kernel, 0x1, 0, nullptr), CL_INVALID_VALUE);
}

TEST_F(Kernels, SubGroupSizesThatCannotBe_FailTheBuild) {
    for (const char* size : {"2", "12", "128"}) {
        const std::string kernel_source =
            std::string("kernel __attribute__((intel_reqd_sub_group_size(") + size + "))) void k() {}";
        const char* text = kernel_source.c_str();
        const OwnedProgram sized(clCreateProgramWithSource(context, 1, &text, nullptr, nullptr));
        EXPECT_EQ(clBuildProgram(sized, 1, &devices[0], "", nullptr, nullptr), CL_BUILD_PROGRAM_FAILURE) << size;
        char log[1000] = "";
        EXPECT_EQ(clGetProgramBuildInfo(sized, devices[0], CL_PROGRAM_BUILD_LOG, sizeof log, log, nullptr), CL_SUCCESS);
        EXPECT_NE(std::string(log).find("sub-groups of " + std::string(size)), std::string::npos) << log;
    }
}

} // namespace
} // namespace polder::test
