#include <base/log.h>
#include <base/options.h>

#include <charconv>
#include <proxy/parameters.h>

namespace polder::proxy {
namespace {

bool parse_number(std::string_view text, uint32_t& number) {
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc{} && rest == text.data() + text.size();
}

// Sets one part; false when it is malformed.
bool apply(Parameters& parameters, std::string_view key, std::string_view value) {
    if (key == "icd") {
        parameters.icd = value;
        return !value.empty();
    }
    if (key == "platform")
        return parse_number(value, parameters.platform);
    if (key == "device")
        return parse_number(value, parameters.device);
    if (key == "memory") {
        const auto bytes = options::parse_bytes(value);
        if (!bytes || *bytes < 4096)
            return false;
        parameters.memory_bytes = *bytes;
        return true;
    }
    return false;
}

} // namespace

Parameters parse_parameters(std::string_view text, uint32_t index) {
    Parameters parameters;
    std::string malformed;
    while (!text.empty()) {
        const size_t comma = text.find(',');
        const std::string_view part = text.substr(0, comma);
        text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
        const size_t equals = part.find('=');
        if (equals != std::string_view::npos && apply(parameters, part.substr(0, equals), part.substr(equals + 1)))
            continue;
        malformed += malformed.empty() ? "\"" : ", \"";
        malformed.append(part).append("\"");
    }
    if (!malformed.empty())
        log::line(log::Category::warning,
                  "POCL_PROXY%u_PARAMETERS: %s not understood, defaults taken; "
                  "expected icd=libpocl.so.2,platform=0,device=0,memory=1G",
                  index, malformed.c_str());
    return parameters;
}

} // namespace polder::proxy
