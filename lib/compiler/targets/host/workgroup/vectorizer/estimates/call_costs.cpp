#include "call_costs.h"

#include "lane_cost.h"
#include "targets/host/workgroup/vectorizer/analysis/lane_types.h"
#include "targets/host/workgroup/work_items/work_item_functions.h"

#include <algorithm>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/Instructions.h>
#include <string>

namespace polder::compiler::workgroup {

namespace {

// Of functions that may have a vector form: the costs of one call without lanes, and with one lane more, in instructions.
constexpr const char* costs_attribute = "polder-costs-of-call";

// The costs of one call: of one work-item, and of each lane in vector code.
struct FunctionCosts {
    double one = 0, lane = 0;
};

FunctionCosts costs_of(llvm::Instruction& instruction, unsigned register_words) {
    constexpr double apart = 2, repeated = 3;
    constexpr unsigned word = 32;
    if (llvm::isa<llvm::PHINode, llvm::GetElementPtrInst>(instruction) || instruction.isTerminator() ||
        instruction.isLifetimeStartOrEnd())
        return {};
    if (is_call_for_lanes(instruction, 1)) {
        const CallCosts costs = costs_of_call(instruction, 1);
        return {costs.one_by_one, costs.lanes};
    }
    if (const llvm::Value* const address = llvm::getLoadStorePointerOperand(&instruction))
        return {1, llvm::isa<llvm::AllocaInst>(llvm::getUnderlyingObject(address)) ? 1.0 / register_words : apart};
    if (!is_vector_instruction(instruction) || instruction.isIntDivRem())
        return {1, repeated};
    return {1, std::max(instruction.getType()->getScalarSizeInBits(), word) / double{word} / register_words};
}

}  // namespace

bool is_plain_call(const llvm::CallBase& call) {
    const llvm::Function* const callee = call.getCalledFunction();
    return callee != nullptr && !call.isInlineAsm() && !call.hasOperandBundles() && !work_item_function(*callee);
}

void note_costs_of_calls(llvm::Function& function, unsigned register_words) {
    const llvm::DominatorTree dominators(function);
    const llvm::LoopInfo loops(dominators);
    FunctionCosts all;
    for (llvm::BasicBlock& block : function) {
        const double weight = weight_of_block(loops.getLoopDepth(&block));
        for (llvm::Instruction& instruction : block) {
            const FunctionCosts costs = costs_of(instruction, register_words);
            all.one += weight * costs.one;
            all.lane += weight * costs.lane;
        }
    }
    function.addFnAttr(costs_attribute, std::to_string(all.one) + " " + std::to_string(all.lane));
}

bool is_call_for_lanes(const llvm::Instruction& instruction, unsigned lanes) {
    const auto* const call = llvm::dyn_cast<llvm::CallInst>(&instruction);
    return call != nullptr && is_plain_call(*call) && call->getCalledFunction()->hasFnAttribute(costs_attribute) &&
           lanes <= lanes_in_memory_max;
}

CallCosts costs_of_call(const llvm::Instruction& call, unsigned lanes) {
    const llvm::Function& callee = *llvm::cast<llvm::CallInst>(call).getCalledFunction();
    const auto [one, lane] = callee.getFnAttribute(costs_attribute).getValueAsString().split(' ');
    FunctionCosts costs;
    if (one.getAsDouble(costs.one) || lane.getAsDouble(costs.lane))
        return {};
    constexpr double passing = 2;  // stores and loads of the arguments of one lane, and the call
    return {(costs.lane + passing) * lanes, (costs.one + passing) * lanes};
}

}  // namespace polder::compiler::workgroup
