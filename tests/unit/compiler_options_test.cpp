// Build options: what each does, and the error codes of those that do not parse.
#include "compiler_support.h"

#include <compiler/opencl_version.h>

namespace polder::compiler::test {
namespace {

constexpr const char* empty_kernel = "kernel void k(global int* a) { a[0] = 1; }";

// Compiles a program that is only right when `condition` holds in the preprocessor.
void expect_defined(const std::string& condition, const std::string& options) {
    const Outcome built = compile_object("#if !(" + condition + ")\n#error not so\n#endif\n", options);
    EXPECT_EQ(built.status, Status::success) << condition << " with " << options << "\n" << built.log;
}

TEST(CompilerOptions, Definitions_WithAndWithoutSpace_ReachThePreprocessor) {
    expect_defined("X == 3", "-DX=3");
    expect_defined("X == 3", "-D X=3");
    expect_defined("defined(X)", "  -D\tX  ");
    expect_defined("!defined(X)", "-DX -UX");
}

TEST(CompilerOptions, Quotes_KeepSpacesInADefinition) {
    const Outcome built =
        compile_object("constant int x = SUM; constant char s[] = TEXT;", "-D SUM=\"1 + 2\" -DTEXT=\\\"abc\\\"");
    EXPECT_EQ(built.status, Status::success) << built.log;
}

TEST(CompilerOptions, Standard_SetsTheVersionMacro) {
    expect_defined("__OPENCL_C_VERSION__ == 120", "");
    expect_defined("__OPENCL_C_VERSION__ == 110", "-cl-std=CL1.1");
    expect_defined("__OPENCL_C_VERSION__ == 120", "-cl-std=CL1.2");
    expect_defined("__OPENCL_C_VERSION__ == 200", "-cl-std=CL2.0");
    expect_defined("__OPENCL_C_VERSION__ == 300", "-cl-std=CL3.0");
    expect_defined("__OPENCL_VERSION__ == 300", "");
}

Outcome compile_for(const Target& made_for, const char* source, const char* options) {
    std::string log;
    auto result = compile(CompileInput{source, {}, options, made_for, false}, log);
    return outcome_of(std::move(result), std::move(log));
}

// A device is one of OpenCL 3.1 if it has all that 3.1 makes mandatory.
TEST(CompilerOptions, Standard3_1_NeedsADeviceOfOpenCL3_1) {
    Target complete = target();
    for (const std::string_view name : extensions_of_opencl_3_1())
        complete.extensions.emplace_back(name);
    const char* source = "#if __OPENCL_C_VERSION__ != 310 || __OPENCL_VERSION__ != 310\n#error not so\n#endif\n";
    EXPECT_EQ(opencl_version(complete), 310u);
    const Outcome compiled = compile_for(complete, source, "-cl-std=CL3.1");
    EXPECT_EQ(compiled.status, Status::success) << compiled.log;
    for (const std::string_view name : extensions_of_opencl_3_1()) {
        Target lacking = complete;
        std::erase(lacking.extensions, name);
        EXPECT_EQ(opencl_version(lacking), 300u) << name;
        const Outcome refused = compile_for(lacking, empty_kernel, "-cl-std=CL3.1");
        EXPECT_EQ(refused.status, Status::compile_program_failure) << name;
        EXPECT_NE(refused.log.find("OpenCL C 3.1"), std::string::npos) << refused.log;
    }
    std::erase(complete.features, "__opencl_c_subgroups");
    EXPECT_EQ(opencl_version(complete), 300u);
}

// CL_DEVICE_OPENCL_C_VERSION is newer than 1.2 if and only if all optional features of the newer version are there.
TEST(CompilerOptions, LanguageVersion_NeedsEveryOptionalFeature) {
    const std::vector<std::string> of_2_0{"__opencl_c_3d_image_writes",
                                          "__opencl_c_atomic_order_acq_rel",
                                          "__opencl_c_atomic_order_seq_cst",
                                          "__opencl_c_atomic_scope_all_devices",
                                          "__opencl_c_atomic_scope_device",
                                          "__opencl_c_device_enqueue",
                                          "__opencl_c_generic_address_space",
                                          "__opencl_c_images",
                                          "__opencl_c_pipes",
                                          "__opencl_c_program_scope_global_variables",
                                          "__opencl_c_read_write_images",
                                          "__opencl_c_work_group_collective_functions"};
    const std::vector<std::string> later{"__opencl_c_fp64", "__opencl_c_int64", "__opencl_c_subgroups",
                                         "__opencl_c_integer_dot_product_input_4x8bit",
                                         "__opencl_c_integer_dot_product_input_4x8bit_packed"};
    Target complete = target();
    complete.features = of_2_0;
    EXPECT_TRUE(has_opencl_c_2_0(complete));
    EXPECT_EQ(complete_language_version(complete), 120U);
    complete.features.insert(complete.features.end(), later.begin(), later.end());
    EXPECT_EQ(complete_language_version(complete), 300U);
    for (const std::string_view name : extensions_of_opencl_3_1())
        complete.extensions.emplace_back(name);
    EXPECT_EQ(complete_language_version(complete), 310U);
    for (const std::string& name : of_2_0) {
        Target lacking = complete;
        std::erase(lacking.features, name);
        EXPECT_FALSE(has_opencl_c_2_0(lacking)) << name;
        EXPECT_EQ(complete_language_version(lacking), 120U) << name;
    }
    for (const std::string& name : later) {
        Target lacking = complete;
        std::erase(lacking.features, name);
        EXPECT_TRUE(has_opencl_c_2_0(lacking)) << name;
        EXPECT_EQ(complete_language_version(lacking), 120U) << name;
    }
}

// Decision 170: as doubles need none.
TEST(CompilerOptions, HalvesNeedNoPragma_ButObeyOne) {
    Target with_halves = target();
    with_halves.extensions.emplace_back("cl_khr_fp16");
    const char* source = "kernel void k(global half* a) { half b = a[0]; a[1] = b * 1.5h + sqrt(a[2]); }";
    for (const char* options : {"-cl-std=CL1.1 -Werror", "-Werror", "-cl-std=CL2.0 -Werror", "-cl-std=CL3.0 -Werror",
                                "-cl-std=CLC++2021 -Werror"}) {
        const Outcome compiled = compile_for(with_halves, source, options);
        EXPECT_EQ(compiled.status, Status::success) << options << compiled.log;
        EXPECT_EQ(compile_for(target(), source, options).status, Status::compile_program_failure) << options;
    }
    // Functions for which a header is included.
    const Outcome group = compile_for(
        with_halves, "kernel void k(global half* a) { a[0] = work_group_reduce_add(a[1] * 2.0h); }", "-cl-std=CL2.0");
    EXPECT_EQ(group.status, Status::success) << group.log;
    for (const std::string disabled :
         {"#pragma OPENCL EXTENSION cl_khr_fp16 : disable\n", "#pragma OPENCL EXTENSION all : disable\n"}) {
        const Outcome refused = compile_for(with_halves, (disabled + source).c_str(), "");
        EXPECT_EQ(refused.status, Status::compile_program_failure) << disabled;
        EXPECT_NE(refused.log.find("program.cl:2:"), std::string::npos) << refused.log;
    }
}

TEST(CompilerOptions, PredefinedMacros_SayWhatTheDeviceHas) {
    expect_defined("__ENDIAN_LITTLE__ == 1 && !defined(__IMAGE_SUPPORT__)", "");
    expect_defined("defined(cl_khr_fp64) && !defined(cl_khr_fp16)", "");
    expect_defined("defined(__opencl_c_fp64) && !defined(__opencl_c_images)", "-cl-std=CL3.0");
    expect_defined("defined(__FAST_RELAXED_MATH__)", "-cl-fast-relaxed-math");
    expect_defined("!defined(__FAST_RELAXED_MATH__)", "");
}

TEST(CompilerOptions, EveryOptionOfTheSpecification_IsAccepted) {
    for (const char* option :
         {"-cl-single-precision-constant", "-cl-denorms-are-zero", "-cl-fp32-correctly-rounded-divide-sqrt",
          "-cl-opt-disable", "-cl-strict-aliasing", "-cl-uniform-work-group-size", "-cl-no-subgroup-ifp",
          "-cl-mad-enable", "-cl-no-signed-zeros", "-cl-unsafe-math-optimizations", "-cl-finite-math-only",
          "-cl-fast-relaxed-math", "-w", "-Werror", "-cl-kernel-arg-info", "-g", "-I /tmp", "-I/tmp"})
        EXPECT_EQ(compile_object(empty_kernel, option).status, Status::success) << option;
}

TEST(CompilerOptions, UnknownOption_IsRefusedWithTheCodeOfTheStep) {
    const Outcome compiled = compile_object(empty_kernel, "-cl-no-such-thing");
    EXPECT_EQ(compiled.status, Status::invalid_compiler_options);
    EXPECT_NE(compiled.log.find("-cl-no-such-thing"), std::string::npos);
    EXPECT_EQ(build(empty_kernel, "-cl-no-such-thing").status, Status::invalid_build_options);
    const Outcome object = compile_object(empty_kernel);
    EXPECT_EQ(link_objects({object.module}, "-cl-no-such-thing").status, Status::invalid_linker_options);
}

TEST(CompilerOptions, MalformedOptions_AreRefused) {
    for (const char* options :
         {"-D", "-D 1X", "-I", "-cl-std=CL9.9", "-cl-std=", "-DX=\"open", "stray", "-create-library"})
        EXPECT_EQ(compile_object(empty_kernel, options).status, Status::invalid_compiler_options) << options;
}

// A build makes an executable; the options of libraries are linker options only.
TEST(CompilerOptions, LibraryOptions_AreRefusedByABuild) {
    for (const char* options : {"-create-library", "-create-library -enable-link-options", "-enable-link-options"}) {
        const Outcome built = build(empty_kernel, options);
        EXPECT_EQ(built.status, Status::invalid_build_options) << options;
        EXPECT_NE(built.log.find("not an option of this step"), std::string::npos) << built.log;
    }
}

TEST(CompilerOptions, WerrorMakesAWarningAnError_AndDashWSilencesIt) {
    const char* warns = "kernel void k(global int* a) { int unused_result; a[0] == 1; }";
    EXPECT_EQ(build(warns).status, Status::success);
    EXPECT_NE(build(warns).log.find("warning"), std::string::npos);
    EXPECT_EQ(build(warns, "-Werror").status, Status::build_program_failure);
    EXPECT_EQ(build(warns, "-w").log, "");
}

} // namespace
} // namespace polder::compiler::test
