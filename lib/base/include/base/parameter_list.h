// Parameters of a driver in one environment variable: "memory=256M,latency=5us". Any thread.
#pragma once

#include <base/function_ref.h>

#include <cstdint>
#include <string_view>

namespace polder {

// Calls `apply` for each part of `text`, the value of POCL_<driver><index>_PARAMETERS, with its key and its value; `apply` returns false
// when it cannot use them. Parts that have no '=' or were not used are named in one warning, with an `example` of what is expected.
void apply_parameters(const char* driver, uint32_t index, std::string_view text, const char* example,
                      FunctionRef<bool(std::string_view key, std::string_view value)> apply);

}  // namespace polder
