// Explicit conversions (OpenCL C 6.4.3): convert_<destination>[_sat][_<mode>] from every arithmetic type, for all
// modes, against references computed with 113 bits.
#pragma once

#include "kernel_runner.h"

#include <cstdint>
#include <string>
#include <vector>

namespace polder::math {

// A line for each conversion with a wrong result; empty when all are right.
struct ConversionReport {
    uint64_t conversions = 0;
    std::string failures;
};

// All conversions from some types ("char", "uchar", ... "double") to one, of vectors of `width` elements.
[[nodiscard]] ConversionReport check_conversions(const std::vector<std::string>& sources,
                                                 const std::string& destination, int width);

} // namespace polder::math
