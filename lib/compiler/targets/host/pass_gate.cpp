// Decides by the size of the module, by its longest block, by the registers that long blocks need, and by its loops: those over work-items have a
// tag (regions/loop_nest.h), and what has only such loops is called plain here.
#include "pass_gate.h"

#include "targets/host/instructions/register_need.h"
#include "targets/host/workgroup/regions/loop_nest.h"
#include "targets/host/workgroup/vectorizer/analysis/marks.h"

#include <compiler/optional_work.h>

#include <algorithm>
#include <array>
#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SetVector.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/Transforms/Utils/LoopUtils.h>
#include <optional>

namespace polder::compiler {
namespace {

constexpr unsigned accesses_max = 1000;  // of a basic block

bool has_more_accesses(const llvm::BasicBlock& block, unsigned limit) {
    const auto accesses = [&] {
        return llvm::count_if(block, [](const llvm::Instruction& each) { return each.mayReadOrWriteMemory(); });
    };
    return block.size() > limit && accesses() > limit;
}

bool is_long(const llvm::BasicBlock& block) { return has_more_accesses(block, accesses_max); }

bool has_many_accesses(const llvm::Module& module) {
    return llvm::any_of(module, [](const llvm::Function& function) {
        return llvm::any_of(function, [](const llvm::BasicBlock& block) {
            return has_more_accesses(block, OptimizationGate::pairwise_accesses_max);
        });
    });
}

// CodeGenPrepare compares the order of instructions after each address that it inserts, for which LLVM numbers the whole block again.
bool is_too_long_to_number(const llvm::BasicBlock& block) {
    return block.size() > PassGate::numbered_instructions_max && is_long(block);
}

bool is_over_items(const llvm::Loop& loop) { return llvm::findOptionMDForLoop(&loop, workgroup::items_tag) != nullptr; }

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

// Whether the code of `loop` has no loops but those over work-items.
bool is_over_items_alone(const llvm::Loop& loop) {
    return llvm::all_of(loop.getLoopsInPreorder(), [](const llvm::Loop* each) { return is_over_items(*each); });
}

// The module's functions that others may call, and what these call. Functions that were inlined everywhere are still in the module; they are left
// out, and so are cold ones, which hardly ever run.
llvm::SmallVector<const llvm::Function*> running_functions(const llvm::Module& module) {
    llvm::SetVector<const llvm::Function*> found;
    const auto add = [&](const llvm::Function* function) {
        if (function != nullptr && !function->isDeclaration() && !function->hasFnAttribute(llvm::Attribute::Cold))
            found.insert(function);
    };
    for (const llvm::Function& function : module)
        if (!function.hasLocalLinkage())
            add(&function);
    for (size_t i = 0; i < found.size(); ++i)
        for (const llvm::Instruction& instruction : llvm::instructions(*found[i]))
            if (const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction))
                add(call->getCalledFunction());
    return {found.begin(), found.end()};
}

// Whether `phi` counts: each iteration adds the same number.
bool is_counter(const llvm::PHINode& phi, const llvm::Loop& loop) {
    const llvm::BasicBlock* const latch = loop.getLoopLatch();
    const auto* const next =
        latch ? llvm::dyn_cast<llvm::BinaryOperator>(phi.getIncomingValueForBlock(latch)) : nullptr;
    return phi.getType()->isIntegerTy() && next && next->getOpcode() == llvm::Instruction::Add &&
           llvm::is_contained(next->operands(), &phi) &&
           llvm::any_of(next->operands(), [&](const llvm::Use& operand) { return loop.isLoopInvariant(operand); });
}

// Whether scalar evolution sees through it to a counter that an operand was computed from.
bool keeps_counters(const llvm::Instruction& instruction) {
    switch (instruction.getOpcode()) {
    case llvm::Instruction::Add:
    case llvm::Instruction::Sub:
    case llvm::Instruction::Mul:
    case llvm::Instruction::Shl:
    case llvm::Instruction::SExt:
    case llvm::Instruction::ZExt:
    case llvm::Instruction::Trunc: return instruction.getType()->isIntegerTy();
    default: return false;
    }
}

// Whether more than `numbers_max` numbers, which change from one iteration to the next, are added to a counter of `loop` one after the other.
bool has_long_sums(const llvm::Loop& loop, unsigned numbers_max) {
    llvm::DenseMap<const llvm::Value*, unsigned> numbers;  // that were added, for each sum with a counter
    for (const llvm::PHINode& phi : loop.getHeader()->phis())
        if (is_counter(phi, loop))
            numbers[&phi] = 0;
    for (const llvm::BasicBlock* block : loop.blocks())
        for (const llvm::Instruction& instruction : *block) {
            const auto has_counter = [&](const llvm::Use& operand) { return numbers.contains(operand.get()); };
            if (!keeps_counters(instruction) || llvm::none_of(instruction.operands(), has_counter))
                continue;
            unsigned sum = 0;
            for (const llvm::Use& operand : instruction.operands())
                sum += has_counter(operand) ? numbers.lookup(operand.get()) : !loop.isLoopInvariant(operand.get());
            if (sum > numbers_max)
                return true;
            numbers[&instruction] = sum;
        }
    return false;
}

bool has_long_sums(const llvm::Function& function) {
    if (function.isDeclaration())
        return false;
    const llvm::DominatorTree dominators(const_cast<llvm::Function&>(function));
    const llvm::LoopInfo loops(dominators);
    return llvm::any_of(loops.getLoopsInPreorder(), [](const llvm::Loop* loop) {
        return loop->isInnermost() && has_long_sums(*loop, PassGate::summed_numbers_max);
    });
}

bool has_long_sums(const llvm::Module& module) {
    return llvm::any_of(module, [](const llvm::Function& function) { return has_long_sums(function); });
}

bool has_loops_of_kernel(const llvm::Function& function) {
    llvm::DominatorTree dominators(const_cast<llvm::Function&>(function));
    const llvm::LoopInfo loops(dominators);
    return llvm::any_of(loops.getLoopsInPreorder(), [](const llvm::Loop* loop) { return !is_over_items(*loop); });
}

// The number of instructions of the shortest innermost loop of the module's functions; nothing without loops.
std::optional<size_t> shortest_loop(const llvm::Module& module) {
    std::optional<size_t> shortest;
    for (const llvm::Function& function : module) {
        if (function.isDeclaration())
            continue;
        const llvm::DominatorTree dominators(const_cast<llvm::Function&>(function));
        const llvm::LoopInfo loops(dominators);
        for (const llvm::Loop* loop : loops.getLoopsInPreorder()) {
            if (!loop->isInnermost())
                continue;
            size_t instructions = 0;
            for (const llvm::BasicBlock* block : loop->blocks())
                instructions += block->size();
            shortest = std::min(shortest.value_or(instructions), instructions);
        }
    }
    return shortest;
}

size_t most_loops(const llvm::Module& module) {
    size_t most = 0;
    for (const llvm::Function& function : module)
        if (!function.isDeclaration()) {
            const llvm::DominatorTree dominators(const_cast<llvm::Function&>(function));
            most = std::max(most, llvm::LoopInfo(dominators).getLoopsInPreorder().size());
        }
    return most;
}

bool has_freeze(const llvm::Module& module) {
    return llvm::any_of(module, [](const llvm::Function& function) {
        return llvm::any_of(llvm::instructions(function),
                            [](const llvm::Instruction& each) { return llvm::isa<llvm::FreezeInst>(each); });
    });
}

// Whether LLVM's deletion of loops leaves `loop` alone: it has an effect, and whether it ends after one iteration is not known before it runs.
bool has_to_run(const llvm::Loop& loop) {
    const llvm::ICmpInst* const compare = loop.getLatchCmpInst();
    return compare != nullptr && loop.getExitingBlock() == loop.getLoopLatch() &&
           !llvm::isa<llvm::Constant>(compare->getOperand(1)) &&
           llvm::any_of(loop.blocks(), [](const llvm::BasicBlock* block) {
               return llvm::any_of(*block, [](const llvm::Instruction& each) { return each.mayHaveSideEffects(); });
           });
}

bool has_cold_call(const llvm::Loop& loop) {
    return llvm::any_of(loop.blocks(), [](const llvm::BasicBlock* block) {
        return llvm::any_of(*block, [](const llvm::Instruction& each) {
            const auto* const call = llvm::dyn_cast<llvm::CallInst>(&each);
            const llvm::Function* const callee = call ? call->getCalledFunction() : nullptr;
            return callee != nullptr && !callee->isIntrinsic() && callee->hasFnAttribute(llvm::Attribute::Cold);
        });
    });
}

// Whether LLVM's unrolling of loops with variable counts leaves all loops of the function alone, because of calls but for loops over work-items.
bool has_only_loops_with_calls(const llvm::Function& function) {
    const llvm::DominatorTree dominators(const_cast<llvm::Function&>(function));
    const llvm::LoopInfo loops(dominators);
    bool has_call = false;
    for (const llvm::Loop* const loop : loops.getLoopsInPreorder()) {
        const llvm::TransformationMode mode = llvm::hasUnrollTransformation(loop);
        if ((mode & llvm::TM_Disable) != 0)
            continue;
        if (mode != llvm::TM_Unspecified || !has_cold_call(*loop))
            return false;
        has_call = true;
    }
    return has_call;
}

// Whether `function` has so many vectors made of single elements that the SLP vectorizer only loses time with them.
bool collects_many_elements(const llvm::Function& function) {
    const auto collects = [](const llvm::Instruction& instruction) {
        const auto* const insertion = llvm::dyn_cast<llvm::InsertElementInst>(&instruction);
        return insertion != nullptr && llvm::isa<llvm::InsertElementInst>(insertion->getOperand(0)) &&
               insertion->getType()->getElementCount().getKnownMinValue() > OptimizationGate::written_elements_max;
    };
    return llvm::count_if(llvm::instructions(function), collects) >
           static_cast<ptrdiff_t>(OptimizationGate::collected_elements_max);
}

// Whether a block combines more than `combined_numbers_max` numbers by one operation, one after the other or in any other order.
bool combines_many_numbers(const llvm::Function& function) {
    for (const llvm::BasicBlock& block : function) {
        if (block.size() <= OptimizationGate::combined_numbers_max)
            continue;
        llvm::DenseMap<const llvm::Value*, size_t>
            numbers;  // that an operation and those of its kind before it combine
        for (const llvm::Instruction& instruction : block) {
            if (!instruction.isAssociative() || instruction.getNumOperands() < 2)
                continue;
            const auto combined = [&](const llvm::Value* operand) -> size_t {
                const auto* const before = llvm::dyn_cast<llvm::Instruction>(operand);
                const bool is_alike = before != nullptr && before->getOpcode() == instruction.getOpcode();
                return is_alike && before->hasOneUse() ? std::max<size_t>(numbers.lookup(before), 1) : 1;
            };
            const size_t all = combined(instruction.getOperand(0)) + combined(instruction.getOperand(1));
            if (all > OptimizationGate::combined_numbers_max)
                return true;
            numbers[&instruction] = all;
        }
    }
    return false;
}

size_t instructions_of(llvm::ArrayRef<const llvm::Function*> functions) {
    size_t instructions = 0;
    for (const llvm::Function* function : functions)
        instructions += function->getInstructionCount();
    return instructions;
}

// Whether the module's code is small, and its only loops are those over work-items.
bool is_plain(const llvm::Module& module) {
    const llvm::SmallVector<const llvm::Function*> functions = running_functions(module);
    return instructions_of(functions) <= OptimizationGate::plain_instructions_max &&
           llvm::none_of(functions, [](const auto* function) { return has_loops_of_kernel(*function); });
}

// These passes find little in a small function without loops of its own. Those on loops unroll, rotate or recognise loops, which loops over
// work-items do not need.
constexpr std::array<llvm::StringRef, 18> passes_for_loops_of_kernels{"AggressiveInstCombinePass",
                                                                      "BDCEPass",
                                                                      "CalledValuePropagationPass",
                                                                      "ConstraintEliminationPass",
                                                                      "CorrelatedValuePropagationPass",
                                                                      "Float2IntPass",
                                                                      "IPSCCPPass",
                                                                      "LibCallsShrinkWrapPass",
                                                                      "LoopFullUnrollPass",
                                                                      "LoopIdiomRecognizePass",
                                                                      "LoopInstSimplifyPass",
                                                                      "LoopLoadEliminationPass",
                                                                      "LoopRotatePass",
                                                                      "LoopSimplifyCFGPass",
                                                                      "LoopUnrollPass",
                                                                      "MergedLoadStoreMotionPass",
                                                                      "SCCPPass",
                                                                      "TailCallElimPass"};

// These passes find next to nothing in a long work-group function with lanes. They follow constants and conditions, which the simplification of the kernel has
// done, or look for what vectors are not.
constexpr std::array<llvm::StringRef, 11> passes_for_unsettled_code{"BDCEPass",
                                                                    "CalledValuePropagationPass",
                                                                    "ConstraintEliminationPass",
                                                                    "Float2IntPass",
                                                                    "IPSCCPPass",
                                                                    "JumpThreadingPass",
                                                                    "LibCallsShrinkWrapPass",
                                                                    "LoopInstSimplifyPass",
                                                                    "MergedLoadStoreMotionPass",
                                                                    "SCCPPass",
                                                                    "TailCallElimPass"};

// The rounds of InstCombine, counted from 0, that follow GVN and VectorCombine: the next one follows soon.
constexpr std::array<unsigned, 2> early_rounds{3, 6};

// These passes look for conditions that hold where a loop is entered, in all blocks before it: between hundreds of barriers that takes quadratic time.
// Loops over work-items have the form already that they would make.
constexpr std::array<llvm::StringRef, 3> passes_on_entries{"IndVarSimplifyPass", "LoopDeletionPass",
                                                           "LoopIdiomRecognizePass"};

}  // namespace

bool has_long_block(const llvm::Module& module) {
    return llvm::any_of(module, [](const llvm::Function& function) { return llvm::any_of(function, is_long); });
}

OptimizationGate::OptimizationGate(const llvm::Module& module, bool has_lanes)
    : has_lanes_(has_lanes), is_large_(module.getInstructionCount() > pairwise_instructions_max),
      is_long_for_lanes_(module.getInstructionCount() > joined_instructions_max),
      has_many_accesses_(has_many_accesses(module)), has_long_block_(has_long_block(module)),
      is_plain_(is_plain(module)),
      is_settled_(has_lanes && instructions_of(running_functions(module)) > settled_instructions_min),
      loops_(most_loops(module)) {}

bool OptimizationGate::should_run(llvm::StringRef pass) const {
    if (is_plain_ && llvm::is_contained(passes_for_loops_of_kernels, pass))
        return false;
    if (is_settled_ && llvm::is_contained(passes_for_unsettled_code, pass))
        return false;
    if (pass == "LICMPass" || pass == "LoopUnrollPass")
        return loops_ <= loops_max;
    if (pass == "LoopVectorizePass" || pass == "SLPVectorizerPass")
        return !has_long_block_;
    return (!is_large_ && !has_many_accesses_) || pass != "LoopLoadEliminationPass";
}

bool OptimizationGate::should_run(llvm::StringRef pass, const llvm::Function& function) const {
    if (pass == "SLPVectorizerPass" &&
        ((has_lanes_ && collects_many_elements(function)) || combines_many_numbers(function)))
        return false;
    return should_run(pass) && (pass != "LoopUnrollPass" || !has_only_loops_with_calls(function));
}

bool OptimizationGate::should_run(llvm::StringRef pass, const llvm::Loop& loop) const {
    if (loops_ > loops_max && is_over_items_alone(loop)) {
        // Rows without an effect are deleted with all that they contain.
        if (llvm::is_contained(passes_on_entries, pass) &&
            (loop.isInnermost() || pass != "LoopDeletionPass" || has_to_run(loop)))
            return false;
        if (pass == "SimpleLoopUnswitchPass" && !loop.isInnermost())
            return false;
    }
    return should_run(pass) && (pass != "SimpleLoopUnswitchPass" || !is_plain_row(loop));
}

bool OptimizationGate::should_combine(const llvm::Function& function) {
    return !llvm::is_contained(early_rounds, rounds_[&function]++) || !is_settled_;
}

PassGate::PassGate(llvm::Module& module)
    : module_(module), is_optional_(static_cast<bool>(OptionalWork::of_this_thread())),
      reduces_(module.getInstructionCount() <= reduced_instructions_max && !has_long_sums(module)),
      schedules_(!has_long_block(module) && llvm::none_of(module, is_best_in_order)),
      schedules_again_(schedules_ && module.getInstructionCount() <= scheduled_again_instructions_max),
      prepares_(schedules_ || llvm::none_of(module,
                                            [](const llvm::Function& function) {
                                                return llvm::any_of(function, is_too_long_to_number);
                                            })),
      hoists_(shortest_loop(module).value_or(0) < loop_with_constants_min), has_freeze_(has_freeze(module)) {}

bool PassGate::shouldRunPass(llvm::StringRef pass, llvm::StringRef) const {
    if (OptionalWork::is_unneeded()) {
        // The passes that have to run, too, leave out functions that are defined elsewhere.
        for (llvm::Function& function : module_)
            if (!function.isDeclaration())
                function.setLinkage(llvm::GlobalValue::AvailableExternallyLinkage);
        return false;
    }
    if (pass == "machine-scheduler")
        return schedules_;
    if (pass == "post-RA-sched")
        return schedules_again_;
    if (pass == "early-machinelicm" || pass == "machinelicm")
        return hoists_;
    if (pass == "codegenprepare")
        return prepares_;
    if (pass == "Canonicalize Freeze Instructions in Loops")
        return has_freeze_;
    return reduces_ || pass != "Loop Strength Reduction";
}

}  // namespace polder::compiler
