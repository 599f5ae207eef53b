// Machine code: results, arithmetic that must not trap, program-scope variables, printf, the disk cache.
#include "compiler_support.h"
#include "support/leaks_allowed.h"

#include <algorithm>
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

// Parts of equal size, the first `rest` of which have one element more, as programs for GPUs write it. There x / 0 has all bits set.
TEST(CompilerExecution, AnUnsignedQuotientByZero_IsNotZeroWhereItIsCompared) {
    const std::string source = "kernel void k(global uint* count, uint n, uint parts) { uint i = get_global_id(0);\n"
                               "  uint rest = n % parts; count[i] = n / parts + !(i / rest);\n"
                               "  count[8 + i] = i / rest != 0; uint4 q = (uint4)(i) / (uint4)(rest, 1, 2, 3);\n"
                               "  count[16 + i] = (q == 0).x & 1; count[24 + i] = (q == 0).w & 1; }";
    for (const char* const options : {"", "-cl-opt-disable"}) {
        SCOPED_TRACE(options);
        const Outcome built = build(source, options);
        ASSERT_EQ(built.status, Status::success) << built.log;
        for (const uint32_t n : {16U, 19U}) {
            uint32_t count[32] = {};
            const uint32_t parts = 8, rest = n % parts;
            Launch{built, "k"}.set(0, &count[0]).set(1, n).set(2, parts).run(8, 8);
            for (uint32_t i = 0; i < 8; ++i) {
                EXPECT_EQ(count[i], n / parts + (i < rest ? 1 : 0)) << n << ", " << i;
                EXPECT_EQ(count[8 + i], i < rest ? 0U : 1U) << n << ", " << i;
                EXPECT_EQ(count[16 + i], i < rest ? 1U : 0U) << n << ", " << i;
                EXPECT_EQ(count[24 + i], i < 3 ? 1U : 0U) << n << ", " << i;
            }
        }
    }
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

// Program-scope variables with their initial contents, as the runtime makes them.
class Variables {
public:
    explicit Variables(const ProgramVariables& variables) {
        EXPECT_LE(variables.image.size(), sizeof memory_);
        std::copy(variables.image.begin(), variables.image.end(), memory_);
        for (const uint64_t at : variables.relocations) {
            uint64_t address = 0;
            std::memcpy(&address, memory_ + at, 8);
            address += reinterpret_cast<uintptr_t>(&memory_[0]);
            std::memcpy(memory_ + at, &address, 8);
        }
    }
    std::byte* base() { return memory_; }

private:
    alignas(128) std::byte memory_[256]{};
};

// What `kernel k(global int* a)` leaves in a[0].
int first_result(const std::string& source) {
    const Outcome built = build(source, "-cl-std=CL3.0");
    EXPECT_EQ(built.status, Status::success) << source << built.log;
    if (!built.module)
        return 0;
    Variables variables{built.module->program_variables()};
    int a = 0;
    Launch launch{built, "k"};
    launch.set(0, &a);
    launch.run(1, 1, variables.base());
    return a;
}

TEST(CompilerExecution, Initializers_HoldAddressesOfVariablesAndConstants) {
    // The address of a constant, in a constant; with an offset; in an array and in a structure.
    EXPECT_EQ(first_result("constant int c[2] = {1, 2}; constant int* constant p = c;\n"
                           "kernel void k(global int* a) { a[0] = p[1]; }"),
              2);
    EXPECT_EQ(first_result("constant int c[3] = {1, 2, 3}; constant int* constant p[2] = {c + 2, &c[1]};\n"
                           "kernel void k(global int* a) { a[0] = *p[get_global_id(0)] * 10 + *p[1]; }"),
              32);
    // The address of a variable, in a variable.
    EXPECT_EQ(first_result("global int x = 4; global int* global px = &x;\n"
                           "kernel void k(global int* a) { *px += 1; a[0] = x; }"),
              5);
    EXPECT_EQ(first_result("typedef struct { int v; global int* p; } S; global int x = 6; global S s = {3, &x};\n"
                           "kernel void k(global int* a) { a[0] = *s.p * 10 + s.v; }"),
              63);
    // The address of a constant, in a variable; also of a constant that points to another.
    EXPECT_EQ(first_result("constant int c[2] = {7, 8}; constant int* global p = &c[1];\n"
                           "kernel void k(global int* a) { a[0] = *p * 10 + c[0]; }"),
              87);
    EXPECT_EQ(
        first_result("constant int c = 9; constant int* constant p = &c; constant int* constant* global pp = &p;\n"
                     "kernel void k(global int* a) { a[0] = **pp; }"),
        9);
    EXPECT_EQ(first_result("constant char* global text = \"xyz\";\n"
                           "kernel void k(global int* a) { a[0] = text[1]; }"),
              'y');
    // The address of a variable, in a constant.
    EXPECT_EQ(first_result("global int x = 11; global int* constant p = &x;\n"
                           "kernel void k(global int* a) { x = 12; a[0] = *p; }"),
              12);
    // An address as a number.
    EXPECT_EQ(first_result("constant int c[2] = {13, 14}; global ulong n = (ulong)&c[1];\n"
                           "kernel void k(global int* a) { a[0] = n == (ulong)(c + 1) ? c[1] : 0; }"),
              14);
    // A variable's own.
    EXPECT_EQ(first_result("typedef struct N { global struct N* next; int v; } N;\n"
                           "global N two; global N one = {&two, 1}; global N two = {&one, 2};\n"
                           "kernel void k(global int* a) { a[0] = one.next->v * 10 + one.next->next->v; }"),
              21);
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
    Variables memory{variables};
    int a[3] = {};
    Launch launch{built, "k"};
    launch.set(0, &a[0]);
    launch.run(1, 1, memory.base());
    launch.run(1, 1, memory.base());
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

// LLVM reports what its code generator cannot do, and would end the process.
TEST(CompilerExecution, WhatTheCodeGeneratorRefuses_IsAnError) {
    // Inline assembly without instructions, with more values than the processor has registers.
    std::string outputs;
    for (int i = 0; i < 24; ++i)
        outputs += std::string{i == 0 ? "" : ", "} + "\"=&r\"(x[" + std::to_string(i) + "])";
    const Outcome built = build("kernel void k(global int* a) { int x[24]; __asm__ volatile(\"\" : " + outputs +
                                "); for (int i = 0; i < 24; ++i) a[i] = x[i]; }");
    ASSERT_EQ(built.status, Status::success) << built.log;
    auto executable = Executable::open(built.module, target());
    const polder::test::LeaksAllowed leaks_allowed;
    const auto refused = (*executable)->code("k", std::nullopt);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().status(), Status::out_of_resources);
    EXPECT_NE(refused.error().detail().find("error"), std::string_view::npos) << refused.error().detail();
}

TEST(CompilerExecution, CodeWithDebugInformation_ComputesTheSame) {
    for (const char* options : {"-g", "-g -cl-opt-disable"}) {
        int a[64] = {};
        const Outcome built = build("int twice(int x) { int y = 2 * x; return y; }\n"
                                    "kernel void k(global int* a) { local int l[4]; int i = get_local_id(0);\n"
                                    "  l[i] = twice(i); barrier(CLK_LOCAL_MEM_FENCE);\n"
                                    "  for (int j = 0; j < i; ++j) a[get_global_id(0)] += l[3 - j]; }",
                                    options);
        ASSERT_EQ(built.status, Status::success) << built.log;
        Launch{built, "k"}.set(0, &a[0]).run(64, 4);
        EXPECT_EQ(a[63], 6 + 4 + 2) << options;
    }
}

TEST(CompilerExecution, UnknownKernel_IsRefused) {
    const Outcome built = build("kernel void k() {}");
    auto executable = Executable::open(built.module, target());
    EXPECT_EQ((*executable)->code("other", std::nullopt).error().status(), Status::invalid_kernel_name);
}

TEST(CompilerExecution, MoreLocalMemoryThanTheDeviceHas_IsRefused) {
    const Outcome built = build("kernel void k(global int* a) { local int big[1 << 20]; big[get_local_id(0)] = a[0];\n"
                                "  barrier(CLK_LOCAL_MEM_FENCE); a[1] = big[5]; }");
    ASSERT_EQ(built.status, Status::success) << built.log;
    auto executable = Executable::open(built.module, target());
    EXPECT_EQ((*executable)->code("k", std::nullopt).error().status(), Status::out_of_resources);
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

}  // namespace
}  // namespace polder::compiler::test
