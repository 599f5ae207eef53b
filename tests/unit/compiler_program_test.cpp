// Programs: logs, kernel information, linking, binaries.
#include "compiler_support.h"

#include <llvm/Support/BLAKE3.h>

namespace polder::compiler::test {
namespace {

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(CompilerLog, SyntaxError_HasLineAndColumn) {
    const Outcome built = build("kernel void k(global int* a)\n{\n  a[0] = nonsense;\n}\n");
    EXPECT_EQ(built.status, Status::build_program_failure);
    EXPECT_TRUE(contains(built.log, "program.cl:3:10: error")) << built.log;
}

TEST(CompilerLog, CompileStep_HasItsOwnErrorCode) {
    EXPECT_EQ(compile_object("this is no C").status, Status::compile_program_failure);
}

TEST(CompilerLog, EmbeddedHeader_IsFoundAndNamedInItsErrors) {
    const std::vector<NamedSource> good{{"dir/one.h", "#define ONE 1\n"}};
    EXPECT_EQ(compile_object("#include \"dir/one.h\"\nconstant int x = ONE;", "", good).status, Status::success);
    const std::vector<NamedSource> bad{{"bad.h", "\nint f( {\n"}};
    const Outcome built = compile_object("#include <bad.h>\n", "", bad);
    EXPECT_EQ(built.status, Status::compile_program_failure);
    EXPECT_TRUE(contains(built.log, "bad.h:2:")) << built.log;
}

TEST(CompilerLog, MissingInclude_IsAnErrorThatNamesIt) {
    const Outcome built = compile_object("#include \"absent.h\"\n");
    EXPECT_EQ(built.status, Status::compile_program_failure);
    EXPECT_TRUE(contains(built.log, "absent.h"));
}

TEST(CompilerLog, PointersOfDifferentTypes_AreAWarning) {
    const Outcome built = build("kernel void k(global float* a) { global float2* b = a; b[0] = (float2)(1, 2); }");
    EXPECT_EQ(built.status, Status::success) << built.log;
    EXPECT_TRUE(contains(built.log, "warning: incompatible pointer types")) << built.log;
}

TEST(CompilerKernelInfo, Arguments_AreDescribedAndPacked) {
    const Outcome built = build("typedef struct { char c; double d; } S;\n"
                                "kernel void k(global const float* restrict in, char c, float3 v, S s, local int* l,\n"
                                "              constant uint* table, volatile global ulong4* out) {\n"
                                "  out[0] = (ulong4)(in[0] + c + v.x + s.d + l[0] + table[0]); }",
                                "-cl-kernel-arg-info");
    ASSERT_EQ(built.status, Status::success) << built.log;
    const KernelInfo& kernel = kernel_of(built, "k");
    ASSERT_EQ(kernel.arguments.size(), 7u);
    const auto& a = kernel.arguments;
    EXPECT_EQ(a[0].kind, ArgumentKind::global_pointer);
    EXPECT_EQ(a[0].type_name, "float*");
    EXPECT_EQ(a[0].name, "in");
    EXPECT_TRUE(a[0].is_const && a[0].is_restrict && !a[0].is_volatile);
    EXPECT_EQ(a[1].size, 1u);
    EXPECT_EQ(a[2].size, 16u);
    EXPECT_EQ(a[2].offset % 16, 0u);
    EXPECT_EQ(a[3].kind, ArgumentKind::value);
    EXPECT_EQ(a[3].size, 16u);
    EXPECT_EQ(a[3].type_name, "S");
    EXPECT_EQ(a[4].kind, ArgumentKind::local_pointer);
    EXPECT_EQ(a[5].kind, ArgumentKind::constant_pointer);
    EXPECT_EQ(a[5].address_space, AddressSpace::constant);
    EXPECT_TRUE(a[6].is_volatile);
    for (size_t i = 1; i < a.size(); ++i)
        EXPECT_GE(a[i].offset, a[i - 1].offset + a[i - 1].size);
    EXPECT_EQ(kernel.arguments_size, a[6].offset + 8);
}

TEST(CompilerKernelInfo, ArgumentInfo_IsThereIfAskedFor_AndStaysInBinaries) {
    const std::string source = "kernel void k(global int* a) {} kernel void nothing() {}";
    const Outcome with = build(source, "-cl-kernel-arg-info");
    EXPECT_TRUE(kernel_of(with, "k").has_argument_info);
    EXPECT_TRUE(kernel_of(with, "nothing").has_argument_info);
    EXPECT_FALSE(kernel_of(build(source), "k").has_argument_info);
    auto read = Module::deserialize(with.module->serialize());
    ASSERT_TRUE(read.has_value());
    EXPECT_TRUE(kernel_of({*read, Status::success, ""}, "k").has_argument_info);
}

TEST(CompilerKernelInfo, Attributes_AreReported) {
    const Outcome built = build(
        "kernel __attribute__((reqd_work_group_size(8, 4, 2))) void a() {}\n"
        "kernel __attribute__((work_group_size_hint(16, 1, 1))) __attribute__((vec_type_hint(uint4))) void b() {}\n");
    ASSERT_EQ(built.status, Status::success) << built.log;
    EXPECT_EQ(kernel_of(built, "a").attributes, "reqd_work_group_size(8,4,2)");
    EXPECT_EQ(kernel_of(built, "a").reqd_work_group_size, (std::array<uint64_t, 3>{8, 4, 2}));
    EXPECT_EQ(kernel_of(built, "b").attributes, "vec_type_hint(uint4) work_group_size_hint(16,1,1)");
    EXPECT_EQ(kernel_of(built, "b").work_group_size_hint, (std::array<uint64_t, 3>{16, 1, 1}));
}

TEST(CompilerKernelInfo, Kernels_AreSortedByName) {
    const Outcome built = build("kernel void c() {} kernel void a() {} kernel void b() {} void f() {}");
    ASSERT_EQ(built.module->kernels().size(), 3u);
    EXPECT_EQ(built.module->kernels()[0].name, "a");
    EXPECT_EQ(built.module->kernels()[2].name, "c");
}

Access access_of_first(const std::string& source, const std::string& options = "") {
    const Outcome built = build(source, options);
    EXPECT_EQ(built.status, Status::success) << built.log;
    return built.module ? built.module->kernels()[0].arguments[0].access : Access::overwrite;
}

TEST(CompilerAccess, DirectUses_AreReported) {
    EXPECT_EQ(access_of_first("kernel void k(global int* a) {}"), Access::none);
    EXPECT_EQ(access_of_first("kernel void k(global int* a, global int* b) { b[0] = a[0]; }"), Access::read);
    EXPECT_EQ(access_of_first("kernel void k(global int* a) { a[get_global_id(0)] = 1; }"), Access::write);
    EXPECT_EQ(access_of_first("kernel void k(global int* a) { a[0]++; }"), Access::read_write);
    EXPECT_EQ(access_of_first("kernel void k(global int* a) { atomic_inc(a); }"), Access::read_write);
}

TEST(CompilerAccess, Callees_AreLookedThrough) {
    EXPECT_EQ(access_of_first("int f(global int* p) { return p[1]; }\n"
                              "kernel void k(global int* a, global int* b) { b[0] = f(a + 1); }"),
              Access::read);
    EXPECT_EQ(access_of_first("void f(global int* p) { p[1] = 2; }\nkernel void k(global int* a) { f(a); }"),
              Access::write);
}

TEST(CompilerAccess, BuiltIns_AreLookedThrough) {
    EXPECT_EQ(access_of_first("kernel void k(global float* a, global float4* b) { b[0] = vload4(0, a); }"),
              Access::read);
    EXPECT_EQ(access_of_first("kernel void k(constant float* a, global float4* b) { b[0] = vload4(0, a); }"),
              Access::read);
    EXPECT_EQ(access_of_first("kernel void k(global float* a, float4 b) { vstore4(b, 0, a); }"), Access::write);
    EXPECT_NE(access_of_first("kernel void k(global float* a, float b) { fract(b, a); }"), Access::read);
}

TEST(CompilerAccess, APointerThatEscapes_CountsAsReadAndWritten) {
    EXPECT_EQ(access_of_first("kernel void k(global int* a, global ulong* b) { b[0] = (ulong)a; }"),
              Access::read_write);
    EXPECT_EQ(
        access_of_first(
            "kernel void k(global int* a, local long* l) {\n"
            "  global int* local* p = (global int* local*)l; p[0] = a; barrier(CLK_LOCAL_MEM_FENCE); p[0][1] = 3; }"),
        Access::read_write);
}

TEST(CompilerAccess, PointersOutOfMemory_AreReported) {
    EXPECT_FALSE(kernel_of(build("kernel void k(global int* a) { a[0] = 1; }"), "k").uses_indirect_pointers);
    EXPECT_TRUE(kernel_of(build("typedef struct N { global struct N* next; int v; } N;\n"
                                "kernel void k(global N* n) { n->next->v = 1; }"),
                          "k")
                    .uses_indirect_pointers);
}

TEST(CompilerWorkGroups, KernelsThatCannotSeeThem_AreKnown) {
    const auto sees = [](const char* source) {
        const Outcome built = build(source, "-cl-std=CL3.0");
        EXPECT_TRUE(built.module) << built.log;
        return built.module && kernel_of(built, "k").sees_work_groups;
    };
    EXPECT_FALSE(sees("global int n = 3;\n"
                      "kernel void k(global float* a) { size_t i = get_global_id(0) + get_global_offset(1);\n"
                      "  a[i] = sin(a[i]) * get_global_size(0) * get_work_dim() + get_global_linear_id() + n; }"));
    EXPECT_FALSE(sees("kernel void k(global int* a) { atomic_add(a, 1); printf(\"%d\", a[1]); }"));
    EXPECT_TRUE(sees("kernel void k(global int* a) { a[get_local_id(0)] = 1; }"));
    EXPECT_TRUE(sees("int f() { return get_group_id(0); }\nkernel void k(global int* a) { a[0] = f(); }"));
    EXPECT_TRUE(sees("kernel void k(global int* a) { a[0] = get_local_size(0); }"));
    EXPECT_TRUE(sees("kernel void k(global int* a) { a[0] = get_enqueued_local_size(0) + get_num_groups(0); }"));
    EXPECT_TRUE(sees("kernel void k(global int* a) { a[0] = get_local_linear_id(); }"));
    EXPECT_TRUE(sees("kernel void k(global int* a) { a[0] = get_sub_group_size(); }"));
    EXPECT_TRUE(sees("kernel void k(global int* a) { a[0] = work_group_reduce_add(a[1]); }"));
    EXPECT_TRUE(sees("kernel void k(global int* a) { barrier(CLK_GLOBAL_MEM_FENCE); a[0] = 1; }"));
    EXPECT_TRUE(sees("kernel void k(global int* a, local int* l) { a[0] = 1; }"));
    EXPECT_TRUE(sees("kernel void k(global int* a) { local int l[4]; atomic_xchg(l + 1, 3); a[0] = l[1]; }"));
}

constexpr const char* own_global_ids = R"(
    size_t row(void) { return get_local_id(1) + get_local_size(1) * get_group_id(1); }
    kernel void k(global int* a, int first) {
        int group = get_group_id(0), size = get_local_size(0), item = get_local_id(0);
        size_t i = get_group_id(0) * get_local_size(0) + get_local_id(0);
        a[first + group * size + item] = 10 * (int)(i + 5 * row());
    })";

TEST(CompilerWorkGroups, GlobalIdThatAProgramAddsUpByItself_DoesNotUseTheGroup) {
    const auto sees = [](const std::string& source, const char* options) {
        const Outcome built = build(source, options);
        EXPECT_TRUE(built.module) << built.log;
        return built.module && kernel_of(built, "k").sees_work_groups;
    };
    EXPECT_FALSE(sees(own_global_ids, "-cl-std=CL1.2"));
    EXPECT_FALSE(sees(own_global_ids, "-cl-std=CL3.0 -cl-uniform-work-group-size"));
    // The last group may be smaller: then its items' sums are no global ids.
    EXPECT_TRUE(sees(own_global_ids, "-cl-std=CL3.0"));
    const auto kernel = [](const std::string& value) {
        return "kernel void k(global int* a) { a[0] = " + value + "; }";
    };
    EXPECT_FALSE(sees(kernel("get_group_id(0) * get_enqueued_local_size(0) + get_local_id(0)"), "-cl-std=CL3.0"));
    for (const char* other : {"get_group_id(0) * get_local_size(1) + get_local_id(0)",
                              "get_group_id(0) * get_local_size(0) + get_local_id(1)",
                              "get_group_id(0) * get_local_size(0) - get_local_id(0)",
                              "get_group_id(0) * get_local_size(0) + 2 * get_local_id(0)",
                              "get_group_id(0) * get_local_size(0) + get_local_id(0) + get_local_id(0)"})
        EXPECT_TRUE(sees(kernel(other), "-cl-std=CL1.2")) << other;
}

TEST(CompilerWorkGroups, GlobalIdThatAProgramAddsUpByItself_IsRight) {
    const Outcome built = build(own_global_ids, "-cl-std=CL1.2");
    int values[18] = {};
    const int first = 2;
    Launch{built, "k"}.set(0, &values[0]).set(1, first).run(16, 4);
    for (int i = 0; i < 16; ++i)
        EXPECT_EQ(values[first + i], 10 * i);
}

TEST(CompilerWorkGroups, CodeForAnyGroups_SaysInWhichDimensionTheyShouldBeWide) {
    const Outcome built =
        build("kernel void rows(global int* a, int h) { int x = get_global_id(0), y = get_global_id(1);"
              " a[x * h + y] += y; }\n"
              "kernel void columns(global int* a, int w) { int x = get_global_id(0),"
              " y = get_global_id(1); a[y * w + x] += y; }");
    ASSERT_TRUE(built.module) << built.log;
    const auto executable = *Executable::open(built.module, target());
    for (const char* kernel : {"rows", "columns"})
        ASSERT_TRUE(executable->code(kernel, std::nullopt).has_value());
    EXPECT_EQ(executable->lane_dimensions("rows").used, 1u);
    EXPECT_EQ(executable->lane_dimensions("columns").used, 0u);
    const WorkGroups wide{{64, 1, 1}, WorkGroups::Ends::whole};
    EXPECT_EQ(executable->specialising(wide, executable->lane_dimensions("rows")), Specialising::at_once);
    EXPECT_EQ(executable->specialising(wide, executable->lane_dimensions("columns")), Specialising::never);
}

// In code for any groups a row of 16 has lanes, but what is the same for all rows is loaded again for each.
TEST(CompilerWorkGroups, RowsOfOneVector_GetCodeOfTheirOwnOnceTheKernelIsHot) {
    const Outcome built = build("kernel void k(global int* a) { a[get_global_id(1) * 64 + get_global_id(0)] += 1; }");
    ASSERT_TRUE(built.module) << built.log;
    const auto executable = *Executable::open(built.module, target());
    ASSERT_TRUE(executable->code("k", std::nullopt).has_value());
    const auto of = [&](std::array<uint64_t, 3> size) {
        return executable->specialising({size, WorkGroups::Ends::whole}, executable->lane_dimensions("k"));
    };
    EXPECT_EQ(of({16, 16, 1}), Specialising::when_hot);
    EXPECT_EQ(of({16, 1, 4}), Specialising::when_hot);
    EXPECT_EQ(of({16, 1, 1}), Specialising::never);
    EXPECT_EQ(of({8, 8, 1}), Specialising::at_once);
    EXPECT_EQ(of({32, 8, 1}), Specialising::never);
}

// Pixels of four channels: neighbours in a row may be in another block of channels, neighbours in a column are not.
TEST(CompilerWorkGroups, CodeForAnyGroups_SaysWhichOtherDimensionMayBeLanes) {
#if defined(__x86_64__)
    if (!__builtin_cpu_supports("avx512f"))
        GTEST_SKIP() << "needs vectors of 512 bits";
    const Outcome built = build(R"(
        kernel void k(int columns, int rows, global const float4* in, global const float4* weights, global float4* out,
                      int blocks, int height, int width) {
            const int column = get_global_id(0), row = get_global_id(1);
            if (column >= columns || row >= rows) return;
            const int c = column / width, x = column % width, image = row / height, y = row % height;
            const int first = (image * blocks * height + y) * width + x;
            float4 sum = 0;
            for (int i = 0; i < blocks; ++i) {
                const float4 pixel = in[first + i * height * width];
                global const float4* const w = weights + i * 4 * blocks + c;
                sum += pixel.x * w[0] + pixel.y * w[blocks] + pixel.z * w[2 * blocks] + pixel.w * w[3 * blocks];
            }
            out[((image * blocks + c) * height + y) * width + x] = clamp(sum, (float4)0, (float4)6);
        })");
    ASSERT_TRUE(built.module) << built.log;
    const auto executable = *Executable::open(built.module, target());
    ASSERT_TRUE(executable->code("k", std::nullopt).has_value());
    EXPECT_EQ(executable->lane_dimensions("k").used, 0U);
    EXPECT_EQ(executable->lane_dimensions("k").other, 1U);
    const CodeVersion of_rows{WorkGroups{{32, 4, 1}, WorkGroups::Ends::whole}, {}};
    ASSERT_TRUE(executable->code("k", of_rows).has_value());
    EXPECT_EQ(executable->lane_dimensions("k", of_rows).used, 1U);
#else
    GTEST_SKIP() << "needs vectors of 512 bits";
#endif
}

// Code for any groups has no lanes, but may have some along another dimension when it is known that there are enough rows.
TEST(CompilerWorkGroups, WithRowsThatMayBeLanes_GetCodeOfTheirOwnOnceTheKernelIsHot) {
    const Outcome built = build("kernel void k(global int* a) { a[get_global_id(0)] += 1; }");
    ASSERT_TRUE(built.module) << built.log;
    const auto executable = *Executable::open(built.module, target());
    using Ends = WorkGroups::Ends;
    const auto of = [&](std::array<uint64_t, 3> size, Ends ends, unsigned other) {
        return executable->specialising({size, ends}, {.used = 0, .other = other});
    };
    EXPECT_EQ(of({32, 4, 1}, Ends::whole, 1), Specialising::when_hot);
    EXPECT_EQ(of({32, 1, 8}, Ends::whole, 2), Specialising::when_hot);
    EXPECT_EQ(of({32, 4, 1}, Ends::ragged, 1), Specialising::never);
    EXPECT_EQ(of({32, 2, 8}, Ends::whole, 1), Specialising::never);
    EXPECT_EQ(of({32, 4, 1}, Ends::whole, 0), Specialising::never);
}

TEST(CompilerLink, ObjectsAndLibraries_MakeAProgram) {
    const Outcome helper = compile_object("int twice(int x) { return 2 * x; }");
    const Outcome library = link_objects({helper.module}, "-create-library");
    ASSERT_EQ(library.status, Status::success) << library.log;
    EXPECT_EQ(library.module->kind(), ModuleKind::library);
    const Outcome kernel =
        compile_object("int twice(int x);\nkernel void k(global int* a) { a[get_global_id(0)] = twice(21); }");
    const Outcome program = link_objects({kernel.module, library.module});
    ASSERT_EQ(program.status, Status::success) << program.log;
    int values[4] = {};
    Launch{program, "k"}.set(0, &values[0]).run(4, 2);
    EXPECT_EQ(values[3], 42);
}

TEST(CompilerLink, UndefinedSymbol_IsNamed) {
    const Outcome kernel =
        compile_object("int absent_function(int);\nkernel void k(global int* a) { a[0] = absent_function(1); }");
    const Outcome program = link_objects({kernel.module});
    EXPECT_EQ(program.status, Status::link_program_failure);
    EXPECT_TRUE(contains(program.log, "absent_function")) << program.log;
}

TEST(CompilerLink, AnUndefinedFunction_IsNamedWithItsLine) {
    const Outcome built = build("int elsewhere(int);\n"
                                "kernel void k(global int* a) {\n"
                                "    *a = elsewhere(1);\n"
                                "}\n");
    EXPECT_EQ(built.status, Status::build_program_failure);
    EXPECT_NE(built.log.find("program.cl:3:10: error: undefined symbol 'elsewhere'"), std::string::npos) << built.log;
}

TEST(CompilerLink, ABuiltInOfAFeatureThatIsMissing_IsNamedWithItsLineAndFeature) {
    const Outcome built = build("\n"
                                "uint __attribute__((overloadable)) intel_sub_group_shuffle_x(uint);\n"
                                "kernel void k(global uint* a) {\n"
                                "    a[0] = intel_sub_group_shuffle_x(a[1]);\n"
                                "    a[1] = intel_sub_group_shuffle_x(a[2]);\n"
                                "}\n");
    EXPECT_EQ(built.status, Status::build_program_failure);
    for (const char* place :
         {"program.cl:4:12: error: 'intel_sub_group_shuffle_x(unsigned int)' needs an extension of",
          "program.cl:5:12: error: 'intel_sub_group_shuffle_x(unsigned int)' needs an extension of"})
        EXPECT_NE(built.log.find(place), std::string::npos) << built.log;
}

TEST(CompilerLink, InlineAssembly_IsAnErrorWithItsLine) {
    const Outcome built = build("void f(global int* a) {\n"
                                "    __asm__ volatile(\"mov.u32 %0, %%laneid;\" : \"=r\"(*a));\n"
                                "}\n"
                                "kernel void k(global int* a) { f(a); }\n");
    EXPECT_EQ(built.status, Status::build_program_failure);
    EXPECT_NE(built.log.find("program.cl:2:5: error: inline assembly is not supported"), std::string::npos)
        << built.log;
}

TEST(CompilerLink, SymbolDefinedTwice_IsNamed) {
    const Outcome one = compile_object("int twin(int x) { return x; }");
    const Outcome two = compile_object("int twin(int x) { return -x; }");
    const Outcome program = link_objects({one.module, two.module});
    EXPECT_EQ(program.status, Status::link_program_failure);
    EXPECT_TRUE(contains(program.log, "twin")) << program.log;
}

TEST(CompilerBinary, SerializedProgram_RunsAfterReading) {
    const Outcome built =
        build("kernel __attribute__((reqd_work_group_size(2,1,1))) void k(global int* a) { a[get_global_id(0)] = 7; }");
    const std::vector<std::byte> bytes = built.module->serialize();
    auto read = Module::deserialize(bytes);
    ASSERT_TRUE(read.has_value());
    const Outcome again{*read, Status::success, ""};
    EXPECT_EQ(kernel_of(again, "k").attributes, "reqd_work_group_size(2,1,1)");
    int values[4] = {};
    Launch{again, "k"}.set(0, &values[0]).run(4, 2);
    EXPECT_EQ(values[2], 7);
}

TEST(CompilerBinary, DamagedOrForeignBytes_AreRefused) {
    const std::vector<std::byte> good = build("kernel void k(global int* a) { a[0] = 7; }").module->serialize();
    const auto status_of = [](std::span<const std::byte> bytes) {
        auto read = Module::deserialize(bytes);
        return read ? Status::success : read.error().status();
    };
    for (size_t at = 0; at < good.size(); at += 97) {
        std::vector<std::byte> bad = good;
        bad[at] ^= std::byte{0x10};
        ASSERT_EQ(status_of(bad), Status::invalid_binary) << "byte " << at;
    }
    for (const size_t size : {size_t{0}, size_t{1}, size_t{40}, good.size() / 2, good.size() - 1})
        EXPECT_EQ(status_of(std::span{good}.first(size)), Status::invalid_binary) << size;
    const std::vector<std::byte> foreign(1000, std::byte{0x7f});
    EXPECT_EQ(status_of(foreign), Status::invalid_binary);
}

// The bytes with the right hash at their end, as the writer of the binary would have put it there.
std::string with_right_hash(std::string bytes) {
    constexpr size_t hash_bytes = 32;
    bytes.resize(bytes.size() - hash_bytes);
    const auto hash =
        llvm::BLAKE3::hash<hash_bytes>(llvm::ArrayRef(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()));
    return bytes.append(reinterpret_cast<const char*>(hash.data()), hash.size());
}

TEST(CompilerBinary, MadeForAnotherProcessorOrByAnotherVersion_IsRefused) {
    const std::vector<std::byte> made = build("kernel void k(global int* a) { a[0] = 7; }").module->serialize();
    const std::string good{reinterpret_cast<const char*>(made.data()), made.size()};
    const auto read = [](const std::string& bytes) {
        return Module::deserialize(std::as_bytes(std::span{bytes.data(), bytes.size()}));
    };
    EXPECT_TRUE(read(with_right_hash(good)).has_value());
    // Who made it stands at its beginning: version, processor, and what that processor can do.
    const size_t begin = good.find("abi ");
    ASSERT_NE(begin, good.npos);
    uint64_t size = 0;
    std::memcpy(&size, good.data() + begin - sizeof size, sizeof size);
    for (const size_t at : {begin + 4, good.find(" llvm ") + 6, begin + size / 2, begin + size - 1}) {
        std::string other = good;
        other[at] ^= 1;
        const auto refused = read(with_right_hash(other));
        ASSERT_FALSE(refused.has_value()) << at;
        EXPECT_EQ(refused.error().status(), Status::invalid_binary);
        EXPECT_NE(refused.error().detail().find("another processor"), std::string_view::npos);
    }
}

}  // namespace
}  // namespace polder::compiler::test
