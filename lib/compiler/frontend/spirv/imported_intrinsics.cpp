#include "imported_intrinsics.h"

#include <llvm/IR/Intrinsics.h>

namespace polder::compiler::spirv {

namespace {

bool may_be_imported(llvm::Intrinsic::ID intrinsic) {
    switch (intrinsic) {
    case llvm::Intrinsic::sadd_sat:
    case llvm::Intrinsic::uadd_sat:
    case llvm::Intrinsic::ssub_sat:
    case llvm::Intrinsic::usub_sat:
    case llvm::Intrinsic::sshl_sat:
    case llvm::Intrinsic::ushl_sat:
    case llvm::Intrinsic::smin:
    case llvm::Intrinsic::smax:
    case llvm::Intrinsic::umin:
    case llvm::Intrinsic::umax:
    case llvm::Intrinsic::fshl:
    case llvm::Intrinsic::fshr:
    case llvm::Intrinsic::ctpop:
    case llvm::Intrinsic::bitreverse: return true;
    default: return false;
    }
}

}  // namespace

llvm::Function* imported_intrinsic(llvm::Module& module, const std::string& name, llvm::FunctionType& type) {
    const llvm::Intrinsic::ID intrinsic = llvm::Intrinsic::lookupIntrinsicID(name);
    // Each of these functions is for one type, that of its result.
    llvm::Type* const result = type.getReturnType();
    if (!may_be_imported(intrinsic) || !result->isIntOrIntVectorTy() ||
        llvm::Intrinsic::getType(module.getContext(), intrinsic, {result}) != &type ||
        llvm::Intrinsic::getName(intrinsic, {result}, &module) != name)
        return nullptr;
    return llvm::Intrinsic::getOrInsertDeclaration(&module, intrinsic, {result});
}

}  // namespace polder::compiler::spirv
