// The library of built-in functions, and linking what a program needs of it.
//
// Opened at first use and kept (leaked on purpose: compilations may run while the process exits). Any thread;
// a module is used by one thread.
// Errors: compiler_not_available, naming the file and the package, when the library is not there.
#pragma once

#include "builtin_archive.h"

#include <llvm/IR/Module.h>
#include <optional>
#include <string>
#include <string_view>

namespace polder::compiler {

class Builtins {
public:
    [[nodiscard]] static Result<const Builtins*> get();

    // The library's symbol that serves a call to `name`: itself, or the same function for another address
    // space, which on the host is the same code.
    [[nodiscard]] std::optional<std::string> resolve(std::string_view name) const;

    // Links the definitions of everything that `module` declares and the library has, as internal symbols.
    [[nodiscard]] Result<void> link_into(llvm::Module& module) const;

    [[nodiscard]] const ContentHash& hash() const { return archive_->hash(); }

private:
    explicit Builtins(std::unique_ptr<BuiltinArchive> archive) : archive_(std::move(archive)) {}

    std::unique_ptr<BuiltinArchive> archive_;
};

} // namespace polder::compiler
