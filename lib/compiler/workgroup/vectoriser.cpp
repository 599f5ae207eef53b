#include "vectoriser.h"

#include "lane_shape.h"
#include "uniformity.h"

#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/ADT/SetVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/LoopIterator.h>
#include <llvm/Analysis/PostDominators.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/Scalarizer.h>
#include <llvm/Transforms/Utils/LCSSA.h>
#include <llvm/Transforms/Utils/LoopSimplify.h>
#include <llvm/Transforms/Utils/LowerSwitch.h>
#include <llvm/Transforms/Utils/UnrollLoop.h>
#include <map>

namespace polder::compiler::workgroup {

namespace {

using Edge = std::pair<llvm::BasicBlock*, llvm::BasicBlock*>;
using BlockSet = llvm::SmallPtrSet<llvm::BasicBlock*, 16>;

// One work-item loop, and its vector form in the making.
class LoopVectoriser {
public:
    LoopVectoriser(llvm::Loop& loop, llvm::LoopInfo& loops, const llvm::PostDominatorTree& post_dominators,
                   unsigned width)
        : loop_(loop), loops_(loops), post_dominators_(post_dominators), function_(*loop.getHeader()->getParent()),
          width_(width), builder_(function_.getContext()),
          mask_type_(llvm::FixedVectorType::get(builder_.getInt1Ty(), width)) {}

    bool run() {
        if (!find_frame() || is_too_large() || !is_supported() || !find_masked_blocks() || !find_chunks())
            return false;
        LaneShapes shapes(loop_, loops_, *index_, blocks_, masked_, divergent_, private_strides_);
        shapes_ = &shapes;
        if (!is_control_uniform() || !is_widenable())
            return false;
        emit();
        return true;
    }

private:
    // What the loop looks like -------------------------------------------------------------------

    bool find_frame() {
        header_ = loop_.getHeader();
        latch_ = loop_.getLoopLatch();
        exit_ = loop_.getExitBlock();
        preheader_ = loop_.getLoopPreheader();
        if (!latch_ || !exit_ || !preheader_ || loop_.getExitingBlock() != latch_)
            return false;
        if (!exit_->phis().empty() || !header_->hasNPredecessors(2))
            return false;
        auto phis = header_->phis();
        if (std::distance(phis.begin(), phis.end()) != 1)
            return false;
        index_ = &*phis.begin();
        const auto* start = llvm::dyn_cast<llvm::ConstantInt>(index_->getIncomingValueForBlock(preheader_));
        next_ = llvm::dyn_cast<llvm::Instruction>(index_->getIncomingValueForBlock(latch_));
        const auto* branch = llvm::dyn_cast<llvm::BranchInst>(latch_->getTerminator());
        if (!start || !start->isZero() || !next_ || !branch || !branch->isConditional())
            return false;
        compare_ = llvm::dyn_cast<llvm::ICmpInst>(branch->getCondition());
        if (!compare_ || compare_->getOperand(0) != next_)
            return false;
        count_ = compare_->getOperand(1);
        if (!loop_.isLoopInvariant(count_))
            return false;
        if (!compare_->hasOneUse() || !next_->hasNUses(2))
            return false;
        llvm::LoopBlocksRPO order(&loop_);
        order.perform(&loops_);
        blocks_.assign(order.begin(), order.end());
        return true;
    }

    // Beyond this, compiling takes longer than the code is likely to run.
    static constexpr size_t instructions_max = 30000;
    bool is_too_large() {
        size_t count = 0;
        for (llvm::BasicBlock* block : blocks_)
            count += block->size();
        return count > instructions_max;
    }

    bool is_supported() {
        for (llvm::BasicBlock* block : blocks_) {
            if (block != latch_ && !llvm::isa<llvm::BranchInst>(block->getTerminator()))
                return false;
            for (llvm::Instruction& instruction : *block)
                for (const llvm::User* user : instruction.users())
                    if (!loop_.contains(llvm::cast<llvm::Instruction>(user)))
                        return false;
        }
        return find_private_variables();
    }

    // Private variables that work-items use one after the other: one for each lane is needed.
    bool find_private_variables() {
        const llvm::DataLayout& layout = function_.getParent()->getDataLayout();
        for (llvm::BasicBlock* block : blocks_)
            for (llvm::Instruction& instruction : *block)
                for (const llvm::Use& operand : instruction.operands()) {
                    auto* variable = llvm::dyn_cast<llvm::AllocaInst>(operand.get());
                    if (!variable || private_strides_.contains(variable))
                        continue;
                    if (instruction.isLifetimeStartOrEnd())
                        return false;
                    const auto is_here = [&](const llvm::User* user) {
                        return loop_.contains(llvm::cast<llvm::Instruction>(user));
                    };
                    if (!llvm::all_of(variable->users(), is_here))
                        return false;
                    private_strides_[variable] =
                        llvm::alignTo(variable->getAllocationSize(layout)->getFixedValue(), variable->getAlign());
                }
        return true;
    }

    llvm::SmallVector<const llvm::Value*> sources() {
        llvm::SmallVector<const llvm::Value*> result{index_};
        for (auto& [variable, stride] : private_strides_)
            result.push_back(variable);
        return result;
    }

    // What runs under masks ------------------------------------------------------------------------

    bool find_masked_blocks() {
        const Uniformity uniformity(blocks_, sources(), loops_);
        for (llvm::BasicBlock* block : uniformity.divergent_branches()) {
            if (block == latch_)
                continue;  // the counter itself
            divergent_.insert(block);
            const auto* node = post_dominators_.getNode(block);
            llvm::BasicBlock* join = node && node->getIDom() ? node->getIDom()->getBlock() : nullptr;
            if (!join || !loop_.contains(join))
                return false;
            llvm::SmallVector<llvm::BasicBlock*> todo(llvm::successors(block));
            while (!todo.empty()) {
                llvm::BasicBlock* next = todo.pop_back_val();
                if (next == join || !masked_.insert(next).second)
                    continue;
                todo.append(llvm::succ_begin(next), llvm::succ_end(next));
            }
            for (llvm::Loop* around = loops_.getLoopFor(block); around != &loop_; around = around->getParentLoop())
                if (!around->contains(join))
                    masked_.insert(around->block_begin(), around->block_end());
        }
        return !masked_.contains(header_) && !masked_.contains(latch_);
    }

    [[nodiscard]] bool is_masked(llvm::BasicBlock* block) const { return masked_.contains(block); }

    // Masked blocks between one uniform block, after which they start, and another, where all meet again.
    struct Chunk {
        BlockSet blocks;
        llvm::BasicBlock* join = nullptr;
    };

    bool find_chunks() {
        BlockSet taken;
        for (llvm::BasicBlock* block : blocks_) {
            if (is_masked(block))
                continue;
            const bool leads =
                llvm::any_of(llvm::successors(block), [&](llvm::BasicBlock* next) { return is_masked(next); });
            if (!leads && !divergent_.contains(block))
                continue;
            if (leads && !divergent_.contains(block) && !block->getSingleSuccessor())
                return false;
            Chunk chunk;
            llvm::SmallVector<llvm::BasicBlock*> todo{block};
            while (!todo.empty()) {
                llvm::BasicBlock* from = todo.pop_back_val();
                for (llvm::BasicBlock* next : llvm::successors(from)) {
                    if (is_masked(next)) {
                        if (chunk.blocks.insert(next).second)
                            todo.push_back(next);
                    } else if (!chunk.join) {
                        chunk.join = next;
                    } else if (chunk.join != next) {
                        return false;
                    }
                }
            }
            for (llvm::BasicBlock* member : chunk.blocks) {
                if (!taken.insert(member).second)
                    return false;
                for (llvm::BasicBlock* before : llvm::predecessors(member))
                    if (before != block && !chunk.blocks.contains(before))
                        return false;
            }
            if (!chunk.join)
                return false;
            chunks_[block] = std::move(chunk);
        }
        return true;
    }

    bool is_control_uniform() {
        for (llvm::BasicBlock* block : blocks_) {
            if (is_masked(block) || block == latch_ || divergent_.contains(block))
                continue;
            const auto* branch = llvm::cast<llvm::BranchInst>(block->getTerminator());
            if (branch->isConditional() && !shapes_->of(branch->getCondition()).is_uniform())
                return false;
        }
        return true;
    }

    static bool is_scalar(const llvm::Type* type) {
        return type->isIntegerTy() || type->isFloatingPointTy() || type->isPointerTy();
    }

    // A work-item may wait here, in a loop of its own, for what another does after leaving that loop: lanes
    // that run in step would wait for ever.
    bool is_wait(const llvm::Instruction& instruction) {
        if (!instruction.isAtomic() && !instruction.isVolatile())
            return false;
        for (const llvm::Loop* around = loops_.getLoopFor(instruction.getParent()); around != &loop_;
             around = around->getParentLoop())
            if (masked_.contains(around->getHeader()))
                return true;
        return false;
    }

    bool is_widenable() {
        for (llvm::BasicBlock* block : blocks_)
            for (llvm::Instruction& instruction : *block) {
                if (instruction.isTerminator() || shapes_->of(&instruction).is_strided())
                    continue;
                if (!instruction.getType()->isVoidTy() && !is_scalar(instruction.getType()))
                    return false;
                for (const llvm::Use& operand : instruction.operands())
                    if (!llvm::isa<llvm::Function>(operand.get()) && !operand->getType()->isMetadataTy() &&
                        !is_scalar(operand->getType()))
                        return false;
                if (llvm::isa<llvm::FenceInst>(instruction) || is_wait(instruction))
                    return false;
                const auto* call = llvm::dyn_cast<llvm::CallBase>(&instruction);
                if (call && (!call->getCalledFunction() || call->isInlineAsm()))
                    return false;
            }
        return true;
    }

    // Values of the vector loop -------------------------------------------------------------------

    [[nodiscard]] llvm::Type* wide(llvm::Type* type) const { return llvm::FixedVectorType::get(type, width_); }

    // The scalar of a uniform value, or the first lane's of a strided one.
    llvm::Value* scalar(llvm::Value* value) {
        const auto found = scalars_.find(value);
        return found == scalars_.end() ? value : found->second;
    }

    llvm::Value* vector(llvm::Value* value) {
        if (const auto found = vectors_.find(value); found != vectors_.end())
            return found->second;
        const LaneShape shape = shapes_->of(value);
        llvm::Value* splat = builder_.CreateVectorSplat(width_, scalar(value));
        if (shape.stride == 0)
            return splat;
        if (value->getType()->isPointerTy())
            return builder_.CreateGEP(builder_.getInt8Ty(), splat, lane_offsets(builder_.getInt64Ty(), shape.stride));
        return builder_.CreateAdd(splat, lane_offsets(value->getType(), shape.stride));
    }

    llvm::Constant* lane_offsets(llvm::Type* type, int64_t stride) {
        llvm::SmallVector<llvm::Constant*> lanes;
        for (unsigned i = 0; i < width_; ++i)
            lanes.push_back(llvm::ConstantInt::get(
                type, llvm::APInt(type->getIntegerBitWidth(), static_cast<uint64_t>(stride) * i, false, true)));
        return llvm::ConstantVector::get(lanes);
    }

    llvm::Value* all_lanes() { return llvm::ConstantInt::getTrue(mask_type_); }
    llvm::Value* no_lanes() { return llvm::ConstantInt::getFalse(mask_type_); }
    llvm::Value* any(llvm::Value* mask) { return builder_.CreateOrReduce(mask); }
    llvm::Value* both(llvm::Value* mask, llvm::Value* condition) {
        return mask ? builder_.CreateSelect(mask, condition, no_lanes()) : condition;
    }
    llvm::Value* either(llvm::Value* a, llvm::Value* b) { return a ? builder_.CreateOr(a, b) : b; }

    // Instructions ------------------------------------------------------------------------------------

    // `mask` null: all lanes.
    void emit(llvm::Instruction& instruction, llvm::Value* mask) {
        if (&instruction == next_ || &instruction == compare_ || instruction.isLifetimeStartOrEnd())
            return;
        if (llvm::isa<llvm::AssumeInst>(instruction) || llvm::isa<llvm::NoAliasScopeDeclInst>(instruction))
            return;
        if (!instruction.getType()->isVoidTy() && shapes_->of(&instruction).is_strided())
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

    llvm::Value* emit_scalar(llvm::Instruction& instruction, llvm::Value* mask) {
        llvm::Instruction* copy = instruction.clone();
        for (llvm::Use& operand : copy->operands())
            operand.set(scalar(operand.get()));
        copy->setMetadata(llvm::LLVMContext::MD_access_group, nullptr);
        if (mask && !llvm::isSafeToSpeculativelyExecute(&instruction))
            make_harmless(*copy, mask);
        return builder_.Insert(copy, instruction.getName());
    }

    // When no lane is active, reads a dummy, divides by one.
    void make_harmless(llvm::Instruction& copy, llvm::Value* mask) {
        llvm::Value* active = any(mask);
        if (llvm::isa<llvm::LoadInst>(copy)) {
            llvm::Value* safe = dummy();
            if (safe->getType() != copy.getOperand(0)->getType())
                safe = builder_.CreateAddrSpaceCast(safe, copy.getOperand(0)->getType());
            copy.setOperand(0, builder_.CreateSelect(active, copy.getOperand(0), safe));
        } else if (copy.isIntDivRem()) {
            copy.setOperand(
                1, builder_.CreateSelect(active, copy.getOperand(1), llvm::ConstantInt::get(copy.getType(), 1)));
        }
    }

    llvm::Value* dummy() {
        if (!dummy_) {
            llvm::IRBuilder<> at(&*function_.getEntryBlock().begin());
            auto* type = llvm::ArrayType::get(at.getInt64Ty(), 32);
            dummy_ = at.CreateAlloca(type, nullptr, "unread");
            at.SetInsertPoint(function_.getEntryBlock().getTerminator());
            at.CreateStore(llvm::Constant::getNullValue(type), dummy_);
        }
        return dummy_;
    }

    llvm::Value* emit_vector(llvm::Instruction& instruction, llvm::Value* mask) {
        llvm::SmallVector<llvm::Value*> operands;
        for (const llvm::Use& operand : instruction.operands())
            operands.push_back(vector(operand.get()));
        if (mask && instruction.isIntDivRem())
            operands[1] = builder_.CreateSelect(mask, operands[1], llvm::ConstantInt::get(operands[1]->getType(), 1));
        llvm::Value* result = nullptr;
        if (auto* binary = llvm::dyn_cast<llvm::BinaryOperator>(&instruction)) {
            result = builder_.CreateBinOp(binary->getOpcode(), operands[0], operands[1]);
        } else if (auto* unary = llvm::dyn_cast<llvm::UnaryOperator>(&instruction)) {
            result = builder_.CreateUnOp(unary->getOpcode(), operands[0]);
        } else if (auto* cast = llvm::dyn_cast<llvm::CastInst>(&instruction)) {
            result = builder_.CreateCast(cast->getOpcode(), operands[0], wide(cast->getType()));
        } else if (auto* compare = llvm::dyn_cast<llvm::CmpInst>(&instruction)) {
            result = builder_.CreateCmp(compare->getPredicate(), operands[0], operands[1]);
        } else if (llvm::isa<llvm::SelectInst>(instruction)) {
            result = builder_.CreateSelect(operands[0], operands[1], operands[2]);
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
        return result;
    }

    // Whether neighbouring lanes access neighbouring elements.
    bool is_consecutive(llvm::Value* address, llvm::Type* type) {
        const llvm::DataLayout& layout = function_.getParent()->getDataLayout();
        const LaneShape shape = shapes_->of(address);
        return shape.is_strided() &&
               shape.stride == static_cast<int64_t>(layout.getTypeStoreSize(type).getFixedValue()) &&
               layout.getTypeStoreSize(type) == layout.getTypeAllocSize(type) && layout.typeSizeEqualsStoreSize(type);
    }

    llvm::Value* emit_load(llvm::LoadInst& load, llvm::Value* mask) {
        llvm::Type* type = wide(load.getType());
        if (!is_consecutive(load.getPointerOperand(), load.getType()))
            return builder_.CreateMaskedGather(type, vector(load.getPointerOperand()), load.getAlign(),
                                               mask ? mask : all_lanes());
        llvm::Value* address = scalar(load.getPointerOperand());
        if (!mask)
            return builder_.CreateAlignedLoad(type, address, load.getAlign());
        return builder_.CreateMaskedLoad(type, address, load.getAlign(), mask, llvm::Constant::getNullValue(type));
    }

    void emit_store(llvm::StoreInst& store, llvm::Value* mask) {
        llvm::Value* value = store.getValueOperand();
        llvm::Value* to = store.getPointerOperand();
        if (!mask && shapes_->of(to).is_uniform()) {
            // The last work-item's is what remains.
            llvm::Value* last = shapes_->of(value).is_uniform()
                                    ? scalar(value)
                                    : builder_.CreateExtractElement(vector(value), width_ - 1);
            builder_.CreateAlignedStore(last, scalar(to), store.getAlign());
        } else if (!is_consecutive(to, value->getType())) {
            builder_.CreateMaskedScatter(vector(value), vector(to), store.getAlign(), mask ? mask : all_lanes());
        } else if (!mask) {
            builder_.CreateAlignedStore(vector(value), scalar(to), store.getAlign());
        } else {
            builder_.CreateMaskedStore(vector(value), scalar(to), store.getAlign(), mask);
        }
    }

    void emit_call(llvm::Instruction& instruction, llvm::Value* mask) {
        auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction);
        const llvm::Intrinsic::ID id = call ? call->getIntrinsicID() : llvm::Intrinsic::not_intrinsic;
        if (id != llvm::Intrinsic::not_intrinsic && llvm::isTriviallyVectorizable(id)) {
            vectors_[call] = emit_intrinsic(*call, id);
            return;
        }
        emit_lane_by_lane(instruction, llvm::isSafeToSpeculativelyExecute(&instruction) ? nullptr : mask);
    }

    llvm::Value* emit_intrinsic(llvm::CallInst& call, llvm::Intrinsic::ID id) {
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

    // Executes `instruction` for each lane in `mask`, in order.
    void emit_lane_by_lane(llvm::Instruction& instruction, llvm::Value* mask) {
        const bool has_result = !instruction.getType()->isVoidTy();
        llvm::Value* result = has_result ? llvm::PoisonValue::get(wide(instruction.getType())) : nullptr;
        llvm::SmallVector<llvm::Value*> operands;
        for (const llvm::Use& operand : instruction.operands()) {
            const bool is_lane_value = is_scalar(operand->getType()) && !llvm::isa<llvm::Constant>(operand.get()) &&
                                       !shapes_->of(operand.get()).is_uniform();
            operands.push_back(is_lane_value ? vector(operand.get()) : scalar(operand.get()));
        }
        for (unsigned lane = 0; lane < width_; ++lane) {
            llvm::BasicBlock* before = builder_.GetInsertBlock();
            llvm::BasicBlock* after = nullptr;
            if (mask) {
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
            if (mask) {
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
        if (has_result)
            vectors_[&instruction] = result;
    }

    // Masked parts ----------------------------------------------------------------------------------------

    // A value as it arrives on an edge: what it was when a lane left a masked loop, if the edge leaves one.
    llvm::Value* arriving(llvm::Value* value, llvm::BasicBlock* to) {
        const auto* instruction = llvm::dyn_cast<llvm::Instruction>(value);
        const llvm::Loop* inside =
            instruction && loop_.contains(instruction) ? loops_.getLoopFor(instruction->getParent()) : nullptr;
        if (inside && masked_.contains(inside->getHeader()) && !inside->contains(to))
            if (const auto found = left_.find(value); found != left_.end())
                return found->second;
        return vector(value);
    }

    void set_edges(llvm::BasicBlock& block, llvm::Value* mask) {
        const auto* branch = llvm::cast<llvm::BranchInst>(block.getTerminator());
        if (!branch->isConditional() || branch->getSuccessor(0) == branch->getSuccessor(1)) {
            edges_[{&block, branch->getSuccessor(0)}] = mask ? mask : all_lanes();
            return;
        }
        llvm::Value* condition = vector(branch->getCondition());
        edges_[{&block, branch->getSuccessor(0)}] = both(mask, condition);
        edges_[{&block, branch->getSuccessor(1)}] = both(mask, builder_.CreateNot(condition));
    }

    // The value of a phi where lanes from several blocks in `from` meet.
    llvm::Value* blend(llvm::PHINode& phi, llvm::function_ref<bool(llvm::BasicBlock*)> from) {
        llvm::Value* result = nullptr;
        for (unsigned i = 0; i < phi.getNumIncomingValues(); ++i) {
            llvm::BasicBlock* block = phi.getIncomingBlock(i);
            if (!from(block))
                continue;
            llvm::Value* value = arriving(phi.getIncomingValue(i), phi.getParent());
            result = result ? builder_.CreateSelect(edges_[{block, phi.getParent()}], value, result) : value;
        }
        return result;
    }

    void emit_masked_block(llvm::BasicBlock& block) {
        llvm::Value* mask = nullptr;
        for (llvm::BasicBlock* before :
             llvm::SmallSetVector<llvm::BasicBlock*, 4>(llvm::pred_begin(&block), llvm::pred_end(&block)))
            mask = either(mask, edges_[{before, &block}]);
        for (llvm::PHINode& phi : block.phis()) {
            if (shapes_->of(&phi).is_strided())
                scalars_[&phi] = scalar(phi.getIncomingValue(0));
            else
                vectors_[&phi] = blend(phi, [](llvm::BasicBlock*) { return true; });
        }
        emit_body(block, mask);
        set_edges(block, mask);
    }

    void emit_body(llvm::BasicBlock& block, llvm::Value* mask) {
        for (llvm::Instruction& instruction : block)
            if (!llvm::isa<llvm::PHINode>(instruction) && !instruction.isTerminator())
                emit(instruction, mask);
    }

    // Emits `blocks` in an order in which each follows what leads to it, inner loops as one.
    void emit_in_order(const BlockSet& blocks, const llvm::Loop* level, llvm::ArrayRef<llvm::BasicBlock*> entries) {
        llvm::SmallVector<llvm::BasicBlock*> order;  // an inner loop by its header
        llvm::SmallPtrSet<llvm::BasicBlock*, 16> seen;
        const auto visit = [&](auto& self, llvm::BasicBlock* block) -> void {
            if (!blocks.contains(block) || (level && block == level->getHeader()))
                return;
            const llvm::Loop* inner = child_loop(level, block);
            llvm::BasicBlock* unit = inner ? inner->getHeader() : block;
            if (!seen.insert(unit).second)
                return;
            if (inner) {
                llvm::SmallVector<llvm::BasicBlock*> exits;
                inner->getExitBlocks(exits);
                for (llvm::BasicBlock* exit : exits)
                    self(self, exit);
            } else {
                for (llvm::BasicBlock* next : llvm::successors(block))
                    self(self, next);
            }
            order.push_back(unit);
        };
        for (llvm::BasicBlock* entry : entries)
            visit(visit, entry);
        for (llvm::BasicBlock* unit : llvm::reverse(order)) {
            if (llvm::Loop* inner = child_loop(level, unit))
                emit_masked_loop(*inner);
            else
                emit_masked_block(*unit);
        }
    }

    // The loop directly inside `level` that contains `block`.
    llvm::Loop* child_loop(const llvm::Loop* level, llvm::BasicBlock* block) {
        llvm::Loop* inner = loops_.getLoopFor(block);
        if (inner == level)
            return nullptr;
        while (inner && inner->getParentLoop() != level)
            inner = inner->getParentLoop();
        return inner;
    }

    // Runs while any lane stays inside. Lanes that left keep what they left with.
    void emit_masked_loop(llvm::Loop& loop) {
        llvm::BasicBlock* header = loop.getHeader();
        llvm::BasicBlock* latch = loop.getLoopLatch();
        llvm::BasicBlock* before = loop.getLoopPreheader();
        llvm::Value* entering = edges_[{before, header}];
        auto* start = builder_.GetInsertBlock();
        llvm::DenseMap<llvm::PHINode*, llvm::Value*> initial;
        for (llvm::PHINode& phi : header->phis()) {
            llvm::Value* value = phi.getIncomingValueForBlock(before);
            initial[&phi] = shapes_->of(&phi).is_strided() ? scalar(value) : vector(value);
        }
        auto* body = llvm::BasicBlock::Create(function_.getContext(), "lanes", &function_);
        builder_.CreateBr(body);
        builder_.SetInsertPoint(body);
        const auto make_phi = [&](llvm::Value* from) {
            llvm::PHINode* made = builder_.CreatePHI(from->getType(), 2);
            made->addIncoming(from, start);
            return made;
        };
        llvm::PHINode* mask = make_phi(entering);
        llvm::SmallVector<std::pair<llvm::PHINode*, llvm::PHINode*>> headers;
        for (llvm::PHINode& phi : header->phis()) {
            llvm::PHINode* made = make_phi(initial[&phi]);
            headers.emplace_back(&phi, made);
            (shapes_->of(&phi).is_strided() ? scalars_ : vectors_)[&phi] = made;
        }
        llvm::SmallVector<llvm::Loop::Edge> exits;
        loop.getExitEdges(exits);
        llvm::SmallVector<std::pair<Edge, llvm::PHINode*>> left_by;
        if (exits.size() > 1)
            for (const llvm::Loop::Edge& exit : exits)
                left_by.push_back(
                    {{const_cast<llvm::BasicBlock*>(exit.first), const_cast<llvm::BasicBlock*>(exit.second)},
                     make_phi(no_lanes())});
        llvm::SmallVector<std::pair<llvm::Instruction*, llvm::PHINode*>> live_out;
        for (llvm::BasicBlock* block : loop.blocks())
            for (llvm::Instruction& instruction : *block)
                if (llvm::any_of(instruction.users(),
                                 [&](llvm::User* user) { return !loop.contains(llvm::cast<llvm::Instruction>(user)); }))
                    live_out.emplace_back(&instruction,
                                          make_phi(llvm::Constant::getNullValue(wide(instruction.getType()))));

        emit_body(*header, mask);
        set_edges(*header, mask);
        BlockSet blocks(loop.block_begin(), loop.block_end());
        const llvm::SmallVector<llvm::BasicBlock*> entries(llvm::successors(header));
        emit_in_order(blocks, &loop, entries);

        llvm::Value* staying = edges_[{latch, header}];
        auto* after = llvm::BasicBlock::Create(function_.getContext(), "lanes.done", &function_);
        for (auto [phi, made] : headers) {
            llvm::Value* value = phi->getIncomingValueForBlock(latch);
            made->addIncoming(shapes_->of(phi).is_strided() ? scalar(value) : vector(value), builder_.GetInsertBlock());
        }
        for (auto [instruction, made] : live_out) {
            const bool is_inner = loops_.getLoopFor(instruction->getParent()) != &loop;
            llvm::Value* current = is_inner ? left_[instruction] : vector(instruction);
            llvm::Value* kept = builder_.CreateSelect(mask, current, made);
            made->addIncoming(kept, builder_.GetInsertBlock());
            left_[instruction] = kept;
        }
        for (auto [edge, made] : left_by) {
            edges_[edge] = either(made, edges_[edge]);
            made->addIncoming(edges_[edge], builder_.GetInsertBlock());
        }
        if (exits.size() == 1)
            edges_[{const_cast<llvm::BasicBlock*>(exits[0].first), const_cast<llvm::BasicBlock*>(exits[0].second)}] =
                entering;
        mask->addIncoming(staying, builder_.GetInsertBlock());
        builder_.CreateCondBr(any(staying), body, after);
        builder_.SetInsertPoint(after);
    }

    // The uniform skeleton ----------------------------------------------------------------------------------

    void emit() {
        auto* check = llvm::BasicBlock::Create(function_.getContext(), "vector.check", &function_);
        auto* finish = llvm::BasicBlock::Create(function_.getContext(), "vector.done", &function_);
        auto* scalar_start = llvm::BasicBlock::Create(function_.getContext(), "items.rest", &function_);
        for (llvm::BasicBlock* block : blocks_)
            if (!is_masked(block))
                begin_[block] =
                    llvm::BasicBlock::Create(function_.getContext(), block->getName() + ".vector", &function_);

        make_private_variables();
        preheader_->getTerminator()->replaceSuccessorWith(header_, check);
        builder_.SetInsertPoint(check);
        llvm::Value* covered = builder_.CreateAnd(count_, builder_.getInt64(~uint64_t{width_ - 1}));
        llvm::Value* possible = builder_.CreateAnd(builder_.CreateIsNotNull(covered), bases_are_small());
        builder_.CreateCondBr(possible, begin_[header_], scalar_start);

        for (llvm::BasicBlock* block : blocks_)
            if (!is_masked(block))
                emit_uniform_phis(*block, *check);
        for (llvm::BasicBlock* block : blocks_)
            if (!is_masked(block))
                emit_uniform_block(*block, covered, *finish);
        complete_phis();

        builder_.SetInsertPoint(finish);
        builder_.CreateCondBr(builder_.CreateICmpEQ(covered, count_), exit_, scalar_start);
        builder_.SetInsertPoint(scalar_start);
        llvm::PHINode* start = builder_.CreatePHI(index_->getType(), 2);
        start->addIncoming(builder_.getInt64(0), check);
        start->addIncoming(covered, finish);
        builder_.CreateBr(header_);
        index_->setIncomingValue(static_cast<unsigned>(index_->getBasicBlockIndex(preheader_)), start);
        header_->replacePhiUsesWith(preheader_, scalar_start);
    }

    // No work-item's 32-bit index may wrap around.
    llvm::Value* bases_are_small() {
        llvm::Value* small = builder_.getTrue();
        llvm::Value* limit = builder_.CreateSub(builder_.getInt64(uint64_t{1} << 31), count_);
        for (llvm::Value* base : shapes_->assumed_small())
            small = builder_.CreateAnd(
                small, builder_.CreateICmpULE(builder_.CreateZExtOrTrunc(base, builder_.getInt64Ty()), limit));
        return small;
    }

    void make_private_variables() {
        llvm::IRBuilder<> at(&*function_.getEntryBlock().begin());
        for (auto& [variable, stride] : private_strides_) {
            const auto* original = llvm::cast<llvm::AllocaInst>(variable);
            llvm::AllocaInst* all = at.CreateAlloca(llvm::ArrayType::get(at.getInt8Ty(), stride * width_));
            all->setAlignment(original->getAlign());
            scalars_[variable] = all;
        }
    }

    void emit_uniform_phis(llvm::BasicBlock& block, llvm::BasicBlock& check) {
        builder_.SetInsertPoint(begin_[&block]);
        for (llvm::PHINode& phi : block.phis()) {
            const bool is_strided = shapes_->of(&phi).is_strided();
            llvm::PHINode* made =
                builder_.CreatePHI(is_strided ? phi.getType() : wide(phi.getType()), 2, phi.getName());
            (is_strided ? scalars_ : vectors_)[&phi] = made;
            if (&phi == index_)
                made->addIncoming(builder_.getInt64(0), &check);
            else
                phis_.push_back(&phi);
        }
    }

    void emit_uniform_block(llvm::BasicBlock& block, llvm::Value* covered, llvm::BasicBlock& finish) {
        builder_.SetInsertPoint(begin_[&block]);
        emit_body(block, nullptr);
        if (&block == latch_) {
            auto* index = llvm::cast<llvm::PHINode>(scalars_[index_]);
            llvm::Value* next = builder_.CreateAdd(index, builder_.getInt64(width_), "", true, true);
            index->addIncoming(next, builder_.GetInsertBlock());
            llvm::Instruction* back =
                builder_.CreateCondBr(builder_.CreateICmpEQ(next, covered), &finish, begin_[header_]);
            llvm::LLVMContext& context = function_.getContext();
            llvm::MDNode* id = llvm::MDNode::getDistinct(
                context,
                {nullptr, llvm::MDNode::get(context, llvm::MDString::get(context, "llvm.loop.unroll.disable"))});
            id->replaceOperandWith(0, id);
            back->setMetadata(llvm::LLVMContext::MD_loop, id);
        } else if (const auto chunk = chunks_.find(&block); chunk != chunks_.end()) {
            emit_chunk(block, chunk->second);
        } else {
            const auto* branch = llvm::cast<llvm::BranchInst>(block.getTerminator());
            if (branch->isConditional())
                builder_.CreateCondBr(scalar(branch->getCondition()), begin_[branch->getSuccessor(0)],
                                      begin_[branch->getSuccessor(1)]);
            else
                builder_.CreateBr(begin_[branch->getSuccessor(0)]);
        }
        end_[&block] = builder_.GetInsertBlock();
    }

    void emit_chunk(llvm::BasicBlock& block, const Chunk& chunk) {
        set_edges(block, nullptr);
        const llvm::SmallVector<llvm::BasicBlock*> entries(llvm::successors(&block));
        emit_in_order(chunk.blocks, loops_.getLoopFor(&block), entries);
        for (llvm::PHINode& phi : chunk.join->phis()) {
            auto from_chunk = [&](llvm::BasicBlock* from) { return from == &block || chunk.blocks.contains(from); };
            if (!shapes_->of(&phi).is_strided()) {
                blended_[{&block, &phi}] = blend(phi, from_chunk);
                continue;
            }
            for (unsigned i = 0; i < phi.getNumIncomingValues(); ++i)
                if (from_chunk(phi.getIncomingBlock(i)))
                    blended_[{&block, &phi}] = scalar(phi.getIncomingValue(i));
        }
        builder_.CreateBr(begin_[chunk.join]);
    }

    void complete_phis() {
        for (llvm::PHINode* phi : phis_) {
            const bool is_strided = shapes_->of(phi).is_strided();
            auto* made = llvm::cast<llvm::PHINode>(is_strided ? scalars_[phi] : vectors_[phi]);
            for (auto& [block, chunk] : chunks_)
                if (chunk.join == phi->getParent())
                    made->addIncoming(blended_[{block, phi}], end_[block]);
            for (unsigned i = 0; i < phi->getNumIncomingValues(); ++i) {
                llvm::BasicBlock* from = phi->getIncomingBlock(i);
                if (is_masked(from) || chunks_.contains(from))
                    continue;
                builder_.SetInsertPoint(end_[from]->getTerminator());
                made->addIncoming(is_strided ? scalar(phi->getIncomingValue(i)) : vector(phi->getIncomingValue(i)),
                                  end_[from]);
            }
        }
    }

    llvm::Loop& loop_;
    llvm::LoopInfo& loops_;
    const llvm::PostDominatorTree& post_dominators_;
    llvm::Function& function_;
    unsigned width_;
    llvm::IRBuilder<> builder_;
    llvm::Type* mask_type_;

    llvm::BasicBlock *header_ = nullptr, *latch_ = nullptr, *exit_ = nullptr, *preheader_ = nullptr;
    llvm::PHINode* index_ = nullptr;
    llvm::Instruction* next_ = nullptr;
    llvm::ICmpInst* compare_ = nullptr;
    llvm::Value* count_ = nullptr;
    llvm::SmallVector<llvm::BasicBlock*> blocks_;  // reverse post-order
    llvm::DenseMap<const llvm::Value*, uint64_t> private_strides_;

    BlockSet masked_;
    llvm::SmallPtrSet<const llvm::BasicBlock*, 16> divergent_;
    std::map<llvm::BasicBlock*, Chunk> chunks_;  // by the block that they follow
    LaneShapes* shapes_ = nullptr;

    llvm::DenseMap<const llvm::Value*, llvm::Value*> scalars_;
    llvm::DenseMap<const llvm::Value*, llvm::Value*> vectors_;
    llvm::DenseMap<const llvm::Value*, llvm::Value*> left_;  // what lanes left masked loops with
    std::map<Edge, llvm::Value*> edges_;                     // masks
    std::map<std::pair<llvm::BasicBlock*, llvm::PHINode*>, llvm::Value*> blended_;
    llvm::DenseMap<llvm::BasicBlock*, llvm::BasicBlock*> begin_, end_;
    llvm::SmallVector<llvm::PHINode*> phis_;
    llvm::AllocaInst* dummy_ = nullptr;
};

} // namespace

namespace {

bool is_tagged(const llvm::Loop& loop) {
    const llvm::MDNode* id = loop.getLoopID();
    return id && llvm::GetUnrollMetadata(const_cast<llvm::MDNode*>(id), work_item_loop_tag);
}

// What is left of the loop runs the remainder; neither tried again nor worth vectorising.
void retire(llvm::Loop& loop, bool was_vectorised) {
    llvm::LLVMContext& context = loop.getHeader()->getContext();
    llvm::SmallVector<llvm::Metadata*, 4> properties{nullptr};
    for (const llvm::MDOperand& property : llvm::drop_begin(loop.getLoopID()->operands())) {
        const auto* node = llvm::dyn_cast<llvm::MDNode>(property);
        const auto* name =
            node && node->getNumOperands() ? llvm::dyn_cast<llvm::MDString>(node->getOperand(0)) : nullptr;
        if (!name || name->getString() != work_item_loop_tag)
            properties.push_back(property);
    }
    if (was_vectorised)
        properties.push_back(llvm::MDNode::get(
            context, {llvm::MDString::get(context, "llvm.loop.isvectorized"),
                      llvm::ConstantAsMetadata::get(llvm::ConstantInt::get(llvm::Type::getInt32Ty(context), 1))}));
    llvm::MDNode* id = llvm::MDNode::getDistinct(context, properties);
    id->replaceOperandWith(0, id);
    loop.setLoopID(id);
}

bool uses_double(const llvm::Loop& loop) {
    for (const llvm::BasicBlock* block : loop.blocks())
        for (const llvm::Instruction& instruction : *block)
            if (instruction.getType()->isDoubleTy())
                return true;
    return false;
}

// Into the form that the vectoriser knows: branches only, canonical loops, no vectors.
void canonicalise(llvm::Function& function, llvm::FunctionAnalysisManager& analyses) {
    llvm::FunctionPassManager passes;
    llvm::ScalarizerPassOptions options;
    options.ScalarizeLoadStore = true;
    options.ScalarizeVariableInsertExtract = true;
    passes.addPass(llvm::ScalarizerPass(options));
    passes.addPass(llvm::EarlyCSEPass());
    passes.addPass(llvm::LowerSwitchPass());
    passes.addPass(llvm::LoopSimplifyPass());
    passes.addPass(llvm::LCSSAPass());
    passes.run(function, analyses);
}

// Tries one tagged loop; false when there is none.
bool vectorise_one(llvm::Function& function, unsigned width, unsigned& vectorised) {
    llvm::DominatorTree dominators(function);
    llvm::LoopInfo loops(dominators);
    for (llvm::Loop* loop : loops.getLoopsInPreorder()) {
        if (!is_tagged(*loop))
            continue;
        const llvm::PostDominatorTree post_dominators(function);
        const bool done =
            LoopVectoriser(*loop, loops, post_dominators, uses_double(*loop) ? std::max(width / 2, 2U) : width).run();
        retire(*loop, done);
        vectorised += done ? 1 : 0;
        return true;
    }
    return false;
}

} // namespace

unsigned vectorise_work_item_loops(llvm::Function& function, unsigned width, llvm::FunctionAnalysisManager& analyses) {
    bool is_wanted = false;
    {
        llvm::DominatorTree dominators(function);
        const llvm::LoopInfo loops(dominators);
        for (const llvm::Loop* loop : loops.getLoopsInPreorder())
            is_wanted |= is_tagged(*loop);
    }
    if (!is_wanted || width < 2)
        return 0;
    canonicalise(function, analyses);
    unsigned vectorised = 0;
    while (vectorise_one(function, width, vectorised)) {
    }
    return vectorised;
}

} // namespace polder::compiler::workgroup
