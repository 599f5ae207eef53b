// The built-in functions compare a pointer with the memory of the work-group and work-item that call them. A pointer that another group
// left in global memory is local memory by its type all the same.
#include "named_spaces.h"

#include "machine/retarget.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Operator.h>

namespace polder::compiler {
namespace {

constexpr unsigned private_pointers = 0;

// The values of OpenCL C's cl_mem_fence_flags.
constexpr uint64_t local_fence = 1, global_fence = 2;

// The pointer that was cast to the generic address space. Null when that is not known.
llvm::Value* named_pointer(llvm::Value& generic) {
    auto* const cast = llvm::dyn_cast<llvm::AddrSpaceCastOperator>(&generic);
    if (cast == nullptr)
        return nullptr;
    const unsigned space = cast->getSrcAddressSpace();
    const bool is_named =
        space == private_pointers || space == spir64_address_spaces.global || space == spir64_address_spaces.local;
    return is_named ? cast->getPointerOperand() : nullptr;
}

template <class Answer>
void answer_calls(llvm::Function* function, const Answer& answer) {
    if (function == nullptr || !function->isDeclaration())
        return;
    for (llvm::User* user : llvm::make_early_inc_range(function->users())) {
        auto* const call = llvm::dyn_cast<llvm::CallInst>(user);
        if (call == nullptr || call->getCalledFunction() != function || call->arg_size() != 1)
            continue;
        llvm::Value* const pointer = named_pointer(*call->getArgOperand(0));
        if (pointer == nullptr)
            continue;
        call->replaceAllUsesWith(answer(*call, *pointer));
        call->eraseFromParent();
    }
    if (function->use_empty())
        function->eraseFromParent();
}

}  // namespace

void answer_named_spaces(llvm::Module& module) {
    for (const char* name : {"__to_global", "__to_local", "__to_private"})
        answer_calls(module.getFunction(name), [](llvm::CallInst& call, llvm::Value& pointer) {
            return pointer.getType() == call.getType() ? &pointer : llvm::Constant::getNullValue(call.getType());
        });
    for (const char* name : {"_Z9get_fencePU3AS4Kv", "_Z9get_fencePU3AS4v"})
        answer_calls(module.getFunction(name), [](llvm::CallInst& call, llvm::Value& pointer) {
            const bool is_local = pointer.getType()->getPointerAddressSpace() == spir64_address_spaces.local;
            return llvm::ConstantInt::get(call.getType(), is_local ? local_fence : global_fence);
        });
}

}  // namespace polder::compiler
