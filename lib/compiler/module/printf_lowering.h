// printf in kernels. The formatter (lib/kernel) takes packed arguments: one after another, in slots of a multiple of 8 bytes. All
// targets pack them with pack_print_arguments.
//
// On the host, lower_printf replaces each call of printf by a call of the formatter's function in lib/kernel:
//   int polder_printf(const LaunchContext*, const char* format, const std::byte* arguments, size_t size)
// It expects a module in host form.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>
#include <vector>

namespace polder::compiler {

// Arguments are stored in slots of this size or multiples.
inline constexpr uint64_t slot_bytes = 8;

struct PackedArgument {
    llvm::Value* value = nullptr;  // after the promotions of C
    uint64_t offset = 0;
    uint64_t bytes = 0;  // of its slot
};
// The arguments of one call of printf. `builder` inserts the promotions.
[[nodiscard]] std::vector<PackedArgument> pack_print_arguments(llvm::IRBuilder<>& builder, const llvm::CallInst& call);

void lower_printf(llvm::Module& module);

}  // namespace polder::compiler
