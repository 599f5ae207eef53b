// Where the compiler's parts lie: Clang's resource headers, and Polder's library of built-ins.
//
// Looked up once per process; any thread. First what the environment says, then beside libpolder.so (so
// that an installation can be moved), then the build tree, then where the build was configured for.
#pragma once

#include <string>

namespace polder::compiler {

struct Paths {
    std::string resource_directory;  // of Clang: the folder with include/opencl-c-base.h; empty: not found
    std::string builtins;            // polder-builtins.bc; empty: not found
    std::string problem;             // what is missing, where it was sought, and the package that has it
};

[[nodiscard]] const Paths& paths();

} // namespace polder::compiler
