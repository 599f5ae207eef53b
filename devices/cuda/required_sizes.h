// The work-group sizes that the kernels of a PTX text require (.reqntid), as CUDA's compiler sees them. In code for cuLinkAddData it gives a kernel
// with that directive about 7 registers more than it needs, so that fewer work-groups fit on a multiprocessor (decision 214). Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace polder::cuda {

struct RequiredSize {
    std::string entry;
    uint64_t threads = 0;  // of a work-group
};
[[nodiscard]] std::vector<RequiredSize> required_sizes(std::string_view ptx);

// The text without these directives. Lines and their numbers stay.
[[nodiscard]] std::string without_required_sizes(std::string ptx);

}  // namespace polder::cuda
