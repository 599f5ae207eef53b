// Which of LLVM's passes run for a module: those that do not suit a large function, or take quadratic time there, are left out.
//
// For one compilation; its thread alone uses it. The module is read once, in linear time. Decision 118 has the measurements.
#pragma once

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/OptBisect.h>

namespace polder::compiler {

// Whether a basic block has more than 1,000 memory accesses. Passes that compare all pairs of them take minutes for 10,000.
[[nodiscard]] bool has_long_block(const llvm::Module& module);

// Of the passes before the code generator.
class OptimizationGate {
public:
    // Passes that compare all pairs of accesses find little in functions of more instructions, and took a third of the time for 10,000.
    static constexpr unsigned pairwise_instructions_max = 3000;

    explicit OptimizationGate(const llvm::Module& module);

    [[nodiscard]] bool is_large() const { return is_large_; }
    [[nodiscard]] bool should_run(llvm::StringRef pass) const;
    // For a pass that runs for one loop at a time. Conditions are not led out of a loop over rows of work-items that most often has one
    // round: each would double the code of all loops, to save one branch. Decision 109 has the measurements.
    [[nodiscard]] bool should_run(llvm::StringRef pass, const llvm::Loop& loop) const;

private:
    const bool is_large_;
    const bool has_long_block_;
};

// Of the code generator.
class PassGate final : public llvm::OptPassGate {
public:
    // Reduction of strength gives each address in a loop a variable of its own. The functions of whole work-groups use so many arrays that
    // the variables fill the stack: a product of matrices with 16 sums takes half the time without, and half the time to compile.
    static constexpr unsigned reduced_instructions_max = 1500;
    explicit PassGate(const llvm::Module& module);

    [[nodiscard]] bool isEnabled() const override { return !reduces_ || !schedules_; }
    [[nodiscard]] bool shouldRunPass(llvm::StringRef pass, llvm::StringRef) const override;

private:
    const bool reduces_;
    const bool schedules_;
};

}  // namespace polder::compiler
