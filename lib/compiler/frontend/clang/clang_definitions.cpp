#include "clang_definitions.h"

#include <llvm/Support/MemoryBuffer.h>

namespace polder::compiler {

namespace {

Words with_words_of(std::string_view text, const Words& others) {
    Words words = others;
    add_words(text, words);
    return words;
}

}  // namespace

PredefinedMacros::PredefinedMacros(const std::string& predefines, size_t command_line, const Words& included)
    : command_line_(predefines.substr(command_line)),
      own_(predefines.substr(0, command_line), with_words_of(command_line_, included)) {}

std::string PredefinedMacros::needed_by(const Words& program) const { return own_.needed_by(program) + command_line_; }

ClangDefinitions& ClangDefinitions::get() {
    static ClangDefinitions& kept = *new ClangDefinitions;
    return kept;
}

std::optional<std::string> ClangDefinitions::header_for(const Words& program, const std::string& path) {
    const std::shared_ptr<const Header> found = header(path);
    return found == nullptr ? std::nullopt : std::optional(found->definitions.needed_by(program));
}

std::shared_ptr<const PredefinedMacros> ClangDefinitions::macros(const std::string& path,
                                                                 const std::string& predefines) {
    const size_t command_line = predefines.find("# 1 \"<command line>\"");
    const std::shared_ptr<const Header> included = header(path);
    if (command_line == predefines.npos || included == nullptr)
        return nullptr;
    return std::make_shared<const PredefinedMacros>(predefines, command_line, included->words);
}

void ClangDefinitions::clear() {
    const Lock lock(mutex_);
    header_ = nullptr;
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

}  // namespace polder::compiler
