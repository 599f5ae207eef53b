#include "diagnostics.h"

#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/Support/raw_ostream.h>

namespace polder::compiler {

bool LogDiagnostics::handleDiagnostics(const llvm::DiagnosticInfo& diagnostic) {
    if (diagnostic.getSeverity() != llvm::DS_Error)
        return true;
    llvm::raw_string_ostream stream(log_);
    stream << "error: ";
    llvm::DiagnosticPrinterRawOStream printer(stream);
    diagnostic.print(printer);
    stream << "\n";
    return true;
}

} // namespace polder::compiler
