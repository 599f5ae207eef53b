// A scan for the heads of kernels. It knows the sources of this package: heads are `kernel … void name(parameters) {`, and the macros
// in parameter lists contain no pointers.
#include "offsets.h"

#include <cctype>

namespace torch_opencl {
namespace {

bool is_in_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// The position of `word` as a whole word, from `from` on.
size_t find_word(const std::string& text, const std::string& word, size_t from) {
    for (size_t at = text.find(word, from); at != std::string::npos; at = text.find(word, at + 1)) {
        const size_t end = at + word.size();
        if ((at == 0 || !is_in_name(text[at - 1])) && (end == text.size() || !is_in_name(text[end])))
            return at;
    }
    return std::string::npos;
}

// The position of the parenthesis that closes the one at `open`.
size_t closing(const std::string& text, size_t open) {
    int depth = 0;
    for (size_t at = open; at < text.size(); ++at) {
        depth += text[at] == '(' ? 1 : text[at] == ')' ? -1 : 0;
        if (depth == 0)
            return at;
    }
    return std::string::npos;
}

struct Head {
    std::string parameters;
    std::string declarations;
};

void add_parameter(Head& head, const std::string& parameter) {
    if (!head.parameters.empty())
        head.parameters += ',';
    const size_t star = parameter.rfind('*');
    if (star == std::string::npos || find_word(parameter, "global", 0) == std::string::npos) {
        head.parameters += parameter;
        return;
    }
    const std::string type = parameter.substr(0, star + 1);
    const bool is_const = find_word(type, "const", 0) != std::string::npos;
    size_t end = parameter.size();
    while (!is_in_name(parameter[end - 1]))
        --end;
    size_t begin = end;
    while (is_in_name(parameter[begin - 1]))
        --begin;
    const std::string name = parameter.substr(begin, end - begin);
    head.parameters += type + " base_" + name + ", ulong offset_" + name;
    head.declarations += " " + type + " " + name + " = (" + type + ")((global " + (is_const ? "const " : "") +
                         "char*)base_" + name + " + offset_" + name + ");";
}

Head rewritten(const std::string& parameters) {
    Head head;
    size_t begin = 0;
    int depth = 0;
    for (size_t at = 0; at <= parameters.size(); ++at) {
        const char c = at < parameters.size() ? parameters[at] : ',';
        depth += c == '(' ? 1 : c == ')' ? -1 : 0;
        if (c == ',' && depth == 0) {
            add_parameter(head, parameters.substr(begin, at - begin));
            begin = at + 1;
        }
    }
    return head;
}

}  // namespace

std::string with_offsets(const std::string& source) {
    std::string text;
    size_t done = 0;
    for (size_t at = find_word(source, "kernel", 0); at != std::string::npos;
         at = find_word(source, "kernel", at + 1)) {
        const size_t result = find_word(source, "void", at);
        const size_t open = result == std::string::npos ? result : source.find('(', result);
        const size_t close = open == std::string::npos ? open : closing(source, open);
        const size_t body = close == std::string::npos ? close : source.find('{', close);
        if (body == std::string::npos)
            break;
        const Head head = rewritten(source.substr(open + 1, close - open - 1));
        text += source.substr(done, open + 1 - done) + head.parameters + source.substr(close, body + 1 - close) +
                head.declarations;
        done = body + 1;
        at = body;
    }
    return text + source.substr(done);
}

}  // namespace torch_opencl
