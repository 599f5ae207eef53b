#include <base/parameter_list.h>

namespace polder {

std::string apply_parameters(std::string_view text,
                             FunctionRef<bool(std::string_view key, std::string_view value)> apply) {
    std::string malformed;
    while (!text.empty()) {
        const size_t comma = text.find(',');
        const std::string_view part = text.substr(0, comma);
        text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
        const size_t equals = part.find('=');
        if (equals != std::string_view::npos && apply(part.substr(0, equals), part.substr(equals + 1)))
            continue;
        malformed += malformed.empty() ? "\"" : ", \"";
        malformed.append(part).append("\"");
    }
    return malformed;
}

}  // namespace polder
