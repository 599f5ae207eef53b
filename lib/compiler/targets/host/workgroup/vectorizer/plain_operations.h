// Rewrites what has no form for lanes, in functions whose lanes have no alternative: results that are structures become calls
// of small functions, which lanes make one after the other; vectors that are looked at as one number are taken apart.
#pragma once

namespace llvm {
class Function;
}

namespace polder::compiler::workgroup {

void make_operations_plain(llvm::Function& function);

}  // namespace polder::compiler::workgroup
