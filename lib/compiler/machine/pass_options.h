// Options of LLVM's passes that only its command line sets, and parts of passes that are switched off. They affect all users of this LLVM, which is
// Polder's own.
#pragma once

namespace polder::compiler {

// Must be called before the first code is generated. The options have one value for the process.
void set_pass_options();

}  // namespace polder::compiler
