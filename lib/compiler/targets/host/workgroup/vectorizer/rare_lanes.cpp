// The callee is inlined into a loop over as many lanes as a register has, with a branch around lanes that are not active, and this loop is
// vectorized like one over the work-items of a sub-group: straight code under masks. Around it is a loop over the registers that all lanes fill, of which
// two are two copies of the code.
//
// A callee that writes memory, depends on other lanes, or has loops or divisions of integers keeps its loop over active lanes.
#include "rare_lanes.h"

#include "targets/host/workgroup/vectorizer/analysis/marks.h"
#include "targets/host/workgroup/vectorizer/code/rare_calls.h"
#include "targets/host/workgroup/vectorizer/code/values_in_memory.h"
#include "vectorizer.h"

#include <algorithm>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/LoopUnrollPass.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/Transforms/Utils/LoopUtils.h>

namespace polder::compiler::workgroup {

namespace {

// Longer code is not worth the time to compile it for cases that are rare.
constexpr unsigned rare_instructions_max = 600;

// Whether all that `function` changes is its own variables, and the values of the call, which its first argument points to.
bool only_computes(const llvm::Function& function) {
    const auto is_own = [&](const llvm::Value& address) {
        const llvm::Value* const object = llvm::getUnderlyingObject(&address);
        return object == function.getArg(0) || llvm::isa<llvm::AllocaInst>(object);
    };
    return llvm::all_of(llvm::instructions(function), [&](const llvm::Instruction& instruction) {
        if (!instruction.mayWriteToMemory() || instruction.isLifetimeStartOrEnd())
            return true;
        if (const auto* const store = llvm::dyn_cast<llvm::StoreInst>(&instruction))
            return store->isSimple() && is_own(*store->getPointerOperand());
        const auto* const filling = llvm::dyn_cast<llvm::MemIntrinsic>(&instruction);
        return filling && !filling->isVolatile() && is_own(*filling->getRawDest());
    });
}

llvm::CallInst* call_to_inline(llvm::Function& function) {
    for (llvm::Instruction& instruction : llvm::instructions(function))
        if (auto* const call = llvm::dyn_cast<llvm::CallInst>(&instruction); call && call->getCalledFunction())
            if (!call->getCalledFunction()->isDeclaration())
                return call;
    return nullptr;
}

// Inlines all calls. False when one remains that may depend on other lanes, or the code becomes too long.
bool inline_all(llvm::Function& function) {
    while (llvm::CallInst* const call = call_to_inline(function)) {
        llvm::InlineFunctionInfo info;
        if (function.getInstructionCount() > rare_instructions_max || !llvm::InlineFunction(*call, info).isSuccess())
            return false;
    }
    return llvm::none_of(llvm::instructions(function), [](const llvm::Instruction& instruction) {
        const auto* const call = llvm::dyn_cast<llvm::CallBase>(&instruction);
        return call && (!llvm::isa<llvm::IntrinsicInst>(call) || call->isConvergent());
    });
}

// Lanes of one vector: a register full of doubles, where the code has many.
unsigned lanes_of_vector(llvm::Function& callee, unsigned register_words) {
    size_t wide = 0, all = 0;
    for (const llvm::Instruction& instruction : llvm::instructions(callee)) {
        wide += instruction.getType()->getScalarSizeInBits() == 64 ? 1 : 0;
        all += instruction.isTerminator() ? 0 : 1;
    }
    return 4 * wide > all ? register_words / 2 : register_words;
}

class VectorForm {
public:
    VectorForm(llvm::Function& function, const llvm::CallInst& call, unsigned all_lanes, unsigned lanes)
        : function_(function), context_(function.getContext()), call_(call), places_(call, all_lanes),
          all_lanes_(all_lanes), lanes_(lanes), at_(context_) {}

    // A new body, in which the loop over the lanes of one vector is tagged.
    void define() {
        llvm::BasicBlock* const entry = block("entry");
        llvm::BasicBlock* const vectors = all_lanes_ > lanes_ ? block("vectors") : nullptr;
        llvm::BasicBlock *const before = block("vector"), *const after = block("vector.done");
        at_.SetInsertPoint(entry);
        llvm::Value *first = at_.getInt64(0), *bits = function_.getArg(1);
        if (vectors != nullptr) {
            at_.CreateBr(vectors);
            at_.SetInsertPoint(vectors);
            auto* const counter = at_.CreatePHI(at_.getInt64Ty(), 2, "first");
            counter->addIncoming(first, entry);
            bits = at_.CreateLShr(bits, counter);
            const uint64_t all = ~uint64_t{0} >> (64 - lanes_);
            at_.CreateCondBr(at_.CreateIsNotNull(at_.CreateAnd(bits, all)), before, after);
            at_.SetInsertPoint(after);
            llvm::Value* const next = at_.CreateAdd(counter, at_.getInt64(lanes_), "", true, true);
            counter->addIncoming(next, after);
            llvm::BasicBlock* const done = block("done");
            auto* const last = at_.CreateCondBr(at_.CreateICmpEQ(next, at_.getInt64(all_lanes_)), done, vectors);
            if (all_lanes_ == 2 * lanes_)
                set_loop_properties(*last, {"llvm.loop.unroll.full"});
            at_.SetInsertPoint(done);
            first = counter;
        } else {
            at_.CreateBr(before);
            at_.SetInsertPoint(after);
        }
        at_.CreateRetVoid();
        define_vector(*before, *after, *first, *bits);
    }

private:
    llvm::BasicBlock* block(const char* name) { return llvm::BasicBlock::Create(context_, name, &function_); }

    void define_vector(llvm::BasicBlock& before, llvm::BasicBlock& after, llvm::Value& first, llvm::Value& bits) {
        at_.SetInsertPoint(&before);
        loop_over_lanes(at_, lanes_, &bits, after,
                        [&](llvm::Value& lane) { call_for(*at_.CreateAdd(&first, &lane, "", true, true)); });
    }

    void call_for(llvm::Value& lane) {
        llvm::Value& memory = *function_.getArg(0);
        llvm::SmallVector<llvm::Value*> values;
        for (const auto [argument, place] : llvm::zip(call_.args(), places_.arguments)) {
            llvm::Type& type = *argument->getType();
            values.push_back(at_.CreateLoad(&type, address_of_lane(at_, memory, place, type, lane)));
        }
        llvm::CallInst* const call = at_.CreateCall(call_.getFunctionType(), call_.getCalledFunction(), values);
        call->setCallingConv(call_.getCallingConv());
        call->setAttributes(call_.getAttributes());
        at_.CreateStore(call, address_of_lane(at_, memory, places_.result, *call->getType(), lane));
    }

    llvm::Function& function_;
    llvm::LLVMContext& context_;
    const llvm::CallInst& call_;
    const ValuesOfCall places_;
    const unsigned all_lanes_, lanes_;
    llvm::IRBuilder<> at_;
};

// Lanes would wait for the one whose loop runs longest, and divide integers one by one. Only some of them are active.
bool pays(llvm::Function& function) {
    const llvm::DominatorTree dominators(function);
    const llvm::LoopInfo loops(dominators);
    const bool has_own_loop = llvm::any_of(loops.getLoopsInPreorder(), [](const llvm::Loop* loop) {
        return !loop->isInnermost() && llvm::findOptionMDForLoop(loop, sub_group_tag) != nullptr;
    });
    return !has_own_loop && llvm::none_of(llvm::instructions(function), [](const llvm::Instruction& instruction) {
        return instruction.isIntDivRem() && !llvm::isa<llvm::Constant>(instruction.getOperand(1));
    });
}

// The memory of the call has values of all lanes, and results of inactive lanes are not read. Processors take longer to load what was stored under a mask.
void access_all_lanes(llvm::Function& function) {
    for (llvm::Instruction& instruction : llvm::make_early_inc_range(llvm::instructions(function))) {
        auto* const call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
        const auto kind = call ? call->getIntrinsicID() : llvm::Intrinsic::not_intrinsic;
        if (kind != llvm::Intrinsic::masked_load && kind != llvm::Intrinsic::masked_store)
            continue;
        const unsigned address = kind == llvm::Intrinsic::masked_load ? 0 : 1;
        llvm::Value* const place = call->getArgOperand(address);
        if (llvm::getUnderlyingObject(place) != function.getArg(0))
            continue;
        const llvm::Align align = call->getParamAlign(address).valueOrOne();
        llvm::IRBuilder<> at(call);
        if (kind == llvm::Intrinsic::masked_load)
            call->replaceAllUsesWith(at.CreateAlignedLoad(call->getType(), place, align));
        else
            at.CreateAlignedStore(call->getArgOperand(0), place, align);
        call->eraseFromParent();
    }
}

// Code generation keeps the constants of a loop in registers, which the function has to save. Two copies of the code use them from memory.
void unroll_short_loop(llvm::Function& function, llvm::FunctionAnalysisManager& analyses) {
    llvm::FunctionPassManager passes;
    passes.addPass(
        llvm::createFunctionToLoopPassAdaptor(llvm::LoopFullUnrollPass(/*OptLevel=*/2, /*OnlyWhenForced=*/true)));
    analyses.invalidate(function, passes.run(function, analyses));
}

// Keeps the loop over active lanes when the vectorizer has an obstacle.
void vectorize(llvm::Function& function, const llvm::CallInst& call, unsigned register_words, Permutes permutes,
               llvm::FunctionAnalysisManager& analyses) {
    unsigned all_lanes = 0;
    if (function.getFnAttribute(rare_lanes_attribute).getValueAsString().getAsInteger(10, all_lanes))
        return;
    const unsigned lanes = std::min(all_lanes, lanes_of_vector(*call.getCalledFunction(), register_words));
    if (lanes < 2)
        return;
    llvm::Function* const made =
        llvm::Function::Create(function.getFunctionType(), function.getLinkage(), "", function.getParent());
    made->copyAttributesFrom(&function);
    VectorForm(*made, call, all_lanes, lanes).define();
    const bool is_whole = inline_all(*made);
    if (is_whole)
        put_variables_into_registers(*made, analyses);
    if (!is_whole || !only_computes(*made) || !pays(*made) ||
        !vectorize_one_vector(*made, {lanes, permutes}, analyses).empty()) {
        made->eraseFromParent();
        return;
    }
    access_all_lanes(*made);
    unroll_short_loop(*made, analyses);
    made->takeName(&function);
    function.replaceAllUsesWith(made);
    function.eraseFromParent();
}

}  // namespace

void vectorize_rare_calls(llvm::Module& module, unsigned register_words, Permutes permutes,
                          llvm::FunctionAnalysisManager& analyses) {
    llvm::SmallVector<llvm::Function*> functions;
    for (llvm::Function& function : module)
        if (function.hasFnAttribute(rare_lanes_attribute))
            functions.push_back(&function);
    for (llvm::Function* const function : functions) {
        const llvm::CallInst* const call = callee_call_in(*function);
        if (call != nullptr && !call->getType()->isVoidTy())
            vectorize(*function, *call, register_words, permutes, analyses);
    }
}

}  // namespace polder::compiler::workgroup
