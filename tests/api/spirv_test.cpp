// Programs from SPIR-V. Each kernel of spirv/kernels.cl is built from source and from what Clang's SPIR-V backend makes of it,
// and must compute the same bits; hand-written modules have what Clang does not emit; damaged ones give an error and a log.
#include "support/modules.h"

#include <CL/cl_ext.h>
#include <cstring>
#include <initializer_list>

namespace polder::test {
namespace {

std::string module_file(const std::string& name) { return file(std::string(POLDER_TEST_MODULES "/") + name + ".spv"); }

std::vector<cl_uint> made_up_input() {
    std::vector<cl_uint> input(1024);
    cl_uint state = 12345;
    for (cl_uint& word : input)
        word = state = state * 1664525u + 1013904223u;
    return input;
}

class Spirv : public ContextTest {
protected:
    // The kernels compute the same from the source and from each of the modules.
    void expect_same_bits(const char* source_file, std::initializer_list<const char*> modules,
                          std::initializer_list<const char*> kernels) {
        const std::vector<cl_uint> input = made_up_input();
        OwnedProgram source = build(file(source_file), "-cl-std=CL3.0");
        for (const char* module : modules) {
            OwnedProgram program = build_il(module_file(module));
            for (const char* kernel : kernels) {
                const std::vector<cl_uint> expected = run(source, kernel, input);
                const std::vector<cl_uint> found = run(program, kernel, input);
                size_t differences = 0;
                for (size_t i = 0; i < expected.size() && differences < 4; ++i)
                    if (expected[i] != found[i]) {
                        ++differences;
                        ADD_FAILURE() << module << ", " << kernel << ": work-item " << i / 64 << ", word " << i % 64
                                      << ": " << std::hex << found[i] << " instead of " << expected[i];
                    }
            }
        }
    }
    OwnedProgram from_il(const std::string& bytes) {
        cl_int error = CL_INVALID_VALUE;
        cl_program made = clCreateProgramWithIL(context, bytes.data(), bytes.size(), &error);
        EXPECT_EQ(error, CL_SUCCESS);
        return made;
    }
    OwnedProgram build_il(const std::string& bytes) {
        OwnedProgram made = from_il(bytes);
        if (made && clBuildProgram(made, 0, nullptr, "", nullptr, nullptr) != CL_SUCCESS)
            ADD_FAILURE() << build_log(made);
        return made;
    }
    // From the binary for the first device.
    OwnedProgram from_binary_of(cl_program program) {
        std::vector<size_t> sizes(devices.size());
        EXPECT_EQ(
            clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizes.size() * sizeof(size_t), sizes.data(), nullptr),
            CL_SUCCESS);
        std::vector<unsigned char> bytes(sizes[0]);
        std::vector<unsigned char*> places(devices.size());
        places[0] = bytes.data();
        EXPECT_EQ(
            clGetProgramInfo(program, CL_PROGRAM_BINARIES, places.size() * sizeof places[0], places.data(), nullptr),
            CL_SUCCESS);
        cl_int status = CL_INVALID_VALUE, error = CL_INVALID_VALUE;
        const cl_program made = from_binary(devices[0], bytes, &status, &error);
        EXPECT_EQ(error, CL_SUCCESS);
        return made;
    }
    // The module is refused, and the log says why.
    void expect_refused(const std::string& bytes, const std::string& what) {
        OwnedProgram program = from_il(bytes);
        ASSERT_NE(static_cast<cl_program>(program), nullptr);
        EXPECT_EQ(clBuildProgram(program, 0, nullptr, "", nullptr, nullptr), CL_BUILD_PROGRAM_FAILURE);
        EXPECT_NE(build_log(program).find(what), std::string::npos) << build_log(program);
    }

    std::vector<cl_uint> run(cl_program program, const char* name, const std::vector<cl_uint>& input) {
        cl_int error = CL_INVALID_VALUE;
        OwnedKernel kernel = clCreateKernel(program, name, &error);
        EXPECT_EQ(error, CL_SUCCESS) << name;
        std::vector<cl_uint> output(4096, 0xa5a5a5a5u);
        OwnedMem in =
            make_buffer(input.size() * 4, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, const_cast<cl_uint*>(input.data()));
        OwnedMem out = make_buffer(output.size() * 4, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, output.data());
        EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), in.in()), CL_SUCCESS);
        EXPECT_EQ(clSetKernelArg(kernel, 1, sizeof(cl_mem), out.in()), CL_SUCCESS);
        const size_t global = 64, local = 16;
        EXPECT_EQ(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &global, &local, 0, nullptr, nullptr), CL_SUCCESS);
        EXPECT_EQ(clEnqueueReadBuffer(queue, out, CL_TRUE, 0, output.size() * 4, output.data(), 0, nullptr, nullptr),
                  CL_SUCCESS);
        return output;
    }

    std::vector<cl_uint> run_one(cl_program program, const char* name, cl_uint first, size_t words, size_t items = 1) {
        cl_int error = CL_INVALID_VALUE;
        OwnedKernel kernel = clCreateKernel(program, name, &error);
        EXPECT_EQ(error, CL_SUCCESS);
        std::vector<cl_uint> output(words, first);
        OwnedMem out = make_buffer(words * 4, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, output.data());
        EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), out.in()), CL_SUCCESS);
        EXPECT_EQ(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &items, nullptr, 0, nullptr, nullptr), CL_SUCCESS);
        EXPECT_EQ(clEnqueueReadBuffer(queue, out, CL_TRUE, 0, words * 4, output.data(), 0, nullptr, nullptr),
                  CL_SUCCESS);
        return output;
    }
};

TEST_F(Spirv, KernelsComputeTheSameBitsFromSourceAndFromClangsModules) {
    expect_same_bits(POLDER_TEST_KERNELS, {"kernels-1.0-O0", "kernels-1.4-O2", "kernels-1.6-O2"},
                     {"integers", "integer_functions", "floats", "math", "conversions", "vectors", "structures",
                      "control", "work_items", "local_memory", "atomics", "collectives", "halves", "one_for_all"});
}

TEST_F(Spirv, IntelsSubGroupInstructions_ComputeTheSameBitsAsTheFunctions) {
    expect_same_bits(POLDER_TEST_SUB_GROUPS, {"sub_groups-1.0-O0", "sub_groups-1.4-O2"}, {"shuffles", "blocks"});
}

TEST_F(Spirv, SpecializationConstantsHaveTheirValuesUntilTheApplicationSetsOthers) {
    const std::string module = module_file("constants");
    OwnedProgram program = from_il(module);
    ASSERT_EQ(clBuildProgram(program, 0, nullptr, "", nullptr, nullptr), CL_SUCCESS) << build_log(program);
    EXPECT_EQ(run_one(program, "constants", 0, 12, 2),
              (std::vector<cl_uint>{100, 201, 0x3fc00000, 705032704, 3, 1, 100, 201, 0x3fc00000, 705032704, 3, 1}));
    const cl_uint number = 7;
    const cl_ulong wide = 6000000000;
    const cl_char truth = 0, small = -2;
    const cl_float real = -1.0f;
    EXPECT_EQ(clSetProgramSpecializationConstant(program, 7, sizeof number, &number), CL_SUCCESS);
    EXPECT_EQ(clSetProgramSpecializationConstant(program, 8, sizeof wide, &wide), CL_SUCCESS);
    EXPECT_EQ(clSetProgramSpecializationConstant(program, 9, sizeof truth, &truth), CL_SUCCESS);
    EXPECT_EQ(clSetProgramSpecializationConstant(program, 10, sizeof real, &real), CL_SUCCESS);
    EXPECT_EQ(clSetProgramSpecializationConstant(program, 11, sizeof small, &small), CL_SUCCESS);
    ASSERT_EQ(clBuildProgram(program, 0, nullptr, "", nullptr, nullptr), CL_SUCCESS) << build_log(program);
    EXPECT_EQ(run_one(program, "constants", 0, 6), (std::vector<cl_uint>{7, 1, 0xbf800000, 1705032704, 0xfffffffe, 2}));

    EXPECT_EQ(clSetProgramSpecializationConstant(program, 77, sizeof number, &number), CL_INVALID_SPEC_ID);
    EXPECT_EQ(clSetProgramSpecializationConstant(program, 7, 8, &wide), CL_INVALID_VALUE);
    EXPECT_EQ(clSetProgramSpecializationConstant(program, 7, sizeof number, nullptr), CL_INVALID_VALUE);
    EXPECT_EQ(clSetProgramSpecializationConstant(from_source("kernel void k() {}"), 7, sizeof number, &number),
              CL_INVALID_PROGRAM);
}

TEST_F(Spirv, ModulesLinkWithEachOtherAndWithSource) {
    OwnedProgram user = from_il(module_file("user")), library = from_il(module_file("library"));
    OwnedProgram source = from_source("uint halve(uint x) { return x / 2; }");
    for (const cl_program program :
         {static_cast<cl_program>(user), static_cast<cl_program>(library), static_cast<cl_program>(source)})
        ASSERT_EQ(clCompileProgram(program, 0, nullptr, "", 0, nullptr, nullptr, nullptr, nullptr), CL_SUCCESS)
            << build_log(program);
    const cl_program parts[] = {user, library, source};
    cl_int error = CL_INVALID_VALUE;
    OwnedProgram linked = clLinkProgram(context, 0, nullptr, "", 3, parts, nullptr, nullptr, &error);
    ASSERT_EQ(error, CL_SUCCESS) << build_log(linked);
    EXPECT_EQ(run_one(linked, "user", 5, 1), std::vector<cl_uint>{(5 * 3 + 7) / 2});
    OwnedProgram incomplete = clLinkProgram(context, 0, nullptr, "", 2, parts, nullptr, nullptr, &error);
    EXPECT_EQ(error, CL_LINK_PROGRAM_FAILURE);
    EXPECT_NE(build_log(incomplete).find("halve"), std::string::npos) << build_log(incomplete);
}

TEST_F(Spirv, DeclarationsOfAliasing_AreAccepted) {
    OwnedProgram program = build_il(module_file("aliasing"));
    EXPECT_EQ(run_one(program, "twice", 21, 1), std::vector<cl_uint>{42});
}

TEST_F(Spirv, BlocksMayComeBeforeThoseThatDominateThem) {
    OwnedProgram program = build_il(module_file("block_order"));
    EXPECT_EQ(run_one(program, "number", 0, 3, 3), (std::vector<cl_uint>{9, 8, 11}));
}

TEST_F(Spirv, EntryPointsNeedNotListTheirVariables) {
    OwnedProgram program = build_il(module_file("short_interface"));
    EXPECT_EQ(run_one(program, "number", 0, 1), std::vector<cl_uint>{42});
}

TEST_F(Spirv, BuiltInVariablesMayBeConstants) {
    OwnedProgram program = build_il(module_file("constant_built_in"));
    EXPECT_EQ(run_one(program, "number", 0, 3, 3), (std::vector<cl_uint>{5, 6, 7}));
}

// DPC++ imports LLVM's functions for which SPIR-V has no instruction.
TEST_F(Spirv, FunctionsOfLlvmThatComputeIntegers_CanBeImported) {
    OwnedProgram program = build_il(module_file("imported_intrinsics"));
    // The id less 1, but not below 0, plus the id rotated left by 30 bits.
    const auto expected = [](cl_uint id) { return (id == 0 ? 0 : id - 1) + (id << 30 | id >> 2); };
    EXPECT_EQ(run_one(program, "number", 0, 3, 3), (std::vector<cl_uint>{expected(0), expected(1), expected(2)}));
}

TEST_F(Spirv, OtherFunctionsOfLlvm_CannotBeImported) {
    // A type other than that of the name, and a function with effects.
    for (const auto& [from, to] :
         {std::pair{"llvm.usub.sat.i32", "llvm.usub.sat.i64"}, std::pair{"llvm.fshl.i32", "llvm.prefetch"}}) {
        std::string module = module_file("imported_intrinsics");
        const size_t at = module.find(from);
        ASSERT_NE(at, std::string::npos);
        module.replace(at, std::string_view(to).size(), to);
        expect_refused(module, "the name '" + std::string(to) + "' is reserved");
    }
}

TEST_F(Spirv, MemoryLargerThanMaxByteOffset_CannotBeAnArgument) {
    OwnedProgram program = from_il(module_file("max_byte_offset"));
    const cl_ulong second_limit = 12;
    EXPECT_EQ(clSetProgramSpecializationConstant(program, 5, sizeof second_limit, &second_limit), CL_SUCCESS);
    ASSERT_EQ(clBuildProgram(program, 0, nullptr, "", nullptr, nullptr), CL_SUCCESS) << build_log(program);
    // The limits are in the program's binary, too.
    OwnedProgram copy = from_binary_of(program);
    ASSERT_EQ(clBuildProgram(copy, 1, devices.data(), "", nullptr, nullptr), CL_SUCCESS) << build_log(copy);
    const cl_uint four = 4;
    OwnedMem memory12 = make_buffer(12, CL_MEM_READ_WRITE), memory16 = make_buffer(16, CL_MEM_READ_WRITE),
             memory20 = make_buffer(20, CL_MEM_READ_WRITE);
    ASSERT_EQ(clEnqueueFillBuffer(queue, memory12, &four, 4, 0, 12, 0, nullptr, nullptr), CL_SUCCESS);
    for (const cl_program each : {static_cast<cl_program>(program), static_cast<cl_program>(copy)}) {
        cl_int error = CL_INVALID_VALUE;
        OwnedKernel kernel = clCreateKernel(each, "limited", &error);
        ASSERT_EQ(error, CL_SUCCESS);
        EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), memory16.in()), CL_SUCCESS);
        EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), memory20.in()), CL_MAX_SIZE_RESTRICTION_EXCEEDED);
        EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), nullptr), CL_SUCCESS);
        EXPECT_EQ(clSetKernelArg(kernel, 0, sizeof(cl_mem), memory16.in()), CL_SUCCESS);
        EXPECT_EQ(clSetKernelArg(kernel, 1, sizeof(cl_mem), memory12.in()), CL_SUCCESS);
        EXPECT_EQ(clSetKernelArg(kernel, 1, sizeof(cl_mem), memory16.in()), CL_MAX_SIZE_RESTRICTION_EXCEEDED);
        EXPECT_EQ(clSetKernelArg(kernel, 2, 32, nullptr), CL_SUCCESS);
        EXPECT_EQ(clSetKernelArg(kernel, 2, 36, nullptr), CL_MAX_SIZE_RESTRICTION_EXCEEDED);
        EXPECT_EQ(clSetKernelArg(kernel, 3, sizeof(cl_mem), memory20.in()), CL_SUCCESS);
        // The arguments that were refused have left the others in place.
        const size_t one = 1;
        EXPECT_EQ(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &one, nullptr, 0, nullptr, nullptr), CL_SUCCESS);
        cl_uint result = 0;
        EXPECT_EQ(clEnqueueReadBuffer(queue, memory16, CL_TRUE, 0, 4, &result, 0, nullptr, nullptr), CL_SUCCESS);
        EXPECT_EQ(result, 7u);
    }
}

TEST_F(Spirv, QueriesAnswerWithTheModuleAndTheVersions) {
    const std::string module = module_file("constants");
    OwnedProgram program = from_il(module);
    size_t size = 0;
    ASSERT_EQ(clGetProgramInfo(program, CL_PROGRAM_IL, 0, nullptr, &size), CL_SUCCESS);
    ASSERT_EQ(size, module.size());
    std::string il(size, '\0');
    EXPECT_EQ(clGetProgramInfo(program, CL_PROGRAM_IL, size, il.data(), nullptr), CL_SUCCESS);
    EXPECT_EQ(il, module);
    EXPECT_EQ(clGetProgramInfo(program, CL_PROGRAM_SOURCE, 0, nullptr, &size), CL_SUCCESS);
    EXPECT_EQ(size, 1u);
    char versions[256] = {};
    EXPECT_EQ(clGetDeviceInfo(devices[0], CL_DEVICE_IL_VERSION, sizeof versions, versions, nullptr), CL_SUCCESS);
    EXPECT_STREQ(versions, "SPIR-V_1.6 SPIR-V_1.5 SPIR-V_1.4 SPIR-V_1.3 SPIR-V_1.2 SPIR-V_1.1 SPIR-V_1.0");
    cl_name_version list[8];
    EXPECT_EQ(clGetDeviceInfo(devices[0], CL_DEVICE_ILS_WITH_VERSION, sizeof list, list, &size), CL_SUCCESS);
    EXPECT_EQ(size, 7 * sizeof(cl_name_version));
    EXPECT_STREQ(list[6].name, "SPIR-V");
    EXPECT_EQ(list[6].version, CL_MAKE_VERSION(1, 0, 0));
}

TEST_F(Spirv, CreationReportsEveryBadArgument) {
    cl_int error = CL_SUCCESS;
    const auto created_from = [&](const std::string& bytes) {
        EXPECT_EQ(clCreateProgramWithIL(context, bytes.data(), bytes.size(), &error), nullptr);
        return error;
    };
    const std::string good = module_file("library");
    EXPECT_EQ(clCreateProgramWithIL(context, nullptr, 20, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_VALUE);
    EXPECT_EQ(clCreateProgramWithIL(context, good.data(), 0, &error), nullptr);
    EXPECT_EQ(error, CL_INVALID_VALUE);
    EXPECT_EQ(created_from("not SPIR-V"), CL_INVALID_VALUE);
    EXPECT_EQ(created_from(good.substr(0, good.size() - 1)), CL_INVALID_VALUE);
    EXPECT_EQ(created_from(good.substr(0, good.size() - 8)), CL_INVALID_VALUE);
    std::string newer = good;
    newer[6] = 9;
    newer[5] = 9;
    EXPECT_EQ(created_from(newer), CL_INVALID_VALUE);
    auto* const create = reinterpret_cast<clCreateProgramWithILKHR_fn>(
        clGetExtensionFunctionAddressForPlatform(platform(), "clCreateProgramWithILKHR"));
    ASSERT_NE(create, nullptr);
    OwnedProgram program = create(context, good.data(), good.size(), &error);
    EXPECT_EQ(error, CL_SUCCESS);
}

TEST_F(Spirv, AModuleOfTheOtherByteOrderIsRead) {
    std::string module = module_file("constants");
    for (size_t i = 0; i + 3 < module.size(); i += 4) {
        std::swap(module[i], module[i + 3]);
        std::swap(module[i + 1], module[i + 2]);
    }
    EXPECT_EQ(run_one(build_il(module), "constants", 0, 6)[1], 201u);
}

TEST_F(Spirv, WhatIsNotSupportedIsNamedInTheLog) {
    expect_refused(module_file("named_barrier"), "OpCapability");
    expect_refused(module_file("recursion"), "calls itself");
    expect_refused(module_file("physical32"), "Physical64");
    expect_refused(module_file("invalid"), "OpIAdd");
}

// Words of good modules changed one at a time: whatever the result, the process does not crash, and failures have a log.
TEST_F(Spirv, DamagedModulesGiveAnErrorAndALog) {
    const std::string good[] = {module_file("constants"), module_file("device_queues")};
    cl_uint state = 99;
    const auto next = [&] { return (state = state * 1664525u + 1013904223u) >> 8; };
    for (int round = 0; round < 150; ++round) {
        std::string module = good[round % 3 == 2 ? 1 : 0];
        for (cl_uint changes = 1 + next() % 3; changes > 0; --changes) {
            const size_t word = 3 + next() % (module.size() / 4 - 3);
            const cl_uint values[] = {0, 1, next() % 64, 0xffffffffu, 0x00040000u + next() % 400, next()};
            std::memcpy(&module[4 * word], &values[next() % std::size(values)], 4);
        }
        cl_int error = CL_SUCCESS;
        OwnedProgram program = clCreateProgramWithIL(context, module.data(), module.size(), &error);
        if (!program) {
            EXPECT_EQ(error, CL_INVALID_VALUE);
            continue;
        }
        error = clBuildProgram(program, 1, devices.data(), "", nullptr, nullptr);
        if (error != CL_SUCCESS) {
            EXPECT_EQ(error, CL_BUILD_PROGRAM_FAILURE);
            EXPECT_GT(build_log(program).size(), 10u);
        }
    }
}

}  // namespace
}  // namespace polder::test
