// LLVM's LoopVersioning makes the copy, the check and the metadata about aliases. Its pass LoopVersioningLICM is not used: it leaves a loop as
// it is when one of the loop's accesses overlaps no other, such as a load of a member that the loop does not store.
#include "accumulators.h"

#include "targets/host/workgroup/work_items/work_item_functions.h"

#include <llvm/Analysis/LoopAccessAnalysis.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Utils/LoopUtils.h>
#include <llvm/Transforms/Utils/LoopVersioning.h>

namespace polder::compiler::workgroup {

namespace {

// Where an innermost loop stores in each iteration to the same place.
llvm::SmallVector<const llvm::Value*> places_of(const llvm::Loop& loop) {
    llvm::SmallVector<const llvm::Value*> places;
    if (!loop.isInnermost())
        return places;
    for (const llvm::BasicBlock* block : loop.blocks())
        for (const llvm::Instruction& instruction : *block)
            if (const auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction);
                store && store->isSimple() && loop.isLoopInvariant(store->getPointerOperand()))
                places.push_back(store->getPointerOperand());
    return places;
}

// Whether all accesses of the loop are simple loads and stores, and none of its calls must stay the only one of its kind.
bool can_be_copied(const llvm::Loop& loop) {
    const auto is_plain = [](const llvm::Instruction& instruction) {
        const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
        if (call && (call->isConvergent() || call->cannotDuplicate()))
            return false;
        const auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction);
        const auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction);
        return !instruction.mayReadOrWriteMemory() || (load && load->isSimple()) || (store && store->isSimple());
    };
    return llvm::all_of(loop.blocks(), [&](const llvm::BasicBlock* block) { return llvm::all_of(*block, is_plain); });
}

// Whether one of the pointers is checked. Otherwise the check would not help to move its store.
bool is_any_checked(llvm::ArrayRef<const llvm::Value*> pointers, const llvm::RuntimePointerChecking& checking) {
    const auto is_in = [&](const llvm::RuntimeCheckingPtrGroup& group) {
        return llvm::any_of(group.Members, [&](unsigned member) {
            return llvm::is_contained(pointers, checking.getPointerInfo(member).PointerValue);
        });
    };
    return llvm::any_of(checking.getChecks(), [&](const llvm::RuntimePointerCheck& check) {
        return is_in(*check.first) || is_in(*check.second);
    });
}

bool is_constant_load(const llvm::Instruction& instruction) {
    const auto* const load = llvm::dyn_cast<llvm::LoadInst>(&instruction);
    const auto* const object =
        load ? llvm::dyn_cast<llvm::GlobalVariable>(llvm::getUnderlyingObject(load->getPointerOperand())) : nullptr;
    return object != nullptr && object->isConstant();
}

void add_scope(llvm::Instruction& access, unsigned kind, llvm::MDNode* scopes) {
    access.setMetadata(kind, llvm::MDNode::concatenate(access.getMetadata(kind), scopes));
}

// Writes down that the loop's other accesses do not concern constant objects. LLVM assumes that a pointer which the kernel is given may point to
// one, and puts loads that may have the same address into one set with the stores; no range can be checked for a load such as `table[x & 63]`,
// which many math functions have. Where another load does read the same constant, nothing follows from the order of the two.
void separate_constants(const llvm::Loop& loop) {
    llvm::SmallVector<llvm::Instruction*> constants, others;
    for (llvm::BasicBlock* const block : loop.blocks())
        for (llvm::Instruction& instruction : *block)
            if (is_constant_load(instruction))
                constants.push_back(&instruction);
            else if (llvm::isa<llvm::LoadInst, llvm::StoreInst>(instruction))
                others.push_back(&instruction);
    if (constants.empty())
        return;
    llvm::LLVMContext& context = constants.front()->getContext();
    llvm::MDBuilder make(context);
    auto* const scopes = llvm::MDNode::get(
        context, make.createAnonymousAliasScope(make.createAnonymousAliasScopeDomain("polder"), "constants"));
    for (llvm::Instruction* const load : constants)
        add_scope(*load, llvm::LLVMContext::MD_alias_scope, scopes);
    for (llvm::Instruction* const access : others)
        add_scope(*access, llvm::LLVMContext::MD_noalias, scopes);
}

// Copies the loop behind a check of address ranges; false where that is not possible. `loop` is then the copy without aliases.
bool separate_from_aliases(llvm::Loop& loop, llvm::ArrayRef<const llvm::Value*> places,
                           llvm::LoopStandardAnalysisResults& results) {
    if (!loop.isLoopSimplifyForm() || loop.getExitingBlock() == nullptr || loop.getExitBlock() == nullptr ||
        !loop.isLCSSAForm(results.DT) || !can_be_copied(loop))
        return false;
    llvm::LoopAccessInfoManager accesses(results.SE, results.AA, results.DT, results.LI, &results.TTI, &results.TLI,
                                         &results.AC);
    const llvm::LoopAccessInfo& all = accesses.getInfo(loop);
    const llvm::RuntimePointerChecking& checking = *all.getRuntimePointerChecking();
    if (checking.getChecks().size() > llvm::VectorizerParams::RuntimeMemoryCheckThreshold ||
        !is_any_checked(places, checking))
        return false;
    llvm::LoopVersioning copies(all, checking.getChecks(), &loop, &results.LI, &results.DT, &results.SE);
    copies.versionLoop();
    copies.annotateLoopWithNoAlias();
    return true;
}

}  // namespace

bool has_accumulators(const llvm::LoopInfo& loops) {
    return llvm::any_of(loops.getLoopsInPreorder(), [](const llvm::Loop* loop) { return !places_of(*loop).empty(); });
}

llvm::PreservedAnalyses SeparateAccumulators::run(llvm::Loop& loop, llvm::LoopAnalysisManager& /*analyses*/,
                                                  llvm::LoopStandardAnalysisResults& results,
                                                  llvm::LPMUpdater& /*updater*/) {
    const auto places = places_of(loop);
    if (!places.empty())
        separate_constants(loop);
    if (places.empty() || !separate_from_aliases(loop, places, results))
        return llvm::PreservedAnalyses::all();
    const llvm::PreservedAnalyses preserved = llvm::getLoopPassPreservedAnalyses();
    // `loop` is now the copy without aliases; the check branches to the other copy when its condition is true.
    const llvm::BasicBlock* before = loop.getLoopPreheader();
    const llvm::BasicBlock* check = before ? before->getSinglePredecessor() : nullptr;
    auto* branch =
        check ? llvm::dyn_cast<llvm::BranchInst>(const_cast<llvm::Instruction*>(check->getTerminator())) : nullptr;
    if (!branch || !branch->isConditional())
        return preserved;
    llvm::IRBuilder<> at(branch);
    branch->setCondition(at.CreateCall(any_work_item_intrinsic(*branch->getModule()), {branch->getCondition()}));
    const llvm::BasicBlock* other = branch->getSuccessor(0)->getSingleSuccessor();
    if (llvm::Loop* fallback = other ? results.LI.getLoopFor(other) : nullptr; fallback && !fallback->contains(&loop))
        llvm::addStringMetadataToLoop(fallback, fallback_loop_tag, 1);
    return preserved;
}

bool is_in_fallback_loop(const llvm::LoopInfo& loops, const llvm::BasicBlock* block) {
    for (const llvm::Loop* loop = loops.getLoopFor(block); loop; loop = loop->getParentLoop())
        if (llvm::getBooleanLoopAttribute(loop, fallback_loop_tag))
            return true;
    return false;
}

}  // namespace polder::compiler::workgroup
