#include "number.h"

#include <bit>
#include <charconv>

namespace polder::ptx {
namespace {

std::optional<uint64_t> integer_of(std::string_view digits, int base) {
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
    if (error != std::errc() || end != digits.data() + digits.size() || digits.empty())
        return std::nullopt;
    return value;
}

std::optional<Operand> made(Operand::Kind kind, std::optional<uint64_t> bits) {
    if (!bits)
        return std::nullopt;
    Operand operand;
    operand.kind = kind;
    operand.bits = *bits;
    return operand;
}

}  // namespace

std::optional<Operand> number_of(std::string_view word) {
    using Kind = Operand::Kind;
    if (word.empty() || word[0] < '0' || word[0] > '9')
        return std::nullopt;
    const char second = word.size() > 1 ? word[1] : '\0';
    if (word[0] == '0' && (second == 'f' || second == 'F') && word.size() == 10)
        return made(Kind::real32, integer_of(word.substr(2), 16));
    if (word[0] == '0' && (second == 'd' || second == 'D') && word.size() == 18)
        return made(Kind::real64, integer_of(word.substr(2), 16));
    if (word.ends_with('U'))
        word.remove_suffix(1);
    if (word[0] == '0' && (second == 'x' || second == 'X'))
        return made(Kind::integer, integer_of(word.substr(2), 16));
    if (word.find_first_of(".eE") != word.npos) {
        double value = 0;
        const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
        if (error != std::errc() || end != word.data() + word.size())
            return std::nullopt;
        return made(Kind::real64, std::bit_cast<uint64_t>(value));
    }
    if (word.size() > 1 && word[0] == '0')
        return made(Kind::integer, integer_of(word.substr(1), 8));
    return made(Kind::integer, integer_of(word, 10));
}

}  // namespace polder::ptx
