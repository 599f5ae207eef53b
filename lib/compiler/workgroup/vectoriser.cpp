#include "vectoriser.h"

#include "lane_cost.h"
#include "vector_loop.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/PostDominators.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Dominators.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/Scalarizer.h>
#include <llvm/Transforms/Utils/LCSSA.h>
#include <llvm/Transforms/Utils/LoopSimplify.h>
#include <llvm/Transforms/Utils/LowerSwitch.h>
#include <llvm/Transforms/Utils/UnrollLoop.h>

namespace polder::compiler::workgroup {

namespace {

bool is_tagged(const llvm::Loop& loop) {
    const llvm::MDNode* id = loop.getLoopID();
    return id && llvm::GetUnrollMetadata(const_cast<llvm::MDNode*>(id), work_item_loop_tag);
}

// Not tried again. What is left of a loop whose lanes run elsewhere, or do not pay, is nothing for LLVM either: its
// vectoriser thinks better of gathers.
enum class LeftToLlvm : uint8_t { no, yes };
void retire(llvm::Loop& loop, LeftToLlvm left) {
    llvm::LLVMContext& context = loop.getHeader()->getContext();
    llvm::SmallVector<llvm::Metadata*, 4> properties{nullptr};
    for (const llvm::MDOperand& property : llvm::drop_begin(loop.getLoopID()->operands())) {
        const auto* node = llvm::dyn_cast<llvm::MDNode>(property);
        const auto* name =
            node && node->getNumOperands() ? llvm::dyn_cast<llvm::MDString>(node->getOperand(0)) : nullptr;
        if (!name || name->getString() != work_item_loop_tag)
            properties.push_back(property);
    }
    if (left == LeftToLlvm::no)
        properties.push_back(llvm::MDNode::get(
            context, {llvm::MDString::get(context, "llvm.loop.isvectorized"),
                      llvm::ConstantAsMetadata::get(llvm::ConstantInt::get(llvm::Type::getInt32Ty(context), 1))}));
    llvm::MDNode* id = llvm::MDNode::getDistinct(context, properties);
    id->replaceOperandWith(0, id);
    loop.setLoopID(id);
}

bool uses_double(const llvm::Loop& loop) {
    for (const llvm::BasicBlock* block : loop.blocks())
        for (const llvm::Instruction& instruction : *block)
            if (instruction.getType()->isDoubleTy())
                return true;
    return false;
}

// Into the form that the vectoriser knows: branches only, canonical loops, no vectors.
void canonicalise(llvm::Function& function, llvm::FunctionAnalysisManager& analyses) {
    llvm::FunctionPassManager passes;
    llvm::ScalarizerPassOptions options;
    options.ScalarizeLoadStore = true;
    options.ScalarizeVariableInsertExtract = true;
    passes.addPass(llvm::ScalarizerPass(options));
    passes.addPass(llvm::EarlyCSEPass());
    passes.addPass(llvm::LowerSwitchPass());
    passes.addPass(llvm::LoopSimplifyPass());
    passes.addPass(llvm::LCSSAPass());
    passes.run(function, analyses);
}

enum class Outcome : uint8_t { vectorised, does_not_pay, not_understood };

Outcome vectorise(llvm::Loop& loop, llvm::LoopInfo& loops, unsigned width, Lanes lanes) {
    const llvm::PostDominatorTree post_dominators(*loop.getHeader()->getParent());
    const std::optional<LanePlan> plan = plan_lanes(loop, loops, post_dominators);
    if (!plan)
        return Outcome::not_understood;
    const LaneShapes shapes(loop, loops, *plan->index, plan->blocks, plan->masked, plan->divergent,
                            plan->private_strides);
    if (!can_run_in_lanes(*plan, shapes))
        return Outcome::not_understood;
    const LaneShapes guesses(loop, loops, *plan->index, plan->blocks, plan->masked, plan->divergent,
                             plan->private_strides, LaneShapes::Certainty::likely);
    LaneAccesses accesses(shapes, guesses, width);
    if (lanes == Lanes::where_they_pay && !do_lanes_pay(*plan, shapes, accesses, width))
        return Outcome::does_not_pay;
    emit_vector_loop(*plan, shapes, accesses, width);
    return Outcome::vectorised;
}

// Tries one tagged loop; false when there is none.
bool vectorise_one(llvm::Function& function, unsigned width, Lanes lanes, unsigned& vectorised) {
    llvm::DominatorTree dominators(function);
    llvm::LoopInfo loops(dominators);
    for (llvm::Loop* loop : loops.getLoopsInPreorder()) {
        if (!is_tagged(*loop))
            continue;
        const Outcome outcome = vectorise(*loop, loops, uses_double(*loop) ? std::max(width / 2, 2U) : width, lanes);
        retire(*loop, outcome == Outcome::not_understood ? LeftToLlvm::yes : LeftToLlvm::no);
        vectorised += outcome == Outcome::vectorised ? 1 : 0;
        return true;
    }
    return false;
}

// A program that works on vectors of eight and more fills the registers by itself. Its vectors are not taken apart, since each
// of their elements would be a gather for lanes.
constexpr unsigned own_vector_elements_min = 8;

bool has_vectors_of_its_own(const llvm::LoopInfo& loops) {
    double own = 0, others = 0;
    for (const llvm::Loop* loop : loops.getLoopsInPreorder()) {
        if (!is_tagged(*loop))
            continue;
        for (const llvm::BasicBlock* block : loop->blocks())
            for (const llvm::Instruction& instruction : *block) {
                const llvm::Value* address = llvm::getLoadStorePointerOperand(&instruction);
                if (address == nullptr || llvm::isa<llvm::AllocaInst>(llvm::getUnderlyingObject(address)))
                    continue;
                const auto* type = llvm::dyn_cast<llvm::FixedVectorType>(llvm::getLoadStoreType(&instruction));
                const double weight = weight_of_block(loops.getLoopDepth(block) - loop->getLoopDepth());
                (type != nullptr && type->getNumElements() >= own_vector_elements_min ? own : others) += weight;
            }
    }
    return own > others;
}

}  // namespace

unsigned vectorise_work_item_loops(llvm::Function& function, unsigned width, Lanes lanes,
                                   llvm::FunctionAnalysisManager& analyses) {
    bool is_wanted = false;
    {
        llvm::DominatorTree dominators(function);
        const llvm::LoopInfo loops(dominators);
        for (const llvm::Loop* loop : loops.getLoopsInPreorder())
            is_wanted |= is_tagged(*loop);
        is_wanted = is_wanted && !has_vectors_of_its_own(loops);
    }
    if (!is_wanted || width < 2 || lanes == Lanes::none)
        return 0;
    canonicalise(function, analyses);
    unsigned vectorised = 0;
    while (vectorise_one(function, width, lanes, vectorised)) {
    }
    return vectorised;
}

}  // namespace polder::compiler::workgroup
