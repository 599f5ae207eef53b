// Instructions of AVX-512 that code generation has only as intrinsics of one register: vectors of floats and doubles in parts that fill registers.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/IR/IRBuilder.h>

namespace polder::compiler {

// Whether vectors of this type have a power of two of elements, floats or doubles, and fill a register of 128 bits or more.
bool fills_registers(const llvm::Type& type);

// `operation` on the operands, vectors of one length, in parts of at most 512 bits of the first one.
llvm::Value* in_registers(llvm::IRBuilder<>& at, llvm::ArrayRef<llvm::Value*> operands,
                          llvm::function_ref<llvm::Value*(llvm::ArrayRef<llvm::Value*>)> operation);

// The intrinsic for a vector of this type, whose bits are at most 512: of floats and of doubles, each for 128, 256 and 512 bits.
struct RegisterIntrinsics {
    llvm::Intrinsic::ID floats[3], doubles[3];
};
llvm::Intrinsic::ID intrinsic_for(const llvm::Type& type, const RegisterIntrinsics& all);

// The mask of such an intrinsic for all elements.
llvm::Constant* mask_of_all(llvm::IRBuilder<>& at, const llvm::Type& type);

}  // namespace polder::compiler
