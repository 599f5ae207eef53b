// The constructor finds the definitions and what they name; needed_by follows these references from the program's words.
#include "definitions.h"

#include <algorithm>
#include <array>
#include <llvm/ADT/BitVector.h>
#include <llvm/ADT/StringExtras.h>

namespace polder::compiler {
namespace {

bool starts_word(char c) { return llvm::isAlpha(c) || c == '_' || c == '$'; }
bool continues_word(char c) { return starts_word(c) || llvm::isDigit(c); }

// The end of the line, or of the lines that a backslash joins, that begins at `begin`.
size_t end_of_line(std::string_view text, size_t begin) {
    for (size_t end = text.find('\n', begin); end != text.npos; end = text.find('\n', end + 1))
        if (end == begin || text[end - 1] != '\\')
            return end + 1;
    return text.size();
}

llvm::StringRef first_word(llvm::StringRef text) { return text.ltrim().take_while(continues_word); }

// OpenCL's functions are declared when the macro of their extension or feature is defined.
bool is_extension(llvm::StringRef macro) { return macro.starts_with("cl_") || macro.starts_with("__opencl"); }

// The name that `line` defines; empty when the line is always kept.
llvm::StringRef defined_by(llvm::StringRef line) {
    if (line.contains("/*") || line.contains("*/"))
        return {};
    llvm::StringRef rest = line;
    if (rest.consume_front("#define "))
        return is_extension(first_word(rest)) ? llvm::StringRef{} : first_word(rest);
    const size_t attribute = line.find(" __attribute__((ext_vector_type(");
    if (!line.starts_with("typedef ") || attribute == line.npos || line.count(';') != 1)
        return {};
    return line.substr(0, attribute).rsplit(' ').second;
}

}  // namespace

void add_words(std::string_view text, Words& words) {
    for (size_t i = 0; i < text.size();) {
        const size_t begin = i;
        while (i < text.size() && continues_word(text[i]))
            ++i;
        if (i > begin && starts_word(text[begin]))
            words.insert({text.data() + begin, i - begin});
        i += i == begin ? 1 : 0;
    }
}

bool has_all_words(std::string_view source) {
    // The operator that joins tokens, also as a digraph or trigraphs, and the directives that include files.
    constexpr std::array<std::string_view, 5> marks{"##", "%:", "??", "include", "import"};
    if (std::ranges::any_of(marks, [&](std::string_view mark) { return source.find(mark) != source.npos; }))
        return false;
    // A backslash at the end of a line may divide a word.
    for (size_t at = source.find('\\'); at != source.npos; at = source.find('\\', at + 1))
        if (at > 0 && continues_word(source[at - 1]) && at + 1 < source.size() && llvm::isSpace(source[at + 1]))
            return false;
    return true;
}

Definitions::Definitions(std::string text, const Words& others) : text_(std::move(text)) {
    Words always = others;
    find_definitions(always);
    for (unsigned i = 0; i < definitions_.size(); ++i)
        by_name_[definitions_[i].name].push_back(i);
    add_uses(always, always_);
    for (Definition& definition : definitions_) {
        Words words;
        add_words({text_.data() + definition.begin, definition.end - definition.begin}, words);
        words.erase(definition.name);
        add_uses(words, definition.uses);
    }
}

void Definitions::find_definitions(Words& always) {
    for (size_t begin = 0; begin < text_.size();) {
        const size_t end = end_of_line(text_, begin);
        const llvm::StringRef line(text_.data() + begin, end - begin);
        if (const llvm::StringRef name = defined_by(line); !name.empty())
            definitions_.push_back({begin, end, lines_between(begin, end), name, {}});
        else
            add_words({line.data(), line.size()}, always);
        begin = end;
    }
}

size_t Definitions::lines_between(size_t begin, size_t end) const {
    return static_cast<size_t>(std::ranges::count(std::string_view{text_}.substr(begin, end - begin), '\n'));
}

void Definitions::add_uses(const Words& words, llvm::SmallVectorImpl<unsigned>& uses) const {
    for (const llvm::StringRef word : words)
        if (const auto found = by_name_.find(word); found != by_name_.end())
            uses.append(found->second.begin(), found->second.end());
}

std::string Definitions::needed_by(const Words& program) const {
    llvm::SmallVector<unsigned> todo(always_);
    add_uses(program, todo);
    llvm::BitVector is_needed(static_cast<unsigned>(definitions_.size()));
    while (!todo.empty()) {
        const unsigned next = todo.pop_back_val();
        if (!is_needed.test(next))
            todo.append(definitions_[next].uses.begin(), definitions_[next].uses.end());
        is_needed.set(next);
    }
    std::string result;
    result.reserve(text_.size());
    size_t kept = 0;
    for (unsigned i = 0; i < definitions_.size(); ++i) {
        if (is_needed.test(i))
            continue;
        const Definition& left_out = definitions_[i];
        result.append(text_, kept, left_out.begin - kept);
        result.append(left_out.lines, '\n');
        kept = left_out.end;
    }
    return result.append(text_, kept, text_.size() - kept);
}

}  // namespace polder::compiler
