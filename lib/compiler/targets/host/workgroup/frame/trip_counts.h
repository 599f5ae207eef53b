// How often loops run, as far as their code shows it.
#pragma once

namespace llvm {
class Loop;
class ScalarEvolution;
}  // namespace llvm

namespace polder::compiler::workgroup {

// The number of iterations of `loop`; 0 when it is not known. In a triangle, as in `for (j = i + 1; j < 6; j++)`, it depends on the counters of
// loops around `loop`: then it is that of their middle iteration, if their numbers are known.
[[nodiscard]] unsigned known_trip_count(const llvm::Loop& loop, llvm::ScalarEvolution& evolution);

}  // namespace polder::compiler::workgroup
