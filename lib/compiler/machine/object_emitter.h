// LLVM's code generator for one target machine. Making its list of about 200 passes takes 2 million instructions, a fourteenth of what a kernel of
// a few lines takes, so the list is kept for the next module. LLVM resets its passes after each module (llc's option -run-twice tests it).
//
// Belongs to the machine's owner, who alone uses it. Must be destroyed before the machine. Not to be used after a crash of the compiler.
#pragma once

#include <array>
#include <cstdint>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <memory>
#include <polder/result.h>
#include <string>

namespace polder::compiler {

// Whether loops are reduced in strength. A module that is not reduced anyway saves the analyses for it: they take quadratic time for loops that
// follow each other.
enum class Reduction : uint8_t { off, on };

// Adds the passes for loops that LLVM's list of the code generator begins with otherwise (pass_options.cpp).
void add_loop_passes(llvm::legacy::PassManager& passes, const llvm::TargetMachine& machine, Reduction reduction);

class ObjectEmitter {
public:
    explicit ObjectEmitter(llvm::TargetMachine& machine) : machine_(machine) {}

    // The object file of `module`.
    [[nodiscard]] Result<std::string> emit(llvm::Module& module, Reduction reduction = Reduction::on);

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
    [[nodiscard]] std::unique_ptr<List> make_list(Reduction reduction);

    llvm::TargetMachine& machine_;
    std::array<std::unique_ptr<List>, 2> lists_;  // by reduction
    unsigned lists_made_ = 0;
};

}  // namespace polder::compiler
