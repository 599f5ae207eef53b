// Parameters of a driver in one environment variable: "memory=256M,latency=5us". Pure; any thread.
#pragma once

#include <base/function_ref.h>

#include <string>
#include <string_view>

namespace polder {

// Calls `apply` for each part of `text` with its key and its value; `apply` returns false when it cannot use them. Returns
// the parts that have no '=' or were not used, in quotation marks with commas between them, for a message.
[[nodiscard]] std::string apply_parameters(std::string_view text,
                                           FunctionRef<bool(std::string_view key, std::string_view value)> apply);

}  // namespace polder
