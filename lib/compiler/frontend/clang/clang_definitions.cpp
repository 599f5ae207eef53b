#include "clang_definitions.h"

#include <llvm/Support/MemoryBuffer.h>

namespace polder::compiler {

ClangDefinitions& ClangDefinitions::get() {
    static ClangDefinitions& kept = *new ClangDefinitions;
    return kept;
}

std::optional<std::string> ClangDefinitions::header_for(const Words& program, const std::string& path) {
    const std::shared_ptr<const Header> found = header(path);
    return found == nullptr ? std::nullopt : std::optional(found->definitions.needed_by(program));
}

std::string ClangDefinitions::macros_for(const Words& program, const std::string& path, const std::string& predefines) {
    const size_t end = predefines.find("# 1 \"<command line>\"");
    const std::shared_ptr<const Header> included = header(path);
    if (end == predefines.npos || included == nullptr)
        return predefines;
    Words words = program;
    words.insert(included->words.begin(), included->words.end());
    add_words(std::string_view{predefines}.substr(end), words);
    return macros(predefines.substr(0, end))->needed_by(words) + predefines.substr(end);
}

void ClangDefinitions::clear() {
    const Lock lock(mutex_);
    header_ = nullptr;
    macros_ = nullptr;
}

std::shared_ptr<const ClangDefinitions::Header> ClangDefinitions::header(const std::string& path) {
    {
        const Lock lock(mutex_);
        if (header_ != nullptr && header_->path == path)
            return header_;
    }
    const auto file = llvm::MemoryBuffer::getFile(path);
    if (!file)
        return nullptr;
    auto made = std::make_shared<const Header>(path, (*file)->getBuffer().str());
    const Lock lock(mutex_);
    header_ = made;
    return made;
}

std::shared_ptr<const Definitions> ClangDefinitions::macros(std::string text) {
    {
        const Lock lock(mutex_);
        if (macros_ != nullptr && macros_->text() == text)
            return macros_;
    }
    auto made = std::make_shared<const Definitions>(std::move(text));
    const Lock lock(mutex_);
    macros_ = made;
    return made;
}

}  // namespace polder::compiler
