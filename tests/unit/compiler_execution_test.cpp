// Machine code: results, arithmetic that must not trap, program-scope variables, printf, the disk cache.
#include "compiler_support.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>

namespace polder::compiler::test {
namespace {

namespace fs = std::filesystem;

TEST(CompilerExecution, MathOverManyWorkItems_IsRight) {
    const Outcome built =
        build("kernel void k(global float* a) { size_t i = get_global_id(0); a[i] = sin(a[i]) + exp(a[i]); }");
    ASSERT_EQ(built.status, Status::success) << built.log;
    std::vector<float> values(1000);
    for (size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<float>(i) / 100;
    Launch{built, "k"}.set(0, values.data()).run(1000, 64);
    for (size_t i = 0; i < values.size(); ++i) {
        const double x = static_cast<float>(i) / 100;
        ASSERT_NEAR(values[i], std::sin(x) + std::exp(x), 1e-5 * std::exp(x)) << i;
    }
}

TEST(CompilerExecution, IntegerDivisionByZeroAndOverflow_DoNotTrap) {
    const Outcome built = build("kernel void k(global int* a, global int* b, global ulong* u, global int4* v) {\n"
                                "  size_t i = get_global_id(0);\n"
                                "  int n = a[i], d = b[i];\n"
                                "  a[i] = n / d; b[i] = n % d;\n"
                                "  u[i] = u[i] / (ulong)d + u[i] % (ulong)d;\n"
                                "  v[i] = v[i] / (int4)(d) + v[i] % (int4)(d, 1, d, 2); }");
    ASSERT_EQ(built.status, Status::success) << built.log;
    constexpr int smallest = std::numeric_limits<int>::min();
    int a[8] = {1, smallest, 100, smallest, 0, 7, -9, 5};
    int b[8] = {0, -1, 7, 0, 0, -1, 2, 0};
    uint64_t u[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    alignas(16) int v[8][4] = {};
    v[1][0] = smallest;
    Launch{built, "k"}.set(0, &a[0]).set(1, &b[0]).set(2, &u[0]).set(3, &v[0][0]).run(8, 8);
    EXPECT_EQ(a[2], 14);
    EXPECT_EQ(b[2], 2);
    EXPECT_EQ(a[6], -4);
    EXPECT_EQ(b[6], -1);
    EXPECT_EQ(a[5], -7);
}

TEST(CompilerExecution, DivisionByAConstant_IsStillExact) {
    const Outcome built =
        build("kernel void k(global int* a) { size_t i = get_global_id(0); a[i] = a[i] / -1 + a[i] / 3; }");
    int a[4] = {9, -9, 1, 0};
    Launch{built, "k"}.set(0, &a[0]).run(4, 4);
    EXPECT_EQ(a[0], -6);
    EXPECT_EQ(a[1], 6);
}

TEST(CompilerExecution, Barriers_SeparateWhatWorkItemsDo) {
    const Outcome built = build("kernel void k(global int* a, local int* extra) {\n"
                                "  local int t[64]; int l = get_local_id(0);\n"
                                "  t[l] = a[get_global_id(0)]; extra[l] = l;\n"
                                "  barrier(CLK_LOCAL_MEM_FENCE);\n"
                                "  a[get_global_id(0)] = t[63 - l] + extra[63 - l]; }");
    ASSERT_EQ(built.status, Status::success) << built.log;
    std::vector<int> a(128);
    for (int i = 0; i < 128; ++i)
        a[i] = i;
    Launch{built, "k"}.set(0, a.data()).set(1, uint64_t{256}).run(128, 64);
    EXPECT_EQ(a[0], 63 + 63);
    EXPECT_EQ(a[64], 127 + 63);
}

TEST(CompilerExecution, ProgramVariables_AreInitializedAndShared) {
    const Outcome built =
        build("global int counter = 40;\n"
              "global float3 vector = (float3)(1, 2, 3);\n"
              "global int* global pointer = &counter;\n"
              "global short table[5] = {1, -2, 3};\n"
              "kernel void k(global int* a) { *pointer += 2; a[0] = counter; a[1] = vector.z; a[2] = table[1]; }",
              "-cl-std=CL3.0");
    ASSERT_EQ(built.status, Status::success) << built.log;
    EXPECT_TRUE(kernel_of(built, "k").uses_program_variables);
    const ProgramVariables& variables = built.module->program_variables();
    ASSERT_EQ(variables.relocations.size(), 1u);
    alignas(128) std::byte memory[256];
    ASSERT_LE(variables.image.size(), sizeof memory);
    std::memcpy(memory, variables.image.data(), variables.image.size());
    for (const uint64_t at : variables.relocations) {
        uint64_t address = 0;
        std::memcpy(&address, memory + at, 8);
        address += reinterpret_cast<uintptr_t>(&memory[0]);
        std::memcpy(memory + at, &address, 8);
    }
    int a[3] = {};
    Launch launch{built, "k"};
    launch.set(0, &a[0]);
    launch.run(1, 1, memory);
    launch.run(1, 1, memory);
    EXPECT_EQ(a[0], 44);
    EXPECT_EQ(a[1], 3);
    EXPECT_EQ(a[2], -2);
}

TEST(CompilerExecution, Printf_WritesItsText) {
    const Outcome built =
        build("kernel void k(float x) { printf(\"%d %s %.2f %v4d|\", 5, \"word\", x, (int4)(1, 2, 3, 4)); }");
    ASSERT_EQ(built.status, Status::success) << built.log;
    Launch launch{built, "k"};
    launch.set(0, 1.5f);
    launch.run(2, 2);
    EXPECT_EQ(launch.printed(), "5 word 1.50 1,2,3,4|5 word 1.50 1,2,3,4|");
}

TEST(CompilerExecution, StructByValue_Arrives) {
    const Outcome built = build("typedef struct { char c; int n[3]; double d; } S;\n"
                                "kernel void k(S s, global double* a) { a[0] = s.c + s.n[2] + s.d; }");
    ASSERT_EQ(built.status, Status::success) << built.log;
    struct S {
        char c;
        int n[3];
        double d;
    } s{1, {2, 3, 4}, 0.5};
    double a = 0;
    Launch{built, "k"}.set(0, s).set(1, &a).run(1, 1);
    EXPECT_EQ(a, 5.5);
}

TEST(CompilerExecution, InlineFunctionsAndOnesNamedLikeTheCLibrarys_AreTheProgramsOwn) {
    const std::string source =
        "inline int three(void) { return 3; }\n"
        "int strlen(int x) { return x + 1; }\n"
        "float sqrtf(float x) { return x + 0.5f; }\n"
        "kernel void k(global float* a) { size_t i = get_global_id(0); a[i] = sqrtf(strlen(three()) + a[i]); }";
    for (const char* options : {"", "-cl-opt-disable"}) {
        const Outcome built = build(source, options);
        ASSERT_EQ(built.status, Status::success) << built.log;
        float a[4] = {0, 1, 2, 3};
        Launch{built, "k"}.set(0, &a[0]).run(4, 4);
        EXPECT_EQ(a[3], 7.5f);
    }
}

TEST(CompilerExecution, UnknownKernel_IsRefused) {
    const Outcome built = build("kernel void k() {}");
    auto executable = Executable::open(built.module, target());
    EXPECT_EQ((*executable)->function("other", std::nullopt).error().status(), Status::invalid_kernel_name);
}

TEST(CompilerExecution, MoreLocalMemoryThanTheDeviceHas_IsRefused) {
    const Outcome built = build("kernel void k(global int* a) { local int big[1 << 20]; big[get_local_id(0)] = a[0];\n"
                                "  barrier(CLK_LOCAL_MEM_FENCE); a[1] = big[5]; }");
    ASSERT_EQ(built.status, Status::success) << built.log;
    auto executable = Executable::open(built.module, target());
    EXPECT_EQ((*executable)->function("k", std::nullopt).error().status(), Status::out_of_resources);
}

// The cache directory of this process is set by meson; each test uses a program of its own.
class CompilerCache : public ::testing::Test {
protected:
    static fs::path directory() { return std::getenv("POCL_CACHE_DIR"); }
    static std::vector<fs::path> entries() {
        std::vector<fs::path> found;
        std::error_code error;
        for (const auto& entry : fs::recursive_directory_iterator(directory(), error))
            if (entry.is_regular_file())
                found.push_back(entry.path());
        return found;
    }
    static int run(const std::string& source) {
        int a[4] = {};
        const Outcome built = build(source);
        EXPECT_EQ(built.status, Status::success) << built.log;
        Launch{built, "k"}.set(0, &a[0]).run(4, 4);
        return a[3];
    }
    void SetUp() override { fs::remove_all(directory()); }
};

TEST_F(CompilerCache, Entries_AreKeptPrivately) {
    EXPECT_EQ(run("kernel void k(global int* a) { a[get_global_id(0)] = 11; }"), 11);
    EXPECT_EQ(entries().size(), 2u);
    EXPECT_EQ(fs::status(directory()).permissions() & fs::perms::all, fs::perms::owner_all);
    EXPECT_EQ(run("kernel void k(global int* a) { a[get_global_id(0)] = 11; }"), 11);
    EXPECT_EQ(entries().size(), 2u);
}

TEST_F(CompilerCache, DamagedEntries_AreRebuilt) {
    const std::string source = "kernel void k(global int* a) { a[get_global_id(0)] = 12; }";
    run(source);
    for (const fs::path& entry : entries()) {
        std::fstream file(entry, std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(100);
        file.write("damage", 6);
    }
    EXPECT_EQ(run(source), 12);
    for (const fs::path& entry : entries())
        fs::resize_file(entry, 5);
    EXPECT_EQ(run(source), 12);
    EXPECT_EQ(entries().size(), 2u);
}

TEST_F(CompilerCache, ADirectoryThatCannotBeMade_DoesNotFailABuild) {
    std::ofstream(directory()) << "a file where the directory should be";
    EXPECT_EQ(run("kernel void k(global int* a) { a[get_global_id(0)] = 13; }"), 13);
    EXPECT_TRUE(fs::is_regular_file(directory()));
    fs::remove(directory());
}

TEST_F(CompilerCache, AnIncludeFromDisk_IsNotServedStale) {
    const fs::path folder = fs::temp_directory_path() / ("polder-include-" + std::to_string(::getpid()));
    fs::create_directories(folder);
    const auto value_with = [&](int value) {
        std::ofstream(folder / "value.h") << "#define VALUE " << value << "\n";
        const Outcome object = compile_object("#include \"value.h\"\nkernel void k(global int* a) { a[0] = VALUE; }",
                                              "-I \"" + folder.string() + "\"");
        EXPECT_EQ(object.status, Status::success) << object.log;
        int a = 0;
        Launch{link_objects({object.module}), "k"}.set(0, &a).run(1, 1);
        return a;
    };
    EXPECT_EQ(value_with(1), 1);
    EXPECT_EQ(value_with(2), 2);
    fs::remove_all(folder);
}

} // namespace
} // namespace polder::compiler::test
