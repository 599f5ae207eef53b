// How the values of all lanes lie in memory, the loops over lanes that load and store them, and what makes vector code of such a loop: the call in it is found,
// inlined, and the variables of both become registers.
#include "values_in_memory.h"

#include "targets/host/workgroup/vectorizer/analysis/marks.h"

#include <algorithm>
#include <llvm/IR/InstIterator.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>

namespace polder::compiler::workgroup {

bool is_array_element(llvm::Type& type, const llvm::DataLayout& layout) {
    return llvm::VectorType::isValidElementType(&type) &&
           layout.getTypeSizeInBits(&type) == layout.getTypeAllocSizeInBits(&type);
}

uint64_t PlacesInMemory::next(llvm::Type& element) {
    const uint64_t place = bytes_;
    bytes_ = llvm::alignTo(place + layout_.getTypeAllocSize(&element) * lanes_, values_align);
    return place;
}

ValuesOfCall::ValuesOfCall(const llvm::CallInst& call, unsigned lanes) {
    PlacesInMemory memory(call.getDataLayout(), lanes);
    for (const llvm::Use& argument : call.args())
        arguments.push_back(memory.next(*argument->getType()));
    if (!call.getType()->isVoidTy())
        result = memory.next(*call.getType());
    bytes = memory.bytes();
}

llvm::Value* address_of_lane(llvm::IRBuilder<>& at, llvm::Value& memory, uint64_t place, llvm::Type& element,
                             llvm::Value& lane) {
    llvm::Value* const first = at.CreateConstInBoundsGEP1_64(at.getInt8Ty(), &memory, place);
    return at.CreateInBoundsGEP(&element, first, &lane);
}

llvm::AllocaInst* memory_for(uint64_t bytes, llvm::Function& function, llvm::AllocaInst* known) {
    llvm::Type* const byte = llvm::Type::getInt8Ty(function.getContext());
    if (known == nullptr) {
        llvm::IRBuilder<> at(&*function.getEntryBlock().begin());
        known = at.CreateAlloca(llvm::ArrayType::get(byte, 0), nullptr, "lane.values");
        known->setAlignment(llvm::Align(values_align));
    }
    const uint64_t before = llvm::cast<llvm::ArrayType>(known->getAllocatedType())->getNumElements();
    known->setAllocatedType(llvm::ArrayType::get(byte, std::max(before, bytes)));
    return known;
}

llvm::Value* mask_bits(llvm::IRBuilder<>& at, llvm::Value& mask) {
    const unsigned lanes = llvm::cast<llvm::FixedVectorType>(mask.getType())->getNumElements();
    return at.CreateZExt(at.CreateBitCast(&mask, at.getIntNTy(lanes)), at.getInt64Ty());
}

void for_each_lane(llvm::IRBuilder<>& at, llvm::Value& bits, llvm::function_ref<void(llvm::Value& lane)> body) {
    llvm::BasicBlock* const before = at.GetInsertBlock();
    auto* const loop = llvm::BasicBlock::Create(at.getContext(), "lane", before->getParent());
    auto* const done = llvm::BasicBlock::Create(at.getContext(), "lanes.done", before->getParent());
    at.CreateBr(loop);
    at.SetInsertPoint(loop);
    llvm::PHINode* const rest = at.CreatePHI(bits.getType(), 2, "rest");
    rest->addIncoming(&bits, before);
    body(*at.CreateBinaryIntrinsic(llvm::Intrinsic::cttz, rest, at.getTrue()));
    llvm::Value* const next = at.CreateAnd(rest, at.CreateSub(rest, at.getInt64(1)));
    rest->addIncoming(next, loop);
    at.CreateCondBr(at.CreateIsNull(next), done, loop);
    at.SetInsertPoint(done);
}

void loop_over_lanes(llvm::IRBuilder<>& at, unsigned lanes, llvm::Value* bits, llvm::BasicBlock& after,
                     llvm::function_ref<void(llvm::Value& lane)> body) {
    llvm::LLVMContext& context = at.getContext();
    llvm::BasicBlock* const before = at.GetInsertBlock();
    const auto block = [&](const char* name) { return llvm::BasicBlock::Create(context, name, before->getParent()); };
    llvm::BasicBlock *const head = block("lanes"), *const active = block("lane"), *const latch = block("lanes.next");
    at.CreateBr(head);
    at.SetInsertPoint(head);
    llvm::PHINode* const lane = at.CreatePHI(at.getInt64Ty(), 2, "lane");
    lane->addIncoming(at.getInt64(0), before);
    if (bits != nullptr)
        at.CreateCondBr(at.CreateTrunc(at.CreateLShr(bits, lane), at.getInt1Ty()), active, latch);
    else
        at.CreateBr(active);
    at.SetInsertPoint(active);
    body(*lane);
    at.CreateBr(latch);
    at.SetInsertPoint(latch);
    llvm::Value* const next = at.CreateAdd(lane, at.getInt64(1), "", true, true);
    lane->addIncoming(next, latch);
    set_loop_properties(*at.CreateCondBr(at.CreateICmpEQ(next, at.getInt64(lanes)), &after, head), {sub_group_tag});
}

llvm::CallInst* callee_call_in(llvm::Function& function) {
    for (llvm::Instruction& instruction : llvm::instructions(function))
        if (auto* const call = llvm::dyn_cast<llvm::CallInst>(&instruction);
            call && call->getCalledFunction() && !call->getCalledFunction()->isDeclaration())
            return call;
    return nullptr;
}

void put_variables_into_registers(llvm::Function& function, llvm::FunctionAnalysisManager& analyses) {
    llvm::FunctionPassManager passes;
    passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
    passes.addPass(llvm::SimplifyCFGPass(llvm::SimplifyCFGOptions().needCanonicalLoops(true)));
    passes.run(function, analyses);
    analyses.clear(function, function.getName());
}

}  // namespace polder::compiler::workgroup
