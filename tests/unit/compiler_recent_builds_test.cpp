// A program that is built again from the same source shares module and code with the program before; any other program does not.
#include "compiler_support.h"
#include "frontend/clang/parsed_arguments.h"
#include "module/module.h"
#include "program/recent_builds.h"

#include <filesystem>
#include <fstream>
#include <unistd.h>

namespace polder::compiler::test {
namespace {

std::string source_of(int number) {
    return "kernel void k(global int* out) { out[get_global_id(0)] = " + std::to_string(number) + "; }";
}

std::shared_ptr<Executable> code_of(const Outcome& built, uint64_t local_memory_bytes = 1 << 20) {
    Target of = target();
    of.code.local_memory_bytes = local_memory_bytes;
    return *Executable::open(built.module, of);
}

int result_of(const Outcome& built) {
    int out = 0;
    Launch(built, "k").set(0, &out).run(1, 1);
    return out;
}

class CompilerRecentBuilds : public testing::Test {
protected:
    void SetUp() override { unload(); }
};

TEST_F(CompilerRecentBuilds, TheSameSource_SharesModuleAndCode) {
    const Outcome first = build(source_of(1));
    const auto code = code_of(first);
    const Outcome again = build(source_of(1));
    EXPECT_EQ(again.module, first.module);
    EXPECT_EQ(code_of(again), code);
    EXPECT_EQ(result_of(again), 1);
}

TEST_F(CompilerRecentBuilds, WithoutOptimization_IsAnotherProgram) {
    const Outcome optimized = build(source_of(8));
    const Outcome as_written = build(source_of(8), "-cl-opt-disable");
    const auto is_optimized = [](const Outcome& built) {
        return static_cast<const CompiledModule&>(*built.module).options().is_optimized;
    };
    EXPECT_TRUE(is_optimized(optimized));
    EXPECT_FALSE(is_optimized(as_written));
    EXPECT_EQ(result_of(as_written), 8);
}

TEST_F(CompilerRecentBuilds, AProgramThatWasReleased_IsFoundAgain) {
    const std::weak_ptr<const Module> released = build(source_of(2)).module;
    EXPECT_EQ(build(source_of(2)).module, released.lock());
    EXPECT_FALSE(released.expired());
}

TEST_F(CompilerRecentBuilds, OtherSourcesOptionsAndHeaders_AreOtherPrograms) {
    EXPECT_EQ(result_of(build(source_of(1))), 1);
    EXPECT_EQ(result_of(build(source_of(3))), 3);
    const std::string source = "kernel void k(global int* out) { out[0] = X; }";
    EXPECT_EQ(result_of(build(source, "-DX=4")), 4);
    EXPECT_EQ(result_of(build(source, "-DX=5")), 5);
    for (const int number : {6, 7}) {
        const Outcome object =
            compile_object("#include \"x.h\"\n" + source, "", {{"x.h", "#define X " + std::to_string(number)}});
        EXPECT_EQ(result_of(link_objects({object.module})), number);
    }
}

TEST_F(CompilerRecentBuilds, AFileThatChanged_IsReadAgain) {
    const auto folder = std::filesystem::temp_directory_path() / ("polder-recent-" + std::to_string(getpid()));
    std::filesystem::create_directory(folder);
    for (const int number : {8, 9}) {
        std::ofstream(folder / "on_disk.h") << "#define X " << number << "\n";
        const Outcome built =
            build("#include <on_disk.h>\nkernel void k(global int* out) { out[0] = X; }", "-I" + folder.string());
        ASSERT_EQ(built.status, Status::success) << built.log;
        EXPECT_EQ(result_of(built), number);
    }
    std::filesystem::remove_all(folder);
}

TEST_F(CompilerRecentBuilds, LinkOptions_MakeOtherPrograms) {
    const auto object = compile_object(source_of(10)).module;
    const auto program = link_objects({object}).module;
    EXPECT_EQ(link_objects({object}, "-create-library").module->kind(), ModuleKind::library);
    EXPECT_EQ(link_objects({object}).module, program);
    EXPECT_NE(link_objects({object}, "-cl-opt-disable").module, program);
}

TEST_F(CompilerRecentBuilds, ALinkOfSeveralObjects_IsMadeAgain) {
    const auto one = compile_object("int f(void) { return 11; }").module;
    const auto other = compile_object("int f(void) { return 12; }").module;
    const auto caller = compile_object("int f(void); kernel void k(global int* out) { out[0] = f(); }").module;
    EXPECT_EQ(result_of(link_objects({caller, one})), 11);
    EXPECT_EQ(result_of(link_objects({caller, other})), 12);
}

TEST_F(CompilerRecentBuilds, Warnings_AreReportedAgain) {
    const std::string source = "kernel void k(global float* a) { global float2* b = a; b[0] = (float2)(1, 2); }";
    EXPECT_FALSE(build(source).log.empty());
    EXPECT_FALSE(build(source).log.empty());
}

TEST_F(CompilerRecentBuilds, ProgramsForDebuggers_AreNotShared) {
    for (int i = 0; i < 2; ++i) {
        const std::weak_ptr<const Module> released = build(source_of(13), "-g").module;
        EXPECT_TRUE(released.expired());
    }
}

TEST_F(CompilerRecentBuilds, CodeForOtherLocalMemory_IsNotShared) {
    const Outcome built = build("kernel void k(global int* out) { local int l[1000]; l[get_local_id(0)] = 1; "
                                "barrier(CLK_LOCAL_MEM_FENCE); out[0] = l[0]; }");
    EXPECT_TRUE(code_of(built)->code("k", std::nullopt).has_value());
    EXPECT_FALSE(code_of(built, 100)->code("k", std::nullopt).has_value());
}

TEST_F(CompilerRecentBuilds, ModulesForForeignCompilers_KeepTheirSource) {
    for (int i = 0; i < 2; ++i) {
        CompileInput input{source_of(14), {}, "", target(), false};
        input.target.code.format = driver::CodeFormat::opencl_c;
        std::string log;
        const auto object = compile(input, log);
        ASSERT_TRUE(object.has_value());
        ASSERT_EQ(static_cast<const CompiledModule&>(**object).source().units.size(), 1u);
    }
}

TEST_F(CompilerRecentBuilds, OnlyTheNewest_AreKept) {
    const std::weak_ptr<const Module> oldest = build(source_of(100)).module;
    const std::weak_ptr<const Module> used = build(source_of(101)).module;
    for (size_t i = 0; i + 2 < RecentBuilds::count_max; ++i)
        static_cast<void>(build(source_of(static_cast<int>(200 + i))));
    EXPECT_FALSE(oldest.expired());
    static_cast<void>(build(source_of(101)));
    static_cast<void>(build(source_of(102)));
    EXPECT_TRUE(oldest.expired());
    EXPECT_FALSE(used.expired());
}

TEST_F(CompilerRecentBuilds, LargePrograms_AreNotKept) {
    std::string numbers;
    for (uint64_t i = 0; i < 100000; ++i)
        numbers += std::to_string(i * 2654435761 % 1000000007) + ",";
    const std::weak_ptr<const Module> released =
        build("constant int table[] = {" + numbers +
              "}; kernel void k(global int* out) { out[0] = table[get_global_id(0)]; }")
            .module;
    EXPECT_TRUE(released.expired());
}

TEST_F(CompilerRecentBuilds, UnloadingTheCompiler_ReleasesAll) {
    const std::weak_ptr<const Module> released = build(source_of(15)).module;
    EXPECT_FALSE(released.expired());
    unload();
    EXPECT_TRUE(released.expired());
}

TEST(ParsedArguments, TheNewestAreKept_UntilTheCompilerIsUnloaded) {
    ParsedArguments kept;
    const auto arguments_of = [](size_t number) { return std::vector<std::string>{"-O2", std::to_string(number)}; };
    const auto parsed = std::make_shared<const clang::CompilerInvocation>();
    for (size_t i = 0; i < ParsedArguments::size_max; ++i)
        kept.keep(arguments_of(i), parsed);
    EXPECT_EQ(kept.find(arguments_of(0)), parsed);  // is the newest now
    kept.keep(arguments_of(ParsedArguments::size_max), parsed);
    EXPECT_EQ(kept.find(arguments_of(0)), parsed);
    EXPECT_EQ(kept.find(arguments_of(1)), nullptr);
    EXPECT_EQ(kept.find({"-O2"}), nullptr);
    kept.clear();
    EXPECT_EQ(kept.find(arguments_of(0)), nullptr);
}

TEST(ParsedArguments, MacrosAreKeptWithArgumentsThatAreKept) {
    ParsedArguments kept;
    const auto macros = std::make_shared<const PredefinedMacros>("#define X 1\n#define Y 2\nint y = Y;\n", 24, Words{});
    kept.keep_macros({"-O2"}, macros);
    EXPECT_EQ(kept.macros({"-O2"}), nullptr);
    kept.keep({"-O2"}, std::make_shared<const clang::CompilerInvocation>());
    EXPECT_EQ(kept.macros({"-O2"}), nullptr);
    kept.keep_macros({"-O2"}, macros);
    EXPECT_EQ(kept.macros({"-O2"}), macros);
    EXPECT_EQ(macros->needed_by({}), "\n#define Y 2\nint y = Y;\n");
    kept.clear();
    EXPECT_EQ(kept.macros({"-O2"}), nullptr);
}

TEST_F(CompilerRecentBuilds, ABuildWithTheSameOptions_ReadsItsOwnSource) {
    for (const int number : {11, 12, 13})
        EXPECT_EQ(result_of(build(source_of(number), "-DUNUSED=1")), number);
    const Outcome wrong = build("kernel void k(global int* out) { *out = missing; }", "-DUNUSED=1");
    EXPECT_NE(wrong.log.find("missing"), std::string::npos);
}

TEST(CompilerLink, OneObjectWithoutProgramVariables_KeepsItsBitcode) {
    const auto bitcode_of = [](const std::shared_ptr<const Module>& module) {
        return static_cast<const CompiledModule&>(*module).bitcode();
    };
    const Outcome plain = compile_object("kernel void k(global int* a) { a[0] = 7; }");
    EXPECT_EQ(bitcode_of(link_objects({plain.module}).module), bitcode_of(plain.module));
    // An empty variable has no bytes, but is taken out, too.
    for (const char* const variable : {"global int v = 3;", "struct E {}; global struct E v;"}) {
        const Outcome object = compile_object(
            std::string{variable} + " kernel void k(global ulong* a) { *a = (ulong)&v; }", "-cl-std=CL3.0");
        ASSERT_EQ(object.status, Status::success) << object.log;
        EXPECT_TRUE(bitcode_of(link_objects({object.module}).module).find("_polder_program_variables") !=
                    std::string_view::npos);
    }
}

}  // namespace
}  // namespace polder::compiler::test
