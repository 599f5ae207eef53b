// Short loops begin at a line of the cache.
//
// A processor takes decoded instructions line by line: 64 bytes on processors of AMD, 32 or 64 on those of Intel. LLVM aligns loops to 16 bytes. A loop of 26
// bytes that begins 16 bytes before the end of a line needs two lines in each iteration, which takes 1.4 times as long, and which of several copies of one loop
// is in such a place depends on the code before it.
#pragma once

namespace llvm {
class Function;
}  // namespace llvm

namespace polder::compiler {

// After all other passes. Returns how many loops have been marked.
unsigned align_short_loops(llvm::Function& function);

}  // namespace polder::compiler
