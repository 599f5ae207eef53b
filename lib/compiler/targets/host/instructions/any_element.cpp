// The elements of which a number is made are followed through shuffles, and through vectors and numbers that are joined, to one vector. Where they are all of its
// elements, its sign bits, or which elements are not 0, become a mask.
#include "any_element.h"

#include <llvm/ADT/SmallBitVector.h>
#include <llvm/ADT/SmallSet.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/Utils/Local.h>

namespace polder::compiler {
namespace {

using namespace llvm::PatternMatch;

constexpr size_t joined_parts_max = 256;  // elements of vectors that are looked at

// The elements of one vector that a number is made of, by one operation: or, and.
class Joined {
public:
    explicit Joined(unsigned operation) : operation_(operation) {}

    bool add(llvm::Value& number) {
        llvm::Value *one = nullptr, *other = nullptr, *vector = nullptr;
        uint64_t element = 0;
        if (is_joined(number, one, other))
            return add(*one) && add(*other);
        return match(&number, m_ExtractElt(m_Value(vector), m_ConstantInt(element))) && add(*vector, element);
    }

    // Nothing unless they are all elements of it.
    [[nodiscard]] llvm::Value* whole_vector() const {
        return elements_.all() && llvm::isPowerOf2_32(elements_.size()) ? vector_ : nullptr;
    }

private:
    bool add(llvm::Value& vector, uint64_t element) {
        const auto* const type = llvm::dyn_cast<llvm::FixedVectorType>(vector.getType());
        if (type == nullptr || element >= type->getNumElements())
            return false;
        if (!seen_.insert({&vector, element}).second)
            return true;
        llvm::Value *one = nullptr, *other = nullptr;
        if (seen_.size() > joined_parts_max)
            return false;
        if (is_joined(vector, one, other))
            return add(*one, element) && add(*other, element);
        if (auto* const shuffle = llvm::dyn_cast<llvm::ShuffleVectorInst>(&vector)) {
            const int from = shuffle->getMaskValue(static_cast<unsigned>(element));
            const auto count = static_cast<int>(
                llvm::cast<llvm::FixedVectorType>(shuffle->getOperand(0)->getType())->getNumElements());
            return from >= 0 && add(*shuffle->getOperand(from < count ? 0 : 1),
                                    static_cast<uint64_t>(from < count ? from : from - count));
        }
        if (vector_ == nullptr) {
            vector_ = &vector;
            elements_.resize(type->getNumElements());
        }
        elements_.set(static_cast<unsigned>(element));
        return vector_ == &vector;
    }

    bool is_joined(llvm::Value& value, llvm::Value*& one, llvm::Value*& other) const {
        auto* const join = llvm::dyn_cast<llvm::BinaryOperator>(&value);
        if (join == nullptr || join->getOpcode() != operation_)
            return false;
        one = join->getOperand(0), other = join->getOperand(1);
        return true;
    }

    const unsigned operation_;
    llvm::Value* vector_ = nullptr;
    llvm::SmallBitVector elements_;
    llvm::SmallSet<std::pair<llvm::Value*, uint64_t>, 32> seen_;
};

bool ask_one(llvm::ICmpInst& question, unsigned operation) {
    const auto predicate = question.getPredicate();
    const bool asks_for_sign = (predicate == llvm::CmpInst::ICMP_SLT && match(question.getOperand(1), m_Zero())) ||
                               (predicate == llvm::CmpInst::ICMP_SGT && match(question.getOperand(1), m_AllOnes()));
    // A sum of bits is 0 when all are; that of a product says nothing of a single element.
    if (!asks_for_sign &&
        (operation != llvm::Instruction::Or || !question.isEquality() || !match(question.getOperand(1), m_Zero())))
        return false;
    Joined joined(operation);
    llvm::Value* const vector = joined.add(*question.getOperand(0)) ? joined.whole_vector() : nullptr;
    if (vector == nullptr)
        return false;
    const bool is_negated = predicate == llvm::CmpInst::ICMP_EQ || predicate == llvm::CmpInst::ICMP_SGT;
    llvm::IRBuilder<> at(&question);
    llvm::Value* const zeros = llvm::Constant::getNullValue(vector->getType());
    llvm::Value* set = nullptr;
    if (!match(vector, m_SExt(m_Value(set))) || !set->getType()->isIntOrIntVectorTy(1))
        set = asks_for_sign ? at.CreateICmpSLT(vector, zeros) : at.CreateICmpNE(vector, zeros);
    llvm::Value* const mask =
        at.CreateBitCast(set, at.getIntNTy(llvm::cast<llvm::FixedVectorType>(vector->getType())->getNumElements()));
    llvm::Constant* const limit = operation == llvm::Instruction::Or ? llvm::Constant::getNullValue(mask->getType())
                                                                     : llvm::Constant::getAllOnesValue(mask->getType());
    const bool is_equal = is_negated == (operation == llvm::Instruction::Or);
    question.replaceAllUsesWith(is_equal ? at.CreateICmpEQ(mask, limit) : at.CreateICmpNE(mask, limit));
    return true;
}

}  // namespace

void ask_whole_vectors(llvm::Function& function, const llvm::TargetMachine& machine) {
    // Masks of vectors take other processors several instructions.
    if (!machine.getTargetTriple().isX86())
        return;
    llvm::SmallVector<llvm::WeakTrackingVH> answered;
    for (llvm::Instruction& instruction : llvm::instructions(function))
        if (auto* const question = llvm::dyn_cast<llvm::ICmpInst>(&instruction);
            question && question->getOperand(0)->getType()->isIntegerTy() &&
            (ask_one(*question, llvm::Instruction::Or) || ask_one(*question, llvm::Instruction::And)))
            answered.push_back(question);
    llvm::RecursivelyDeleteTriviallyDeadInstructions(answered);
}

}  // namespace polder::compiler
