// Turns a module that Clang made for spir64 (or libclc's for nvptx64) into one for the host: the host's
// triple and data layout, one address space, the C calling convention.
//
// What the address spaces said and is still needed stays as attributes:
// - "polder-local" on global variables that were in local memory;
// - "polder-constant" on constants, "polder-program-variable" on other program-scope variables;
// - "polder-builtin" on functions that Builtins::link_into added;
// - "polder-kernel" on functions with the kernel calling convention.
// OpenCL's opaque types (event_t, sampler_t, ...) become plain pointers.
//
// The module is changed in place; the caller owns it and its context. Used at run time for the user's
// modules and at build time (tools/retarget_builtins.cpp) for the library of built-ins.
#pragma once

#include <llvm/IR/Module.h>

namespace polder::compiler {

inline constexpr const char* local_variable_attribute = "polder-local";
inline constexpr const char* constant_attribute = "polder-constant";
inline constexpr const char* program_variable_attribute = "polder-program-variable";
inline constexpr const char* builtin_attribute = "polder-builtin";
inline constexpr const char* kernel_attribute = "polder-kernel";

// Which number means which address space in the module's types.
struct AddressSpaceNumbers {
    unsigned global = 1;
    unsigned constant = 2;
    unsigned local = 3;
};
inline constexpr AddressSpaceNumbers spir64_address_spaces{1, 2, 3};
inline constexpr AddressSpaceNumbers nvptx64_address_spaces{1, 4, 3};

void retarget_to_host(llvm::Module& module, const AddressSpaceNumbers& numbers);

// Gives `module` the host's triple and data layout, which is all that LLVM's linker compares.
void set_host_layout(llvm::Module& module);

} // namespace polder::compiler
