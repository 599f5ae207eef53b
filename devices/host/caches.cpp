#include <charconv>
#include <host/caches.h>
#include <host/processors.h>
#include <string>
#include <string_view>

namespace polder::devices {
namespace {

// "32K" and "8M", in bytes.
uint64_t parse_size(std::string_view text) {
    uint64_t size = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
    if (error != std::errc{})
        return 0;
    const char unit = end == text.data() + text.size() ? ' ' : *end;
    return unit == 'K' ? size << 10 : unit == 'M' ? size << 20 : size;
}

}  // namespace

Caches caches_of_host() {
    Caches caches;
    const std::string directory = "/sys/devices/system/cpu/cpu0/cache/index";
    for (int i = 0; i < 8; ++i) {
        const std::string cache = directory + std::to_string(i);
        const auto level = first_line(cache + "/level");
        const auto type = first_line(cache + "/type");
        const auto size = first_line(cache + "/size");
        if (!level || !type || !size)
            break;
        if (*type == "Instruction")
            continue;
        const uint64_t bytes = parse_size(*size);
        const auto line = first_line(cache + "/coherency_line_size");
        caches.last_level = {line ? parse_size(*line) : 64, bytes};
        if (*level == "2")
            caches.level2_bytes = bytes;
    }
    return caches;
}

}  // namespace polder::devices
