#include "rows.h"

#include <algorithm>

namespace torch_opencl {

size_t row_items() {
    static const bool has_gpu = [] {
        const auto& devices = Platform::get().devices();
        return std::any_of(devices.begin(), devices.end(), [](const Device& device) { return device.is_gpu; });
    }();
    return has_gpu ? 64 : 16;
}

std::string row_macros(c10::ScalarType type) {
    return compute_type_macros(type) + access_macros("X", type) + "#define X_T " + storage_name(type) +
           "\n#define ITEMS " + std::to_string(row_items()) + R"(
#define SUM_OF(a, b) ((a) + (b))
#define MAX_OF(a, b) ((a) != (a) ? (a) : (b) != (b) ? (b) : (a) > (b) ? (a) : (b))
// All items combine all values: on processors this costs less than the barriers of a tree.
#define REDUCE(v, OF) do { shared[lane] = v; barrier(CLK_LOCAL_MEM_FENCE); T r_ = shared[0]; \
    for (int i_ = 1; i_ < ITEMS; ++i_) r_ = OF(r_, shared[i_]); barrier(CLK_LOCAL_MEM_FENCE); v = r_; } while (0)
#define REDUCE_SUM(v) REDUCE(v, SUM_OF)
#define REDUCE_MAX(v) REDUCE(v, MAX_OF)
)";
}

}  // namespace torch_opencl
