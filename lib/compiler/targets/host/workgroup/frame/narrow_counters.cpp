// A phi and the sum that a loop adds to it are narrowed together, when no use reads more than their low 32 bits.
#include "narrow_counters.h"

#include <cstdint>
#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/PatternMatch.h>

namespace polder::compiler::workgroup {

namespace {

using namespace llvm::PatternMatch;

constexpr unsigned narrow_bits = 32;
constexpr uint64_t low_half = UINT32_MAX;

// A use that reads only the low 32 bits of a number: a truncation, or an extension of the low bits to 64 bits (written as `and`, or as two shifts).
struct Cut {
    enum class Kind : uint8_t { truncated, zero_extended, sign_extended } kind;
    llvm::Instruction* result;
};

// Appends the cuts among the uses of `value`. False when another use reads more than the low bits.
bool find_cuts(llvm::Instruction& value, llvm::function_ref<bool(const llvm::User*)> is_own,
               llvm::SmallVectorImpl<Cut>& cuts) {
    for (llvm::User* user : value.users()) {
        auto* const reader = llvm::cast<llvm::Instruction>(user);
        if (match(reader, m_Trunc(m_Specific(&value))) && reader->getType()->isIntegerTy(narrow_bits)) {
            cuts.push_back({Cut::Kind::truncated, reader});
        } else if (match(reader, m_And(m_Specific(&value), m_SpecificInt(low_half)))) {
            cuts.push_back({Cut::Kind::zero_extended, reader});
        } else if (match(reader, m_Shl(m_Specific(&value), m_SpecificInt(narrow_bits)))) {
            for (llvm::User* shifted : reader->users()) {
                if (!match(shifted, m_AShr(m_Specific(reader), m_SpecificInt(narrow_bits))))
                    return false;
                cuts.push_back({Cut::Kind::sign_extended, llvm::cast<llvm::Instruction>(shifted)});
            }
        } else if (!is_own(reader)) {
            return false;
        }
    }
    return true;
}

void replace(llvm::ArrayRef<Cut> cuts, llvm::Value& narrow) {
    for (const Cut& cut : cuts) {
        llvm::IRBuilder<> at(cut.result);
        llvm::Type* const type = cut.result->getType();
        llvm::Value* const replacement = cut.kind == Cut::Kind::truncated       ? &narrow
                                         : cut.kind == Cut::Kind::zero_extended ? at.CreateZExt(&narrow, type)
                                                                                : at.CreateSExt(&narrow, type);
        auto* const source = llvm::cast<llvm::Instruction>(cut.result->getOperand(0));
        cut.result->replaceAllUsesWith(replacement);
        cut.result->eraseFromParent();
        if (cut.kind == Cut::Kind::sign_extended && source->use_empty())
            source->eraseFromParent();
    }
}

class Counter {
public:
    explicit Counter(llvm::PHINode& phi) : phi_(phi) {}

    bool narrow() {
        if (!phi_.getType()->isIntegerTy(2 * narrow_bits) || phi_.getNumIncomingValues() != 2 || !find_sum())
            return false;
        const auto is_own = [this](const llvm::User* user) { return user == &phi_ || user == sum_; };
        llvm::SmallVector<Cut, 4> of_phi, of_sum;
        if (!find_cuts(phi_, is_own, of_phi) || !find_cuts(*sum_, is_own, of_sum) ||
            llvm::any_of(of_phi, [this](const Cut& cut) { return cut.result == step_; }))
            return false;
        llvm::Type* const type = llvm::Type::getIntNTy(phi_.getContext(), narrow_bits);
        llvm::IRBuilder<> at(&phi_);
        llvm::PHINode* const counter = at.CreatePHI(type, 2);
        at.SetInsertPoint(sum_);
        llvm::Value* const sum = at.CreateAdd(counter, at.CreateTrunc(step_, type));
        for (unsigned i = 0; i < 2; ++i) {
            llvm::BasicBlock* const before = phi_.getIncomingBlock(i);
            llvm::Value* const incoming = phi_.getIncomingValue(i);
            at.SetInsertPoint(before->getTerminator());
            counter->addIncoming(incoming == sum_ ? sum : at.CreateTrunc(incoming, type), before);
        }
        counter->takeName(&phi_);
        replace(of_phi, *counter);
        replace(of_sum, *sum);
        // The old phi and the old sum have no uses left but each other.
        for (llvm::Instruction* old : {static_cast<llvm::Instruction*>(&phi_), static_cast<llvm::Instruction*>(sum_)})
            old->replaceAllUsesWith(llvm::PoisonValue::get(old->getType()));
        sum_->eraseFromParent();
        phi_.eraseFromParent();
        return true;
    }

private:
    // Finds phi + step. The phi may be cut to its low bits before the addition.
    bool find_sum() {
        const auto counter = m_CombineOr(
            m_Specific(&phi_),
            m_CombineOr(m_And(m_Specific(&phi_), m_SpecificInt(low_half)),
                        m_AShr(m_Shl(m_Specific(&phi_), m_SpecificInt(narrow_bits)), m_SpecificInt(narrow_bits))));
        for (llvm::Value* incoming : phi_.incoming_values())
            if (llvm::Value* step = nullptr; match(incoming, m_c_Add(counter, m_Value(step)))) {
                sum_ = llvm::dyn_cast<llvm::BinaryOperator>(incoming);
                step_ = step;
            }
        return sum_ != nullptr && step_ != &phi_;
    }

    llvm::PHINode& phi_;
    llvm::BinaryOperator* sum_ = nullptr;
    llvm::Value* step_ = nullptr;
};

}  // namespace

unsigned narrow_counters(llvm::Function& function) {
    unsigned narrowed = 0;
    for (llvm::BasicBlock& block : function)
        for (llvm::PHINode& phi : llvm::make_early_inc_range(block.phis()))
            narrowed += Counter(phi).narrow() ? 1 : 0;
    return narrowed;
}

}  // namespace polder::compiler::workgroup
