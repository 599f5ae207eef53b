// Where the compiler's parts lie: Clang's resource headers, and Polder's library of built-ins.
//
// Looked up once per process; any thread. Where the environment says, if it does; else the built-ins are
// beside libpolder.so (so that an installation can be moved), in the build tree, or where the build was configured for.
#pragma once

#include <string>

namespace polder::compiler {

struct Paths {
    std::string resource_directory;  // of Clang: the folder with include/opencl-c-base.h; empty: not found
    std::string builtins;  // polder-builtins.bca; empty: not found
    std::string problem;  // what is missing, where it was sought, and the package that has it
};

[[nodiscard]] const Paths& paths();

}  // namespace polder::compiler
