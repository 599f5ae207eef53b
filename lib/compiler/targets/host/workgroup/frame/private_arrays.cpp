// An array qualifies when it is small and each of its accesses is at an index that is made of constants and of counters of loops whose
// number of iterations is known. Scalar evolution writes an index in this form.
#include "private_arrays.h"

#include "trip_counts.h"

#include <algorithm>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Utils/Local.h>
#include <llvm/Transforms/Utils/LoopUtils.h>
#include <llvm/Transforms/Utils/ScalarEvolutionExpander.h>
#include <llvm/Transforms/Utils/UnrollLoop.h>

namespace polder::compiler::workgroup {

namespace {

// Larger arrays are far too large for the registers.
constexpr uint64_t bytes_max = 256;
// The largest size of an unrolled loop, in instructions. LLVM's own limit for most loops is a fifth of this.
constexpr size_t unrolled_size_max = 1000;

// Whether nothing is left of the instruction when the loops around it are unrolled and `array` is in registers: its result is then a constant or
// another value.
bool vanishes(const llvm::Instruction& instruction, const llvm::AllocaInst& array, llvm::ScalarEvolution& evolution) {
    if (llvm::isa<llvm::PHINode, llvm::GetElementPtrInst>(instruction) || instruction.isTerminator())
        return true;
    if (const llvm::Value* const place = llvm::getLoadStorePointerOperand(&instruction);
        place != nullptr && llvm::getUnderlyingObject(place) == &array)
        return true;
    if (!evolution.isSCEVable(instruction.getType()))
        return false;
    const llvm::SCEV* const value = evolution.getSCEV(const_cast<llvm::Instruction*>(&instruction));
    return !llvm::SCEVExprContains(value, [&](const llvm::SCEV* part) {
        const auto* const counter = llvm::dyn_cast<llvm::SCEVAddRecExpr>(part);
        return llvm::isa<llvm::SCEVUnknown>(part) || (counter && known_trip_count(*counter->getLoop(), evolution) == 0);
    });
}

size_t remaining_size(const llvm::Loop& loop, const llvm::AllocaInst& array, llvm::ScalarEvolution& evolution) {
    size_t size = 1;
    for (const llvm::BasicBlock* block : loop.blocks())
        size += static_cast<size_t>(
            llvm::count_if(*block, [&](const auto& instruction) { return !vanishes(instruction, array, evolution); }));
    return size;
}

// The size of `loop` when it and the loops inside it are unrolled, as far as their numbers of iterations are known.
size_t unrolled_size(const llvm::Loop& loop, const llvm::AllocaInst& array, llvm::ScalarEvolution& evolution) {
    size_t size = remaining_size(loop, array, evolution);
    for (const llvm::Loop* inner : loop)
        size += unrolled_size(*inner, array, evolution) - remaining_size(*inner, array, evolution);
    return size * std::max(known_trip_count(loop, evolution), 1U);
}

bool is_small(const llvm::AllocaInst& variable) {
    const auto bytes = variable.getAllocationSize(variable.getDataLayout());
    return bytes && !bytes->isScalable() && bytes->getFixedValue() <= bytes_max;
}

class PrivateArray {
public:
    PrivateArray(const llvm::AllocaInst& variable, const llvm::Loop& loop, llvm::ScalarEvolution& evolution)
        : variable_(variable), loop_(loop), evolution_(evolution) {}

    // Whether the counter of `loop` is in an index, and no index stays variable once all loops are unrolled.
    [[nodiscard]] bool becomes_registers() {
        return is_small(variable_) && has_known_uses(variable_) && is_indexed_by_loop_;
    }

private:
    bool has_known_uses(const llvm::Instruction& pointer) {
        return llvm::all_of(pointer.users(), [&](const llvm::User* user) {
            const auto& instruction = *llvm::cast<llvm::Instruction>(user);
            if (instruction.isLifetimeStartOrEnd() || llvm::isa<llvm::MemIntrinsic>(instruction))
                return true;
            if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction))
                return load->isSimple();
            if (const auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction))
                return store->isSimple() && store->getValueOperand() != &pointer;
            const bool is_address =
                llvm::isa<llvm::GetElementPtrInst>(instruction) || llvm::isa<llvm::AddrSpaceCastInst>(instruction);
            return is_address && has_known_index(instruction) && has_known_uses(instruction);
        });
    }

    bool has_known_index(const llvm::Instruction& address) {
        if (llvm::isa<llvm::AddrSpaceCastInst>(address))
            return true;
        auto& place = const_cast<llvm::Instruction&>(address);
        return evolution_.isSCEVable(place.getType()) && is_known(*evolution_.getSCEV(&place));
    }

    // Whether `value` is a constant once all loops are unrolled.
    bool is_known(const llvm::SCEV& value) {
        return !llvm::SCEVExprContains(&value, [&](const llvm::SCEV* part) {
            if (const auto* counter = llvm::dyn_cast<llvm::SCEVAddRecExpr>(part)) {
                is_indexed_by_loop_ |= counter->getLoop() == &loop_;
                return !can_be_unrolled(*counter->getLoop());
            }
            const auto* unknown = llvm::dyn_cast<llvm::SCEVUnknown>(part);
            return unknown != nullptr && unknown->getValue() != &variable_ &&
                   !llvm::isa<llvm::AddrSpaceCastInst>(unknown->getValue()) && !is_in_table(*unknown->getValue());
        });
    }

    bool can_be_unrolled(const llvm::Loop& loop) {
        return known_trip_count(loop, evolution_) != 0 &&
               unrolled_size(loop, variable_, evolution_) <= unrolled_size_max;
    }

    // Whether `value` is an element of a constant array, at an index that is a constant once all loops are unrolled.
    bool is_in_table(llvm::Value& value) {
        auto* load = llvm::dyn_cast<llvm::LoadInst>(&value);
        if (load == nullptr)
            return false;
        const auto* table = llvm::dyn_cast<llvm::GlobalVariable>(llvm::getUnderlyingObject(load->getPointerOperand()));
        const auto* address = llvm::dyn_cast<llvm::Instruction>(load->getPointerOperand());
        if (table == nullptr || address == nullptr || !table->isConstant() || !table->hasDefinitiveInitializer())
            return false;
        const llvm::SCEV* index = evolution_.getMinusSCEV(evolution_.getSCEV(load->getPointerOperand()),
                                                          evolution_.getSCEV(const_cast<llvm::GlobalVariable*>(table)));
        return !llvm::isa<llvm::SCEVCouldNotCompute>(index) && is_known(*index);
    }

    const llvm::AllocaInst& variable_;
    const llvm::Loop& loop_;
    llvm::ScalarEvolution& evolution_;
    bool is_indexed_by_loop_ = false;
};

bool indexes_private_array(const llvm::Loop& loop, llvm::ScalarEvolution& evolution) {
    llvm::SmallPtrSet<const llvm::Value*, 8> seen;
    for (const llvm::BasicBlock* block : loop.blocks())
        for (const llvm::Instruction& instruction : *block)
            if (const llvm::Value* address = llvm::getLoadStorePointerOperand(&instruction)) {
                const llvm::Value* object = llvm::getUnderlyingObject(address);
                const auto* variable = llvm::dyn_cast<llvm::AllocaInst>(object);
                if (variable && seen.insert(variable).second &&
                    PrivateArray(*variable, loop, evolution).becomes_registers())
                    return true;
            }
    return false;
}

bool accesses_private_array(const llvm::Loop& loop) {
    return llvm::any_of(loop.blocks(), [](const llvm::BasicBlock* block) {
        return llvm::any_of(*block, [](const llvm::Instruction& instruction) {
            const llvm::Value* const address = llvm::getLoadStorePointerOperand(&instruction);
            const auto* const variable =
                address ? llvm::dyn_cast<llvm::AllocaInst>(llvm::getUnderlyingObject(address)) : nullptr;
            return variable != nullptr && is_small(*variable);
        });
    });
}

constexpr const char* full = "llvm.loop.unroll.full";

void mark(llvm::Loop& loop) {
    llvm::LLVMContext& context = loop.getHeader()->getContext();
    llvm::MDNode* const marker = llvm::MDNode::get(context, llvm::MDString::get(context, full));
    loop.setLoopID(llvm::makePostTransformationMetadata(context, loop.getLoopID(), {"llvm.loop.unroll."}, {marker}));
}

}  // namespace

llvm::PreservedAnalyses UnrollForPrivateArrays::run(llvm::Loop& loop, llvm::LoopAnalysisManager&,
                                                    llvm::LoopStandardAnalysisResults& results, llvm::LPMUpdater&) {
    const bool is_forbidden = (llvm::hasUnrollTransformation(&loop) & llvm::TM_Disable) != 0;
    const bool is_marked = llvm::findOptionMDForLoop(&loop, full) != nullptr;
    if (!is_forbidden && !is_marked && results.SE.getSmallConstantTripCount(&loop) > 1 &&
        indexes_private_array(loop, results.SE))
        mark(loop);
    return llvm::PreservedAnalyses::all();
}

llvm::PreservedAnalyses ComputeExitValues::run(llvm::Loop& loop, llvm::LoopAnalysisManager&,
                                               llvm::LoopStandardAnalysisResults& results, llvm::LPMUpdater&) {
    if (results.SE.getSmallConstantTripCount(&loop) == 0 || !accesses_private_array(loop))
        return llvm::PreservedAnalyses::all();
    llvm::SmallVector<llvm::WeakTrackingVH, 16> unused;
    llvm::SCEVExpander expander(results.SE, "exit");
    const int replaced = llvm::rewriteLoopExitValues(&loop, &results.LI, &results.TLI, &results.SE, &results.TTI,
                                                     expander, &results.DT, llvm::AlwaysRepl, unused);
    expander.clear();
    for (const llvm::WeakTrackingVH& value : unused)
        if (auto* const instruction = llvm::dyn_cast_or_null<llvm::Instruction>(value))
            llvm::RecursivelyDeleteTriviallyDeadInstructions(instruction, &results.TLI);
    if (replaced == 0)
        return llvm::PreservedAnalyses::all();
    results.SE.forgetTopmostLoop(&loop);
    return llvm::getLoopPassPreservedAnalyses();
}

bool has_indexed_private_array(const llvm::Function& function) {
    return llvm::any_of(llvm::instructions(function), [](const llvm::Instruction& instruction) {
        const auto* const place = llvm::dyn_cast<llvm::GetElementPtrInst>(&instruction);
        const auto* const variable =
            place && !place->hasAllConstantIndices()
                ? llvm::dyn_cast<llvm::AllocaInst>(llvm::getUnderlyingObject(place->getPointerOperand()))
                : nullptr;
        return variable != nullptr && is_small(*variable);
    });
}

}  // namespace polder::compiler::workgroup
