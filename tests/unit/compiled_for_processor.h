// after_pass(): the functions of a module after a pass that knows the processor, for tests that count instructions.
#pragma once

#include "machine/host.h"
#include "parsed_ir.h"

#include <gtest/gtest.h>
#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <map>
#include <memory>
#include <string>

namespace polder::compiler::test {

using ProcessorPass = llvm::function_ref<void(llvm::Function&, const llvm::TargetMachine&)>;

// Runs the pass over each function of the text for a processor, by LLVM's name of it; then adds each of its instructions to the function's Counts with
// `count(counts, instruction)`. By function.
template <class Counts>
std::map<std::string, Counts> after_pass(const std::string& text, const char* processor, ProcessorPass pass,
                                         llvm::function_ref<void(Counts&, const llvm::Instruction&)> count) {
    Host target = host();
    target.triple = llvm::Triple("x86_64-unknown-linux-gnu");
    target.cpu = processor;
    target.features.clear();
    const std::unique_ptr<llvm::TargetMachine> machine = create_target_machine(target);
    llvm::LLVMContext context;
    const std::unique_ptr<llvm::Module> module = parsed(text, context);
    std::map<std::string, Counts> all;
    if (!module)
        return all;
    for (llvm::Function& function : *module) {
        if (function.isDeclaration())
            continue;
        pass(function, *machine);
        EXPECT_FALSE(llvm::verifyFunction(function, &llvm::errs()));
        Counts& counts = all[function.getName().str()];
        for (const llvm::Instruction& instruction : llvm::instructions(function))
            count(counts, instruction);
    }
    return all;
}

// Whether it calls an intrinsic with this in its name.
inline bool calls_intrinsic(const llvm::Instruction& instruction, llvm::StringRef name) {
    const auto* const call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
    return call != nullptr && call->getCalledFunction()->getName().contains(name);
}

}  // namespace polder::compiler::test
