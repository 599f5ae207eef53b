#include <base/options.h>
#include <base/parameter_list.h>

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
    apply_parameters(
        "PROXY", index, text, "icd=libpocl.so.2,platform=0,device=0,memory=1G",
        [&parameters](std::string_view key, std::string_view value) { return apply(parameters, key, value); });
    return parameters;
}

} // namespace polder::proxy
