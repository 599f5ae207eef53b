// Sums of vectors: in which order their terms are added, and that MD5, which is nothing but such sums, stays right.
#include "compiler_support.h"
#include "machine/host.h"
#include "targets/host/instructions/sum_order.h"

#include <array>
#include <bit>
#include <cmath>
#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/IR/ValueSymbolTable.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/raw_ostream.h>

namespace polder::compiler::test {
namespace {

using namespace llvm::PatternMatch;

// A function whose sums were ordered. Values are found by their names.
class Ordered {
public:
    explicit Ordered(const std::string& body) {
        llvm::SMDiagnostic error;
        const std::string text = "define <16 x i32> @f(<16 x i32> %a, <16 x i32> %b, ptr %p, i32 %n) {\n" + body +
                                 "}\n" + "declare <16 x i32> @llvm.fshl.v16i32(<16 x i32>, <16 x i32>, <16 x i32>)\n";
        module_ = llvm::parseAssemblyString(text, error, context_);
        EXPECT_NE(module_, nullptr) << error.getMessage().str();
        auto machine = create_host_target_machine();
        llvm::Function& function = *module_->getFunction("f");
        order_sums(function, machine->getTargetTransformInfo(function));
        EXPECT_FALSE(llvm::verifyModule(*module_, &llvm::errs())) << this->text();
    }

    llvm::Value* operator[](const char* name) { return module_->getFunction("f")->getValueSymbolTable()->lookup(name); }
    llvm::Value* result() {
        for (llvm::BasicBlock& block : *module_->getFunction("f"))
            if (auto* end = llvm::dyn_cast<llvm::ReturnInst>(block.getTerminator()))
                return end->getReturnValue();
        return nullptr;
    }
    std::string text() {
        std::string text;
        llvm::raw_string_ostream(text) << *module_;
        return text;
    }

private:
    llvm::LLVMContext context_;
    std::unique_ptr<llvm::Module> module_;
};

// (early + constant) + late, with the constant hidden from passes that would move it.
bool adds_constant_first(llvm::Value* sum, llvm::Value* early, llvm::Value* late) {
    llvm::Value* hidden = nullptr;
    return match(sum, m_c_Add(m_OneUse(m_c_Add(m_Value(hidden), m_Specific(early))), m_Specific(late))) &&
           llvm::isa<llvm::LoadInst>(hidden);
}

TEST(SumOrder, ConstantIsAddedToTheTermThatIsKnownFirst) {
    Ordered code("%late = call <16 x i32> @llvm.fshl.v16i32(<16 x i32> %a, <16 x i32> %a, <16 x i32> splat (i32 7))\n"
                 "%two = add <16 x i32> %late, %b\n"
                 "%sum = add <16 x i32> %two, splat (i32 41)\n"
                 "ret <16 x i32> %sum\n");
    EXPECT_TRUE(adds_constant_first(code.result(), code["b"], code["late"])) << code.text();
}

TEST(SumOrder, ConstantThatIsFirstAlreadyIsKeptThere) {
    Ordered code("%late = call <16 x i32> @llvm.fshl.v16i32(<16 x i32> %a, <16 x i32> %a, <16 x i32> splat (i32 7))\n"
                 "%one = add <16 x i32> %b, splat (i32 41)\n"
                 "%sum = add <16 x i32> %late, %one\n"
                 "ret <16 x i32> %sum\n");
    EXPECT_TRUE(adds_constant_first(code.result(), code["b"], code["late"])) << code.text();
}

TEST(SumOrder, ValueCarriedRoundALoopIsAddedLast_HoweverLateTheOthersAre) {
    Ordered code("entry:\n  br label %loop\n"
                 "loop:\n"
                 "%carried = phi <16 x i32> [ %a, %entry ], [ %sum, %next ]\n"
                 "%i = phi i32 [ 0, %entry ], [ %i1, %next ]\n"
                 "%x = load <16 x i32>, ptr %p\n"
                 "%late = mul <16 x i32> %x, %b\n"
                 "%two = add <16 x i32> %carried, splat (i32 41)\n"
                 "%sum = add <16 x i32> %two, %late\n"
                 "br label %next\n"
                 "next:\n"
                 "%i1 = add i32 %i, 1\n"
                 "%more = icmp ult i32 %i1, %n\n"
                 "br i1 %more, label %loop, label %end\n"
                 "end:\n  ret <16 x i32> %sum\n");
    EXPECT_TRUE(adds_constant_first(code.result(), code["late"], code["carried"])) << code.text();
}

TEST(SumOrder, CounterOfALoopIsKnownEarly) {
    Ordered code("entry:\n  br label %loop\n"
                 "loop:\n"
                 "%i = phi <16 x i32> [ %a, %entry ], [ %i1, %loop ]\n"
                 "%x = load <16 x i32>, ptr %p\n"
                 "%two = add <16 x i32> %i, %x\n"
                 "%sum = add <16 x i32> %two, splat (i32 41)\n"
                 "%i1 = add <16 x i32> %i, splat (i32 1)\n"
                 "%first = extractelement <16 x i32> %i1, i32 0\n"
                 "%more = icmp ult i32 %first, %n\n"
                 "br i1 %more, label %loop, label %end\n"
                 "end:\n  ret <16 x i32> %sum\n");
    EXPECT_TRUE(adds_constant_first(code.result(), code["i"], code["x"])) << code.text();
}

TEST(SumOrder, TermsKnownAtOnceAndPartsUsedElsewhereStayAsTheyAre) {
    Ordered together("%two = add <16 x i32> %a, %b\n"
                     "%sum = add <16 x i32> %two, splat (i32 41)\n"
                     "ret <16 x i32> %sum\n");
    EXPECT_EQ(together.result(), together["sum"]) << together.text();
    Ordered shared("%late = mul <16 x i32> %a, %a\n"
                   "%two = add <16 x i32> %late, %b\n"
                   "%sum = add <16 x i32> %two, splat (i32 41)\n"
                   "%both = mul <16 x i32> %two, %sum\n"
                   "ret <16 x i32> %both\n");
    EXPECT_TRUE(match(shared["sum"], m_Add(m_Specific(shared["two"]), m_Constant()))) << shared.text();
}

// MD5 as RFC 1321 has it: 64 steps, in each a word of the block, a constant and a rotation.
constexpr std::array<uint32_t, 4> md5_start = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};

struct Step {
    unsigned word;
    uint32_t constant;
    int turn;
};

Step md5_step(unsigned i) {
    static constexpr int turns[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};
    const unsigned words[4] = {i, 5 * i + 1, 3 * i + 5, 7 * i};
    return {words[i / 16] % 16, static_cast<uint32_t>(std::floor(std::abs(std::sin(i + 1.0)) * 4294967296.0)),
            turns[i / 16][i % 4]};
}

std::array<uint32_t, 4> md5_of_block(const std::array<uint32_t, 16>& block) {
    auto [a, b, c, d] = md5_start;
    for (unsigned i = 0; i < 64; ++i) {
        const Step step = md5_step(i);
        const uint32_t mixed[4] = {(b & c) | (~b & d), (d & b) | (~d & c), b ^ c ^ d, c ^ (b | ~d)};
        const uint32_t sum = a + mixed[i / 16] + step.constant + block[step.word];
        a = d;
        d = c;
        c = b;
        b += std::rotl(sum, step.turn);
    }
    return {md5_start[0] + a, md5_start[1] + b, md5_start[2] + c, md5_start[3] + d};
}

// The steps written out, as programs that search for a hash's origin have them, for numbers or vectors of `type`. Odd words are
// known to be zero, so that their sums have the constant alone.
std::string md5_kernel(const std::string& type) {
    std::string source = "typedef " + type +
                         " T;\nkernel void k(global const T* in, global T* out) {\n"
                         "  size_t n = get_global_size(0), j = get_global_id(0);\n"
                         "  T a = 0x67452301, b = 0xefcdab89, c = 0x98badcfe, d = 0x10325476, t;\n";
    const char* mixed[4] = {"(b & c) | (~b & d)", "(d & b) | (~d & c)", "b ^ c ^ d", "c ^ (b | ~d)"};
    for (unsigned i = 0; i < 64; ++i) {
        const Step step = md5_step(i);
        const std::string word = step.word % 2 == 0 ? "in[" + std::to_string(step.word) + " * n + j]" : "0";
        source += "  t = a + (" + std::string(mixed[i / 16]) + ") + " + std::to_string(step.constant) + "u + " + word +
                  "; a = d; d = c; c = b; b += rotate(t, (T)(" + std::to_string(step.turn) + "));\n";
    }
    return source + "  out[j] = a + 0x67452301; out[n + j] = b + 0xefcdab89; out[2 * n + j] = c + 0x98badcfe; "
                    "out[3 * n + j] = d + 0x10325476; }\n";
}

TEST(SumOrder, Md5OfNumbersAndVectorsIsRight) {
    constexpr size_t items = 16;
    for (const unsigned width : {1U, 16U}) {
        const Outcome built = build(md5_kernel(width == 1 ? "uint" : "uint" + std::to_string(width)));
        ASSERT_EQ(built.status, Status::success) << built.log;
        const size_t lanes = items * width;
        struct alignas(64) Words {
            std::array<uint32_t, 16 * items * 16> values;
        };
        auto in = std::make_unique<Words>();
        auto out = std::make_unique<Words>();
        for (size_t i = 0; i < 16 * lanes; ++i)
            in->values[i] = i / lanes % 2 == 0 ? static_cast<uint32_t>(i * 2654435761U) : 0;
        Launch{built, "k"}.set(0, in->values.data()).set(1, out->values.data()).run(items, items);
        for (size_t lane = 0; lane < lanes; ++lane) {
            std::array<uint32_t, 16> block{};
            for (size_t word = 0; word < 16; ++word)
                block[word] = in->values[word * lanes + lane];
            const std::array<uint32_t, 4> expected = md5_of_block(block);
            for (size_t i = 0; i < 4; ++i)
                ASSERT_EQ(out->values[i * lanes + lane], expected[i]) << "width " << width << ", lane " << lane;
        }
    }
}

}  // namespace
}  // namespace polder::compiler::test
