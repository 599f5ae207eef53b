// Splits PTX text into words, punctuation and strings. A word contains its dots: "ld.global.b32" and "%tid.x" are one token.
#pragma once

#include <string_view>

namespace polder::ptx {

struct Token {
    enum class Kind : unsigned char { end, word, punctuation, string };
    Kind kind = Kind::end;
    std::string_view text;
    unsigned line = 1;
};

class Lexer {
public:
    explicit Lexer(std::string_view text) : rest_(text) {}
    [[nodiscard]] Token next();

private:
    void skip_blanks();
    void advance(size_t count);
    std::string_view rest_;
    unsigned line_ = 1;
};

}  // namespace polder::ptx
