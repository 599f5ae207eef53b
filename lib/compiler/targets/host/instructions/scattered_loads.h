// Neighbouring statements that load from unrelated places keep their loads, where a gather is slower than they are.
//
// `t[a & 255] ^ t[b & 255]`, as hashes and ciphers have it, is scalar code of the fewest instructions that a processor needs. LLVM's SLP vectorizer joins eight such
// statements with gathers, to which its cost model gives the same price on all processors with AVX-512. AMD's take as long for a gather as for its loads and many
// more instructions, and the numbers in the vector have to be taken out again.
#pragma once

#include <llvm/IR/PassManager.h>

namespace llvm {
class PassInstrumentationCallbacks;
class TargetMachine;
}  // namespace llvm

namespace polder::compiler {

// Whether the processor has gathers of 512 bits that are many instructions inside, as AMD's are.
[[nodiscard]] bool has_slow_gathers(const llvm::TargetMachine& machine);

// Where the processor's gathers are slow, LLVM's SLP vectorizer makes none. Gathers that stand in the code already stay as they are. `analyses` must live as long
// as `callbacks`.
void keep_scattered_loads(llvm::PassInstrumentationCallbacks& callbacks, llvm::FunctionAnalysisManager& analyses,
                          const llvm::TargetMachine& machine);

}  // namespace polder::compiler
