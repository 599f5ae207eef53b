#include <base/options.h>

#include <host/caches.h>
#include <host/processors.h>
#include <string>

namespace polder::devices {
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
        const uint64_t bytes = options::parse_bytes(*size).value_or(0);
        const auto line = first_line(cache + "/coherency_line_size");
        caches.last_level = {line ? options::parse_bytes(*line).value_or(0) : 64, bytes};
        if (*level == "2")
            caches.level2_bytes = bytes;
    }
    return caches;
}

}  // namespace polder::devices
