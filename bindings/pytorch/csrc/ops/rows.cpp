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
// NaN if either is.
#define MAX_OF(a, b) ((a) > (b) || (a) != (a) ? (a) : (b))
// All items combine all values: on processors this costs less than the barriers of a tree. Four chains: each addition waits for the one
// before it.
#define REDUCE(v, OF) do { shared[lane] = v; barrier(CLK_LOCAL_MEM_FENCE); \
    T r0_ = shared[0], r1_ = shared[1], r2_ = shared[2], r3_ = shared[3]; \
    for (int i_ = 4; i_ < ITEMS; i_ += 4) { \
      r0_ = OF(r0_, shared[i_]); r1_ = OF(r1_, shared[i_ + 1]); r2_ = OF(r2_, shared[i_ + 2]); r3_ = OF(r3_, shared[i_ + 3]); } \
    r0_ = OF(r0_, r1_); r2_ = OF(r2_, r3_); barrier(CLK_LOCAL_MEM_FENCE); v = OF(r0_, r2_); } while (0)
#define REDUCE_SUM(v) REDUCE(v, SUM_OF)
#define REDUCE_MAX(v) REDUCE(v, MAX_OF)
)";
}

}  // namespace torch_opencl
