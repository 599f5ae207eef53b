// The names and the linkage of functions and variables in LLVM's module.
//
// A function or variable that the module does not export gets a name that no built-in has. Otherwise a function of the module named
// _Z3sinf would replace the built-in.
#pragma once

#include "translation.h"

namespace polder::compiler::spirv {

struct Symbol {
    std::string name;
    llvm::GlobalValue::LinkageTypes linkage = llvm::GlobalValue::InternalLinkage;
    bool is_imported = false;
};

// `kind`, "function" or "variable", is the prefix of names that are not exported.
[[nodiscard]] Symbol symbol_of(Translation& translation, const Instruction& instruction, std::string_view kind);

// Whether a module may use this name; some names are reserved for LLVM and this compiler.
[[nodiscard]] bool is_free_name(std::string_view name);

}  // namespace polder::compiler::spirv
