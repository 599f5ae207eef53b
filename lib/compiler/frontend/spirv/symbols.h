// Names of functions and variables in LLVM's module, and their linkage.
//
// What a module keeps to itself gets a name that no built-in function has: a function of the module that happens to be
// called _Z3sinf must not take that one's place.
#pragma once

#include "translation.h"

namespace polder::compiler::spirv {

struct Symbol {
    std::string name;
    llvm::GlobalValue::LinkageTypes linkage = llvm::GlobalValue::InternalLinkage;
    bool is_imported = false;
};

// `kind`, "function" or "variable", is the prefix of names that are not visible outside.
[[nodiscard]] Symbol symbol_of(Translation& translation, const Instruction& instruction, std::string_view kind);

// Whether a module may give something this name; LLVM and the compiler have names of their own.
[[nodiscard]] bool is_free_name(std::string_view name);

} // namespace polder::compiler::spirv
