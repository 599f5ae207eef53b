// The order of instructions in long blocks: the estimate of a processor that looks ahead, and what the scheduler makes of two chains that follow one another.
#include "machine/host.h"
#include "machine/long_block_scheduler.h"
#include "machine/machine_pool.h"
#include "machine/pass_options.h"

#include <array>
#include <gtest/gtest.h>
#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <string>
#include <vector>

namespace polder::compiler::test {
namespace {

// `chains` chains of `length` steps of one cycle, one after the other.
std::vector<BlockStep> chains_in_turn(unsigned chains, unsigned length) {
    std::vector<BlockStep> steps(size_t{chains} * length);
    for (unsigned i = 0; i < steps.size(); ++i)
        if (i % length != 0)
            steps[i].inputs.push_back({.step = i - 1, .latency = 1});
    return steps;
}

TEST(LongBlocks, OneChainTakesItsLength) {
    EXPECT_EQ(cycles_in_order(chains_in_turn(1, 1000), {.steps = 100, .per_cycle = 4}), 1000U);
    EXPECT_EQ(longest_chain(chains_in_turn(1, 1000)), 1000U);
}

TEST(LongBlocks, ChainsThatTheProcessorSeesTogetherOverlap) {
    EXPECT_LE(cycles_in_order(chains_in_turn(2, 50), {.steps = 200, .per_cycle = 4}), 65U);
    EXPECT_EQ(longest_chain(chains_in_turn(2, 50)), 50U);
}

TEST(LongBlocks, ChainsBeyondWhatTheProcessorSeesFollowOneAnother) {
    const unsigned cycles = cycles_in_order(chains_in_turn(2, 1000), {.steps = 100, .per_cycle = 4});
    EXPECT_GE(cycles, 1850U);
    EXPECT_LE(cycles, 2000U);
    EXPECT_EQ(longest_chain(chains_in_turn(2, 1000)), 1000U);
}

TEST(LongBlocks, ManyStepsTakeTimeToBegin) {
    EXPECT_EQ(cycles_in_order(std::vector<BlockStep>(400), {.steps = 100, .per_cycle = 4}), 100U);
}

// Two chains of rounds on five vectors, as RIPEMD-160 has them. The second, which subtracts where the first adds, stands behind the first. Beside 20 words of a
// message there is just room for the values of both.
class TwoChains {
public:
    explicit TwoChains(unsigned rounds) {
        for (unsigned i = 0; i < 5; ++i)
            load("%h" + std::to_string(i), i);
        for (unsigned i = 0; i < words; ++i)
            load("%m" + std::to_string(i), 5 + i);
        const State sum = chain("add", rounds), difference = chain("sub", rounds);
        for (unsigned i = 0; i < 5; ++i)
            text_ += "  %q" + std::to_string(i) + " = getelementptr <16 x i32>, ptr %out, i64 " + std::to_string(i) +
                     "\n  store <16 x i32> " + made("xor", sum[i], difference[i]) + ", ptr %q" + std::to_string(i) +
                     "\n";
    }

    [[nodiscard]] std::string text() const {
        return "declare <16 x i32> @llvm.fshl.v16i32(<16 x i32>, <16 x i32>, <16 x i32>)\n"
               "define void @f(ptr noalias %out, ptr noalias %in) {\n" +
               text_ + "  ret void\n}\n";
    }

private:
    static constexpr unsigned words = 20;
    using State = std::array<std::string, 5>;

    void load(const std::string& name, unsigned index) {
        text_ += "  " + name + "p = getelementptr <16 x i32>, ptr %in, i64 " + std::to_string(index) + "\n  " + name +
                 " = load <16 x i32>, ptr " + name + "p\n";
    }
    std::string made(const std::string& operation, const std::string& a, const std::string& b) {
        const std::string name = "%v" + std::to_string(count_++);
        text_ += "  " + name + " = " + operation + " <16 x i32> " + a + ", " + b + "\n";
        return name;
    }
    std::string rotated(const std::string& a, unsigned places) {
        const std::string name = "%v" + std::to_string(count_++), value = "<16 x i32> " + a;
        text_ += "  " + name + " = call <16 x i32> @llvm.fshl.v16i32(" + value + ", " + value +
                 ", <16 x i32> splat (i32 " + std::to_string(places) + "))\n";
        return name;
    }
    State chain(const std::string& operation, unsigned rounds) {
        State s{"%h0", "%h1", "%h2", "%h3", "%h4"};
        for (unsigned i = 0; i < rounds; ++i) {
            const std::string word = made(operation, s[1], "%m" + std::to_string(i * 7 % words));
            const std::string mixed = made(operation, made("xor", made("xor", word, s[2]), s[3]), s[0]);
            s = {s[4], made(operation, rotated(mixed, 5 + i % 11), s[4]), s[1], rotated(s[2], 10), s[3]};
        }
        return s;
    }

    std::string text_;
    unsigned count_ = 0;
};

std::string assembly(const std::string& text) {
    set_pass_options();
    llvm::LLVMContext context;
    MachinePool pool;
    Host target = host();
    target.cpu = "znver4";
    target.features.clear();
    const PooledMachine machine(pool, target);
    llvm::SMDiagnostic problem;
    const std::unique_ptr<llvm::Module> module = llvm::parseAssemblyString(text, problem, context);
    EXPECT_NE(module, nullptr) << problem.getMessage().str();
    module->setTargetTriple(host().triple);
    module->setDataLayout(host().data_layout);
    llvm::SmallString<0> made;
    llvm::raw_svector_ostream stream(made);
    llvm::legacy::PassManager passes;
    EXPECT_FALSE(machine->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::AssemblyFile));
    passes.run(*module);
    return made.str().str();
}

// How often an addition is followed by a subtraction.
unsigned changes_of_chain(const std::string& code) {
    unsigned changes = 0;
    bool was_addition = false;
    for (size_t at = 0; (at = code.find("\tvp", at)) != std::string::npos; ++at) {
        const std::string instruction = code.substr(at + 1, 6);
        if (instruction == "vpsubd" && was_addition)
            ++changes;
        if (instruction == "vpsubd" || instruction == "vpaddd")
            was_addition = instruction == "vpaddd";
    }
    return changes;
}

#ifdef __x86_64__
TEST(LongBlocks, ChainsThatFollowOneAnotherAreInterleaved) {
    EXPECT_GT(changes_of_chain(assembly(TwoChains(80).text())), 100U);
}

// A run of loads and 20 rounds fits into what the processor looks ahead.
TEST(LongBlocks, ChainsThatTheProcessorSeesTogetherKeepTheTargetsOrder) {
    EXPECT_LE(changes_of_chain(assembly(TwoChains(20).text())), 10U);
}
#endif

}  // namespace
}  // namespace polder::compiler::test
