// The arguments of printf as the formatter (lib/kernel) takes them, the same for all targets, and the host's way to it.
//
// lower_printf rewrites calls to calls of polder_printf (lib/kernel), which a work-item can make on the host:
//   int polder_printf(const LaunchContext*, const char* format, const std::byte* arguments, size_t size)
// with the arguments packed one after another in slots of a multiple of 8 bytes. Expects a module in host form.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>
#include <vector>

namespace polder::compiler {

// Where one argument lies within the packed ones.
struct PackedArgument {
    llvm::Value* value = nullptr;  // promoted
    uint64_t offset = 0;
    uint64_t bytes = 0;  // of its slot
};
// Those of one call of printf. Promotions are inserted by `builder`.
[[nodiscard]] std::vector<PackedArgument> pack_print_arguments(llvm::IRBuilder<>& builder, const llvm::CallInst& call);

void lower_printf(llvm::Module& module);

}  // namespace polder::compiler
