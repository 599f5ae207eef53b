// The macros and vector types that a program names. Clang's header for OpenCL C and Clang itself define 800 of them, which takes a
// third of Clang's time for a small kernel; few programs name ten.
//
// A text is divided into lines that are always kept, and definitions: `#define` lines and typedefs of vector types. A definition is needed
// when the program, a line that is always kept or a needed definition has its name as a word. Definitions that are not needed become empty
// lines, so that the numbers of the other lines stay. Definitions of extensions and features are always kept: Clang asks for those by itself.
//
// Immutable; any thread may use it.
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/DenseSet.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/ADT/StringRef.h>
#include <string>
#include <string_view>
#include <vector>

namespace polder::compiler {

using Words = llvm::DenseSet<llvm::StringRef>;

// Adds the identifiers of `text`, those in comments and literals included. The words refer to `text`.
void add_words(std::string_view text, Words& words);

// Whether all identifiers that a program consists of are words of its source. They are not when it includes files or joins tokens.
[[nodiscard]] bool has_all_words(std::string_view source);

class Definitions {
public:
    // `others`: words of what surrounds the text; they count as named by the text itself.
    explicit Definitions(std::string text, const Words& others = {});
    Definitions(const Definitions&) = delete;
    Definitions& operator=(const Definitions&) = delete;

    [[nodiscard]] const std::string& text() const { return text_; }
    [[nodiscard]] std::string needed_by(const Words& program) const;

private:
    struct Definition {
        size_t begin, end;  // within the text, whole lines
        size_t lines;
        llvm::StringRef name;
        llvm::SmallVector<unsigned, 2> uses;  // other definitions
    };

    void find_definitions(Words& always);
    [[nodiscard]] size_t lines_between(size_t begin, size_t end) const;
    void add_uses(const Words& words, llvm::SmallVectorImpl<unsigned>& uses) const;

    const std::string text_;
    std::vector<Definition> definitions_;
    llvm::DenseMap<llvm::StringRef, llvm::SmallVector<unsigned, 1>> by_name_;  // under #if, a name may have several
    llvm::SmallVector<unsigned> always_;  // named by lines that are always kept
};

}  // namespace polder::compiler
