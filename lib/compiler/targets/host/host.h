// The processor that kernels are compiled for: this machine's, as LLVM sees it.
//
// A leaked singleton: initialised at first use from any thread and never destroyed, because kernels may
// be compiled while the process exits.
#pragma once

#include "targets/retarget.h"

#include <llvm/IR/DataLayout.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Triple.h>
#include <memory>
#include <string>

namespace polder::compiler {

struct Host {
    llvm::Triple triple;
    std::string cpu;
    std::string features;  // "+avx2,-sse4a,..."
    std::string data_layout;
    std::string preferred_vector_bits;  // "prefer-vector-width" of functions
};

[[nodiscard]] const Host& host();

// As many work-items as a register has 32-bit lanes.
[[nodiscard]] uint32_t host_sub_group_size();

[[nodiscard]] std::unique_ptr<llvm::TargetMachine> create_host_target_machine();

// Makes `module` one for the host: one address space, the host's triple and data layout.
void retarget_to_host(llvm::Module& module, const AddressSpaceNumbers& numbers);

} // namespace polder::compiler
