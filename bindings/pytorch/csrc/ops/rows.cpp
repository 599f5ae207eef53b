#include "rows.h"

namespace torch_opencl {

std::string row_macros(c10::ScalarType type) {
    return compute_type_macros(type) + access_macros("X", type) + "#define X_T " + storage_name(type) + R"(
#define SUM_OF(a, b) ((a) + (b))
#define MAX_OF(a, b) ((a) != (a) ? (a) : (b) != (b) ? (b) : (a) > (b) ? (a) : (b))
#define REDUCE(v, OF) do { shared[lane] = v; for (int h_ = 32; h_ > 0; h_ /= 2) { barrier(CLK_LOCAL_MEM_FENCE); \
    if (lane < h_) shared[lane] = OF(shared[lane], shared[lane + h_]); } \
    barrier(CLK_LOCAL_MEM_FENCE); v = shared[0]; barrier(CLK_LOCAL_MEM_FENCE); } while (0)
#define REDUCE_SUM(v) REDUCE(v, SUM_OF)
#define REDUCE_MAX(v) REDUCE(v, MAX_OF)
)";
}

}  // namespace torch_opencl
