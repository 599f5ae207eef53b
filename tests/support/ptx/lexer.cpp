#include "lexer.h"

#include <algorithm>

namespace polder::ptx {
namespace {

bool is_of_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' ||
           c == '%' || c == '.';
}

}  // namespace

void Lexer::advance(size_t count) {
    line_ += static_cast<unsigned>(std::ranges::count(rest_.substr(0, count), '\n'));
    rest_.remove_prefix(std::min(count, rest_.size()));
}

void Lexer::skip_blanks() {
    for (;;) {
        const size_t blanks = std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size());
        advance(blanks);
        if (rest_.starts_with("//")) {
            advance(std::min(rest_.find('\n'), rest_.size()));
        } else if (rest_.starts_with("/*")) {
            const size_t end = rest_.find("*/");
            advance(end == rest_.npos ? rest_.size() : end + 2);
        } else {
            return;
        }
    }
}

Token Lexer::next() {
    skip_blanks();
    Token token{Token::Kind::end, rest_.substr(0, 0), line_};
    if (rest_.empty())
        return token;
    size_t size = 1;
    if (rest_[0] == '"') {
        token.kind = Token::Kind::string;
        const size_t end = rest_.find('"', 1);
        size = end == rest_.npos ? rest_.size() : end + 1;
    } else if (is_of_word(rest_[0])) {
        token.kind = Token::Kind::word;
        // "::" only within a modifier: shared::cta.
        while (size < rest_.size()) {
            if (is_of_word(rest_[size]))
                ++size;
            else if (rest_.substr(size).starts_with("::"))
                size += 2;
            else
                break;
        }
    } else {
        token.kind = Token::Kind::punctuation;
    }
    token.text = rest_.substr(0, size);
    advance(size);
    return token;
}

}  // namespace polder::ptx
