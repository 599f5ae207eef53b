// Receives LLVM's diagnostics about a module. Without a handler, LLVM prints errors and ends the process.
#pragma once

#include <llvm/IR/DiagnosticHandler.h>
#include <string>

namespace polder::compiler {

// Appends errors to `log`, a line each. Other diagnostics are dropped. `log` outlives the LLVMContext that owns this.
class LogDiagnostics final : public llvm::DiagnosticHandler {
public:
    explicit LogDiagnostics(std::string& log) : log_(log) {}
    bool handleDiagnostics(const llvm::DiagnosticInfo& diagnostic) override;

private:
    std::string& log_;
};

} // namespace polder::compiler
