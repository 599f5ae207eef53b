// One function for each kind of instruction. An instruction without a vector form is copied for each lane (emit_lane_by_lane),
// or runs in a loop over the active lanes (active_lanes.cpp). Flags that hold only under a guard are dropped from copies that run for all lanes.
#include "lane_code.h"

#include "lane_calls.h"
#include "lane_division.h"
#include "rare_calls.h"
#include "targets/host/workgroup/vectorizer/analysis/lane_shape_values.h"
#include "targets/host/workgroup/vectorizer/estimates/call_costs.h"
#include "targets/host/workgroup/vectorizer/estimates/skipped_code.h"
#include "targets/host/workgroup/work_items/work_item_functions.h"

#include <llvm/Analysis/ConstantFolding.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>

namespace polder::compiler::workgroup {

namespace {

void forget_guards(llvm::Instruction& copy) {
    if (auto* address = llvm::dyn_cast<llvm::GetElementPtrInst>(&copy))
        address->setNoWrapFlags(address->getNoWrapFlags().withoutNoUnsignedWrap());
    else if (llvm::isa<llvm::CastInst>(copy) || llvm::isa<llvm::ICmpInst>(copy) ||
             llvm::isa<llvm::PossiblyDisjointInst>(copy))
        copy.dropPoisonGeneratingFlags();
    else if (llvm::isa<llvm::OverflowingBinaryOperator>(copy))
        copy.setHasNoUnsignedWrap(false);
}

// Whether `instruction` has the same effect when it is executed once as when it is executed for one lane after the other. memcpy does not overlap.
bool is_same_for_all_lanes(const llvm::Instruction& instruction, const LaneShapes& shapes) {
    const auto* const access = llvm::dyn_cast<llvm::MemIntrinsic>(&instruction);
    return access != nullptr && !access->isVolatile() && !llvm::isa<llvm::MemMoveInst>(access) &&
           llvm::all_of(access->args(), [&](const llvm::Use& argument) { return shapes.of(argument).is_uniform(); });
}

// A number for which LLVM has something better than a division, in all lanes.
bool is_harmless_divisor(const llvm::Value& divisor) {
    const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(&divisor);
    return constant != nullptr && !constant->isZero() && !constant->isMinusOne();
}

}  // namespace

LaneCode::LaneCode(const LanePlan& plan, const LaneShapes& shapes, LaneAccesses& accesses, unsigned width,
                   const SubGroupLanes* sub_group)
    : plan_(plan), shapes_(shapes), accesses_(accesses), function_(*plan.header->getParent()), width_(width),
      sub_group_(sub_group), builder_(function_.getContext()),
      mask_type_(llvm::FixedVectorType::get(builder_.getInt1Ty(), width)) {}

// The scalar of a uniform value, or the first lane's of a strided one.
llvm::Value* LaneCode::scalar(llvm::Value* value) {
    const auto found = scalars_.find(value);
    return found == scalars_.end() ? value : found->second;
}

llvm::Value* LaneCode::vector(llvm::Value* value) {
    if (const auto found = vectors_.find(value); found != vectors_.end())
        return found->second;
    const LaneShape shape = shapes_.of(value);
    llvm::Value* const same = splat(scalar(value));
    if (shape.stride == 0)
        return same;
    if (value->getType()->isPointerTy())
        return builder_.CreateGEP(builder_.getInt8Ty(), same, lane_offsets(builder_.getInt64Ty(), shape.stride));
    return builder_.CreateAdd(same, lane_offsets(value->getType(), shape.stride));
}

llvm::Constant* LaneCode::lane_offsets(llvm::Type* type, int64_t stride) {
    llvm::SmallVector<llvm::Constant*> lanes;
    for (unsigned i = 0; i < width_; ++i)
        lanes.push_back(llvm::ConstantInt::get(
            type, llvm::APInt(type->getIntegerBitWidth(), static_cast<uint64_t>(stride) * i, false, true)));
    return llvm::ConstantVector::get(lanes);
}

void LaneCode::emit(llvm::Instruction& instruction, llvm::Value* mask) {
    builder_.SetCurrentDebugLocation(instruction.getDebugLoc());
    if (&instruction == plan_.next || &instruction == plan_.compare || instruction.isLifetimeStartOrEnd())
        return;
    if (llvm::isa<llvm::AssumeInst>(instruction) || llvm::isa<llvm::NoAliasScopeDeclInst>(instruction))
        return;
    if (const auto operation = sub_group_operation(instruction))
        emit_sub_group(llvm::cast<llvm::CallBase>(instruction), *operation, mask);
    else if (is_any_work_item(instruction))
        scalars_[&instruction] = any(both(mask, vector(instruction.getOperand(0))));
    else if (llvm::isa<llvm::FenceInst>(instruction))
        builder_.Insert(instruction.clone());
    else if (!instruction.getType()->isVoidTy() && shapes_.of(&instruction).is_strided())
        scalars_[&instruction] = emit_scalar(instruction, mask);
    else if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction); load && load->isSimple())
        vectors_[load] = emit_load(*load, mask);
    else if (auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction); store && store->isSimple())
        emit_store(*store, mask);
    else if (llvm::isa<llvm::CallBase>(instruction) || instruction.mayReadOrWriteMemory())
        emit_call(instruction, mask);
    else
        vectors_[&instruction] = emit_vector(instruction, mask);
}

// How the first lane's value is extended: with its sign, unless the cast is a zero extension of a value that is exact as an unsigned number. A
// zero extension of any other strided value has the nneg flag (see LaneShapes::extended), so that both extensions are the same.
llvm::Instruction::CastOps LaneCode::extension_of(const llvm::CastInst& cast) const {
    const bool is_unsigned = llvm::isa<llvm::ZExtInst>(cast) && shapes_.of(cast.getOperand(0)).is_exact_unsigned;
    return is_unsigned ? llvm::Instruction::ZExt : llvm::Instruction::SExt;
}

// base << up, with its sign, plus stride times the index, where the preheader has checked that the base plus an index does not wrap around.
// What does not change in the loop is apart, and constants are outermost: they become parts of addresses.
llvm::Value* LaneCode::first_lane(llvm::Value& base, int64_t stride, unsigned up, llvm::Type& type) {
    const OffsetBase split = without_offset(base);
    llvm::Value* const first = builder_.CreateShl(builder_.CreateSExtOrTrunc(split.root, &type), up);
    llvm::Value* const index = builder_.CreateSExtOrTrunc(scalar(plan_.index), &type);
    llvm::Value* const steps = builder_.CreateMul(index, llvm::ConstantInt::getSigned(&type, stride));
    return builder_.CreateAdd(builder_.CreateAdd(first, steps),
                              llvm::ConstantInt::getSigned(&type, split.offset * (int64_t{1} << up)));
}

// The first lane's value in more bits, by the same operations in more bits. A guard may exclude the first lane, and then its
// narrower sum or product may wrap around where those of the other lanes do not.
llvm::Value* LaneCode::widened(llvm::Value* value, llvm::Type* type, llvm::Instruction::CastOps how) {
    const LaneShape shape = shapes_.of(value);
    const auto* operation = llvm::dyn_cast<llvm::Instruction>(value);
    // Values whose lanes differ only in low bits do not wrap around.
    if (!operation || shape.is_uniform() || shape.differing_bits != 0)
        return builder_.CreateCast(how, scalar(value), type);
    if (shape.base)
        return first_lane(*shape.base, shape.stride, 0, *type);
    const auto both = [&](llvm::Instruction::BinaryOps opcode) {
        llvm::Value* left = widened(operation->getOperand(0), type, how);
        return builder_.CreateBinOp(opcode, left, widened(operation->getOperand(1), type, how));
    };
    switch (operation->getOpcode()) {
    case llvm::Instruction::SExt:
    case llvm::Instruction::ZExt:
        return widened(operation->getOperand(0), type, extension_of(*llvm::cast<llvm::CastInst>(operation)));
    case llvm::Instruction::Or:  // of disjoint bits
    case llvm::Instruction::Add: return both(llvm::Instruction::Add);
    case llvm::Instruction::Sub: return both(llvm::Instruction::Sub);
    case llvm::Instruction::Mul: return both(llvm::Instruction::Mul);
    case llvm::Instruction::Shl: return both(llvm::Instruction::Shl);
    default: return builder_.CreateCast(how, scalar(value), type);
    }
}

llvm::Value* LaneCode::emit_scalar(llvm::Instruction& instruction, llvm::Value* mask) {
    if (auto* cast = llvm::dyn_cast<llvm::CastInst>(&instruction);
        cast && (llvm::isa<llvm::SExtInst>(cast) || llvm::isa<llvm::ZExtInst>(cast)) && !shapes_.of(cast).is_uniform())
        return widened(cast->getOperand(0), cast->getType(), extension_of(*cast));
    if (const auto [base, up] = shapes_.extended_base(&instruction); base)
        return first_lane(*base, shapes_.of(&instruction).stride, up, *instruction.getType());
    if (auto* address = llvm::dyn_cast<llvm::GetElementPtrInst>(&instruction);
        address && plan_.privates.scale(address) > 1)
        return emit_interleaved(*address, [&](llvm::Value* operand) { return scalar(operand); });
    const bool is_uniform = shapes_.of(&instruction).is_uniform();
    llvm::Instruction* copy = is_uniform ? instruction.clone() : clone_for_all(instruction);
    // A block's number is computed from the first lane, for which the flags may not hold.
    if (is_uniform && llvm::isa<llvm::BinaryOperator>(copy) && !all_uniform(shapes_, instruction))
        copy->dropPoisonGeneratingFlags();
    for (llvm::Use& operand : copy->operands())
        operand.set(scalar(operand.get()));
    // In a sub-group the index of the first lane is the constant 0. Folding makes the indices of shuffles constants where possible.
    llvm::Constant* known = sub_group_ ? llvm::ConstantFoldInstruction(copy, function_.getDataLayout()) : nullptr;
    if (known) {
        copy->deleteValue();
        return known;
    }
    copy->setMetadata(llvm::LLVMContext::MD_access_group, nullptr);
    if (mask && !llvm::isSafeToSpeculativelyExecute(&instruction))
        make_harmless(*copy, mask);
    return builder_.Insert(copy, instruction.getName());
}

// Flags that LLVM derived from a guard before the instruction hold only for work-items that pass the guard. The copy runs for all
// lanes, or for a first lane that may not pass the guard, so these flags are dropped.
llvm::Instruction* LaneCode::clone_for_all(const llvm::Instruction& instruction) {
    if (const auto* either = llvm::dyn_cast<llvm::PossiblyDisjointInst>(&instruction); either && either->isDisjoint())
        return llvm::BinaryOperator::CreateAdd(either->getOperand(0), either->getOperand(1));
    llvm::Instruction* copy = instruction.clone();
    forget_guards(*copy);
    if (llvm::isa<llvm::OverflowingBinaryOperator>(copy))
        copy->setHasNoSignedWrap(false);
    return copy;
}

// The scalar copy may run when no lane is active: then it reads a dummy variable, or divides by one.
void LaneCode::make_harmless(llvm::Instruction& copy, llvm::Value* mask) {
    llvm::Value* active = any(mask);
    if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(&copy)) {
        llvm::Value* safe = dummy(load->getAlign());
        if (safe->getType() != copy.getOperand(0)->getType())
            safe = builder_.CreateAddrSpaceCast(safe, copy.getOperand(0)->getType());
        copy.setOperand(0, builder_.CreateSelect(active, copy.getOperand(0), safe));
        copy.setMetadata(llvm::LLVMContext::MD_invariant_load, nullptr);
    } else if (copy.isIntDivRem()) {
        copy.setOperand(1,
                        builder_.CreateSelect(active, copy.getOperand(1), llvm::ConstantInt::get(copy.getType(), 1)));
    }
}

// A variable of zeros that is read in place of the address of an inactive lane. It gets at least the alignment `align`.
llvm::Value* LaneCode::dummy(llvm::Align align) {
    if (!dummy_) {
        llvm::IRBuilder<> at(&*function_.getEntryBlock().begin());
        auto* type = llvm::ArrayType::get(at.getInt64Ty(), 32);
        dummy_ = at.CreateAlloca(type, nullptr, "unread");
        at.SetInsertPoint(function_.getEntryBlock().getTerminator());
        at.CreateStore(llvm::Constant::getNullValue(type), dummy_);
    }
    dummy_->setAlignment(std::max(dummy_->getAlign(), align));
    return dummy_;
}

llvm::Value* LaneCode::emit_vector(llvm::Instruction& instruction, llvm::Value* mask) {
    if (auto* address = llvm::dyn_cast<llvm::GetElementPtrInst>(&instruction);
        address && plan_.privates.scale(address) > 1)
        return emit_interleaved(*address, [&](llvm::Value* operand) { return vector(operand); });
    if (moves_elements(instruction))
        return emit_moved_elements(instruction);
    llvm::SmallVector<llvm::Value*> operands;
    if (!llvm::isa<llvm::SelectInst>(instruction))
        for (const llvm::Use& operand : instruction.operands())
            operands.push_back(vector(operand.get()));
    if (instruction.isIntDivRem() && !is_harmless_divisor(*instruction.getOperand(1))) {
        if (is_divided_in_lanes(*instruction.getType()))
            return divide(llvm::cast<llvm::BinaryOperator>(instruction), operands[0], operands[1]);
        if (mask)
            operands[1] = builder_.CreateSelect(mask, operands[1], llvm::ConstantInt::get(operands[1]->getType(), 1));
    }
    llvm::Value* result = nullptr;
    if (auto* binary = llvm::dyn_cast<llvm::BinaryOperator>(&instruction)) {
        result = builder_.CreateBinOp(binary->getOpcode(), operands[0], operands[1]);
    } else if (auto* unary = llvm::dyn_cast<llvm::UnaryOperator>(&instruction)) {
        result = builder_.CreateUnOp(unary->getOpcode(), operands[0]);
    } else if (auto* cast = llvm::dyn_cast<llvm::CastInst>(&instruction)) {
        // A number that is not negative is extended with its sign, because gathers take signed indices of 32 bits.
        const bool is_signed = llvm::isa<llvm::ZExtInst>(cast) && cast->hasNonNeg();
        const llvm::Instruction::CastOps how = is_signed ? llvm::Instruction::SExt : cast->getOpcode();
        result = builder_.CreateCast(how, operands[0], wide(cast->getType()));
    } else if (auto* compare = llvm::dyn_cast<llvm::CmpInst>(&instruction)) {
        result = builder_.CreateCmp(compare->getPredicate(), operands[0], operands[1]);
    } else if (auto* choice = llvm::dyn_cast<llvm::SelectInst>(&instruction)) {
        result = emit_choice(*choice);
    } else if (llvm::isa<llvm::FreezeInst>(instruction)) {
        result = builder_.CreateFreeze(operands[0]);
    } else if (auto* gep = llvm::dyn_cast<llvm::GetElementPtrInst>(&instruction)) {
        // Struct members are chosen by scalar constants.
        llvm::SmallVector<llvm::Value*> indices;
        for (unsigned i = 1; i < gep->getNumOperands(); ++i)
            indices.push_back(llvm::isa<llvm::ConstantInt>(gep->getOperand(i)) ? gep->getOperand(i) : operands[i]);
        result = builder_.CreateGEP(gep->getSourceElementType(), operands[0], indices, "", gep->getNoWrapFlags());
    } else {
        llvm_unreachable("not widenable");
    }
    if (auto* made = llvm::dyn_cast<llvm::Instruction>(result);
        made && !llvm::isa<llvm::GetElementPtrInst>(made) && made->getOpcode() == instruction.getOpcode())
        made->copyIRFlags(&instruction);
    if (auto* made = llvm::dyn_cast<llvm::Instruction>(result); made && made->getOpcode() == instruction.getOpcode())
        forget_guards(*made);
    return result;
}

llvm::Value* LaneCode::divide(llvm::BinaryOperator& division, llvm::Value* numbers, llvm::Value* divisors) {
    const auto is_positive = [&](llvm::Value* operand) {
        return llvm::computeKnownBits(operand, function_.getDataLayout()).isNonNegative();
    };
    llvm::Value* const divisor = division.getOperand(1);
    return divide_lanes(builder_, {.opcode = division.getOpcode(),
                                   .numbers = numbers,
                                   .divisors = divisors,
                                   .divisor = shapes_.of(divisor).is_uniform() ? scalar(divisor) : nullptr,
                                   .are_positive = is_positive(division.getOperand(0)) && is_positive(divisor)});
}

void LaneCode::emit_call(llvm::Instruction& instruction, llvm::Value* mask) {
    auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction);
    const llvm::Intrinsic::ID id = call ? call->getIntrinsicID() : llvm::Intrinsic::not_intrinsic;
    if (id != llvm::Intrinsic::not_intrinsic && llvm::isTriviallyVectorizable(id)) {
        vectors_[call] = emit_intrinsic(*call, id);
        return;
    }
    if (auto* filling = llvm::dyn_cast<llvm::MemSetInst>(&instruction);
        filling && plan_.privates.scale(filling->getRawDest()) > 1) {
        fill_interleaved(*filling, mask);
        return;
    }
    if (is_call_for_lanes(instruction, width_)) {
        emit_call_for_lanes(*call, mask);
        return;
    }
    const llvm::Function* callee = call ? call->getCalledFunction() : nullptr;
    if (callee && !callee->hasFnAttribute(llvm::Attribute::Cold) && !is_same_for_all_lanes(instruction, shapes_))
        serial_calls_.insert(callee->getName().str());
    emit_lane_by_lane(instruction, llvm::isSafeToSpeculativelyExecute(&instruction) ? nullptr : mask);
}

void LaneCode::emit_call_for_lanes(llvm::CallInst& call, llvm::Value* mask) {
    llvm::SmallVector<LaneArgument> arguments;
    for (const llvm::Use& argument : call.args()) {
        const LaneShape shape = shapes_.of(argument.get());
        arguments.push_back(shape.is_strided() ? LaneArgument{scalar(argument.get()), shape.stride}
                                               : LaneArgument{vector(argument.get()), std::nullopt});
    }
    std::optional<SkippingBranch> around;
    if (mask)
        around.emplace(builder_, any(mask));
    llvm::Value* result = call_for_lanes(builder_, call, width_, arguments, mask, lane_values_);
    if (around)
        around->end();
    if (result)
        vectors_[&call] = around ? around->merged(result, llvm::PoisonValue::get(result->getType())) : result;
}

llvm::Value* LaneCode::emit_intrinsic(llvm::CallInst& call, llvm::Intrinsic::ID id) {
    llvm::SmallVector<llvm::Value*> operands;
    llvm::SmallVector<llvm::Type*> overloads;
    if (llvm::isVectorIntrinsicWithOverloadTypeAtArg(id, -1, nullptr))
        overloads.push_back(wide(call.getType()));
    for (unsigned i = 0; i < call.arg_size(); ++i) {
        const bool stays_scalar = llvm::isVectorIntrinsicWithScalarOpAtArg(id, i, nullptr);
        operands.push_back(stays_scalar ? scalar(call.getArgOperand(i)) : vector(call.getArgOperand(i)));
        if (llvm::isVectorIntrinsicWithOverloadTypeAtArg(id, static_cast<int>(i), nullptr))
            overloads.push_back(operands.back()->getType());
    }
    llvm::Function* declaration = llvm::Intrinsic::getOrInsertDeclaration(function_.getParent(), id, overloads);
    llvm::CallInst* made = builder_.CreateCall(declaration, operands);
    if (llvm::isa<llvm::FPMathOperator>(made))
        made->copyFastMathFlags(&call);
    return made;
}

// Executes `instruction` for each lane in `mask`, in order, or once if there is any and one has the effect of all.
void LaneCode::emit_lane_by_lane(llvm::Instruction& instruction, llvm::Value* mask) {
    const bool has_result = !instruction.getType()->isVoidTy();
    llvm::Value* result = has_result ? llvm::PoisonValue::get(wide(instruction.getType())) : nullptr;
    llvm::SmallVector<llvm::Value*> operands;
    for (const llvm::Use& operand : instruction.operands()) {
        const bool is_lane_value = is_scalar(*operand->getType()) && !llvm::isa<llvm::Constant>(operand.get()) &&
                                   !shapes_.of(operand.get()).is_uniform();
        operands.push_back(is_lane_value ? vector(operand.get()) : scalar(operand.get()));
    }
    // One branch skips all lanes when none is active, because such calls are often on rare paths.
    llvm::BasicBlock* const skipped_from = builder_.GetInsertBlock();
    llvm::BasicBlock* none = nullptr;
    if (mask) {
        auto* some = llvm::BasicBlock::Create(function_.getContext(), "lanes.some", &function_);
        none = llvm::BasicBlock::Create(function_.getContext(), "lanes.none", &function_);
        builder_.CreateCondBr(any(mask), some, none);
        builder_.SetInsertPoint(some);
    }
    const bool is_rare = is_rare_call(instruction, width_);
    if (is_rare) {
        operands.pop_back();  // the callee
        result = call_rare(builder_, llvm::cast<llvm::CallInst>(instruction), operands, mask ? *mask : *all_lanes(),
                           lane_values_);
    }
    const bool is_once = is_same_for_all_lanes(instruction, shapes_);
    const bool is_loop = mask && !is_rare && !is_once && loops_over_active_lanes(instruction);
    if (is_loop)
        if (llvm::Value* const made = emit_for_active_lanes(instruction, *mask))
            result = made;
    for (unsigned lane = 0; lane < (is_once ? 1 : width_) && !is_rare && !is_loop; ++lane) {
        llvm::BasicBlock* before = builder_.GetInsertBlock();
        llvm::BasicBlock* after = nullptr;
        if (mask && !is_once) {
            auto* active = llvm::BasicBlock::Create(function_.getContext(), "lane", &function_);
            after = llvm::BasicBlock::Create(function_.getContext(), "lane.done", &function_);
            builder_.CreateCondBr(builder_.CreateExtractElement(mask, lane), active, after);
            builder_.SetInsertPoint(active);
        }
        llvm::Instruction* copy = instruction.clone();
        for (unsigned i = 0; i < operands.size(); ++i)
            copy->setOperand(i, operands[i]->getType() == instruction.getOperand(i)->getType()
                                    ? operands[i]
                                    : builder_.CreateExtractElement(operands[i], lane));
        copy->setMetadata(llvm::LLVMContext::MD_access_group, nullptr);
        builder_.Insert(copy);
        llvm::Value* joined = has_result ? builder_.CreateInsertElement(result, copy, lane) : nullptr;
        if (after) {
            builder_.CreateBr(after);
            llvm::BasicBlock* end = builder_.GetInsertBlock();
            builder_.SetInsertPoint(after);
            if (has_result) {
                llvm::PHINode* merged = builder_.CreatePHI(result->getType(), 2);
                merged->addIncoming(result, before);
                merged->addIncoming(joined, end);
                joined = merged;
            }
        }
        result = joined;
    }
    if (mask) {
        llvm::BasicBlock* const last = builder_.GetInsertBlock();
        builder_.CreateBr(none);
        builder_.SetInsertPoint(none);
        if (has_result) {
            llvm::PHINode* merged = builder_.CreatePHI(result->getType(), 2);
            merged->addIncoming(llvm::PoisonValue::get(result->getType()), skipped_from);
            merged->addIncoming(result, last);
            result = merged;
        }
    }
    if (has_result)
        vectors_[&instruction] = result;
}

}  // namespace polder::compiler::workgroup
