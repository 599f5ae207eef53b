// Each number gets the element that it was computed from, or none where it is the same for all elements. Vectors have in each element what was computed from
// this element, and constants are the same in all. A value of any other kind ends the search: the function is not seen to be elementwise.
#include "elementwise.h"

#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/PatternMatch.h>
#include <optional>

namespace polder::compiler::workgroup {
namespace {

using namespace llvm::PatternMatch;

constexpr unsigned call_depth_max = 4;

bool has_elements_apart(const llvm::Function& function, unsigned depth);

class Elements {
public:
    Elements(unsigned count, unsigned depth) : count_(count), depth_(depth) {}

    bool add_arguments(const llvm::Function& function) {
        for (const llvm::Argument& argument : function.args()) {
            if (argument.getType()->isPointerTy() || !add(argument, all))
                return false;
        }
        return llvm::any_of(function.args(), [](const llvm::Argument& one) { return one.getType()->isVectorTy(); });
    }

    // Operands come first, so a value that depends on a later iteration is not known here, and not accepted.
    bool add(const llvm::Instruction& instruction) {
        if (const auto* const extract = llvm::dyn_cast<llvm::ExtractElementInst>(&instruction)) {
            uint64_t element = 0;
            return of(*extract->getVectorOperand()) && match(extract->getIndexOperand(), m_ConstantInt(element)) &&
                   add(instruction, static_cast<int>(element));
        }
        if (const auto* const insert = llvm::dyn_cast<llvm::InsertElementInst>(&instruction))
            return is_own_element(*insert) && add(instruction, all);
        if (const auto* const shuffle = llvm::dyn_cast<llvm::ShuffleVectorInst>(&instruction))
            return (shuffle->isIdentity() || is_splat_of_all(*shuffle)) && of(*shuffle->getOperand(0)) &&
                   of(*shuffle->getOperand(1)) && add(instruction, all);
        if (!is_accepted(instruction))
            return false;
        std::optional<int> element = all;
        for (const llvm::Value* const operand : instruction.operands()) {
            const auto its = llvm::isa<llvm::BasicBlock, llvm::Function>(operand) ? all : of(*operand);
            if (!its || (*its != all && *element != all && *its != *element))
                return false;
            element = *its == all ? element : its;
        }
        // Neither what runs nor a whole vector may depend on one element.
        if (*element != all && (instruction.getType()->isVectorTy() || instruction.isTerminator()))
            return false;
        return add(instruction, *element);
    }

private:
    static constexpr int all = -1;  // elements

    bool add(const llvm::Value& value, int element) {
        const auto* const vector = llvm::dyn_cast<llvm::FixedVectorType>(value.getType());
        const bool is_known = vector ? vector->getNumElements() == count_ : !value.getType()->isAggregateType();
        return is_known && elements_.try_emplace(&value, element).second;
    }

    // The element that a number was computed from; nothing where it is not known.
    [[nodiscard]] std::optional<int> of(const llvm::Value& value) const {
        if (const auto* const constant = llvm::dyn_cast<llvm::Constant>(&value)) {
            const bool is_same = !constant->getType()->isVectorTy() || constant->getSplatValue() != nullptr ||
                                 llvm::isa<llvm::UndefValue>(constant);
            return is_same ? std::optional(all) : std::nullopt;
        }
        const auto found = elements_.find(&value);
        return found == elements_.end() ? std::nullopt : std::optional(found->second);
    }

    // Whether a vector that is made element by element gets this one. A number that is the same for all is only the first, of a splat: beside others, or in a
    // vector that was there before, it would make one element different.
    [[nodiscard]] bool is_own_element(const llvm::InsertElementInst& insert) const {
        uint64_t element = 0;
        const llvm::Value& others = *insert.getOperand(0);
        const auto number = of(*insert.getOperand(1));
        if (!number || !of(others) || !match(insert.getOperand(2), m_ConstantInt(element)))
            return false;
        const bool is_first = llvm::isa<llvm::UndefValue>(others);
        return *number == all
                   ? is_first
                   : *number == static_cast<int>(element) && (is_first || llvm::isa<llvm::InsertElementInst>(others));
    }

    // The first element everywhere, where a number was inserted that is the same for all.
    [[nodiscard]] bool is_splat_of_all(const llvm::ShuffleVectorInst& shuffle) const {
        const llvm::Value* number = nullptr;
        return shuffle.isZeroEltSplat() &&
               match(shuffle.getOperand(0), m_InsertElt(m_Value(), m_Value(number), m_Zero())) && of(*number) == all;
    }

    [[nodiscard]] bool is_accepted(const llvm::Instruction& instruction) const {
        if (const auto* const call = llvm::dyn_cast<llvm::CallInst>(&instruction))
            return call->getCalledFunction() && (llvm::isTriviallyVectorizable(call->getIntrinsicID()) ||
                                                 has_elements_apart(*call->getCalledFunction(), depth_ + 1));
        if (const auto* const cast = llvm::dyn_cast<llvm::BitCastInst>(&instruction)) {
            const auto* const from = llvm::dyn_cast<llvm::FixedVectorType>(cast->getSrcTy());
            const auto* const to = llvm::dyn_cast<llvm::FixedVectorType>(cast->getDestTy());
            return from && to ? from->getNumElements() == to->getNumElements() : !from && !to;
        }
        if (const auto* const load = llvm::dyn_cast<llvm::LoadInst>(&instruction))
            return load->isSimple() && !load->getType()->isVectorTy();
        if (const auto* const address = llvm::dyn_cast<llvm::GetElementPtrInst>(&instruction))
            return !address->getType()->isVectorTy();
        return llvm::isa<llvm::BinaryOperator, llvm::UnaryOperator, llvm::CastInst, llvm::CmpInst, llvm::SelectInst,
                         llvm::FreezeInst, llvm::PHINode, llvm::BranchInst, llvm::ReturnInst>(instruction);
    }

    const unsigned count_, depth_;
    llvm::DenseMap<const llvm::Value*, int> elements_;
};

bool has_elements_apart(const llvm::Function& function, unsigned depth) {
    const auto* const type = llvm::dyn_cast<llvm::FixedVectorType>(function.getReturnType());
    if (type == nullptr || function.isDeclaration() || !function.onlyReadsMemory() || depth > call_depth_max)
        return false;
    Elements elements(type->getNumElements(), depth);
    const llvm::ReversePostOrderTraversal<const llvm::Function*> blocks(&function);
    return elements.add_arguments(function) && llvm::all_of(blocks, [&](const llvm::BasicBlock* block) {
               return llvm::all_of(*block, [&](const llvm::Instruction& one) { return elements.add(one); });
           });
}

}  // namespace

bool is_elementwise(const llvm::Function& function) { return has_elements_apart(function, 0); }

}  // namespace polder::compiler::workgroup
