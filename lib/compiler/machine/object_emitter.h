// LLVM's code generator for one target machine. Making its list of about 200 passes takes 2 million instructions, a fourteenth of what a kernel of
// a few lines takes, so the list is kept for the next module. LLVM resets its passes after each module (llc's option -run-twice tests it).
//
// Belongs to the machine's owner, who alone uses it. Must be destroyed before the machine. Not to be used after a crash of the compiler.
#pragma once

#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <memory>
#include <polder/result.h>
#include <string>

namespace polder::compiler {

class ObjectEmitter {
public:
    explicit ObjectEmitter(llvm::TargetMachine& machine) : machine_(machine) {}

    // The object file of `module`.
    [[nodiscard]] Result<std::string> emit(llvm::Module& module);

    // How often a list of passes was made.
    [[nodiscard]] unsigned lists_made() const { return lists_made_; }

private:
    // The passes write to `stream`, so they stay together.
    struct List {
        llvm::SmallVector<char, 0> object;
        llvm::raw_svector_ostream stream{object};
        llvm::CodeGenOptLevel level;
        llvm::legacy::PassManager passes;
    };
    [[nodiscard]] std::unique_ptr<List> make_list();

    llvm::TargetMachine& machine_;
    std::unique_ptr<List> list_;
    unsigned lists_made_ = 0;
};

}  // namespace polder::compiler
