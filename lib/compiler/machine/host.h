// The processor of this machine as LLVM describes it. Kernels for the host are compiled for it.
//
// A leaked singleton: initialised at first use from any thread and never destroyed, because kernels may
// be compiled while the process exits.
#pragma once

#include "retarget.h"

#include <cstdint>
#include <llvm/IR/DataLayout.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Triple.h>
#include <memory>
#include <string>

namespace polder::compiler {

struct Host {
    llvm::Triple triple;
    std::string cpu;
    std::string features;  // "+avx2,-sse4a,...": those that the name of the processor does not imply
    bool has_wide_registers = false;  // of 512 bits, with all instructions: AVX-512 with VL, BW and DQ
    uint32_t sub_group_size = 0;  // the default: as many work-items as a vector register has 32-bit lanes
    std::string data_layout;
    std::string preferred_vector_bits;  // "prefer-vector-width" of functions
};

[[nodiscard]] const Host& host();

[[nodiscard]] std::unique_ptr<llvm::TargetMachine> create_target_machine(const Host& target);
[[nodiscard]] std::unique_ptr<llvm::TargetMachine> create_host_target_machine();

// Changes `module` to one address space and to the host's triple and data layout.
void retarget_to_host(llvm::Module& module, const AddressSpaceNumbers& numbers);

} // namespace polder::compiler
