// Which of LLVM's passes run for a module. Passes that make large functions slower, or take quadratic time for them, are left out, and so are
// passes that do not change small functions.
//
// For one compilation; its thread alone uses it. The module is read once, in linear time. Decisions 118 and 256 have the measurements.
#pragma once

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/OptBisect.h>

namespace polder::compiler {

// Whether a basic block has more than 1,000 memory accesses. Passes that compare all pairs of them take minutes for 10,000.
[[nodiscard]] bool has_long_block(const llvm::Module& module);

// For the passes before the code generator.
class OptimizationGate {
public:
    // In larger functions, passes that compare all pairs of accesses find little. They took a third of the time for 10,000 instructions.
    static constexpr unsigned pairwise_instructions_max = 3000;

    // Of one block. The elimination of loads compares all pairs of accesses of a loop: 75 ms for 200 accesses.
    static constexpr unsigned pairwise_accesses_max = 100;

    // Code of at most this size whose only loops are those over work-items: 18 passes that found nothing there do not run.
    static constexpr unsigned plain_instructions_max = 1000;

    explicit OptimizationGate(const llvm::Module& module);

    [[nodiscard]] bool is_large() const { return is_large_; }
    [[nodiscard]] bool should_run(llvm::StringRef pass) const;
    // For a pass that runs for one loop at a time. Conditions are not moved out of (unswitched from) a loop over rows that most often has one
    // iteration: each would double the code of all loops, to save one branch. Decision 109 has the measurements.
    [[nodiscard]] bool should_run(llvm::StringRef pass, const llvm::Loop& loop) const;

private:
    const bool is_large_;
    const bool has_many_accesses_;
    const bool has_long_block_;
    const bool is_plain_;
};

// For the passes of the code generator.
class PassGate final : public llvm::OptPassGate {
public:
    // Loop strength reduction gives each address in a loop a variable of its own. Work-group functions use so many arrays that these variables
    // do not fit into registers. Without the pass, a matrix product with 16 sums takes half the time, and half the time to compile.
    static constexpr unsigned reduced_instructions_max = 1500;
    // CodeGenPrepare takes quadratic time for the addresses of a basic block: minutes for one of 100,000 instructions with thousands of
    // accesses. Instruction selection folds the addresses within a block without it.
    static constexpr size_t numbered_instructions_max = 20'000;
    explicit PassGate(const llvm::Module& module);

    [[nodiscard]] bool isEnabled() const override { return !reduces_ || !schedules_; }
    [[nodiscard]] bool shouldRunPass(llvm::StringRef pass, llvm::StringRef) const override;

private:
    const bool reduces_;
    const bool schedules_;
    const bool prepares_;
};

}  // namespace polder::compiler
