// The accesses of a marked innermost loop in the order in which LLVM lines up its blocks. A group is a number of loads, or of stores, whose addresses
// change by the same constant from iteration to iteration and differ from each other by less than it.
#include "parallel_accesses.h"

#include "marks.h"

#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/LoopIterator.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>

namespace polder::compiler::workgroup {
namespace {

// In loops with more accesses than this, groups are taken to move across others.
constexpr size_t accesses_max = 64;

struct Access {
    llvm::Instruction* instruction = nullptr;
    const llvm::SCEV* address = nullptr;
    int64_t bytes = 0;
    int64_t step = 0;  // from iteration to iteration, if it is a constant other than the size; otherwise 0
    bool is_store = false;
};

class ParallelLoop {
public:
    ParallelLoop(const llvm::Loop& loop, llvm::LoopInfo& loops, llvm::ScalarEvolution& scalars,
                 llvm::AAResults& aliases)
        : scalars_(scalars), aliases_(aliases) {
        llvm::LoopBlocksRPO blocks(const_cast<llvm::Loop*>(&loop));
        blocks.perform(&loops);
        for (llvm::BasicBlock* const block : blocks)
            for (llvm::Instruction& instruction : *block)
                if (llvm::getLoadStorePointerOperand(&instruction) != nullptr)
                    accesses_.push_back(access_of(instruction, loop));
    }

    [[nodiscard]] bool may_move_group_across() {
        if (llvm::none_of(accesses_, [](const Access& access) { return access.step != 0; }))
            return false;
        if (accesses_.size() > accesses_max)
            return true;
        for (size_t first = 0; first < accesses_.size(); ++first)
            for (size_t last = first + 2; last < accesses_.size(); ++last)
                if (are_in_group(accesses_[first], accesses_[last]) && is_any_between(first, last))
                    return true;
        return false;
    }

private:
    Access access_of(llvm::Instruction& instruction, const llvm::Loop& loop) {
        llvm::Value* const pointer = llvm::getLoadStorePointerOperand(&instruction);
        const llvm::DataLayout& layout = instruction.getDataLayout();
        Access access{.instruction = &instruction,
                      .address = scalars_.getSCEV(pointer),
                      .bytes = static_cast<int64_t>(
                          layout.getTypeStoreSize(llvm::getLoadStoreType(&instruction)).getFixedValue()),
                      .is_store = llvm::isa<llvm::StoreInst>(instruction)};
        const auto* const changing = llvm::dyn_cast<llvm::SCEVAddRecExpr>(access.address);
        if (changing == nullptr || changing->getLoop() != &loop || !changing->isAffine())
            return access;
        const auto* const step = llvm::dyn_cast<llvm::SCEVConstant>(changing->getStepRecurrence(scalars_));
        if (step != nullptr && step->getAPInt().abs() != static_cast<uint64_t>(access.bytes))
            access.step = step->getAPInt().getSExtValue();
        return access;
    }

    // Of addresses in the same iteration.
    [[nodiscard]] std::optional<int64_t> distance(const Access& from, const Access& to) {
        if (from.address->getType() != to.address->getType())
            return std::nullopt;
        const auto* const constant =
            llvm::dyn_cast<llvm::SCEVConstant>(scalars_.getMinusSCEV(to.address, from.address));
        return constant != nullptr ? std::optional(constant->getAPInt().getSExtValue()) : std::nullopt;
    }

    [[nodiscard]] bool are_in_group(const Access& one, const Access& other) {
        if (one.step == 0 || one.step != other.step || one.is_store != other.is_store || one.bytes != other.bytes)
            return false;
        const std::optional<int64_t> apart = distance(one, other);
        return apart && *apart != 0 && std::abs(*apart) < std::abs(one.step);
    }

    [[nodiscard]] bool may_overlap(const Access& one, const Access& other) {
        for (const Access* access : {&one, &other})
            if (access->instruction->hasMetadata(llvm::LLVMContext::MD_invariant_load))
                return false;
        if (const std::optional<int64_t> apart = distance(one, other))
            return *apart < one.bytes && -*apart < other.bytes;
        return !aliases_.isNoAlias(llvm::MemoryLocation::get(one.instruction),
                                   llvm::MemoryLocation::get(other.instruction));
    }

    // Stores move to the last one, loads to the first one.
    [[nodiscard]] bool is_any_between(size_t first, size_t last) {
        const bool are_stores = accesses_[first].is_store;
        const Access& moved = accesses_[are_stores ? first : last];
        for (size_t between = first + 1; between < last; ++between)
            if ((are_stores || accesses_[between].is_store) && may_overlap(moved, accesses_[between]))
                return true;
        return false;
    }

    llvm::ScalarEvolution& scalars_;
    llvm::AAResults& aliases_;
    llvm::SmallVector<Access, 16> accesses_;
};

void remove_mark(const llvm::Loop& loop) {
    loop.setLoopID(llvm::makePostTransformationMetadata(loop.getHeader()->getContext(), loop.getLoopID(),
                                                        {"llvm.loop.parallel_accesses"}, {}));
}

struct ParallelAccesses : llvm::PassInfoMixin<ParallelAccesses> {
    static llvm::PreservedAnalyses run(llvm::Function& function, llvm::FunctionAnalysisManager& analyses) {
        llvm::LoopInfo& loops = analyses.getResult<llvm::LoopAnalysis>(function);
        for (const llvm::Loop* const loop : loops.getLoopsInPreorder()) {
            if (!loop->isInnermost() || !loop->isAnnotatedParallel() || is_left_by_llvm(*loop))
                continue;
            auto& scalars = analyses.getResult<llvm::ScalarEvolutionAnalysis>(function);
            auto& aliases = analyses.getResult<llvm::AAManager>(function);
            if (ParallelLoop(*loop, loops, scalars, aliases).may_move_group_across())
                remove_mark(*loop);
        }
        return llvm::PreservedAnalyses::all();
    }
    // LLVM runs this pass also where it leaves out optional passes (optnone).
    static bool isRequired() { return true; }
};

}  // namespace

void add_parallel_access_pass(llvm::PassBuilder& builder) {
    builder.registerVectorizerStartEPCallback(
        [](llvm::FunctionPassManager& passes, llvm::OptimizationLevel) { passes.addPass(ParallelAccesses()); });
}

}  // namespace polder::compiler::workgroup
