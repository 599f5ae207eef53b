// Precompiled: LLVM's headers that most sources of this folder include.
#ifndef POLDER_COMPILER_PCH_LLVM_H
#define POLDER_COMPILER_PCH_LLVM_H

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#endif
