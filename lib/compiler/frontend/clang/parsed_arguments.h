// Clang's command lines, parsed. Most programs are built with the same options, and parsing the sixty arguments takes a seventh of Clang's time
// for a small kernel.
//
// A leaked singleton that keeps the newest command lines, four at most; any thread may use it. What it returns is immutable.
#pragma once

#include "clang_definitions.h"

#include <base/mutex.h>

#include <clang/Frontend/CompilerInvocation.h>
#include <memory>
#include <string>
#include <vector>

namespace polder::compiler {

class ParsedArguments {
public:
    using Invocation = std::shared_ptr<const clang::CompilerInvocation>;
    using Macros = std::shared_ptr<const PredefinedMacros>;
    static constexpr size_t size_max = 4;

    [[nodiscard]] static ParsedArguments& get();

    // Null when they are not kept.
    [[nodiscard]] Invocation find(const std::vector<std::string>& arguments) POLDER_EXCLUDES(mutex_);
    // The caller must not keep arguments that Clang has a message for: each build reports it.
    void keep(const std::vector<std::string>& arguments, Invocation parsed) POLDER_EXCLUDES(mutex_);
    // The macros that Clang makes for these arguments, which takes it a ninth of its time for a small kernel. Null when they are not kept.
    [[nodiscard]] Macros macros(const std::vector<std::string>& arguments) POLDER_EXCLUDES(mutex_);
    // Keeps the macros together with the arguments, if those are kept.
    void keep_macros(const std::vector<std::string>& arguments, const Macros& macros) POLDER_EXCLUDES(mutex_);
    void clear() POLDER_EXCLUDES(mutex_);

private:
    struct Entry {
        std::vector<std::string> arguments;
        Invocation parsed;
        Macros macros;
    };

    Mutex mutex_;
    std::vector<Entry> entries_ POLDER_GUARDED_BY(mutex_);  // the newest last
};

}  // namespace polder::compiler
