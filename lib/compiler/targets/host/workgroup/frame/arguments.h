// Where a kernel's arguments are in the packed arguments of a launch. Values; any thread.
#pragma once

#include <cstdint>
#include <vector>

namespace llvm {
class Function;
}  // namespace llvm

namespace polder::compiler::workgroup {

// The number of __local in LLVM's address spaces of the host (SPIR's numbers).
inline constexpr unsigned local_address_space = 3;

struct ArgumentSlot {
    uint64_t offset = 0;  // within the packed arguments
    // `image`: the parameter points to the slot.
    enum class Kind : uint8_t { value, local_pointer, image } kind = Kind::value;
};

// Offsets of `kernel`'s parameters when packed one after the other at their natural alignment, as
// the runtime packs them. __local pointers are recognized by their address space or by kernel_arg_addr_space.
[[nodiscard]] std::vector<ArgumentSlot> pack_arguments(const llvm::Function& kernel);

}  // namespace polder::compiler::workgroup
