// For each block, an estimate says when each value becomes available (struct Time), from the latencies of its operands. Each sum of
// vectors with a constant is rebuilt as a chain: the constant first, then the other terms in the order in which they become available.
#include "sum_order.h"

#include <algorithm>
#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/Transforms/Utils/Local.h>
#include <map>

namespace polder::compiler {
namespace {

namespace patterns = llvm::PatternMatch;

// When a value of a block becomes available, compared to others. A value that depends on the previous iteration of the loop is later
// than all others, because the processor computes everything else while it waits for that iteration.
struct Time {
    bool is_carried = false;
    int64_t cycles = 0;
    auto operator<=>(const Time&) const = default;
};

// A loop counter is available long before it is needed.
bool is_counter(const llvm::PHINode& phi) {
    return llvm::any_of(phi.incoming_values(), [&](const llvm::Use& value) {
        return patterns::match(value.get(), patterns::m_c_Add(patterns::m_Specific(&phi), patterns::m_Constant()));
    });
}

class Block {
public:
    Block(llvm::BasicBlock& block, const llvm::LoopInfo& loops, const llvm::TargetTransformInfo& costs)
        : block_(block), is_loop_header_(loops.isLoopHeader(&block)), costs_(costs) {}

    void run() {
        if (!has_sums_to_order())
            return;
        for (llvm::Instruction& instruction : llvm::make_early_inc_range(block_)) {
            if (is_sum(instruction) && !is_term_of_sum(instruction) && order(instruction))
                llvm::RecursivelyDeleteTriviallyDeadInstructions(&instruction);
            else
                times_[&instruction] = time_after_operands(instruction);
        }
    }

private:
    bool is_sum(const llvm::Value& value) const {
        const auto* instruction = llvm::dyn_cast<llvm::Instruction>(&value);
        return instruction != nullptr && instruction->getOpcode() == llvm::Instruction::Add &&
               instruction->getParent() == &block_ && llvm::isa<llvm::FixedVectorType>(instruction->getType());
    }

    // The costs of instructions take longer than the rest of this pass, and most blocks have no such sum.
    bool has_sums_to_order() const {
        return llvm::any_of(block_, [&](const llvm::Instruction& instruction) {
            llvm::SmallVector<llvm::Value*, 8> terms;
            if (is_sum(instruction) && !is_term_of_sum(instruction))
                add_terms(instruction, terms);
            return has_order(terms);
        });
    }

    static bool has_order(llvm::ArrayRef<llvm::Value*> terms) {
        return terms.size() >= 3 && llvm::any_of(terms, llvm::IsaPred<llvm::Constant>);
    }

    // Whether the value is only a term of another sum, so that its additions may be reordered with that sum's.
    bool is_term_of_sum(const llvm::Value& value) const {
        return is_sum(value) && value.hasOneUse() && is_sum(*value.user_back());
    }

    Time time_of(const llvm::Value& value) const {
        const auto* instruction = llvm::dyn_cast<llvm::Instruction>(&value);
        return instruction == nullptr ? Time{} : times_.lookup(instruction);
    }

    Time time_after_operands(const llvm::Instruction& instruction) const {
        if (const auto* phi = llvm::dyn_cast<llvm::PHINode>(&instruction))
            return {.is_carried = is_loop_header_ && !is_counter(*phi)};
        Time time;
        for (const llvm::Use& operand : instruction.operands())
            time = std::max(time, time_of(*operand));
        const llvm::InstructionCost latency =
            costs_.getInstructionCost(&instruction, llvm::TargetTransformInfo::TCK_Latency);
        time.cycles += latency.isValid() ? latency.getValue() : 1;
        return time;
    }

    void add_terms(const llvm::Instruction& sum, llvm::SmallVectorImpl<llvm::Value*>& terms) const {
        for (const llvm::Use& operand : sum.operands()) {
            if (is_term_of_sum(*operand))
                add_terms(*llvm::cast<llvm::Instruction>(operand), terms);
            else
                terms.push_back(operand);
        }
    }

    // Rebuilds `sum`. Returns whether it did; then `sum` has no uses any more.
    bool order(llvm::Instruction& sum) {
        llvm::SmallVector<llvm::Value*, 8> terms;
        add_terms(sum, terms);
        if (!has_order(terms))
            return false;
        const auto constant = llvm::find_if(terms, llvm::IsaPred<llvm::Constant>);
        llvm::Constant* constant_term = llvm::cast<llvm::Constant>(*constant);
        terms.erase(constant);
        std::multimap<Time, llvm::Value*> by_time;  // terms of the same time stay in order
        for (llvm::Value* term : terms)
            by_time.emplace(time_of(*term), term);
        if (by_time.begin()->first == by_time.rbegin()->first)
            return false;
        llvm::IRBuilder<> builder(&sum);
        llvm::Value* total = unfolded(*constant_term, builder);
        for (const auto& [time, term] : by_time) {
            total = builder.CreateAdd(total, term);
            if (auto* partial = llvm::dyn_cast<llvm::Instruction>(total))
                times_[partial] = time_after_operands(*partial);
        }
        sum.replaceAllUsesWith(total);
        return true;
    }

    // Hides the constant in a variable, because instruction selection would move a visible constant to the end of the sum.
    static llvm::Value* unfolded(llvm::Constant& constant, llvm::IRBuilder<>& builder) {
        llvm::Module& module = *builder.GetInsertBlock()->getModule();
        auto* variable = new llvm::GlobalVariable(module, constant.getType(), true, llvm::GlobalValue::PrivateLinkage,
                                                  &constant, "term");
        variable->setExternallyInitialized(true);
        llvm::LoadInst* load = builder.CreateLoad(constant.getType(), variable);
        load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(module.getContext(), {}));
        return load;
    }

    llvm::BasicBlock& block_;
    const bool is_loop_header_;
    const llvm::TargetTransformInfo& costs_;
    llvm::DenseMap<const llvm::Instruction*, Time> times_;
};

}  // namespace

void order_sums(llvm::Function& function, const llvm::TargetTransformInfo& costs) {
    const llvm::DominatorTree dominators(function);
    const llvm::LoopInfo loops(dominators);
    for (llvm::BasicBlock& block : function)
        Block(block, loops, costs).run();
}

}  // namespace polder::compiler
