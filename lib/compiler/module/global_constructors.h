// C++ for OpenCL: global objects whose constructors are not constant expressions. Clang makes one kernel of all of a source's constructors.
// Most can be executed while the program is compiled: the objects then have their values from the beginning. The others stay a
// kernel, `_GLOBAL__sub_I_…`, which the application has to launch before the kernels that use the objects, as with other
// compilers that are made of Clang. Destructors of global objects are not called.
//
// Any thread that owns the module.
#pragma once

#include <llvm/IR/Module.h>
#include <string_view>

namespace polder::compiler {

// `source`: distinguishes the kernels of programs that are linked.
void construct_globals(llvm::Module& module, std::string_view source);

}  // namespace polder::compiler
