#include "pass_gate.h"

#include "targets/host/workgroup/regions/loop_nest.h"

#include <llvm/ADT/STLExtras.h>

namespace polder::compiler {
namespace {

constexpr unsigned accesses_max = 1000;  // of a basic block

bool is_long(const llvm::BasicBlock& block) {
    const auto accesses = [&] {
        return llvm::count_if(block, [](const llvm::Instruction& each) { return each.mayReadOrWriteMemory(); });
    };
    return block.size() > accesses_max && accesses() > accesses_max;
}

bool is_row(const llvm::Loop& loop) { return llvm::findOptionMDForLoop(&loop, workgroup::single_row_tag) != nullptr; }

// Whether `loop` counts rows of work-items whose code neither depends on the row nor has loops: most often there is one row.
bool is_plain_row(const llvm::Loop& loop) {
    const auto is_counter_only = [&](const llvm::PHINode& phi) {
        return llvm::all_of(phi.users(), [&](const llvm::User* user) {
            return llvm::cast<llvm::Instruction>(user)->getParent() == loop.getLoopLatch();
        });
    };
    const auto has_no_loops = [&](const llvm::Loop* inner) { return inner->isInnermost() || is_row(*inner); };
    return is_row(loop) && llvm::all_of(loop.getHeader()->phis(), is_counter_only) &&
           llvm::all_of(loop.getLoopsInPreorder(), has_no_loops);
}

}  // namespace

bool has_long_block(const llvm::Module& module) {
    return llvm::any_of(module, [](const llvm::Function& function) { return llvm::any_of(function, is_long); });
}

OptimizationGate::OptimizationGate(const llvm::Module& module)
    : is_large_(module.getInstructionCount() > pairwise_instructions_max), has_long_block_(has_long_block(module)) {}

bool OptimizationGate::should_run(llvm::StringRef pass) const {
    if (pass == "LoopVectorizePass" || pass == "SLPVectorizerPass")
        return !has_long_block_;
    return !is_large_ || pass != "LoopLoadEliminationPass";
}

bool OptimizationGate::should_run(llvm::StringRef pass, const llvm::Loop& loop) const {
    return should_run(pass) && (pass != "SimpleLoopUnswitchPass" || !is_plain_row(loop));
}

PassGate::PassGate(const llvm::Module& module)
    : reduces_(module.getInstructionCount() <= reduced_instructions_max), schedules_(!has_long_block(module)) {}

bool PassGate::shouldRunPass(llvm::StringRef pass, llvm::StringRef) const {
    if (pass == "machine-scheduler" || pass == "post-RA-sched")
        return schedules_;
    return reduces_ || pass != "Loop Strength Reduction";
}

}  // namespace polder::compiler
