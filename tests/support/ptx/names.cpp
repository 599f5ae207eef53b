#include "names.h"

#include <charconv>
#include <ranges>

namespace polder::ptx {

std::optional<Operand> Names::find(std::string_view name) const {
    const size_t digits = name.find_last_not_of("0123456789") + 1;
    const std::string_view prefix = name.substr(0, digits);
    uint32_t number = 0;
    const char* const end = name.data() + name.size();
    const bool has_number = digits < name.size() && std::from_chars(name.data() + digits, end, number).ptr == end;
    for (const Scope& scope : scopes_ | std::views::reverse) {
        Operand operand;
        if (const auto one = scope.one.find(name); one != scope.one.end()) {
            operand.kind = one->second.kind;
            operand.index = one->second.index;
            return operand;
        }
        const auto row = scope.rows.find(prefix);
        if (has_number && row != scope.rows.end() && number < row->second.count) {
            operand.kind = Kind::reg;
            operand.index = row->second.first + number;
            return operand;
        }
    }
    return std::nullopt;
}

}  // namespace polder::ptx
