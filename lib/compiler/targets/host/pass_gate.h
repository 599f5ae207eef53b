// Which of LLVM's passes run for a module. Passes that make large functions slower, or take quadratic time for them, are left out, and so are
// passes that do not change small functions.
//
// For one compilation; its thread alone uses it. The module is read once, in linear time. Decisions 118 and 256 have the measurements.
#pragma once

#include <llvm/ADT/DenseMap.h>
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

    // Where work-items are lanes, the SLP vectorizer only finds neighbouring statements of those that are left over by vectors. In larger modules it takes more
    // time than that is worth: for chains of minima and maxima 460 of the 530 ms of a median of 25.
    static constexpr unsigned joined_instructions_max = 1000;

    // Nor does it find anything in vectors of more than 16 elements, the most that kernels may write down, that LLVM's vectorizer of loops made of single elements
    // of memory. For each it tries all ways to join the loads: 260 of the 330 ms for four vectors of 64 bytes.
    static constexpr unsigned collected_elements_max = 64;
    static constexpr unsigned written_elements_max = 16;

    // For the operations of one kind that combine more numbers in a block, such as a sum of as many terms, the SLP vectorizer takes quadratic time and more: 9 s
    // for 800, more than a minute for 1,600.
    static constexpr size_t combined_numbers_max = 256;

    // Of one block. The elimination of loads compares all pairs of accesses of a loop: 75 ms for 200 accesses.
    static constexpr unsigned pairwise_accesses_max = 100;

    // Code of at most this size whose only loops are those over work-items: 18 passes that found nothing there do not run.
    static constexpr unsigned plain_instructions_max = 1000;

    // In a function of more loops, LICM and the unrolling of loops with variable counts do not run. LICM takes cubic time for loops that follow each other in
    // another loop, because each load that it moves makes MemorySSA search all loops before; unrolling takes quadratic time, because each loop makes scalar
    // evolution forget all others. A kernel of 100 loops took 12 s. Each loop of a kernel is there up to three times: for several vectors at once, one, and the rest.
    static constexpr unsigned loops_max = 48;
    // From this number of loops on, scalar evolution forgets everything for each loop that is unrolled, which is quicker than to search what depends on the loop.
    static constexpr unsigned loops_to_search_max = 24;

    // Where work-items are lanes, the work-group function was simplified as it was made. In one of more instructions, eleven passes that found next to nothing there
    // do not run, nor do two of the eight rounds of InstCombine, each of which another round follows (decision 371).
    static constexpr unsigned settled_instructions_min = 2000;

    explicit OptimizationGate(const llvm::Module& module, bool has_lanes = false);

    // Whether the SLP vectorizer is worth its time. `has_lanes`: whether work-items are lanes.
    [[nodiscard]] bool joins_statements(bool has_lanes) const { return !has_lanes || !is_long_for_lanes_; }
    [[nodiscard]] bool forgets_all_loops() const { return loops_ > loops_to_search_max; }
    [[nodiscard]] bool should_run(llvm::StringRef pass) const;
    // For a pass that runs for one function. Loops with calls are unrolled only where they have few iterations, a known number, which LLVM has done before
    // (LoopFullUnrollPass). The estimate of their sizes takes long, so functions whose loops all have calls, such as those of the rare paths of sines, are left out.
    [[nodiscard]] bool should_run(llvm::StringRef pass, const llvm::Function& function) const;
    // For a pass that runs for one loop at a time. Conditions are not moved out of (unswitched from) a loop over rows that most often has one
    // iteration: each would double the code of all loops, to save one branch. Decision 109 has the measurements. In a function of more than `loops_max` loops
    // they stay in all loops over rows.
    [[nodiscard]] bool should_run(llvm::StringRef pass, const llvm::Loop& loop) const;
    // Asked once before each round of InstCombine, which it counts for each function.
    [[nodiscard]] bool should_combine(const llvm::Function& function);

private:
    const bool has_lanes_;
    const bool is_large_;
    const bool is_long_for_lanes_;
    const bool has_many_accesses_;
    const bool has_long_block_;
    const bool is_plain_;
    const bool is_settled_;
    const size_t loops_;  // of the function with the most
    llvm::DenseMap<const llvm::Function*, unsigned> rounds_;  // of InstCombine
};

// For the passes of the code generator.
class PassGate final : public llvm::OptPassGate {
public:
    // Loop strength reduction gives each address in a loop a variable of its own. Work-group functions use so many arrays that these variables
    // do not fit into registers. Without the pass, a matrix product with 16 sums takes half the time, and half the time to compile.
    static constexpr unsigned reduced_instructions_max = 1500;
    // Nor does it run where more numbers are added to a counter one after the other, as a hash or a random number made of a work-item's id does. For each sum on the
    // way the pass writes down the ways to compute it, which took 200 of the 230 ms for a generator of random numbers.
    static constexpr unsigned summed_numbers_max = 16;
    // CodeGenPrepare takes quadratic time for the addresses of a basic block: minutes for one of 100,000 instructions with thousands of
    // accesses. Instruction selection folds the addresses within a block without it.
    static constexpr size_t numbered_instructions_max = 20'000;
    // Where each innermost loop has at least so many instructions, constants stay in the loop: there are more of them than registers. The pass that moves them out
    // compares each with all others and gives the register allocator much to undo, which took half of the time for 2,500 statements with constants.
    static constexpr size_t loop_with_constants_min = 1000;
    // In longer code the scheduler behind the register allocator does not run: it took a tenth of the time. Processors that execute out of order gain next to
    // nothing from it, and the scheduler before has ordered the code (decision 371).
    static constexpr unsigned scheduled_again_instructions_max = 3000;

    // `module` must live as long. When its code is not needed any more (OptionalWork), the passes that follow do nothing.
    explicit PassGate(llvm::Module& module);

    [[nodiscard]] bool reduces() const { return reduces_; }
    [[nodiscard]] bool isEnabled() const override { return is_optional_ || !reduces_ || !schedules_again_ || !hoists_; }
    [[nodiscard]] bool shouldRunPass(llvm::StringRef pass, llvm::StringRef) const override;

private:
    llvm::Module& module_;
    const bool is_optional_;
    const bool reduces_;
    const bool schedules_;
    const bool schedules_again_;
    const bool prepares_;
    const bool hoists_;
    const bool has_freeze_;  // without one, the pass that moves them out of loops only asks how their counters grow
};

}  // namespace polder::compiler
