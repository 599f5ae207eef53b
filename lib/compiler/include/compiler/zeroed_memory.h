// Executables whose kernels find memory zeroed (cl_khr_initialize_memory). They are made from the same modules as all others:
// only their code differs.
//
// Any thread. Errors: those of Executable::open; compiler_not_available for code that a driver makes of source.
#pragma once

#include <compiler/compiler.h>

namespace polder::compiler {

// Which memory is zero when a kernel begins.
struct ZeroedMemory {
    bool local = false;
    bool private_variables = false;
    friend bool operator==(const ZeroedMemory&, const ZeroedMemory&) = default;
};

[[nodiscard]] Result<std::shared_ptr<Executable>> open_zeroed(std::shared_ptr<const Module> module,
                                                              const Target& target, const ZeroedMemory& zeroed);

}  // namespace polder::compiler
