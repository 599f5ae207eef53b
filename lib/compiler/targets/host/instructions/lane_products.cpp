// The loops are visited from the inner ones to the outer ones: what leaves an inner loop may then leave the loop around it. A vector of a loop is
// separated into a fixed vector and a shared number (class LaneSums). No flag of an operation is kept: the sums of the parts may overflow where
// the sum of all does not.
#include "lane_products.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Transforms/Utils/Local.h>

namespace polder::compiler {
namespace {

bool is_vector_of_numbers(const llvm::Type& type) {
    return llvm::isa<llvm::FixedVectorType>(type) && type.isIntOrIntVectorTy();
}

bool repeats_first_element(const llvm::Instruction& instruction) {
    const auto* const shuffle = llvm::dyn_cast<llvm::ShuffleVectorInst>(&instruction);
    return shuffle != nullptr && shuffle->isZeroEltSplat();
}

// The vectors of one loop that are the sum of a vector that is the same in all iterations, the fixed part, and a number that all lanes share.
// The number of a vector of addresses is in bytes.
class LaneSums {
public:
    LaneSums(const llvm::Loop& loop, llvm::BasicBlock& before) : loop_(loop), at_start_(before.getTerminator()) {}

    [[nodiscard]] bool is_sum(llvm::Value* value) { return kind_of(value).is_sum; }
    // Whether its computation has a product in the loop.
    [[nodiscard]] bool has_product(llvm::Value* value) { return kind_of(value).has_product; }

    // The fixed part, before the loop; null when it is zero.
    llvm::Value* fixed(llvm::Value* sum);
    // The shared number, where `sum` is computed; null when it is zero.
    llvm::Value* shared(llvm::Value* sum);
    // Element `index` of `sum`, or all elements, at `place`.
    llvm::Value* element(llvm::Instruction& sum, llvm::Value* index, llvm::Instruction& place);
    llvm::Value* whole(llvm::Instruction& sum, llvm::Instruction& place);

    llvm::IRBuilder<>& at_start() { return at_start_; }

private:
    struct Kind {
        bool is_sum = false, has_product = false;
    };
    [[nodiscard]] bool is_fixed(llvm::Value* value) const { return loop_.isLoopInvariant(value); }
    [[nodiscard]] llvm::Value* repeated_number(llvm::Value* value) const;
    [[nodiscard]] llvm::Value* fixed_factor(const llvm::Instruction& product) const;
    [[nodiscard]] Kind kind_of(llvm::Value* value);
    [[nodiscard]] Kind kind_of_operation(const llvm::Instruction& operation);
    llvm::Value* fixed_of_operation(llvm::Instruction& operation);
    llvm::Value* shared_of_operation(llvm::Instruction& operation);
    static uint64_t bytes_of_step(const llvm::GetElementPtrInst& address);

    const llvm::Loop& loop_;
    llvm::IRBuilder<> at_start_;
    llvm::DenseMap<llvm::Value*, Kind> kinds_;
    llvm::DenseMap<llvm::Value*, llvm::Value*> fixed_, shared_;
};

// The number that all elements of `value` have, and that differs between iterations.
llvm::Value* LaneSums::repeated_number(llvm::Value* value) const {
    if (is_fixed(value) || !is_vector_of_numbers(*value->getType()))
        return nullptr;
    return const_cast<llvm::Value*>(llvm::getSplatValue(value));
}

// The factor that all lanes have in all iterations.
llvm::Value* LaneSums::fixed_factor(const llvm::Instruction& product) const {
    llvm::Value* const factor = product.getOperand(1);
    return is_fixed(factor) ? llvm::getSplatValue(factor) : nullptr;
}

LaneSums::Kind LaneSums::kind_of(llvm::Value* value) {
    if (is_fixed(value) || repeated_number(value) != nullptr)
        return {.is_sum = true};
    auto* const operation = llvm::dyn_cast<llvm::Instruction>(value);
    if (operation == nullptr || !llvm::isa<llvm::FixedVectorType>(operation->getType()))
        return {};
    if (const auto known = kinds_.find(value); known != kinds_.end())
        return known->second;
    const Kind kind = kind_of_operation(*operation);
    return kinds_[value] = kind;
}

LaneSums::Kind LaneSums::kind_of_operation(const llvm::Instruction& operation) {
    const auto of_both = [&] {
        const Kind left = kind_of(operation.getOperand(0)), right = kind_of(operation.getOperand(1));
        return Kind{left.is_sum && right.is_sum, left.has_product || right.has_product};
    };
    switch (operation.getOpcode()) {
    case llvm::Instruction::Or:
        return llvm::cast<llvm::PossiblyDisjointInst>(operation).isDisjoint() ? of_both() : Kind{};
    case llvm::Instruction::Add:
    case llvm::Instruction::Sub: return of_both();
    case llvm::Instruction::Mul: return {fixed_factor(operation) != nullptr && is_sum(operation.getOperand(0)), true};
    case llvm::Instruction::Shl: {
        const bool is_constant = llvm::isa_and_nonnull<llvm::ConstantInt>(fixed_factor(operation));
        const Kind kind = kind_of(operation.getOperand(0));
        return {is_constant && kind.is_sum, kind.has_product};
    }
    case llvm::Instruction::ShuffleVector:
        return repeats_first_element(operation) ? kind_of(operation.getOperand(0)) : Kind{};
    case llvm::Instruction::Freeze: return kind_of(operation.getOperand(0));
    case llvm::Instruction::GetElementPtr: {
        const auto& address = llvm::cast<llvm::GetElementPtrInst>(operation);
        const auto& layout = operation.getDataLayout();
        llvm::Value* const index = address.getNumIndices() == 1 ? address.getOperand(1) : nullptr;
        if (index == nullptr ||
            index->getType()->getScalarSizeInBits() != layout.getIndexTypeSizeInBits(address.getType()))
            return {};
        // A scalar index that differs between iterations is no vector of this class.
        const Kind base = kind_of(address.getOperand(0)), step = kind_of(index);
        return {base.is_sum && step.is_sum, base.has_product || step.has_product};
    }
    default: return {};
    }
}

// A part that is null is 0.
llvm::Value* sum_of(llvm::IRBuilder<>& at, llvm::Value* left, llvm::Value* right) {
    if (left == nullptr || right == nullptr)
        return left == nullptr ? right : left;
    return at.CreateAdd(left, right);
}
llvm::Value* difference_of(llvm::IRBuilder<>& at, llvm::Value* left, llvm::Value* right) {
    if (right == nullptr)
        return left;
    return left == nullptr ? at.CreateNeg(right) : at.CreateSub(left, right);
}

uint64_t LaneSums::bytes_of_step(const llvm::GetElementPtrInst& address) {
    return address.getDataLayout().getTypeAllocSize(address.getSourceElementType()).getFixedValue();
}

llvm::Value* LaneSums::fixed(llvm::Value* sum) {
    if (is_fixed(sum))
        return sum;
    if (repeated_number(sum) != nullptr)
        return nullptr;
    if (const auto known = fixed_.find(sum); known != fixed_.end())
        return known->second;
    llvm::Value* const made = fixed_of_operation(*llvm::cast<llvm::Instruction>(sum));
    return fixed_[sum] = made;
}

llvm::Value* LaneSums::fixed_of_operation(llvm::Instruction& operation) {
    llvm::Value* const left = fixed(operation.getOperand(0));
    llvm::Value* const right = operation.getNumOperands() > 1 ? fixed(operation.getOperand(1)) : nullptr;
    switch (operation.getOpcode()) {
    case llvm::Instruction::Or:
    case llvm::Instruction::Add: return sum_of(at_start_, left, right);
    case llvm::Instruction::Sub: return difference_of(at_start_, left, right);
    case llvm::Instruction::Mul: return left == nullptr ? nullptr : at_start_.CreateMul(left, right);
    case llvm::Instruction::Shl: return left == nullptr ? nullptr : at_start_.CreateShl(left, right);
    case llvm::Instruction::ShuffleVector:
        return left == nullptr ? nullptr
                               : at_start_.CreateShuffleVector(
                                     left, llvm::cast<llvm::ShuffleVectorInst>(operation).getShuffleMask());
    case llvm::Instruction::Freeze: return left == nullptr ? nullptr : at_start_.CreateFreeze(left);
    default: break;
    }
    auto& address = llvm::cast<llvm::GetElementPtrInst>(operation);
    llvm::Value* const step = right == nullptr ? llvm::Constant::getNullValue(address.getOperand(1)->getType()) : right;
    return at_start_.CreateGEP(address.getSourceElementType(), left, step);
}

llvm::Value* LaneSums::shared(llvm::Value* sum) {
    if (is_fixed(sum))
        return nullptr;
    if (llvm::Value* const number = repeated_number(sum))
        return number;
    if (const auto known = shared_.find(sum); known != shared_.end())
        return known->second;
    llvm::Value* const made = shared_of_operation(*llvm::cast<llvm::Instruction>(sum));
    return shared_[sum] = made;
}

llvm::Value* LaneSums::shared_of_operation(llvm::Instruction& operation) {
    llvm::Value* const left = shared(operation.getOperand(0));
    llvm::Value* right = operation.getNumOperands() > 1 ? shared(operation.getOperand(1)) : nullptr;
    llvm::IRBuilder<> at(&operation);
    switch (operation.getOpcode()) {
    case llvm::Instruction::Sub: return difference_of(at, left, right);
    case llvm::Instruction::Mul: return left == nullptr ? nullptr : at.CreateMul(left, fixed_factor(operation));
    case llvm::Instruction::Shl: return left == nullptr ? nullptr : at.CreateShl(left, fixed_factor(operation));
    case llvm::Instruction::ShuffleVector: return left;
    case llvm::Instruction::Freeze: return left == nullptr ? nullptr : at.CreateFreeze(left);
    case llvm::Instruction::GetElementPtr:
        if (right != nullptr)
            right = at.CreateMul(right,
                                 llvm::ConstantInt::get(right->getType(),
                                                        bytes_of_step(llvm::cast<llvm::GetElementPtrInst>(operation))));
        break;
    default: break;
    }
    return sum_of(at, left, right);
}

llvm::Value* LaneSums::element(llvm::Instruction& sum, llvm::Value* index, llvm::Instruction& place) {
    llvm::Value* const vector = fixed(&sum);
    llvm::Value* const number = shared(&sum);
    if (vector == nullptr)
        return number == nullptr ? llvm::Constant::getNullValue(sum.getType()->getScalarType()) : number;
    llvm::Value* const first = at_start_.CreateExtractElement(vector, index);
    llvm::IRBuilder<> at(&place);
    if (number == nullptr)
        return first;
    return first->getType()->isPointerTy() ? at.CreatePtrAdd(first, number) : at.CreateAdd(first, number);
}

llvm::Value* LaneSums::whole(llvm::Instruction& sum, llvm::Instruction& place) {
    llvm::Value* const vector = fixed(&sum);
    llvm::Value* const number = shared(&sum);
    if (vector == nullptr && number == nullptr)
        return llvm::Constant::getNullValue(sum.getType());
    if (number == nullptr)
        return vector;
    llvm::IRBuilder<> at(&place);
    llvm::Value* const numbers =
        at.CreateVectorSplat(llvm::cast<llvm::FixedVectorType>(sum.getType())->getElementCount(), number);
    if (vector == nullptr)
        return numbers;
    return vector->getType()->isPtrOrPtrVectorTy() ? at.CreatePtrAdd(vector, numbers) : at.CreateAdd(vector, numbers);
}

class LoopProducts {
public:
    LoopProducts(llvm::Loop& loop, const llvm::LoopInfo& loops, llvm::BasicBlock& before)
        : loop_(loop), loops_(loops), before_(before), sums_(loop, before) {}

    bool move_out() {
        for (llvm::PHINode& phi : loop_.getHeader()->phis())
            add_instead_of_products(phi);
        llvm::SmallVector<llvm::Instruction*> own;
        for (llvm::BasicBlock* block : loop_.blocks())
            for (llvm::Instruction& instruction : *block)
                if (is_own(instruction))
                    own.push_back(&instruction);
        for (llvm::Instruction* instruction : own)
            if (auto* compare = llvm::dyn_cast<llvm::ICmpInst>(instruction))
                compare_fixed_parts(*compare);
        for (llvm::Instruction* instruction : own)
            if (sums_.is_sum(instruction) && sums_.has_product(instruction))
                replace_uses(*instruction);
        for (llvm::WeakTrackingVH& old : replaced_)
            if (old)
                llvm::RecursivelyDeleteTriviallyDeadInstructions(old);
        return is_changed_;
    }

private:
    // Whether it is not in an inner loop.
    [[nodiscard]] bool is_own(const llvm::Instruction& instruction) const {
        return loops_.getLoopFor(instruction.getParent()) == &loop_;
    }
    void add_instead_of_products(llvm::PHINode& phi);
    void compare_fixed_parts(llvm::ICmpInst& compare);
    void move_out_users(llvm::Instruction& fixed);
    void replace_uses(llvm::Instruction& sum);
    llvm::Instruction& place_before(llvm::Instruction& user, llvm::Instruction& sum) const;

    llvm::Loop& loop_;
    const llvm::LoopInfo& loops_;
    llvm::BasicBlock& before_;
    LaneSums sums_;
    llvm::SmallVector<llvm::WeakTrackingVH> replaced_;
    bool is_changed_ = false;
};

// A vector that grows by the same vector in each iteration, times a vector that stays the same.
void LoopProducts::add_instead_of_products(llvm::PHINode& phi) {
    llvm::BasicBlock* const latch = loop_.getLoopLatch();
    if (latch == nullptr || phi.getNumIncomingValues() != 2 || !is_vector_of_numbers(*phi.getType()))
        return;
    auto* const next = llvm::dyn_cast<llvm::BinaryOperator>(phi.getIncomingValueForBlock(latch));
    if (next == nullptr || next->getOpcode() != llvm::Instruction::Add || next->getOperand(0) != &phi ||
        !loop_.isLoopInvariant(next->getOperand(1)))
        return;
    llvm::SmallVector<llvm::BinaryOperator*> products;
    for (llvm::User* user : phi.users())
        if (auto* product = llvm::dyn_cast<llvm::BinaryOperator>(user);
            product && product->getOpcode() == llvm::Instruction::Mul && product->getOperand(0) == &phi &&
            loop_.contains(product) && loop_.isLoopInvariant(product->getOperand(1)) &&
            !llvm::isa<llvm::Constant>(product->getOperand(1)))
            products.push_back(product);
    llvm::IRBuilder<> at(before_.getContext());
    for (llvm::BinaryOperator* product : products) {
        llvm::Value* const factor = product->getOperand(1);
        at.SetInsertPoint(before_.getTerminator());
        llvm::Value* const first = at.CreateMul(phi.getIncomingValueForBlock(&before_), factor);
        llvm::Value* const step = at.CreateMul(next->getOperand(1), factor);
        at.SetInsertPoint(&phi);
        llvm::PHINode* const sum = at.CreatePHI(phi.getType(), 2);
        at.SetInsertPoint(next);
        sum->addIncoming(first, &before_);
        sum->addIncoming(at.CreateAdd(sum, step), latch);
        product->replaceAllUsesWith(sum);
        replaced_.emplace_back(product);
        is_changed_ = true;
    }
}

void LoopProducts::compare_fixed_parts(llvm::ICmpInst& compare) {
    llvm::Value *const left = compare.getOperand(0), *const right = compare.getOperand(1);
    if (!compare.isEquality() || !llvm::isa<llvm::FixedVectorType>(left->getType()) || !sums_.is_sum(left) ||
        !sums_.is_sum(right) || sums_.shared(left) != sums_.shared(right))
        return;
    const auto fixed = [&](llvm::Value* sum) {
        llvm::Value* const part = sums_.fixed(sum);
        return part == nullptr ? llvm::Constant::getNullValue(sum->getType()) : part;
    };
    llvm::Value* const once = sums_.at_start().CreateICmp(compare.getPredicate(), fixed(left), fixed(right));
    compare.replaceAllUsesWith(once);
    replaced_.emplace_back(&compare);
    is_changed_ = true;
    if (auto* made = llvm::dyn_cast<llvm::Instruction>(once))
        move_out_users(*made);
}

void LoopProducts::move_out_users(llvm::Instruction& fixed) {
    for (llvm::User* user : fixed.users()) {
        auto* const instruction = llvm::cast<llvm::Instruction>(user);
        bool is_moved = false;
        if (loop_.contains(instruction) && !instruction->mayReadFromMemory() &&
            loop_.hasLoopInvariantOperands(instruction) && loop_.makeLoopInvariant(instruction, is_moved) && is_moved)
            move_out_users(*instruction);
    }
}

// Where a user needs the vector: at the user, so that a rare path computes its own, unless that is in another loop.
llvm::Instruction& LoopProducts::place_before(llvm::Instruction& user, llvm::Instruction& sum) const {
    return is_own(user) ? user : sum;
}

void LoopProducts::replace_uses(llvm::Instruction& sum) {
    llvm::SmallVector<llvm::User*> users(sum.users());
    for (llvm::User* user : users) {
        auto* const instruction = llvm::cast<llvm::Instruction>(user);
        if (is_own(*instruction) && sums_.is_sum(instruction))
            continue;  // replaced itself
        is_changed_ = true;
        if (auto* element = llvm::dyn_cast<llvm::ExtractElementInst>(instruction);
            element && llvm::isa<llvm::ConstantInt>(element->getIndexOperand()) && is_own(*element)) {
            element->replaceAllUsesWith(sums_.element(sum, element->getIndexOperand(), *element));
            replaced_.emplace_back(element);
        } else if (auto* phi = llvm::dyn_cast<llvm::PHINode>(instruction)) {
            for (llvm::BasicBlock* block : phi->blocks())
                if (phi->getIncomingValueForBlock(block) == &sum)
                    phi->setIncomingValueForBlock(block, sums_.whole(sum, place_before(*block->getTerminator(), sum)));
        } else {
            instruction->replaceUsesOfWith(&sum, sums_.whole(sum, place_before(*instruction, sum)));
        }
    }
    replaced_.emplace_back(&sum);
}

bool has_candidate(llvm::Function& function) {
    return llvm::any_of(llvm::instructions(function), [](const llvm::Instruction& instruction) {
        return llvm::isa<llvm::FixedVectorType>(instruction.getType()) &&
               (instruction.getOpcode() == llvm::Instruction::Mul || llvm::isa<llvm::ICmpInst>(instruction));
    });
}

}  // namespace

bool move_out_lane_products(llvm::Function& function) {
    if (!has_candidate(function))
        return false;
    llvm::DominatorTree dominators(function);
    const llvm::LoopInfo loops(dominators);
    bool is_changed = false;
    const llvm::SmallVector<llvm::Loop*, 4> outer_first = loops.getLoopsInPreorder();
    for (llvm::Loop* loop : llvm::reverse(outer_first))
        if (llvm::BasicBlock* const before = loop->getLoopPreheader())
            is_changed |= LoopProducts(*loop, loops, *before).move_out();
    return is_changed;
}

}  // namespace polder::compiler
