#include "verified.h"

#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>

namespace polder::compiler {

Result<void> verified([[maybe_unused]] const llvm::Module& module, [[maybe_unused]] const char* pass) {
#ifndef NDEBUG
    std::string why;
    llvm::raw_string_ostream stream(why);
    if (llvm::verifyModule(module, &stream))
        return fail(Status::build_program_failure, "internal compiler error: what " + std::string{pass} +
                                                       " made of the program is not valid code: " + why);
#endif
    return {};
}

} // namespace polder::compiler
