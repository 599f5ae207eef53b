#include <base/log.h>
#include <base/parameter_list.h>

#include <string>

namespace polder {

void apply_parameters(const char* driver, uint32_t index, std::string_view text, const char* example,
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
    if (!malformed.empty())
        log::line(log::Category::warning,
                  "POCL_%s%u_PARAMETERS: %s not understood, their defaults are used; expected %s", driver, index,
                  malformed.c_str(), example);
}

}  // namespace polder
