// The libraries of built-in functions, one for each kind of target, and linking what a program needs of them.
//
// Opened at first use and kept (leaked on purpose: compilations may run while the process exits). Any thread;
// a module is used by one thread.
// Errors: compiler_not_available, naming the file and the package, when the library is not there.
#pragma once

#include "builtin_archive.h"

#include <llvm/IR/Module.h>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace polder::compiler {

class Builtins {
public:
    [[nodiscard]] static Result<const Builtins*> for_host();
    [[nodiscard]] static Result<const Builtins*> for_nvptx();

    // The symbol of the library that a call of `name` is linked to: `name` itself, the same function for another address space, or its form
    // for processors with registers of 512 bits (AVX-512 with VL, BW and DQ), which begins with "polder_wide_", where the host is one.
    struct Symbol {
        std::string name;
        // Pointers of this address space become generic ones (space 0) in the call.
        std::optional<unsigned> cast_from;
    };
    [[nodiscard]] std::optional<Symbol> resolve(std::string_view name) const;

    // Links the library's definition of every function that `module` declares, where there is one, as an internal symbol.
    [[nodiscard]] Result<void> link_into(llvm::Module& module) const;

    [[nodiscard]] const ContentHash& hash() const { return archive_->hash(); }

private:
    struct Substitution;
    enum class Forms : uint8_t { common, wide };
    static std::span<const Substitution> host_substitutions();
    static std::span<const Substitution> nvptx_substitutions();
    Builtins(std::unique_ptr<BuiltinArchive> archive, std::span<const Substitution> substitutions, Forms forms)
        : archive_(std::move(archive)), substitutions_(substitutions), forms_(forms) {}
    [[nodiscard]] static Result<const Builtins*> open(const std::string& file,
                                                      std::span<const Substitution> substitutions, Forms forms);

    std::unique_ptr<BuiltinArchive> archive_;
    std::span<const Substitution> substitutions_;
    Forms forms_;
};

}  // namespace polder::compiler
