// The definitions (definitions.h) of Clang's header for OpenCL C and those that Clang makes for a target, kept from build to build.
//
// A leaked singleton; any thread may use it.
#pragma once

#include "definitions.h"

#include <base/mutex.h>

#include <memory>
#include <optional>
#include <string>

namespace polder::compiler {

// Clang's own macros for one command line.
class PredefinedMacros {
public:
    // `predefines`: the preprocessor's, which from `command_line` on are those of the command line. `included`: the words of all headers.
    PredefinedMacros(const std::string& predefines, size_t command_line, const Words& included);
    [[nodiscard]] std::string needed_by(const Words& program) const;

private:
    const std::string command_line_;
    const Definitions own_;
};

class ClangDefinitions {
public:
    [[nodiscard]] static ClangDefinitions& get();

    // What the program needs of the header at `path`. Nothing when the file cannot be read.
    [[nodiscard]] std::optional<std::string> header_for(const Words& program, const std::string& path)
        POLDER_EXCLUDES(mutex_);

    // Clang's own macros among `predefines`, the preprocessor's, for programs with the header at `path`. Null when they are not understood.
    [[nodiscard]] std::shared_ptr<const PredefinedMacros> macros(const std::string& path, const std::string& predefines)
        POLDER_EXCLUDES(mutex_);
    void clear() POLDER_EXCLUDES(mutex_);

private:
    struct Header {
        Header(std::string file, std::string text) : path(std::move(file)), definitions(std::move(text)) {
            add_words(definitions.text(), words);
        }
        const std::string path;
        const Definitions definitions;
        Words words;
    };

    [[nodiscard]] std::shared_ptr<const Header> header(const std::string& path) POLDER_EXCLUDES(mutex_);

    Mutex mutex_;
    std::shared_ptr<const Header> header_ POLDER_GUARDED_BY(mutex_);  // the newest
};

}  // namespace polder::compiler
