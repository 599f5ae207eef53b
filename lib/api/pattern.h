// The check of a fill pattern.
#pragma once

#include <bit>
#include <polder/driver.h>
#include <polder/result.h>

namespace polder::api {

// A pattern must have 1, 2, 4, ... or 128 bytes.
[[nodiscard]] inline Result<void> check_pattern(const void* pattern, size_t pattern_size) {
    // CL_INVALID_VALUE: pattern is null, or pattern_size is not 1, 2, 4, ... 128.
    if (!pattern || !std::has_single_bit(pattern_size) || pattern_size > driver::FillOperation::max_pattern_bytes)
        return fail(Status::invalid_value);
    return {};
}

} // namespace polder::api
