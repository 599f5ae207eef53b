#include <base/options.h>
#include <base/parameter_list.h>

#include <charconv>
#include <discrete/parameters.h>
#include <optional>
#include <string>

namespace polder::discrete {
namespace {

struct TimeUnit {
    std::string_view suffix;
    uint64_t ns;
};
constexpr TimeUnit time_units[] = {{"ns", 1}, {"us", 1'000}, {"ms", 1'000'000}, {"s", 1'000'000'000}};

// "5us" -> 5000. A time of more than an hour is malformed.
std::optional<uint64_t> parse_time_ns(std::string_view text) {
    uint64_t number = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    constexpr uint64_t ns_max = uint64_t{3600} * 1'000'000'000;
    if (error != std::errc{})
        return std::nullopt;
    const std::string_view suffix(rest, static_cast<size_t>(text.data() + text.size() - rest));
    for (const TimeUnit& unit : time_units)
        if (unit.suffix == suffix && number <= ns_max / unit.ns)
            return number * unit.ns;
    return std::nullopt;
}

// Sets one part; false when it is malformed.
bool apply(Parameters& parameters, std::string_view key, std::string_view value) {
    if (key == "memory") {
        // At least one page, and at most what fits into the address space.
        const auto bytes = options::parse_bytes(value);
        if (!bytes || *bytes < 4096 || *bytes > (uint64_t{1} << 45))
            return false;
        parameters.memory_bytes = *bytes;
    } else if (key == "bandwidth") {
        const auto bytes = options::parse_bytes(value);
        if (!bytes || *bytes == 0)
            return false;
        parameters.link.bytes_per_second = *bytes;
    } else if (key == "latency") {
        const auto ns = parse_time_ns(value);
        if (!ns)
            return false;
        parameters.link.latency_ns = *ns;
    } else if (key == "peer" && (value == "0" || value == "1")) {
        parameters.peer = value == "1" ? Parameters::Peer::direct : Parameters::Peer::none;
    } else if (key == "host" && (value == "0" || value == "1")) {
        parameters.host_memory = value == "1" ? Parameters::HostMemory::in_place : Parameters::HostMemory::copied;
    } else if (key == "unified" && (value == "0" || value == "coherent" || value == "mapped")) {
        parameters.unified = value == "coherent" ? Parameters::Unified::coherent
                             : value == "mapped" ? Parameters::Unified::mapped
                                                 : Parameters::Unified::no;
    } else if (key == "type" && (value == "gpu" || value == "accelerator")) {
        parameters.type = value == "gpu" ? driver::DeviceType::gpu : driver::DeviceType::accelerator;
    } else {
        return false;
    }
    return true;
}

} // namespace

Parameters parse_parameters(std::string_view text, uint32_t index) {
    Parameters parameters;
    apply_parameters(
        "DISCRETE", index, text, "memory=256M,bandwidth=16G,latency=5us,peer=1,unified=coherent,type=gpu,host=1",
        [&parameters](std::string_view key, std::string_view value) { return apply(parameters, key, value); });
    return parameters;
}

} // namespace polder::discrete
