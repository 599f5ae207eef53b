// Where the files are that the compiler needs: Clang's resource headers, and Polder's library of built-ins.
//
// The library of built-ins is looked for in this order: where the environment variable says; beside libpolder.so, so that an
// installation can be moved; in the build tree; in the directory that the build was configured for. Looked up once per
// process. Any thread.
#pragma once

#include <string>

namespace polder::compiler {

struct Paths {
    std::string resource_directory;  // of Clang: the folder with include/opencl-c-base.h; empty: not found
    std::string builtins;  // polder-builtins.bca; empty: not found
    std::string problem;  // which file is missing, where it was looked for, and the package that has it
};

[[nodiscard]] const Paths& paths();

}  // namespace polder::compiler
