// POCL_PROXY<i>_PARAMETERS: "icd=libpocl.so.2,platform=0,device=0,memory=1G".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace polder::proxy {

struct Parameters {
    std::string icd;  // a library, as an .icd file names it; empty: the other ICDs that the loader would list
    uint32_t platform = 0;  // of the library's platforms
    uint32_t device = 0;  // of the platform's devices
    std::optional<uint64_t> memory_bytes;  // at most so much of the device's memory
};

// Malformed parts are reported as one warning, and their defaults taken.
[[nodiscard]] Parameters parse_parameters(std::string_view text, uint32_t index);

} // namespace polder::proxy
