// Calls of cold functions from work-items that are lanes: one function for all lanes (vectorizer/code/rare_calls.h).

#include "targets/host/workgroup/vectorizer/code/rare_calls.h"
#include "workgroup_harness.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <regex>
#include <unistd.h>

namespace polder::compiler::workgroup::test {
namespace {

// The callee changes all vector registers, also the upper halves, and the masks. Before and after the call the kernel has more values than a call
// usually leaves alone.
constexpr const char* clobbering = R"(
    __attribute__((noinline, cold)) uint far(uint x) {
        uint16 a = x + (uint16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15), sum = 0;
        uint16 many[24];
        for (int i = 0; i < 24; ++i) many[i] = a * (uint)(i + 3);
        for (int i = 0; i < 24; ++i) sum += (many[i] > a) ? many[i] : many[23 - i] ^ a;
        return sum.s0 + sum.s5 * 3 + sum.sf * 7;
    }
    kernel void k(global const uint* in, global uint* out, uint limit) {
        const size_t i = get_global_id(0);
        uint v[20], x = in[i];
        for (uint j = 0; j < 20; ++j) v[j] = x * (2 * j + 1) + (uint)i;
        uint rare = 5;
        if (x > limit) rare = far(x + v[3]);
        for (uint j = 0; j < 20; ++j) rare = rare * 31 + v[j];
        out[i] = rare;
    })";

uint32_t far(uint32_t x) {
    std::array<std::array<uint32_t, 16>, 24> many;
    std::array<uint32_t, 16> a, sum{};
    for (uint32_t lane = 0; lane < 16; ++lane) {
        a[lane] = x + lane;
        for (uint32_t i = 0; i < 24; ++i)
            many[i][lane] = a[lane] * (i + 3);
        for (uint32_t i = 0; i < 24; ++i)
            sum[lane] += many[i][lane] > a[lane] ? many[i][lane] : many[23 - i][lane] ^ a[lane];
    }
    return sum[0] + sum[5] * 3 + sum[15] * 7;
}

TEST(RareCalls, AreOneCallForAllLanes_AndKeepTheValuesAroundThem) {
    constexpr uint32_t n = 192;
    for (const std::string processor : processors) {
        if (!runs_here(processor))
            continue;
        Compiled program(clobbering, processor);
        for (const bool specialised : {false, true}) {
            ASSERT_EQ(
                program.prepare("k", specialised, {64, 1, 1}, WorkGroupOptions::Ends::whole, Lanes::wherever_possible),
                "");
            EXPECT_GT(program.result().lanes.loops, 0u) << processor;
            // One more for the work-items that are left over, where the size of the groups is not known.
            EXPECT_EQ(count(program.optimised(), "@far.lanes"), specialised ? 1U : 2U)
                << processor << program.optimised();
            std::vector<uint32_t> in(n), out(n), expected(n);
            for (const uint32_t limit : {0U, 50U, 96U, 189U, 1000U}) {
                for (uint32_t i = 0; i < n; ++i) {
                    in[i] = i * 37 % n;
                    const auto value = [&](uint32_t j) { return in[i] * (2 * j + 1) + i; };
                    expected[i] = in[i] > limit ? far(in[i] + value(3)) : 5;
                    for (uint32_t j = 0; j < 20; ++j)
                        expected[i] = expected[i] * 31 + value(j);
                }
                program.run({1, {n, 1, 1}, {64, 1, 1}}, Arguments().add(in.data()).add(out.data()).add(limit));
                EXPECT_EQ(out, expected) << processor << " limit " << limit;
            }
        }
    }
}

// Pointers, an argument that all lanes share, bytes, doubles and no result.
TEST(RareCalls, PassEveryKindOfScalar) {
    constexpr uint32_t n = 96;
    for (const std::string processor : processors) {
        if (!runs_here(processor))
            continue;
        Compiled program(R"(
            __attribute__((noinline, cold)) void note(global int* to, char a, short b, double c, int shared) {
                *to += a * 1000 + b * 10 + (int)c + shared;
            }
            __attribute__((noinline, cold)) double half_of(long a) { return a * 0.5; }
            __attribute__((noinline, cold)) bool is_odd(int a) { return a & 1; }
            kernel void k(global int* out, int shared) {
                const int i = get_global_id(0);
                if (i % 3 == 0) note(out + 95 - i, (char)i, (short)(i * 3), i * 1.5, shared);
                double d = 1;
                if (i % 5 < 2) d = half_of(i * 4L);
                if (i % 7 < 5 && is_odd(i)) d += 100;
                out[96 + i] = (int)d;
            })",
                         processor);
        ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
        EXPECT_GT(program.result().lanes.loops, 0u);
        EXPECT_GE(count(program.optimised(), "@note.lanes"), 1u) << program.optimised();
        EXPECT_GE(count(program.optimised(), "@half_of.lanes"), 1u);
        std::vector<int> out(size_t{2} * n, 4), expected(size_t{2} * n, 4);
        for (int i = 0; i < static_cast<int>(n); ++i) {
            if (i % 3 == 0)
                expected[95 - i] += i * 1000 + i * 3 * 10 + static_cast<int>(i * 1.5) + 17;
            double d = i % 5 < 2 ? i * 2.0 : 1;
            if (i % 7 < 5 && i % 2 == 1)
                d += 100;
            expected[96 + i] = static_cast<int>(d);
        }
        program.run({1, {n, 1, 1}, {40, 1, 1}}, Arguments().add(out.data()).add(17));
        EXPECT_EQ(out, expected) << processor;
    }
}

// LLVM's attribute of functions that save all registers is right where arguments and results fill their registers: not for an int or a float,
// and not for vectors that are shorter than the processor's. So they are in memory. What all lanes share is known to this caller in a wider
// register, too.
TEST(RareCalls, LeaveWiderRegistersOfTheirArgumentsAlone) {
    constexpr uint32_t n = 96;
    for (const std::string processor : processors) {
        if (!runs_here(processor))
            continue;
        Compiled program(R"(
            __attribute__((noinline, cold)) uint far(uint x, uint shared, float factor, uchar byte) {
                uint sum = 0;
                for (uint bit = 0; bit < 32; ++bit) sum += shared >> bit & 1 ? x << bit : 0;
                return sum * (uint)factor + byte;
            }
            kernel void k(global const uint* in, global ulong* out, uint limit, ulong shared, global const float* factors) {
                const size_t i = get_global_id(0);
                const uint x = in[i];
                const float factor = factors[limit & 1];
                const uchar byte = (uchar)(x >> 3);
                ulong found = 5;
                if (x > limit) found = far(x, (uint)shared, factor, byte);
                if (x > limit + 2) found += far(x + 1, (uint)shared, factor, byte);
                out[i] = found * 3 + shared + (ulong)(factor * x) + byte;
            })",
                         processor);
        ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
        EXPECT_EQ(count(program.optimised(), "@far.lanes"), 2U) << program.optimised();
        const std::regex in_memory(R"(call [a-z]* ?void @far\.lanes\d+\(ptr[^,]*, i64 [^,]*\))");
        EXPECT_EQ(std::distance(std::sregex_iterator(program.optimised().begin(), program.optimised().end(), in_memory),
                                std::sregex_iterator()),
                  2)
            << program.optimised();
        constexpr uint64_t shared = 0x123456789abcdef1U;
        const std::vector<float> factors{3, 5};
        std::vector<uint32_t> in(n);
        std::vector<uint64_t> out(n), expected(n);
        for (const uint32_t limit : {0U, 50U, 91U, 1000U}) {
            const auto factor = static_cast<uint32_t>(factors[limit & 1]);
            for (uint32_t i = 0; i < n; ++i) {
                const uint32_t x = in[i] = i * 37 % n, byte = x >> 3;
                const auto called = [&](uint32_t with) {
                    return uint64_t{with * static_cast<uint32_t>(shared) * factor + byte};
                };
                const uint64_t found = (x > limit ? called(x) : 5) + (x > limit + 2 ? called(x + 1) : 0);
                expected[i] = found * 3 + shared + uint64_t{factor} * x + byte;
            }
            program.run({1, {n, 1, 1}, {40, 1, 1}},
                        Arguments().add(in.data()).add(out.data()).add(limit).add(shared).add(factors.data()));
            EXPECT_EQ(out, expected) << processor << ", limit " << limit;
        }
    }
}

// A callee that only computes is vector code: with branches, a table, a function that it calls, and doubles. As many lanes as the calling kernel has
// need several registers. Those with loops of each lane's own length or divisions of integers are called for one lane after the other.
constexpr const char* computing = R"(
    constant uint table[40] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4, 6, 2, 6, 4, 3, 3, 8, 3, 2, 7, 9, 5, 0, 2, 8, 8, 4, 1, 9, 7};
    __attribute__((noinline)) uint twice_and_odd(uint x) { return x & 1 ? 3 * x : 2 * x + 1; }
    __attribute__((noinline, cold)) double far(uint x, double y) {
        uint sum = table[x % 40];
        if (x % 7 > 3) sum = twice_and_odd(twice_and_odd(sum) + x);
        return sum > 50 ? y / (sum + 1) : y * sum;
    }
    __attribute__((noinline, cold)) uint depth(uint x) { return x < 3 ? 1 : 1 + depth(x / 2); }
    __attribute__((noinline, cold)) uint steps(uint x) { uint n = 0; for (; x != 1 && n < 500; ++n) x = x & 1 ? 3 * x + 1 : x / 2; return n; }
    __attribute__((noinline, cold)) uint rest(uint x, uint y) { return x * 7 / (y + 1); }
    kernel void k(global const uint* in, global double* out, uint limit) {
        const size_t i = get_global_id(0);
        double result = in[i];
        if (in[i] > limit) result = far(in[i], result) + (in[i] > 2 * limit ? depth(in[i]) + steps(in[i]) + rest(in[i], limit) : 0);
        out[i] = result;
    })";

double far_in_double(uint32_t x, double y) {
    constexpr std::array<uint32_t, 40> table{3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4,
                                             6, 2, 6, 4, 3, 3, 8, 3, 2, 7, 9, 5, 0, 2, 8, 8, 4, 1, 9, 7};
    const auto twice_and_odd = [](uint32_t of) { return (of & 1) != 0 ? 3 * of : 2 * of + 1; };
    uint32_t sum = table[x % 40];
    if (x % 7 > 3)
        sum = twice_and_odd(twice_and_odd(sum) + x);
    return sum > 50 ? y / (sum + 1) : y * sum;
}

double depth(uint32_t x) { return x < 3 ? 1 : 1 + depth(x / 2); }
uint32_t steps(uint32_t x) {
    uint32_t n = 0;
    for (; x != 1 && n < 500; ++n)
        x = (x & 1) != 0 ? 3 * x + 1 : x / 2;
    return n;
}

// The optimised IR of the function whose name contains `name`, from what the harness leaves in a file.
std::string text_of(const std::string& file, const std::string& name) {
    std::ifstream stream(file);
    const std::string module{std::istreambuf_iterator<char>(stream), {}};
    for (size_t at = module.find("\ndefine "); at != std::string::npos; at = module.find("\ndefine ", at + 1))
        if (module.substr(at, module.find('\n', at + 1) - at).find(name) != std::string::npos)
            return module.substr(at, module.find("\n}", at) - at);
    return {};
}

TEST(RareCalls, ThatOnlyCompute_AreVectorCode) {
    const std::string dump = testing::TempDir() + "rare_calls_" + std::to_string(getpid());
    setenv("POLDER_TEST_DUMP", dump.c_str(), 1);
    constexpr uint32_t n = 192;
    for (const std::string processor : processors) {
        if (!runs_here(processor))
            continue;
        Compiled program(computing, processor);
        ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
        const std::string far = text_of(dump + ".opt", "far.lanes");
        EXPECT_NE(far, "");
        EXPECT_EQ(count(far, "llvm.cttz"), 0U) << processor << far;
        EXPECT_GE(count(far, "fdiv <"), 1U) << processor << far;
        // Values of all lanes are in memory.
        EXPECT_EQ(count(far, "@llvm.masked.load"), 0U) << processor << far;
        EXPECT_EQ(count(far, "@llvm.masked.store"), 0U) << processor << far;
        // Two vectors of doubles are two copies of the code.
        if (processor == processor_with_512_bits) {
            EXPECT_EQ(count(far, "phi i64"), 0U) << far;
            EXPECT_GE(count(far, "fdiv <8 x double>"), 2U) << far;
        }
        for (const char* other : {"depth.lanes", "steps.lanes", "rest.lanes"})
            EXPECT_EQ(count(text_of(dump + ".opt", other), "llvm.cttz"), 1U) << processor << other;
        std::vector<uint32_t> in(n);
        std::vector<double> out(n), expected(n);
        for (const uint32_t limit : {0U, 50U, 96U, 189U, 1000U}) {
            for (uint32_t i = 0; i < n; ++i) {
                const uint32_t x = in[i] = i * 37 % n;
                expected[i] = x;
                const uint32_t quotient = x * 7 / (limit + 1);
                if (x > limit)
                    expected[i] = far_in_double(x, x) + (x > 2 * limit ? depth(x) + steps(x) + quotient : 0);
            }
            program.run({1, {n, 1, 1}, {48, 1, 1}}, Arguments().add(in.data()).add(out.data()).add(limit));
            EXPECT_EQ(out, expected) << processor << " limit " << limit;
        }
    }
    unsetenv("POLDER_TEST_DUMP");
    for (const char* kind : {"", ".opt"})
        std::filesystem::remove(dump + kind);
}

// What uses the result of a rare call only is skipped with it.
TEST(RareCalls, AreSkippedWithWhatUsesThem) {
    Compiled program(R"(
        __attribute__((noinline, cold)) float far(float x) { return x * x - 3; }
        kernel void k(global float* out) {
            const size_t i = get_global_id(0);
            float x = out[i];
            if (x > 1000) x = sqrt(far(x)) / 7;
            out[i] = x;
        })",
                     processor_with_512_bits);
    ASSERT_EQ(program.prepare("k", false, {}, WorkGroupOptions::Ends::ragged, Lanes::wherever_possible), "");
    const std::string& code = program.optimised();
    const size_t call = code.find("@far.lanes");
    ASSERT_NE(call, std::string::npos);
    const size_t root = code.find("@llvm.sqrt.v16f32(", call), end = code.find("\n\n", call);
    EXPECT_LT(root, end) << code;
}

// A function that saves all registers restores their upper halves last.
TEST(RareCalls, TheirFunctionsDoNotClearUpperHalves) {
    llvm::LLVMContext context;
    llvm::Module module("m", context);
    auto* const type = llvm::FunctionType::get(llvm::Type::getVoidTy(context), false);
    auto* const plain = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, "plain", module);
    auto* const saving = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, "saving", module);
    saving->addFnAttr(saves_registers_attribute);
    module.setTargetTriple(llvm::Triple("x86_64-pc-linux-gnu"));
    EXPECT_EQ(features_of(*plain, "+avx,+sse2"), "+avx,+sse2");
    EXPECT_EQ(features_of(*saving, "+avx,+sse2"), "+avx,+sse2,-vzeroupper");
    EXPECT_EQ(features_of(*saving, ""), "-vzeroupper");
    module.setTargetTriple(llvm::Triple("aarch64-unknown-linux-gnu"));
    EXPECT_EQ(features_of(*saving, "+neon"), "+neon");
}

}  // namespace
}  // namespace polder::compiler::workgroup::test
