// Parses the parameters of a driver's device from one environment variable: "memory=256M,latency=5us". Any thread.
#pragma once

#include <base/function_ref.h>

#include <cstdint>
#include <string_view>

namespace polder {

// Calls `apply` with the key and the value of each part of `text`, which is the value of POCL_<driver><index>_PARAMETERS. `apply` returns
// false when it cannot use them. One warning lists the parts without '=' and those that `apply` could not use, and shows `example`.
void apply_parameters(const char* driver, uint32_t index, std::string_view text, const char* example,
                      FunctionRef<bool(std::string_view key, std::string_view value)> apply);

}  // namespace polder
