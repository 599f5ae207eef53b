// Clang reads only those macros and vector types of its own headers that a program names; programs cannot see the difference.
#include "compiler_support.h"
#include "frontend/clang/definitions.h"

namespace polder::compiler::test {
namespace {

std::string needed(const char* text, std::string_view program) {
    Words words;
    add_words(program, words);
    return Definitions(text).needed_by(words);
}

TEST(Definitions, ADefinitionThatIsNotNamed_IsAnEmptyLine) {
    EXPECT_EQ(needed("int a;\n#define X 1\nint b;\n", "int c;"), "int a;\n\nint b;\n");
    EXPECT_EQ(needed("#define X(a) \\\n    (a)\nint b;\n", ""), "\n\nint b;\n");
    EXPECT_EQ(needed("typedef int int2 __attribute__((ext_vector_type(2)));\n", "int3 x;"), "\n");
}

TEST(Definitions, ADefinitionThatIsNamed_IsKept_WithThoseThatItNames) {
    const char* text =
        "#define X Y + 1\n#define Y (Z)\n#define Z 3\n#define W X\n"
        "typedef int int2 __attribute__((ext_vector_type(2)));\n#define as_int2(x) __builtin_astype(x, int2)\n";
    EXPECT_EQ(needed(text, "int a = X;"), "#define X Y + 1\n#define Y (Z)\n#define Z 3\n\n\n\n");
    EXPECT_EQ(needed(text, "as_int2(1L)"), "\n\n\n\ntypedef int int2 __attribute__((ext_vector_type(2)));\n"
                                           "#define as_int2(x) __builtin_astype(x, int2)\n");
}

TEST(Definitions, ALineThatIsAlwaysKept_KeepsWhatItNames) {
    const char* text = "#ifdef A\n#define X 1\n#else\n#define X 2\n#endif\nint a = X;\n";
    EXPECT_EQ(needed(text, ""), text);
}

TEST(Definitions, ExtensionsTypesAndComments_AreAlwaysKept) {
    for (const char* text : {"#define cl_khr_fp64 1\n", "#define __opencl_c_fp64 1\n", "typedef int event;\n",
                             "#define X 1 /* begins\n", "#undef X\n", "#define X 1 /* one */\n"})
        EXPECT_EQ(needed(text, ""), text);
}

TEST(Definitions, WordsAreIdentifiers) {
    Words words;
    add_words("a1 = 0x3f + _b(c.d)*$e;\"f\"", words);
    EXPECT_EQ(words.size(), 6U);
    for (const char* word : {"a1", "_b", "c", "d", "$e", "f"})
        EXPECT_TRUE(words.contains(word)) << word;
}

TEST(Definitions, TextThatMayHaveOtherIdentifiers_IsRecognised) {
    EXPECT_TRUE(has_all_words("#define F(x) \\\n  #x\nchar c = '\\n', *t = \"line\\n\";"));
    for (const char* text : {"#define F(x) x##4", "#define F(x) x%:%:4", "#include \"a.h\"", "#import <a.h>",
                             "?\?=define",  // a trigraph
                             "flo\\\nat4 x;", "flo\\ \nat4 x;"})
        EXPECT_FALSE(has_all_words(text)) << text;
}

uint32_t result_of(const std::string& expression, const std::string& options = "") {
    const Outcome built =
        build("kernel void k(global uint* out) { *out = (uint)(" + expression + "); }\n#define JOIN_(a, b) a ## b\n",
              options);
    const Outcome closed = build("kernel void k(global uint* out) { *out = (uint)(" + expression + "); }\n", options);
    uint32_t open_result = 0, closed_result = 1;
    EXPECT_TRUE(built.module && closed.module) << expression << ": " << built.log << closed.log;
    if (!built.module || !closed.module)
        return 0;
    Launch(built, "k").set(0, &open_result).run(1, 1);
    Launch(closed, "k").set(0, &closed_result).run(1, 1);
    EXPECT_EQ(open_result, closed_result) << expression;
    return closed_result;
}

TEST(ProgramsDefinitions, MacrosAndTypes_AreAsWithWholeHeaders) {
    EXPECT_EQ(result_of("M_PI_F * 1000"), 3141U);
    EXPECT_EQ(result_of("INT_MIN"), 1U << 31);
    EXPECT_EQ(result_of("as_uint4((float4)(1, 2, 3, 4)).y"), 0x40000000U);
    EXPECT_EQ(result_of("as_uint2(as_ushort4((ulong)7)).x"), 7U);
    EXPECT_EQ(result_of("__SIZEOF_INT__ * 10 + __CHAR_BIT__"), 48U);
    EXPECT_EQ(result_of("CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE"), 3U);
    EXPECT_EQ(result_of("__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__"), 1U);
    EXPECT_EQ(result_of("isnan(NAN) + 2 * isinf(HUGE_VALF) + 4 * (FLT_MAX < INFINITY)"), 7U);
}

TEST(ProgramsDefinitions, WordsOfOptions_AreNamed) {
    EXPECT_EQ(result_of("VALUE * 1000", "-DVALUE=M_E_F"), 2718U);
    EXPECT_EQ(result_of("sizeof(T)", "-D T=double16"), 128U);
}

TEST(ProgramsDefinitions, FunctionsOfExtensions_AreDeclared) {
    EXPECT_EQ(result_of("sub_group_reduce_add(1) == get_sub_group_size()", "-cl-std=CL3.0"), 1U);
    EXPECT_EQ(result_of("work_group_reduce_add(5)", "-cl-std=CL3.0"), 5U);
    EXPECT_EQ(result_of("convert_uint(ceil(2.5) + vload2(0, (private double[]){1, 2}).y)"), 5U);
}

TEST(ProgramsDefinitions, JoinedIdentifiers_AreDefined) {
    const Outcome built =
        build("#define VECTOR(t, n) t ## n\nkernel void k(global uint* out) {\n"
              "  VECTOR(float, 4) v = (VECTOR(float, 4))(VECTOR(FLT_, MAX)); *out = as_uint(v.x) + IN\\\nT_MAX; }");
    ASSERT_TRUE(built.module) << built.log;
    uint32_t out = 0;
    Launch(built, "k").set(0, &out).run(1, 1);
    EXPECT_EQ(out, 0x7f7fffffU + 0x7fffffffU);
}

TEST(ProgramsDefinitions, IncludedHeaders_MayNameThem) {
    const Outcome object = compile_object("#include \"limit.h\"\nkernel void k(global uint* out) { *out = limit; }", "",
                                          {{"limit.h", "constant uint limit = SHRT_MAX + sizeof(float3);\n"}});
    ASSERT_TRUE(object.module) << object.log;
}

TEST(ProgramsDefinitions, Messages_NameTheirLines) {
    const Outcome wrong = build("kernel void k(global uint* out) {\n  *out = as_uint((float4)(1)); }");
    EXPECT_NE(wrong.log.find("opencl-c-base.h:"), std::string::npos) << wrong.log;
    const Outcome open =
        build("kernel void k(global uint* out) {\n  *out = as_uint((float4)(1)); }\n#define J(a, b) a ## b\n");
    EXPECT_EQ(wrong.log, open.log);
}

}  // namespace
}  // namespace polder::compiler::test
