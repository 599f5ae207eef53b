#include "support/programs.h"

#include <atomic>
#include <chrono>
#include <thread>

namespace polder::test {
namespace {

TEST_F(Programs, CreationFromSourceReportsEveryBadArgument) {
    cl_int error = CL_SUCCESS;
    const char* text = good_source;
    const char* none = nullptr;
    EXPECT_EQ(clCreateProgramWithSource(foreign_handle<cl_context>(context), 1, &text, nullptr, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_CONTEXT);
    EXPECT_EQ(clCreateProgramWithSource(context, 0, &text, nullptr, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_VALUE);
    EXPECT_EQ(clCreateProgramWithSource(context, 1, nullptr, nullptr, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_VALUE);
    EXPECT_EQ(clCreateProgramWithSource(context, 1, &none, nullptr, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_VALUE);
}

TEST_F(Programs, SourceIsTheStringsPutTogether) {
    const char* strings[] = {"abcXXX", "def", "ghiYY"};
    const size_t lengths[] = {3, 0, 3};
    cl_int error = CL_SUCCESS;
    OwnedProgram program = clCreateProgramWithSource(context, 3, strings, lengths, &error);
    ASSERT_EQ(error, CL_SUCCESS);
    EXPECT_EQ(program_text(program, CL_PROGRAM_SOURCE), "abcdefghi");
}

TEST_F(Programs, SourceInALargerBufferEndsAtItsZero) {
    const char first[] = "kernel void a() {}\0junk ###";
    const char* strings[] = {first, "kernel void b() {}", "kernel void c() {}\0"};
    const size_t lengths[] = {sizeof first, 0, sizeof "kernel void c() {}"};
    cl_int error = CL_SUCCESS;
    OwnedProgram program = clCreateProgramWithSource(context, 3, strings, lengths, &error);
    ASSERT_EQ(error, CL_SUCCESS);
    EXPECT_EQ(program_text(program, CL_PROGRAM_SOURCE), "kernel void a() {}kernel void b() {}kernel void c() {}");
    EXPECT_EQ(clBuildProgram(program, 0, nullptr, "", nullptr, nullptr), CL_SUCCESS);
}

// Without optimisations, a load sees what a store of another type has changed.
TEST_F(Programs, WithoutOptimisationsMemoryMayBeReadAsAnotherType) {
    const char* const source = R"(
        kernel void k(global uint* a, global ushort* b) {
            const uint before = a[0];
            b[0] = 0x1234;
            a[1] = before + 1;
            a[2] = a[0];
        })";
    const OwnedProgram program = build(source, "-cl-opt-disable");
    const OwnedKernel kernel = make_kernel(program, "k");
    for (const cl_device_id device : devices) {
        const cl_uint zeros[3] = {};
        OwnedMem memory = make_buffer(sizeof zeros);
        cl_mem handle = memory;
        const OwnedQueue on = make_queue(device);
        ASSERT_EQ(clEnqueueWriteBuffer(on, memory, CL_TRUE, 0, sizeof zeros, zeros, 0, nullptr, nullptr), CL_SUCCESS);
        ASSERT_EQ(clSetKernelArg(kernel, 0, sizeof handle, &handle), CL_SUCCESS);
        ASSERT_EQ(clSetKernelArg(kernel, 1, sizeof handle, &handle), CL_SUCCESS);
        const size_t one = 1;
        ASSERT_EQ(clEnqueueNDRangeKernel(on, kernel, 1, nullptr, &one, nullptr, 0, nullptr, nullptr), CL_SUCCESS);
        cl_uint found[3] = {};
        ASSERT_EQ(clEnqueueReadBuffer(on, memory, CL_TRUE, 0, sizeof found, found, 0, nullptr, nullptr), CL_SUCCESS);
        EXPECT_EQ(found[0], 0x1234u);
        EXPECT_EQ(found[1], 1u);
        EXPECT_EQ(found[2], 0x1234u);
    }
}

TEST_F(Programs, ThoseOfNoLanguageAndNoBuiltInKernelsAreRefused) {
    cl_int error = CL_SUCCESS;
    EXPECT_EQ(clCreateProgramWithIL(context, "x", 1, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_VALUE);
    EXPECT_EQ(clCreateProgramWithIL(foreign_handle<cl_context>(context), "x", 1, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_CONTEXT);
    EXPECT_EQ(clCreateProgramWithBuiltInKernels(context, 1, devices.data(), "no.such", &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_VALUE);
    EXPECT_EQ(clCreateProgramWithBuiltInKernels(context, 0, nullptr, "no.such", &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_VALUE);
    const cl_device_id foreign = foreign_handle<cl_device_id>(context);
    EXPECT_EQ(clCreateProgramWithBuiltInKernels(context, 1, &foreign, "no.such", &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_DEVICE);
}

TEST_F(Programs, BuildingReportsEveryBadArgument) {
    OwnedProgram program = from_source(good_source);
    EXPECT_EQ(clBuildProgram(foreign_handle<cl_program>(context), 0, nullptr, "", nullptr, nullptr),
              CL_INVALID_PROGRAM);
    EXPECT_EQ(clBuildProgram(program, 1, nullptr, "", nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clBuildProgram(program, 0, devices.data(), "", nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clBuildProgram(program, 0, nullptr, "", nullptr, &devices), CL_INVALID_VALUE);
    const cl_device_id foreign = foreign_handle<cl_device_id>(context);
    EXPECT_EQ(clBuildProgram(program, 1, &foreign, "", nullptr, nullptr), CL_INVALID_DEVICE);
    EXPECT_EQ(clBuildProgram(program, 0, nullptr, "-no-such-option", nullptr, nullptr), CL_INVALID_BUILD_OPTIONS);
    EXPECT_EQ(build_value<cl_build_status>(program, CL_PROGRAM_BUILD_STATUS), CL_BUILD_ERROR);
}

TEST_F(Programs, SourceThatDoesNotParseGivesALogWithItsLine) {
    OwnedProgram program = from_source("kernel void k() {}\n\nint broken(\n");
    EXPECT_EQ(clBuildProgram(program, 0, nullptr, "", nullptr, nullptr), CL_BUILD_PROGRAM_FAILURE);
    EXPECT_EQ(build_value<cl_build_status>(program, CL_PROGRAM_BUILD_STATUS), CL_BUILD_ERROR);
    EXPECT_NE(build_log(program).find(":3:"), std::string::npos) << build_log(program);
    cl_int error = CL_SUCCESS;
    EXPECT_EQ(clCreateKernel(program, "k", &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_PROGRAM_EXECUTABLE);
}

TEST_F(Programs, QueriesAnswerBeforeAndAfterTheBuild) {
    OwnedProgram program = from_source(good_source);
    EXPECT_EQ(build_value<cl_build_status>(program, CL_PROGRAM_BUILD_STATUS), CL_BUILD_NONE);
    EXPECT_EQ(build_value<cl_program_binary_type>(program, CL_PROGRAM_BINARY_TYPE),
              cl_program_binary_type{CL_PROGRAM_BINARY_TYPE_NONE});
    size_t kernels = 0;
    EXPECT_EQ(clGetProgramInfo(program, CL_PROGRAM_NUM_KERNELS, sizeof kernels, &kernels, nullptr),
              CL_INVALID_PROGRAM_EXECUTABLE);
    ASSERT_EQ(clBuildProgram(program, 0, nullptr, "-DX=1", nullptr, nullptr), CL_SUCCESS);
    EXPECT_EQ(build_value<cl_build_status>(program, CL_PROGRAM_BUILD_STATUS), CL_BUILD_SUCCESS);
    EXPECT_EQ(build_value<cl_program_binary_type>(program, CL_PROGRAM_BINARY_TYPE),
              cl_program_binary_type{CL_PROGRAM_BINARY_TYPE_EXECUTABLE});
    EXPECT_EQ(build_value<size_t>(program, CL_PROGRAM_BUILD_GLOBAL_VARIABLE_TOTAL_SIZE), 0u);
    EXPECT_EQ(clGetProgramInfo(program, CL_PROGRAM_NUM_KERNELS, sizeof kernels, &kernels, nullptr), CL_SUCCESS);
    EXPECT_EQ(kernels, 2u);
    EXPECT_EQ(program_text(program, CL_PROGRAM_KERNEL_NAMES), "first;second");
    char options[16] = {};
    EXPECT_EQ(clGetProgramBuildInfo(program, devices[0], CL_PROGRAM_BUILD_OPTIONS, sizeof options, options, nullptr),
              CL_SUCCESS);
    EXPECT_STREQ(options, "-DX=1");
    size_t il_size = 1;
    EXPECT_EQ(clGetProgramInfo(program, CL_PROGRAM_IL, 0, nullptr, &il_size), CL_SUCCESS);
    EXPECT_EQ(il_size, 0u);
    cl_context its_context = nullptr;
    EXPECT_EQ(clGetProgramInfo(program, CL_PROGRAM_CONTEXT, sizeof its_context, &its_context, nullptr), CL_SUCCESS);
    EXPECT_EQ(its_context, context);
}

TEST_F(Programs, QueriesReportEveryBadArgument) {
    OwnedProgram program = from_source(good_source);
    cl_uint value = 0;
    EXPECT_EQ(
        clGetProgramInfo(foreign_handle<cl_program>(context), CL_PROGRAM_NUM_DEVICES, sizeof value, &value, nullptr),
        CL_INVALID_PROGRAM);
    EXPECT_EQ(clGetProgramInfo(program, 0x1, sizeof value, &value, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clGetProgramInfo(program, CL_PROGRAM_NUM_DEVICES, 1, &value, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clGetProgramBuildInfo(foreign_handle<cl_program>(context), devices[0], CL_PROGRAM_BUILD_STATUS,
                                    sizeof value, &value, nullptr),
              CL_INVALID_PROGRAM);
    EXPECT_EQ(clGetProgramBuildInfo(program, foreign_handle<cl_device_id>(context), CL_PROGRAM_BUILD_STATUS,
                                    sizeof value, &value, nullptr),
              CL_INVALID_DEVICE);
    EXPECT_EQ(clGetProgramBuildInfo(program, devices[0], 0x1, sizeof value, &value, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clGetProgramBuildInfo(program, devices[0], CL_PROGRAM_BUILD_STATUS, 1, &value, nullptr),
              CL_INVALID_VALUE);
}

TEST_F(Programs, AreCountedAndDestroyedByTheLastRelease) {
    OwnedProgram program = from_source(good_source);
    cl_uint count = 0;
    EXPECT_EQ(clRetainProgram(program), CL_SUCCESS);
    EXPECT_EQ(clGetProgramInfo(program, CL_PROGRAM_REFERENCE_COUNT, sizeof count, &count, nullptr), CL_SUCCESS);
    EXPECT_EQ(count, 2u);
    EXPECT_EQ(clReleaseProgram(program), CL_SUCCESS);
    EXPECT_EQ(clRetainProgram(foreign_handle<cl_program>(context)), CL_INVALID_PROGRAM);
    EXPECT_EQ(clReleaseProgram(foreign_handle<cl_program>(context)), CL_INVALID_PROGRAM);
}

TEST_F(Programs, AttachedKernelsForbidAnotherBuild) {
    OwnedProgram program = build(good_source);
    {
        OwnedKernel kernel = make_kernel(program, "first");
        EXPECT_EQ(clBuildProgram(program, 0, nullptr, "", nullptr, nullptr), CL_INVALID_OPERATION);
        EXPECT_EQ(clCompileProgram(program, 0, nullptr, "", 0, nullptr, nullptr, nullptr, nullptr),
                  CL_INVALID_OPERATION);
    }
    EXPECT_EQ(clBuildProgram(program, 0, nullptr, "", nullptr, nullptr), CL_SUCCESS);
    expect_runs(program, "first", 1);
}

TEST_F(Programs, BuildWithACallbackReportsItsEnd) {
    OwnedProgram program = from_source(good_source);
    std::atomic<cl_program> built_program{nullptr};
    ASSERT_EQ(clBuildProgram(
                  program, 0, nullptr, "",
                  [](cl_program built, void* user) { *static_cast<std::atomic<cl_program>*>(user) = built; },
                  &built_program),
              CL_SUCCESS);
    for (int i = 0; i < 6000 && !built_program; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_EQ(built_program, program);
    EXPECT_EQ(build_value<cl_build_status>(program, CL_PROGRAM_BUILD_STATUS), CL_BUILD_SUCCESS);
    expect_runs(program, "second", 2);
}

TEST_F(Programs, CompilingReportsEveryBadArgument) {
    OwnedProgram program = from_source(good_source);
    OwnedProgram header = from_source("int x;");
    cl_program headers[] = {header};
    const char* names[] = {"x.h"};
    const auto compile = [&](cl_program which, cl_uint count, const cl_program* list, const char** list_names) {
        return clCompileProgram(which, 0, nullptr, "", count, list, list_names, nullptr, nullptr);
    };
    EXPECT_EQ(compile(foreign_handle<cl_program>(context), 0, nullptr, nullptr), CL_INVALID_PROGRAM);
    EXPECT_EQ(compile(program, 0, headers, names), CL_INVALID_VALUE);
    EXPECT_EQ(compile(program, 1, nullptr, names), CL_INVALID_VALUE);
    EXPECT_EQ(compile(program, 1, headers, nullptr), CL_INVALID_VALUE);
    cl_program foreign = foreign_handle<cl_program>(context);
    EXPECT_EQ(compile(program, 1, &foreign, names), CL_INVALID_PROGRAM);
    EXPECT_EQ(clCompileProgram(program, 1, nullptr, "", 0, nullptr, nullptr, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clCompileProgram(program, 0, devices.data(), "", 0, nullptr, nullptr, nullptr, nullptr),
              CL_INVALID_VALUE);
    EXPECT_EQ(clCompileProgram(program, 0, nullptr, "", 0, nullptr, nullptr, nullptr, names), CL_INVALID_VALUE);
    EXPECT_EQ(clCompileProgram(program, 0, nullptr, "-no-such", 0, nullptr, nullptr, nullptr, nullptr),
              CL_INVALID_COMPILER_OPTIONS);
    OwnedProgram broken = from_source("int broken(");
    EXPECT_EQ(compile(broken, 0, nullptr, nullptr), CL_COMPILE_PROGRAM_FAILURE);
}

TEST_F(Programs, CompiledObjectsAreLinked) {
    OwnedProgram main_part = from_source("#include \"value.h\"\nint value(void);\n"
                                         "kernel void k(global int* a) { a[0] = value() + OFFSET; }");
    OwnedProgram value_part = from_source("int value(void) { return 40; }");
    OwnedProgram header = from_source("#define OFFSET 2\n");
    cl_program headers[] = {header};
    const char* names[] = {"value.h"};
    ASSERT_EQ(clCompileProgram(main_part, 0, nullptr, "", 1, headers, names, nullptr, nullptr), CL_SUCCESS)
        << build_log(main_part);
    ASSERT_EQ(clCompileProgram(value_part, 0, nullptr, "", 0, nullptr, nullptr, nullptr, nullptr), CL_SUCCESS);
    EXPECT_EQ(build_value<cl_program_binary_type>(main_part, CL_PROGRAM_BINARY_TYPE),
              cl_program_binary_type{CL_PROGRAM_BINARY_TYPE_COMPILED_OBJECT});
    cl_int error = CL_SUCCESS;
    cl_program library_inputs[] = {value_part};
    OwnedProgram library =
        clLinkProgram(context, 0, nullptr, "-create-library", 1, library_inputs, nullptr, nullptr, &error);
    ASSERT_EQ(error, CL_SUCCESS);
    EXPECT_EQ(build_value<cl_program_binary_type>(library, CL_PROGRAM_BINARY_TYPE),
              cl_program_binary_type{CL_PROGRAM_BINARY_TYPE_LIBRARY});
    cl_program inputs[] = {main_part, library};
    OwnedProgram linked = clLinkProgram(context, 0, nullptr, "", 2, inputs, nullptr, nullptr, &error);
    ASSERT_EQ(error, CL_SUCCESS);
    expect_runs(linked, "k", 42);
    EXPECT_EQ(clBuildProgram(linked, 0, nullptr, "", nullptr, nullptr), CL_INVALID_OPERATION);
    EXPECT_EQ(clCompileProgram(linked, 0, nullptr, "", 0, nullptr, nullptr, nullptr, nullptr), CL_INVALID_OPERATION);
}

TEST_F(Programs, LinkingReportsEveryBadArgument) {
    OwnedProgram never_compiled = from_source(good_source);
    cl_program inputs[] = {never_compiled};
    cl_int error = CL_SUCCESS;
    const auto link = [&](cl_context in, cl_uint count, const cl_program* list, const char* options = "") {
        const OwnedProgram made = clLinkProgram(in, 0, nullptr, options, count, list, nullptr, nullptr, &error);
        return error;
    };
    EXPECT_EQ(link(foreign_handle<cl_context>(context), 1, inputs), CL_INVALID_CONTEXT);
    EXPECT_EQ(link(context, 0, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(link(context, 0, inputs), CL_INVALID_VALUE);
    EXPECT_EQ(link(context, 1, nullptr), CL_INVALID_VALUE);
    cl_program foreign = foreign_handle<cl_program>(context);
    EXPECT_EQ(link(context, 1, &foreign), CL_INVALID_PROGRAM);
    EXPECT_EQ(link(context, 1, inputs), CL_INVALID_OPERATION);
    EXPECT_EQ(clLinkProgram(context, 1, nullptr, "", 1, inputs, nullptr, nullptr, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_VALUE);
    EXPECT_EQ(clLinkProgram(context, 0, nullptr, "", 1, inputs, nullptr, inputs, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_VALUE);
    ASSERT_EQ(clCompileProgram(never_compiled, 0, nullptr, "", 0, nullptr, nullptr, nullptr, nullptr), CL_SUCCESS);
    EXPECT_EQ(link(context, 1, inputs, "-no-such"), CL_INVALID_LINKER_OPTIONS);
    OwnedProgram unresolved = from_source("int missing(void); kernel void k(global int* a) { a[0] = missing(); }");
    ASSERT_EQ(clCompileProgram(unresolved, 0, nullptr, "", 0, nullptr, nullptr, nullptr, nullptr), CL_SUCCESS);
    cl_program bad[] = {unresolved};
    EXPECT_EQ(link(context, 1, bad), CL_LINK_PROGRAM_FAILURE);
}

TEST_F(Programs, BuildsWithInvalidOptionsDoNotBegin) {
    static std::atomic<int> calls;
    calls = 0;
    const auto count = [](cl_program, void*) { ++calls; };
    const OwnedProgram program = from_source(good_source);
    EXPECT_EQ(clBuildProgram(program, 0, nullptr, "-no-such", count, nullptr), CL_INVALID_BUILD_OPTIONS);
    EXPECT_EQ(clCompileProgram(program, 0, nullptr, "-no-such", 0, nullptr, nullptr, count, nullptr),
              CL_INVALID_COMPILER_OPTIONS);
    ASSERT_EQ(clCompileProgram(program, 0, nullptr, "", 0, nullptr, nullptr, nullptr, nullptr), CL_SUCCESS);
    cl_int error = CL_SUCCESS;
    EXPECT_EQ(clLinkProgram(context, 0, nullptr, "-no-such", 1, program.in(), count, nullptr, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_LINKER_OPTIONS);
    // The build that begins is reported, and nothing of the one before it.
    ASSERT_EQ(clBuildProgram(program, 0, nullptr, "", count, nullptr), CL_SUCCESS);
    while (calls == 0)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(calls, 1);
}

TEST_F(Programs, LinkingPassesOverADeviceForWhichNothingWasCompiled) {
    if (devices.size() < 2)
        GTEST_SKIP() << "needs two devices";
    OwnedProgram object = from_source(good_source);
    ASSERT_EQ(clCompileProgram(object, 1, devices.data(), "", 0, nullptr, nullptr, nullptr, nullptr), CL_SUCCESS);
    for (const cl_device_id* const list : {static_cast<const cl_device_id*>(nullptr), std::as_const(devices).data()}) {
        const cl_uint count = list ? static_cast<cl_uint>(devices.size()) : 0;
        cl_int error = CL_INVALID_VALUE;
        OwnedProgram linked = clLinkProgram(context, count, list, "", 1, object.in(), nullptr, nullptr, &error);
        ASSERT_EQ(error, CL_SUCCESS);
        cl_uint of_program = 0;
        EXPECT_EQ(clGetProgramInfo(linked, CL_PROGRAM_NUM_DEVICES, sizeof of_program, &of_program, nullptr),
                  CL_SUCCESS);
        EXPECT_EQ(of_program, devices.size());
        cl_build_status status = CL_BUILD_ERROR;
        EXPECT_EQ(clGetProgramBuildInfo(linked, devices[1], CL_PROGRAM_BUILD_STATUS, sizeof status, &status, nullptr),
                  CL_SUCCESS);
        EXPECT_EQ(status, CL_BUILD_NONE);
        expect_runs(linked, "first", 1);
    }
    // Two programs that have been compiled for different devices.
    OwnedProgram other = from_source("int unused(void) { return 1; }");
    ASSERT_EQ(clCompileProgram(other, 1, &devices[1], "", 0, nullptr, nullptr, nullptr, nullptr), CL_SUCCESS);
    const cl_program both[] = {object, other};
    cl_int error = CL_SUCCESS;
    EXPECT_EQ(clLinkProgram(context, 0, nullptr, "", 2, both, nullptr, nullptr, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_OPERATION);
}

TEST_F(Programs, ReleaseCallbackAndConstantsAreRefused) {
    OwnedProgram program = from_source(good_source);
    const auto callback = [](cl_program, void*) {};
    EXPECT_EQ(clSetProgramReleaseCallback(foreign_handle<cl_program>(context), callback, nullptr), CL_INVALID_PROGRAM);
    EXPECT_EQ(clSetProgramReleaseCallback(program, nullptr, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clSetProgramReleaseCallback(program, callback, nullptr), CL_INVALID_OPERATION);
    const cl_int value = 1;
    EXPECT_EQ(clSetProgramSpecializationConstant(program, 0, sizeof value, &value), CL_INVALID_PROGRAM);
    EXPECT_EQ(clSetProgramSpecializationConstant(foreign_handle<cl_program>(context), 0, sizeof value, &value),
              CL_INVALID_PROGRAM);
}

TEST_F(Programs, ProgramScopeVariablesKeepTheirValuesBetweenLaunches) {
    OwnedProgram program = build("global int counter = 5;\nglobal int* global where = &counter;\n"
                                 "kernel void count(global int* out) { counter += 1; out[0] = *where; }",
                                 "-cl-std=CL3.0");
    EXPECT_GE(build_value<size_t>(program, CL_PROGRAM_BUILD_GLOBAL_VARIABLE_TOTAL_SIZE), sizeof(cl_int));
    for (const cl_device_id device : devices) {
        queue = make_queue(device);
        expect_runs(program, "count", 6);
        expect_runs(program, "count", 7);
    }
}

// A program with `bytes` bytes of program-scope variables.
std::string with_variables(size_t bytes) {
    return "global char table[" + std::to_string(bytes) +
           "] = {7};\n"
           "kernel void look(global int* out) { out[0] = table[get_global_id(0)]; }";
}

TEST_F(Programs, ProgramScopeVariablesAboveTheLimitAreRefusedByTheBuild) {
    size_t most = 0;
    EXPECT_EQ(clGetDeviceInfo(devices[0], CL_DEVICE_MAX_GLOBAL_VARIABLE_SIZE, sizeof most, &most, nullptr), CL_SUCCESS);
    expect_runs(build(with_variables(most), "-cl-std=CL3.0"), "look", 7);

    OwnedProgram program = from_source(with_variables(most + 1));
    EXPECT_EQ(clBuildProgram(program, 0, nullptr, "-cl-std=CL3.0", nullptr, nullptr), CL_BUILD_PROGRAM_FAILURE);
    EXPECT_NE(build_log(program).find("CL_DEVICE_MAX_GLOBAL_VARIABLE_SIZE"), std::string::npos);

    OwnedProgram object = from_source(with_variables(most + 1));
    ASSERT_EQ(clCompileProgram(object, 0, nullptr, "-cl-std=CL3.0", 0, nullptr, nullptr, nullptr, nullptr), CL_SUCCESS);
    cl_int error = CL_SUCCESS;
    const OwnedProgram linked = clLinkProgram(context, 0, nullptr, "", 1, object.in(), nullptr, nullptr, &error);
    EXPECT_EQ(error, CL_LINK_PROGRAM_FAILURE);
}

} // namespace
} // namespace polder::test
