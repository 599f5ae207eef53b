// Single instructions with known results: what IEEE 754 and the PTX ISA define, at their edges above all.
#include "interpreted.h"

#include <array>
#include <bit>
#include <cmath>

namespace polder::ptx::test {
namespace {

struct Case {
    std::string instruction;  // with its modifiers; the last type is that of the sources, unless `sources` says more
    std::string result;  // its type
    std::vector<std::string> sources;
    std::vector<uint64_t> operands;
    uint64_t expected;
};

uint64_t f(float value) { return std::bit_cast<uint32_t>(value); }
uint64_t d(double value) { return std::bit_cast<uint64_t>(value); }
uint64_t s(int64_t value) { return static_cast<uint64_t>(value); }

// The type in which a register of PTX text holds `type`.
std::string register_type(const std::string& type) {
    if (type == "pred")
        return type;
    const unsigned bytes = bytes_of(type_named(type).value_or(Type::b64));
    return "b" + std::to_string(8 * std::max(2u, bytes));
}
// The untyped form of a type, for loads and stores.
std::string bits_type(const std::string& type) {
    return "b" + std::to_string(8 * bytes_of(type_named(type).value_or(Type::b64)));
}

uint64_t result_of(const Case& one) {
    std::string text = "    .reg ." + register_type(one.result) + " %d;\n";
    std::string operands;
    for (size_t i = 0; i < one.sources.size(); ++i) {
        const std::string name = "%s" + std::to_string(i);
        const std::string place = "[%rd0+" + std::to_string(8 * (i + 1)) + "];\n";
        if (one.sources[i] == "pred") {
            text += "    .reg .pred " + name + ";\n    ld.global.b32 %r1, " + place + "    setp.ne.b32 " + name +
                    ", %r1, 0;\n";
        } else {
            text += "    .reg ." + register_type(one.sources[i]) + " " + name + ";\n";
            text += "    ld.global." + bits_type(one.sources[i]) + " " + name + ", " + place;
        }
        operands += ", " + name;
    }
    text += "    " + one.instruction + " %d" + operands + ";\n";
    if (one.result == "pred")
        text += "    selp.b32 %r2, 1, 0, %d;\n    st.global.b32 [%rd0], %r2;\n";
    else
        text += "    st.global." + bits_type(one.result) + " [%rd0], %d;\n";
    const auto module = loaded(kernel(text + "    ret;\n"));
    if (module == nullptr)
        return 0xbad;
    std::array<uint64_t, 8> memory{};
    std::ranges::copy(one.operands, memory.begin() + 1);
    const auto outcome = run(*module, memory);
    EXPECT_EQ(outcome.fault, Fault::none) << one.instruction << ": " << outcome.what;
    return memory[0];
}

void expect(const std::vector<Case>& cases) {
    for (const Case& one : cases) {
        const uint64_t result = result_of(one);
        std::string operands;
        for (const uint64_t operand : one.operands)
            operands += " " + std::to_string(operand);
        EXPECT_EQ(result, one.expected) << one.instruction << " of" << operands << std::hex << ": 0x" << result
                                        << " instead of 0x" << one.expected;
    }
}

std::vector<Case> of(const std::string& instruction, const std::string& type, size_t sources,
                     const std::vector<std::vector<uint64_t>>& rows) {
    std::vector<Case> cases;
    for (const auto& row : rows)
        cases.push_back({instruction,
                         type,
                         std::vector<std::string>(sources, type),
                         {row.begin(), row.begin() + static_cast<std::ptrdiff_t>(sources)},
                         row.back()});
    return cases;
}

constexpr uint32_t canonical_nan = 0x7fffffff;
const float infinity = std::numeric_limits<float>::infinity();
const float tiny = std::numeric_limits<float>::denorm_min();
constexpr uint32_t high = 0x80000000u;

TEST(PtxInstruction, IntegersAreComputedModuloTheirWidth) {
    expect(of("add.s32", "s32", 2, {{0x7fffffff, 1, high}, {0xffffffff, 1, 0}}));
    expect(of("add.s16", "s16", 2, {{0xffff, 2, 1}}));
    expect(of("sub.u64", "u64", 2, {{0, 1, ~uint64_t{0}}}));
    expect(of("mul.lo.u16", "u16", 2, {{0xffff, 0xffff, 1}}));
    expect(of("mul.lo.s32", "s32", 2, {{0x10000, 0x10000, 0}}));
    expect(of("mul.hi.s32", "s32", 2, {{high, high, 0x40000000}, {0xffffffff, 1, 0xffffffff}}));
    expect(of("mul.hi.u32", "u32", 2, {{0xffffffff, 0xffffffff, 0xfffffffe}}));
    expect(of("mul.hi.u64", "u64", 2, {{~uint64_t{0}, ~uint64_t{0}, ~uint64_t{1}}}));
    expect(of("mul.hi.s64", "s64", 2, {{~uint64_t{0}, 5, ~uint64_t{0}}}));
    expect(of("neg.s32", "s32", 1, {{high, high}, {1, 0xffffffff}}));
    expect(of("abs.s32", "s32", 1, {{0xfffffffb, 5}, {high, high}}));
    expect(of("min.s32", "s32", 2, {{0xffffffff, 1, 0xffffffff}}));
    expect(of("min.u32", "u32", 2, {{0xffffffff, 1, 1}}));
    expect(of("max.s64", "s64", 2, {{s(-5), 3, 3}}));
    expect(of("sad.u32", "u32", 3, {{3, 10, 100, 107}, {10, 3, 100, 107}}));
}

TEST(PtxInstruction, LogicIsByBits) {
    expect(of("and.b32", "b32", 2, {{0xf0f0ff00, 0xff00f0f0, 0xf000f000}}));
    expect(of("or.b32", "b32", 2, {{0xf0f00000, 0xff00000f, 0xfff0000f}}));
    expect(of("xor.b64", "b64", 2, {{~uint64_t{0}, 0xff, ~uint64_t{0xff}}}));
    expect(of("not.b32", "b32", 1, {{0xff, 0xffffff00}}));
}

TEST(PtxInstruction, DivisionsOfTheSmallestNumberAndByZeroDoNotTrap) {
    expect(of("div.s32", "s32", 2, {{high, 0xffffffff, high}, {s(-7) & 0xffffffff, 2, s(-3) & 0xffffffff}}));
    expect(of("div.u32", "u32", 2, {{7, 0, 0xffffffff}, {0xfffffff9, 2, 0x7ffffffc}}));
    expect(of("rem.s32", "s32", 2, {{high, 0xffffffff, 0}, {s(-7) & 0xffffffff, 2, s(-1) & 0xffffffff}}));
    expect(of("div.s64", "s64", 2, {{uint64_t{1} << 63, s(-1), uint64_t{1} << 63}}));
    expect(of("rem.u64", "u64", 2, {{100, 7, 2}}));
}

TEST(PtxInstruction, WideResultsHoldTheWholeProduct) {
    expect({{"mul.wide.s32", "s64", {"s32", "s32"}, {0xffffffff, 5}, s(-5)},
            {"mul.wide.u32", "u64", {"u32", "u32"}, {0xffffffff, 0xffffffff}, 0xfffffffe00000001},
            {"mul.wide.u16", "u32", {"u16", "u16"}, {0xffff, 0xffff}, 0xfffe0001},
            {"mad.wide.s32", "s64", {"s32", "s32", "s64"}, {0xfffffffe, 3, 10}, 4},
            {"mad.lo.s64", "s64", {"s64", "s64", "s64"}, {3, 4, 5}, 17},
            {"mad.hi.u32", "u32", {"u32", "u32", "u32"}, {high, 4, 1}, 3},
            {"mul24.lo.s32", "s32", {"s32", "s32"}, {0x00ffffff, 3}, s(-3) & 0xffffffff},
            {"mul24.hi.u32", "u32", {"u32", "u32"}, {0x00ffffff, 0x00ffffff}, 0xfffffe00},
            {"mad24.lo.u32", "u32", {"u32", "u32", "u32"}, {0xff000002, 3, 1}, 7},
            {"dp4a.u32.s32", "b32", {"u32", "s32", "s32"}, {0x01010102, 0xff020304, 100}, 112},
            {"dp2a.lo.s32.u32", "b32", {"s32", "u32", "s32"}, {0xffff0002, 0x00000503, 1}, 2}});
}

TEST(PtxInstruction, SumsSaturate) {
    expect(of("add.sat.s32", "s32", 2, {{0x7fffffff, 1, 0x7fffffff}, {high, 0xffffffff, high}, {1, 2, 3}}));
    expect(of("sub.sat.s32", "s32", 2, {{high, 1, high}}));
    expect(of("add.u16x2", "b32", 2, {{0xffff0001, 0x00010001, 0x00000002}}));
    expect(of("min.s16x2", "b32", 2, {{0xffff0001, 0x00010002, 0xffff0001}}));
    expect(of("max.u16x2", "b32", 2, {{0xffff0001, 0x00010002, 0xffff0002}}));
}

TEST(PtxInstruction, ShiftsByTheWidthOrMoreGiveZeroOrTheSign) {
    expect({{"shl.b32", "b32", {"b32", "b32"}, {1, 31}, high},
            {"shl.b32", "b32", {"b32", "b32"}, {1, 32}, 0},
            {"shl.b32", "b32", {"b32", "b32"}, {1, 0xffffffff}, 0},
            {"shl.b64", "b64", {"b64", "b32"}, {1, 63}, uint64_t{1} << 63},
            {"shl.b64", "b64", {"b64", "b32"}, {1, 64}, 0},
            {"shl.b16", "b16", {"b16", "b32"}, {1, 16}, 0},
            {"shr.u32", "u32", {"u32", "b32"}, {high, 31}, 1},
            {"shr.u32", "u32", {"u32", "b32"}, {high, 32}, 0},
            {"shr.s32", "s32", {"s32", "b32"}, {high, 32}, 0xffffffff},
            {"shr.s32", "s32", {"s32", "b32"}, {high, 4}, 0xf8000000},
            {"shr.s64", "s64", {"s64", "b32"}, {s(-1), 200}, s(-1)},
            {"shr.s16", "s16", {"s16", "b32"}, {0x8000, 3}, 0xf000}});
    expect(of("shf.l.wrap.b32", "b32", 3, {{0x80000001, 0x7, 33, 0xf}}));
    expect(of("shf.l.clamp.b32", "b32", 3, {{0x80000001, 0x7, 33, 0x80000001}}));
    expect(of("shf.r.wrap.b32", "b32", 3, {{0x10, 0x3, 4, 0x30000001}}));
    expect(of("shf.r.clamp.b32", "b32", 3, {{0x10, 0x3, 40, 3}}));
}

TEST(PtxInstruction, FieldsOfBits) {
    expect({{"popc.b32", "b32", {"b32"}, {0xf0f0}, 8},
            {"popc.b64", "b32", {"b64"}, {~uint64_t{0}}, 64},
            {"clz.b32", "b32", {"b32"}, {0}, 32},
            {"clz.b64", "b32", {"b64"}, {1}, 63},
            {"bfind.u32", "b32", {"u32"}, {0}, 0xffffffff},
            {"bfind.s32", "b32", {"s32"}, {0xfffffff0}, 3},
            {"bfind.shiftamt.u32", "b32", {"u32"}, {0x10}, 27},
            {"brev.b32", "b32", {"b32"}, {1}, high},
            {"brev.b64", "b64", {"b64"}, {3}, uint64_t{3} << 62},
            {"not.b16", "b16", {"b16"}, {0x00ff}, 0xff00},
            {"cnot.b32", "b32", {"b32"}, {0}, 1},
            {"bfe.u32", "u32", {"u32", "b32", "b32"}, {0xabcd1234, 8, 8}, 0x12},
            {"bfe.s32", "s32", {"s32", "b32", "b32"}, {0x0000f000, 12, 4}, 0xffffffff},
            {"bfe.s32", "s32", {"s32", "b32", "b32"}, {0x80000000, 28, 8}, 0xfffffff8},
            {"bfe.u32", "u32", {"u32", "b32", "b32"}, {0xffffffff, 0, 0}, 0},
            {"bfe.s64", "s64", {"s64", "b32", "b32"}, {0x80, 4, 4}, s(-8)},
            {"bfi.b32", "b32", {"b32", "b32", "b32", "b32"}, {0xff, 0, 4, 4}, 0xf0},
            {"bfi.b64", "b64", {"b64", "b64", "b32", "b32"}, {3, 0, 63, 2}, uint64_t{1} << 63}});
    expect(
        of("prmt.b32", "b32", 3, {{0x33221100, 0x77665544, 0x7654, 0x77665544}, {0x33221180, 0, 0x8888, 0xffffffff}}));
    expect(of("prmt.b32.f4e", "b32", 3, {{0x33221100, 0x77665544, 1, 0x44332211}}));
    expect(of("prmt.b32.rc16", "b32", 3, {{0x33221100, 0, 1, 0x33223322}}));
}

TEST(PtxInstruction, FloatsRoundInTheDirectionOfTheInstruction) {
    const float above = std::nextafter(1.0f, 2.0f), half_step = 0x1p-24f;
    expect(of("add.rn.f32", "f32", 2,
              {{f(1), f(half_step), f(1)}, {f(above), f(half_step), f(std::nextafter(above, 2.0f))}}));
    expect(of("add.rz.f32", "f32", 2, {{f(1), f(half_step), f(1)}, {f(-1), f(-half_step), f(-1)}}));
    expect(of("add.rp.f32", "f32", 2, {{f(1), f(half_step), f(above)}, {f(-1), f(-half_step), f(-1)}}));
    expect(of("add.rm.f32", "f32", 2, {{f(1), f(half_step), f(1)}, {f(-1), f(-half_step), f(-above)}}));
    expect(of("div.rn.f32", "f32", 2, {{f(1), f(3), f(1.0f / 3.0f)}, {f(1), f(0), f(infinity)}}));
    expect(of("div.rp.f64", "f64", 2, {{d(1), d(3), d(std::nextafter(1.0 / 3.0, 1.0))}}));
    expect(of("sqrt.rm.f32", "f32", 1, {{f(2), f(1.41421354f)}}));
    expect(of("sqrt.rp.f32", "f32", 1, {{f(2), f(std::nextafter(1.41421354f, 2.0f))}}));
    expect(of("rcp.rz.f32", "f32", 1, {{f(-3), f(-0.333333313f)}}));
    expect(of("fma.rn.f32", "f32", 3, {{f(above), f(above), f(-1), f(std::fma(above, above, -1.0f))}}));
    expect(of("fma.rz.f64", "f64", 3, {{d(1), d(1), d(0x1p-60), d(1)}}));
    expect(of("mul.rn.f64", "f64", 2, {{d(0.1), d(0.2), d(0.1 * 0.2)}}));
}

TEST(PtxInstruction, SubnormalFloatsAreFlushedOnlyWhereTheInstructionSaysSo) {
    expect(of("add.f32", "f32", 2, {{f(tiny), f(0), f(tiny)}}));
    expect(of("add.ftz.f32", "f32", 2, {{f(tiny), f(0), f(0)}, {f(-tiny), f(-0.0f), f(-0.0f)}}));
    expect(of("mul.ftz.f32", "f32", 2, {{f(0x1p-100f), f(-0x1p-40f), f(-0.0f)}}));
    expect(of("fma.rn.ftz.f32", "f32", 3, {{f(0x1p-100f), f(0x1p-40f), f(0), f(0)}}));
    expect(of("sqrt.rn.ftz.f32", "f32", 1, {{f(tiny), f(0)}}));
    expect(of("abs.ftz.f32", "f32", 1, {{f(-tiny), f(0)}}));
    expect({{"setp.eq.ftz.f32", "pred", {"f32", "f32"}, {f(tiny), f(0)}, 1},
            {"setp.eq.f32", "pred", {"f32", "f32"}, {f(tiny), f(0)}, 0}});
}

TEST(PtxInstruction, NansOfFloatsAreCanonical) {
    expect(of("add.f32", "f32", 2, {{0x7fc12345, f(1), canonical_nan}, {f(infinity), f(-infinity), canonical_nan}}));
    expect(of("sqrt.rn.f32", "f32", 1, {{f(-1), canonical_nan}}));
    expect(
        of("min.f32", "f32", 2, {{canonical_nan, f(1), f(1)}, {f(1), 0x7fc00001, f(1)}, {f(0), f(-0.0f), f(-0.0f)}}));
    expect(of("max.f32", "f32", 2, {{f(-0.0f), f(0), f(0)}, {0x7fc00001, 0x7fc00002, canonical_nan}}));
    expect(of("max.NaN.f32", "f32", 2, {{0x7fc00001, f(1), canonical_nan}}));
    expect(of("min.f64", "f64", 2, {{d(NAN), d(2), d(2)}}));
    expect(of("add.sat.f32", "f32", 2, {{f(1), f(1), f(1)}, {f(-1), f(0), f(0)}, {canonical_nan, f(0), f(0)}}));
    expect(of("neg.f32", "f32", 1, {{0x7fc00001, 0xffc00001}}));
    expect(of("copysign.f32", "f32", 2, {{f(-1), f(5), f(-5)}}));
    expect({{"testp.subnormal.f32", "pred", {"f32"}, {f(tiny)}, 1},
            {"testp.finite.f64", "pred", {"f64"}, {d(INFINITY)}, 0},
            {"testp.notanumber.f32", "pred", {"f32"}, {0x7f800001}, 1}});
}

TEST(PtxInstruction, HalvesRoundOnce) {
    expect(of("add.rn.f16", "f16", 2, {{0x3c00, 0x3c00, 0x4000}, {0x7bff, 0x7bff, 0x7c00}, {0x7c00, 0xfc00, 0x7fff}}));
    expect(of("mul.rn.f16", "f16", 2, {{0x0001, 0x3800, 0x0000}, {0x0003, 0x3800, 0x0002}}));
    // 2048 * 2048 is too large; 1 + 2^-11 + a little is above the middle.
    expect(of("fma.rn.f16", "f16", 3,
              {{0x6800, 0x6800, 0xfc00, 0xfc00}, {0x1000, 0x1000, 0x3c00, 0x3c00}, {0x1001, 0x1400, 0x3c00, 0x3c00}}));
    expect(of("fma.rn.f16", "f16", 3, {{0x3c01, 0x1000, 0x3c00, 0x3c01}, {0x3c00, 0x1000, 0x3c00, 0x3c00}}));
    expect(of("add.rn.bf16", "bf16", 2, {{0x3f80, 0x3f80, 0x4000}, {0x3f80, 0x0001, 0x3f80}}));
    expect(of("add.rn.f16x2", "b32", 2, {{0x3c004000, 0x40003c00, 0x42004200}}));
    expect(of("neg.f16x2", "b32", 1, {{0x3c00bc00, 0xbc003c00}}));
    expect({{"setp.lt.f16", "pred", {"f16", "f16"}, {0xbc00, 0x3c00}, 1}});
}

// On processors from sm_100 on: a summand, or the factors, of 16 bits. The result rounds once.
TEST(PtxInstruction, FloatsTakeNarrowOperands) {
    const auto text = [](const std::string& target, const std::string& instruction) {
        return ".version 8.6\n.target " + target + "\n.address_size 64\n" +
               kernel("    ld.global.b16 %rs1, [%rd0+8];\n    ld.global.b16 %rs2, [%rd0+16];\n    ld.global.b32 %r3, "
                      "[%rd0+24];\n    " +
                      instruction + ";\n    st.global.b32 [%rd0], %r4;\n    ret;\n");
    };
    constexpr uint64_t half_three = 0x4200, half_tiny = 0x0001, bfloat_three = 0x4040, bfloat_two = 0x4000;
    const float tenth = 0.1f, smallest_half = std::ldexp(1.0f, -24);
    const struct {
        std::string instruction;
        std::array<uint64_t, 3> operands;
        float expected;
    } cases[] = {
        {"add.rn.f32.f16 %r4, %rs1, %r3", {half_three, 0, f(tenth)}, 3 + tenth},
        {"add.rn.f32.f16 %r4, %rs1, %r3", {half_tiny, 0, f(0)}, smallest_half},
        {"add.rz.f32.bf16 %r4, %rs1, %r3", {bfloat_three, 0, f(-tiny)}, std::nextafter(3.0f, 0.0f)},
        {"add.rn.sat.f32.f16 %r4, %rs1, %r3", {half_three, 0, f(tenth)}, 1},
        {"sub.rn.f32.bf16 %r4, %rs1, %r3", {bfloat_three, 0, f(tenth)}, 3 - tenth},
        {"fma.rn.f32.f16 %r4, %rs1, %rs2, %r3", {half_three, half_three, f(tenth)}, std::fma(3.0f, 3.0f, tenth)},
        {"fma.rn.f32.bf16 %r4, %rs1, %rs2, %r3", {bfloat_three, bfloat_two, f(-6)}, 0}};
    for (const auto& one : cases) {
        std::string log;
        const auto module = Module::load(text("sm_100", one.instruction), 100, log);
        ASSERT_NE(module, nullptr) << log;
        std::array<uint64_t, 4> memory{0, one.operands[0], one.operands[1], one.operands[2]};
        EXPECT_EQ(run(*module, memory).fault, Fault::none) << one.instruction;
        EXPECT_EQ(memory[0], f(one.expected)) << one.instruction;
    }
    std::string log;
    EXPECT_EQ(Module::load(text("sm_90", cases[0].instruction), 90, log), nullptr) << "older processors have none";
    EXPECT_EQ(Module::load(text("sm_100", "mul.rn.f32.f16 %r4, %rs1, %r3"), 100, log), nullptr)
        << "there is no such product";
}

// On processors from sm_100 on.
std::string packed_text(const std::string& target, const std::string& instruction) {
    return ".version 8.6\n.target " + target + "\n.address_size 64\n" +
           kernel("    ld.global.b64 %rd1, [%rd0+8];\n    ld.global.b64 %rd2, [%rd0+16];\n    ld.global.b64 %rd3, "
                  "[%rd0+24];\n    " +
                  instruction + ";\n    st.global.b64 [%rd0], %rd4;\n    ret;\n");
}

TEST(PtxInstruction, PackedFloatsAreTwoFloats) {
    const auto two = [](float low, float high_part) { return f(low) | f(high_part) << 32; };
    const std::array<uint64_t, 3> operands{two(3, tiny), two(0.5f, 1), two(-1, 0)};
    const float third = 1.0f / 3;
    struct {
        std::string instruction;
        std::array<uint64_t, 3> operands;
        uint64_t expected;
    } const cases[] = {
        {"add.rn.f32x2 %rd4, %rd1, %rd2", operands, two(3.5f, 1)},
        {"add.f32x2 %rd4, %rd1, %rd2", operands, two(3.5f, 1)},
        {"add.rp.f32x2 %rd4, %rd1, %rd2", operands, two(3.5f, std::nextafter(1.0f, 2.0f))},
        {"sub.rn.f32x2 %rd4, %rd1, %rd2", operands, two(2.5f, -1)},
        {"mul.rn.f32x2 %rd4, %rd1, %rd2", operands, two(1.5f, tiny)},
        {"mul.rn.ftz.f32x2 %rd4, %rd1, %rd2", operands, two(1.5f, 0)},
        {"fma.rn.f32x2 %rd4, %rd1, %rd2, %rd3", operands, two(0.5f, tiny)},
        {"fma.rz.f32x2 %rd4, %rd1, %rd2, %rd3",
         {two(third, NAN), two(3, 1), two(-1, 1)},
         uint64_t{f(std::fma(third, 3.0f, -1.0f))} | uint64_t{canonical_nan} << 32},
    };
    for (const auto& one : cases) {
        std::string log;
        const auto module = Module::load(packed_text("sm_100", one.instruction), 100, log);
        ASSERT_NE(module, nullptr) << log;
        std::array<uint64_t, 4> memory{0, one.operands[0], one.operands[1], one.operands[2]};
        const auto outcome = run(*module, memory);
        EXPECT_EQ(outcome.fault, Fault::none) << outcome.what;
        EXPECT_EQ(memory[0], one.expected) << one.instruction;
    }
}

TEST(PtxInstruction, PackedFloatsThatNoProcessorHasAreRefused) {
    for (const auto& [target, instruction] :
         std::vector<std::pair<std::string, std::string>>{{"sm_90", "add.rn.f32x2 %rd4, %rd1, %rd2"},
                                                          {"sm_100", "add.rn.sat.f32x2 %rd4, %rd1, %rd2"},
                                                          {"sm_100", "min.f32x2 %rd4, %rd1, %rd2"},
                                                          {"sm_100", "div.rn.f32x2 %rd4, %rd1, %rd2"},
                                                          {"sm_100", "add.rn.f32x2 %rd4, %r1, %rd2"}}) {
        std::string log;
        EXPECT_EQ(Module::load(packed_text(target, instruction), 100, log), nullptr) << target << ": " << instruction;
        EXPECT_NE(log.find("line"), std::string::npos) << log;
    }
}

TEST(PtxInstruction, ComparisonsOfNansAreOrderedOrNot) {
    const uint64_t nan = canonical_nan;
    for (const auto& [relation, of_nan, of_less] :
         std::vector<std::tuple<std::string, uint64_t, uint64_t>>{{"eq", 0, 0},
                                                                  {"ne", 0, 1},
                                                                  {"lt", 0, 1},
                                                                  {"le", 0, 1},
                                                                  {"gt", 0, 0},
                                                                  {"ge", 0, 0},
                                                                  {"equ", 1, 0},
                                                                  {"neu", 1, 1},
                                                                  {"ltu", 1, 1},
                                                                  {"leu", 1, 1},
                                                                  {"gtu", 1, 0},
                                                                  {"geu", 1, 0},
                                                                  {"num", 0, 1},
                                                                  {"nan", 1, 0}})
        expect({{"setp." + relation + ".f32", "pred", {"f32", "f32"}, {nan, f(1)}, of_nan},
                {"setp." + relation + ".f64", "pred", {"f64", "f64"}, {d(1), d(NAN)}, of_nan},
                {"setp." + relation + ".f32", "pred", {"f32", "f32"}, {f(-1), f(1)}, of_less}});
    expect({{"setp.lt.s32", "pred", {"s32", "s32"}, {0xffffffff, 0}, 1},
            {"setp.lt.u32", "pred", {"u32", "u32"}, {0xffffffff, 0}, 0},
            {"setp.hi.u32", "pred", {"u32", "u32"}, {0xffffffff, 0}, 1},
            {"setp.eq.b64", "pred", {"b64", "b64"}, {uint64_t{1} << 40, 0}, 0},
            {"setp.ge.s16", "pred", {"s16", "s16"}, {0x8000, 0}, 0},
            {"setp.lt.and.s32", "pred", {"s32", "s32", "pred"}, {0, 1, 0}, 0},
            {"setp.lt.or.s32", "pred", {"s32", "s32", "pred"}, {1, 0, 1}, 1},
            {"setp.lt.xor.s32", "pred", {"s32", "s32", "pred"}, {0, 1, 1}, 0},
            {"set.lt.u32.f32", "b32", {"f32", "f32"}, {f(0), f(1)}, 0xffffffff},
            {"set.gt.f32.s32", "f32", {"s32", "s32"}, {2, 1}, f(1)},
            {"selp.b64", "b64", {"b64", "b64", "pred"}, {5, 6, 1}, 5},
            {"selp.f32", "f32", {"f32", "f32", "pred"}, {f(5), f(6), 0}, f(6)},
            {"slct.s32.f32", "s32", {"s32", "s32", "f32"}, {5, 6, f(-1)}, 6},
            {"xor.pred", "pred", {"pred", "pred"}, {1, 1}, 0},
            {"not.pred", "pred", {"pred"}, {0}, 1}});
}

TEST(PtxInstruction, ConversionsOfFloatsToIntegersSaturate) {
    const std::vector<std::tuple<std::string, std::string, std::string, uint64_t, uint64_t>> rows{
        {"cvt.rzi.s32.f32", "s32", "f32", f(-1.9f), s(-1) & 0xffffffff},
        {"cvt.rni.s32.f32", "s32", "f32", f(2.5f), 2},
        {"cvt.rni.s32.f32", "s32", "f32", f(3.5f), 4},
        {"cvt.rmi.s32.f32", "s32", "f32", f(-1.5f), s(-2) & 0xffffffff},
        {"cvt.rpi.s32.f32", "s32", "f32", f(1.1f), 2},
        {"cvt.rzi.s32.f32", "s32", "f32", f(3e9f), 0x7fffffff},
        {"cvt.rzi.s32.f32", "s32", "f32", f(-infinity), high},
        {"cvt.rzi.u32.f32", "u32", "f32", f(-5), 0},
        {"cvt.rzi.u32.f32", "u32", "f32", f(5e9f), 0xffffffff},
        {"cvt.rzi.s32.f32", "s32", "f32", canonical_nan, 0},
        {"cvt.rzi.s32.f64", "s32", "f64", d(NAN), high},
        {"cvt.rzi.s64.f32", "s64", "f32", canonical_nan, uint64_t{1} << 63},
        {"cvt.rzi.u64.f64", "u64", "f64", d(1e30), ~uint64_t{0}},
        {"cvt.rzi.u64.f64", "u64", "f64", d(0x1p63), uint64_t{1} << 63},
        {"cvt.rzi.s64.f64", "s64", "f64", d(0x1p63), ~uint64_t{0} >> 1},
        {"cvt.rzi.u8.f32", "u16", "f32", f(300), 255},
        {"cvt.rzi.s8.f32", "s16", "f32", f(-300), 0xff80},
        {"cvt.rzi.s16.f16", "s16", "f16", 0x7c00, 0x7fff}};
    for (const auto& [instruction, to, from, operand, expected] : rows)
        expect({{instruction, to, {from}, {operand}, expected}});
}

TEST(PtxInstruction, ConversionsRoundOnce) {
    const std::vector<std::tuple<std::string, std::string, std::string, uint64_t, uint64_t>> rows{
        {"cvt.rn.f32.s32", "f32", "s32", 16777217, f(16777216)},
        {"cvt.rp.f32.s32", "f32", "s32", 16777217, f(16777218)},
        {"cvt.rz.f32.u64", "f32", "u64", ~uint64_t{0}, f(std::nextafter(0x1p64f, 0.0f))},
        {"cvt.rn.f64.u64", "f64", "u64", ~uint64_t{0}, d(0x1p64)},
        {"cvt.rn.f64.s64", "f64", "s64", s(-1), d(-1)},
        {"cvt.rn.f32.f64", "f32", "f64", d(0.1), f(0.1f)},
        {"cvt.rm.f32.f64", "f32", "f64", d(0.1), f(std::nextafter(0.1f, 0.0f))},
        {"cvt.rn.f16.f32", "f16", "f32", f(65504), 0x7bff},
        {"cvt.rn.f16.f32", "f16", "f32", f(65520), 0x7c00},
        {"cvt.rz.f16.f32", "f16", "f32", f(1e9f), 0x7bff},
        {"cvt.rm.f16.f32", "f16", "f32", f(-1e9f), 0xfc00},
        {"cvt.rn.f16.f32", "f16", "f32", f(0x1p-25f), 0},
        {"cvt.rn.f16.f32", "f16", "f32", f(0x1.1p-25f), 1},
        {"cvt.rp.f16.f64", "f16", "f64", d(1e-300), 1},
        {"cvt.rn.f16.f32", "f16", "f32", 0x7fc12345, 0x7fff},
        // 2049 + 2^-20: above the middle, though 24 bits cannot say so.
        {"cvt.rn.f16.f64", "f16", "f64", d(2049.00000095367431640625), 0x6801},
        {"cvt.rn.f16.u64", "f16", "u64", 2049, 0x6800},
        {"cvt.f32.f16", "f32", "f16", 0x0001, f(0x1p-24f)},
        {"cvt.f64.f16", "f64", "f16", 0xc000, d(-2)},
        {"cvt.rn.bf16.f32", "bf16", "f32", f(1.00390625f), 0x3f80},
        {"cvt.f32.bf16", "f32", "bf16", 0xbf80, f(-1)},
        {"cvt.rni.f32.f32", "f32", "f32", f(-0.4f), f(-0.0f)},
        {"cvt.rpi.f64.f64", "f64", "f64", d(1.5), d(2)},
        {"cvt.rzi.ftz.f32.f32", "f32", "f32", f(-tiny), f(-0.0f)},
        {"cvt.sat.f32.f32", "f32", "f32", f(7), f(1)},
        {"cvt.ftz.f32.f32", "f32", "f32", f(tiny), f(0)},
        {"cvt.f64.f32", "f64", "f32", f(1.5f), d(1.5)}};
    for (const auto& [instruction, to, from, operand, expected] : rows)
        expect({{instruction, to, {from}, {operand}, expected}});
    expect({{"cvt.rn.f16x2.f32", "b32", {"f32", "f32"}, {f(1), f(2)}, 0x3c004000}});
}

TEST(PtxInstruction, ConversionsOfIntegersExtendCutOrSaturate) {
    const std::vector<std::tuple<std::string, std::string, std::string, uint64_t, uint64_t>> rows{
        {"cvt.s64.s32", "s64", "s32", 0xffffffff, s(-1)},
        {"cvt.u64.u32", "u64", "u32", 0xffffffff, 0xffffffff},
        {"cvt.u32.u64", "u32", "u64", 0x123456789, 0x23456789},
        {"cvt.s32.s8", "s32", "s16", 0x80, 0xffffff80},
        {"cvt.u32.u8", "u32", "u16", 0x1ff, 0xff},
        {"cvt.s64.s16", "s64", "s16", 0x8000, s(-0x8000)},
        {"cvt.sat.s8.s32", "s16", "s32", 1000, 127},
        {"cvt.sat.u8.s32", "u16", "s32", 0xffffffff, 0},
        {"cvt.sat.s32.u64", "s32", "u64", ~uint64_t{0}, 0x7fffffff}};
    for (const auto& [instruction, to, from, operand, expected] : rows)
        expect({{instruction, to, {from}, {operand}, expected}});
}

TEST(PtxInstruction, ApproximationsHaveTheSpecialValuesOfPtx) {
    expect(of("ex2.approx.f32", "f32", 1, {{f(3), f(8)}, {f(-infinity), f(0)}}));
    expect(of("ex2.approx.ftz.f32", "f32", 1, {{f(-130), f(0)}}));
    expect(of("lg2.approx.f32", "f32", 1, {{f(8), f(3)}, {f(0), f(-infinity)}, {f(-1), canonical_nan}}));
    expect(of("lg2.approx.ftz.f32", "f32", 1, {{f(tiny), f(-infinity)}}));
    expect(of("sin.approx.f32", "f32", 1, {{f(infinity), canonical_nan}, {f(-0.0f), f(-0.0f)}}));
    expect(of("cos.approx.f32", "f32", 1, {{f(0), f(1)}}));
    expect(of("rsqrt.approx.f32", "f32", 1, {{f(4), f(0.5f)}, {f(0), f(infinity)}, {f(-1), canonical_nan}}));
    expect(of("rcp.approx.ftz.f32", "f32", 1, {{f(4), f(0.25f)}}));
    expect(of("rcp.approx.ftz.f64", "f64", 1, {{d(4), d(0.25)}}));
    expect(of("sqrt.approx.f32", "f32", 1, {{f(9), f(3)}}));
    expect(of("tanh.approx.f32", "f32", 1, {{f(infinity), f(1)}}));
    expect(of("div.full.f32", "f32", 2, {{f(6), f(3), f(2)}, {f(0x1p127f), f(0x1p127f), f(1)}}));
    expect(of("div.approx.f32", "f32", 2, {{f(6), f(3), f(2)}, {f(0x1p127f), f(0x1p127f), f(0)}}));
}

TEST(PtxInstruction, CarriesGoFromOneInstructionToTheNext) {
    std::array<uint64_t, 4> memory{};
    run_threads(kernel(R"(
    add.cc.u32 %r1, 0xffffffff, 1;
    addc.cc.u32 %r2, 0xffffffff, 0;
    addc.u32 %r3, 5, 0;
    st.global.b32 [%rd0], %r1;
    st.global.b32 [%rd0+4], %r2;
    st.global.b32 [%rd0+8], %r3;
    sub.cc.u32 %r1, 0, 1;
    subc.u32 %r2, 5, 0;
    st.global.b32 [%rd0+12], %r1;
    st.global.b32 [%rd0+16], %r2;
    sub.cc.u64 %rd1, 3, 2;
    subc.u64 %rd2, 5, 0;
    st.global.b64 [%rd0+24], %rd2;
    ret;
)"),
                memory, 1);
    EXPECT_EQ(memory[0], 0u);
    EXPECT_EQ(memory[1], uint64_t{0xffffffff} << 32 | 6);
    EXPECT_EQ(memory[2], 4u);
    EXPECT_EQ(memory[3], 5u);
}

}  // namespace
}  // namespace polder::ptx::test
