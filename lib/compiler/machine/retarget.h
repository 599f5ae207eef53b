// Changes the address spaces of a module from those of spir64 (Clang's output) or nvptx64 (libclc) to those of a target, and its
// calling conventions to C's. The first step of code generation for every target; each target then sets its triple and
// data layout.
//
// Later passes need some of what is lost here, so it is kept as attributes:
// - "polder-local" on global variables that were in local memory;
// - "polder-constant" on constants;
// - "polder-builtin" on functions that Builtins::link_into added;
// - "polder-kernel" on functions with the kernel calling convention.
// OpenCL's opaque types (event_t, sampler_t, ...) become pointers. Casts between address spaces that become one disappear.
//
// The module is changed in place; the caller owns it and its context. Used at run time for the user's
// modules and at build time (builtins/retarget_builtins.cpp) for the libraries of built-ins.
#pragma once

#include <llvm/IR/Module.h>

namespace polder::compiler {

inline constexpr const char* local_variable_attribute = "polder-local";
inline constexpr const char* constant_attribute = "polder-constant";
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

// The number that an address space of the module has in the target.
using AddressSpaceMap = unsigned (*)(unsigned space);

void retarget(llvm::Module& module, const AddressSpaceNumbers& numbers, AddressSpaceMap map);

}  // namespace polder::compiler
