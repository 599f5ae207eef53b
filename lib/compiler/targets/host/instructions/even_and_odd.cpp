// From each truncation, the operations element by element are followed to the extensions of narrow numbers (class Web). Where all that is computed from
// these numbers ends in truncations, too, each vector becomes two of half as many elements.
#include "even_and_odd.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SetVector.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/Target/TargetMachine.h>

namespace polder::compiler {
namespace {

namespace patterns = llvm::PatternMatch;

constexpr unsigned narrow_bits = 32, wide_bits = 64;
constexpr unsigned pairs_from = 4;
constexpr size_t operations_max = 500;

// The elements at even places and those at odd places.
struct Halves {
    llvm::Value *even = nullptr, *odd = nullptr;
};

class Web {
public:
    Web(llvm::TruncInst& end, const EvenAndOddTarget& target)
        : target_(target), type_(llvm::cast<llvm::FixedVectorType>(end.getSrcTy())),
          half_type_(llvm::FixedVectorType::getHalfElementsVectorType(type_)) {
        is_closed_ = add(end.getOperand(0));
    }

    // Whether all that is computed ends in truncations, and halves are computed faster.
    [[nodiscard]] bool is_better() const { return is_closed_ && has_product_; }

    void separate() {
        for (llvm::Instruction* const operation : operations_)
            halves_of(operation);
        for (llvm::Instruction* const operation : operations_)
            if (auto* const phi = llvm::dyn_cast<llvm::PHINode>(operation))
                complete(*phi);
        for (llvm::TruncInst* const end : ends_)
            end->replaceAllUsesWith(joined(*end));
        for (llvm::TruncInst* const end : ends_)
            end->eraseFromParent();
        for (llvm::Instruction* const operation : operations_)
            operation->dropAllReferences();
        for (llvm::Instruction* const operation : operations_)
            operation->eraseFromParent();
        for (llvm::Instruction* const shift : odd_shifts_)
            if (shift->use_empty())
                shift->eraseFromParent();
    }

private:
    // What belongs together --------------------------------------------------------------------------

    static bool is_element_by_element(const llvm::Instruction& instruction) {
        switch (instruction.getOpcode()) {
        case llvm::Instruction::Add:
        case llvm::Instruction::Sub:
        case llvm::Instruction::Mul:
        case llvm::Instruction::And:
        case llvm::Instruction::Or:
        case llvm::Instruction::Xor:
        case llvm::Instruction::Shl:
        case llvm::Instruction::LShr:
        case llvm::Instruction::AShr:
        case llvm::Instruction::Freeze:
        case llvm::Instruction::PHI: return true;
        default: return llvm::isa<llvm::MinMaxIntrinsic>(instruction);
        }
    }

    // The vector that `value` extends to 64 bits.
    static llvm::Value* extended(const llvm::Value* value) {
        const auto* const cast = llvm::dyn_cast<llvm::CastInst>(value);
        return cast != nullptr && llvm::isa<llvm::SExtInst, llvm::ZExtInst>(cast) &&
                       cast->getSrcTy()->getScalarSizeInBits() >= 8 &&
                       cast->getSrcTy()->getScalarSizeInBits() <= narrow_bits
                   ? cast->getOperand(0)
                   : nullptr;
    }

    static bool is_shared(const llvm::Value* value) {
        return llvm::isa<llvm::ConstantInt, llvm::ConstantDataVector, llvm::ConstantAggregateZero>(value) ||
               llvm::getSplatValue(value) != nullptr;
    }

    // Adds the operation, what it uses and what uses it.
    bool add(llvm::Value* first) {
        llvm::SmallVector<llvm::Value*> todo{first};
        while (!todo.empty()) {
            llvm::Value* const value = todo.pop_back_val();
            if (extended(value) != nullptr || is_shared(value))
                continue;
            auto* const operation = llvm::dyn_cast<llvm::Instruction>(value);
            if (operation == nullptr || operation->getType() != type_ || !is_element_by_element(*operation))
                return false;
            if (!operations_.insert(operation))
                continue;
            if (operations_.size() > operations_max || !can_use(*operation))
                return false;
            has_product_ |= operation->getOpcode() == llvm::Instruction::Mul;
            for (const unsigned operand : llvm::seq(value_operands(*operation)))
                todo.push_back(operation->getOperand(operand));
            for (llvm::User* const user : operation->users()) {
                auto* const end = llvm::dyn_cast<llvm::TruncInst>(user);
                if (end == nullptr)
                    todo.push_back(user);
                else if (end->getDestTy()->getScalarSizeInBits() < 8)
                    return false;
                else if (end->getDestTy()->getScalarSizeInBits() <= narrow_bits)
                    ends_.insert(end);
                else
                    return false;
            }
        }
        return true;
    }

    static unsigned value_operands(const llvm::Instruction& operation) {
        return llvm::isa<llvm::MinMaxIntrinsic>(operation) ? 2 : operation.getNumOperands();
    }

    // A product reads the lower halves of numbers that are extended. Other operations read all bits, and need a shift of signed numbers.
    [[nodiscard]] bool can_use(const llvm::Instruction& operation) const {
        return target_.shifts_signed || operation.getOpcode() == llvm::Instruction::Mul ||
               llvm::none_of(operation.operands(),
                             [](const llvm::Value* operand) { return llvm::isa<llvm::SExtInst>(operand); });
    }

    // Halves -----------------------------------------------------------------------------------------

    Halves halves_of(llvm::Value* value) {
        if (const auto known = halves_.find(value); known != halves_.end())
            return known->second;
        Halves halves;
        if (auto* const constant = llvm::dyn_cast<llvm::Constant>(value)) {
            halves = {elements_of(*constant, 0), elements_of(*constant, 1)};
        } else {
            auto* const instruction = llvm::cast<llvm::Instruction>(value);
            if (extended(value) != nullptr)
                halves = halves_of_extension(llvm::cast<llvm::CastInst>(*instruction));
            else if (operations_.contains(instruction))
                halves = halves_of_operation(*instruction);
            else
                halves.even = halves.odd = repeated(*instruction);
        }
        return halves_[value] = halves;
    }

    llvm::Constant* elements_of(const llvm::Constant& constant, unsigned first) const {
        llvm::SmallVector<llvm::Constant*> elements;
        for (unsigned place = first; place < type_->getNumElements(); place += 2)
            elements.push_back(constant.getAggregateElement(place));
        return llvm::ConstantVector::get(elements);
    }

    llvm::Value* repeated(llvm::Instruction& splat) const {
        return llvm::IRBuilder<>(&splat).CreateVectorSplat(half_type_->getNumElements(), llvm::getSplatValue(&splat));
    }

    llvm::Value* all(uint64_t number) const { return llvm::ConstantInt::get(half_type_, number); }

    Halves halves_of_extension(llvm::CastInst& extension) const {
        llvm::IRBuilder<> at(&extension);
        auto* const narrow = llvm::VectorType::get(at.getInt32Ty(), type_);
        const bool is_signed = llvm::isa<llvm::SExtInst>(extension);
        llvm::Value* const numbers =
            at.CreateBitCast(at.CreateIntCast(extension.getOperand(0), narrow, is_signed), half_type_, "pairs");
        if (!is_signed)
            return {at.CreateAnd(numbers, all(UINT32_MAX)), at.CreateLShr(numbers, all(narrow_bits))};
        return {at.CreateAShr(at.CreateShl(numbers, all(narrow_bits)), all(narrow_bits)),
                at.CreateAShr(numbers, all(narrow_bits))};
    }

    Halves halves_of_operation(llvm::Instruction& operation) {
        llvm::IRBuilder<> at(&operation);
        if (auto* const phi = llvm::dyn_cast<llvm::PHINode>(&operation))
            return {at.CreatePHI(half_type_, phi->getNumIncomingValues()),
                    at.CreatePHI(half_type_, phi->getNumIncomingValues())};
        const Halves left = halves_of(operation.getOperand(0));
        const Halves right = value_operands(operation) == 2 ? halves_of(operation.getOperand(1)) : Halves{};
        const auto of = [&](llvm::Value* Halves::* part) -> llvm::Value* {
            if (const auto* const least = llvm::dyn_cast<llvm::MinMaxIntrinsic>(&operation))
                return at.CreateBinaryIntrinsic(least->getIntrinsicID(), left.*part, right.*part);
            if (llvm::isa<llvm::FreezeInst>(operation))
                return at.CreateFreeze(left.*part);
            auto* const same = llvm::BinaryOperator::Create(llvm::cast<llvm::BinaryOperator>(operation).getOpcode(),
                                                            left.*part, right.*part);
            same->copyIRFlags(&operation);
            return at.Insert(same);
        };
        const Halves halves{of(&Halves::even), of(&Halves::odd)};
        if (operation.isShift())
            odd_shifts_.push_back(llvm::cast<llvm::Instruction>(halves.odd));
        return halves;
    }

    void complete(llvm::PHINode& phi) {
        const Halves own = halves_of(&phi);
        for (unsigned i = 0; i < phi.getNumIncomingValues(); ++i) {
            const Halves incoming = halves_of(phi.getIncomingValue(i));
            llvm::cast<llvm::PHINode>(own.even)->addIncoming(incoming.even, phi.getIncomingBlock(i));
            llvm::cast<llvm::PHINode>(own.odd)->addIncoming(incoming.odd, phi.getIncomingBlock(i));
        }
    }

    // Vectors whose upper halves are the lower 32 bits of `numbers`; null where a shift of them would make a product of 64 bits: LLVM shifts a constant
    // factor instead of the product.
    llvm::Value* as_upper(llvm::IRBuilder<>& at, llvm::Value* numbers) const {
        llvm::Value* shifted = nullptr;
        const llvm::APInt *count = nullptr, *factor = nullptr;
        if (!patterns::match(numbers, patterns::m_Shr(patterns::m_Value(shifted), patterns::m_APInt(count))) ||
            count->ugt(narrow_bits))
            return at.CreateShl(numbers, all(narrow_bits));
        const auto back = static_cast<unsigned>(narrow_bits - count->getZExtValue());
        if (back == 0)
            return shifted;
        if (patterns::match(shifted, patterns::m_Mul(patterns::m_Value(), patterns::m_APInt(factor))) &&
            factor->getSignificantBits() + back > narrow_bits)
            return nullptr;
        return at.CreateShl(shifted, all(back));
    }

    llvm::Value* joined(llvm::TruncInst& end) {
        llvm::IRBuilder<> at(&end);
        const Halves halves = halves_of(end.getOperand(0));
        llvm::Value* const upper = as_upper(at, halves.odd);
        const auto count = static_cast<int>(type_->getNumElements());
        llvm::SmallVector<int> places;
        for (int place = 0; place < count; place += 2) {
            places.push_back(place);
            places.push_back(count + place + (upper != nullptr ? 1 : 0));
        }
        auto* const narrow = llvm::VectorType::get(at.getInt32Ty(), type_);
        llvm::Value* const numbers =
            at.CreateShuffleVector(at.CreateBitCast(halves.even, narrow),
                                   at.CreateBitCast(upper != nullptr ? upper : halves.odd, narrow), places);
        return at.CreateTrunc(numbers, end.getDestTy());
    }

    const EvenAndOddTarget& target_;
    llvm::FixedVectorType *type_, *half_type_;
    llvm::SetVector<llvm::Instruction*> operations_;
    llvm::SmallSetVector<llvm::TruncInst*, 8> ends_;
    llvm::DenseMap<llvm::Value*, Halves> halves_;
    llvm::SmallVector<llvm::Instruction*> odd_shifts_;
    bool is_closed_ = false, has_product_ = false;
};

bool is_end(const llvm::Instruction& instruction, const EvenAndOddTarget& target) {
    const auto* const cut = llvm::dyn_cast<llvm::TruncInst>(&instruction);
    const auto* const type = cut ? llvm::dyn_cast<llvm::FixedVectorType>(cut->getSrcTy()) : nullptr;
    return type != nullptr && type->getElementType()->isIntegerTy(wide_bits) && type->getNumElements() >= pairs_from &&
           type->getNumElements() % 2 == 0 && type->getNumElements() * wide_bits > target.register_bits &&
           cut->getDestTy()->getScalarSizeInBits() <= narrow_bits;
}

}  // namespace

EvenAndOddTarget even_and_odd_target(const llvm::Function& function, const llvm::TargetMachine& machine) {
    const auto bits =
        machine.getTargetTransformInfo(function).getRegisterBitWidth(llvm::TargetTransformInfo::RGK_FixedWidthVector);
    return {.register_bits = static_cast<unsigned>(bits.getFixedValue()),
            .shifts_signed = machine.getMCSubtargetInfo()->checkFeatures("+avx512f")};
}

void separate_even_and_odd(llvm::Function& function, const EvenAndOddTarget& target) {
    llvm::SmallVector<llvm::WeakTrackingVH> ends;
    for (llvm::Instruction& instruction : llvm::instructions(function))
        if (is_end(instruction, target))
            ends.emplace_back(&instruction);
    for (const llvm::WeakTrackingVH& end : ends)
        if (auto* const cut = llvm::dyn_cast_or_null<llvm::TruncInst>(end))
            if (Web web(*cut, target); web.is_better())
                web.separate();
}

}  // namespace polder::compiler
