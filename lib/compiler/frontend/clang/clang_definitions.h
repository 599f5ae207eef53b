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

class ClangDefinitions {
public:
    [[nodiscard]] static ClangDefinitions& get();

    // What the program needs of the header at `path`. Nothing when the file cannot be read.
    [[nodiscard]] std::optional<std::string> header_for(const Words& program, const std::string& path)
        POLDER_EXCLUDES(mutex_);

    // What the program, with the header at `path`, needs of Clang's own macros. `predefines`: the preprocessor's, which end with those of the
    // command line.
    [[nodiscard]] std::string macros_for(const Words& program, const std::string& path, const std::string& predefines)
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
    [[nodiscard]] std::shared_ptr<const Definitions> macros(std::string text) POLDER_EXCLUDES(mutex_);

    Mutex mutex_;
    std::shared_ptr<const Header> header_ POLDER_GUARDED_BY(mutex_);  // the newest
    std::shared_ptr<const Definitions> macros_ POLDER_GUARDED_BY(mutex_);  // the newest
};

}  // namespace polder::compiler
