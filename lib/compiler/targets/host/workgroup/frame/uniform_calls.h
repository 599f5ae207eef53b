// Calls of math functions that give one value for the whole work-group.
#pragma once

namespace llvm {
class CallBase;
class Function;
}  // namespace llvm

namespace polder::compiler::workgroup {

// Moves calls of the library's functions to the end of `function`'s first block, where they run once per work-group and stay calls
// (runs_once), if the results depend only on the kernel's arguments. `function` is a kernel's frame into which the program's own functions are inlined.
void call_once(llvm::Function& function);

[[nodiscard]] bool runs_once(const llvm::CallBase& call);

}  // namespace polder::compiler::workgroup
