// Products of few rows with a matrix whose columns are contiguous, on processors: a linear layer of one or a few inputs, or a matrix and a
// vector. Each element of the matrix is read once, so reading it is what takes time. The items of a group are lanes along k: they read
// neighbours of a column, for a few columns at once, and add products for all rows. In the end their sums are added in local memory.
// A lane's sum of more than 256 products is a sum of sums, which is more accurate (decision 296).
#include "gemm_source.h"
#include "pointwise.h"

#include <algorithm>

namespace torch_opencl {
namespace {

constexpr int64_t depth = 256;  // of a lane's sum

const char* const kernel_text = R"(
#if FEW_ROWS == 1
#define FOR_FEW(X) X(0)
#elif FEW_ROWS == 2
#define FOR_FEW(X) X(0) X(1)
#elif FEW_ROWS == 4
#define FOR_FEW(X) X(0) X(1) X(2) X(3)
#elif FEW_ROWS == 8
#define FOR_FEW(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
#else
#define FOR_FEW(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10)
#endif
#if EACH == 4
#define ALSO(...) __VA_ARGS__
#else
#define ALSO(...)
#endif
#define ROW(r) global const AS* restrict a##r = a + min((long)r, S.m - 1) * S.a.row;
#define COLUMN(i_) (b + min(n + i_, S.n - 1) * S.b.column)
#define ZERO(r) x##r = 0; y##r = 0; ALSO(z##r = 0; w##r = 0;)
#define DECLARE(r) T x##r, y##r ALSO(, z##r, w##r);
#define ADD(r) { T v = LOADA(a##r, k); x##r = MADD(v, p, x##r); y##r = MADD(v, q, y##r); \
    ALSO(z##r = MADD(v, u, z##r); w##r = MADD(v, t, w##r);) }
#define STEP_OF_FEW { T p = LOADB(b0, k), q = LOADB(b1, k); ALSO(T u = LOADB(b2, k); T t = LOADB(b3, k);) FOR_FEW(ADD) }
#define SUM(r, i_) mine[((r) * EACH + i_) * WIDTH]
#define KEEP(r) SUM(r, 0) = x##r; SUM(r, 1) = y##r; ALSO(SUM(r, 2) = z##r; SUM(r, 3) = w##r;)
#define KEEP_MORE(r) SUM(r, 0) += x##r; SUM(r, 1) += y##r; ALSO(SUM(r, 2) += z##r; SUM(r, 3) += w##r;)
kernel __attribute__((reqd_work_group_size(WIDTH, 1, 1)))
void multiply_few()" TORCH_OPENCL_FACTORS R"() {
  MOVE_TO_BATCH(get_group_id(1))
  local T sums[FEW_ROWS * EACH * WIDTH];
  long lane = get_local_id(0), n = (long)get_group_id(0) * EACH;
  local T* mine = sums + lane;
  global const BS* restrict b0 = COLUMN(0);
  global const BS* restrict b1 = COLUMN(1);
  ALSO(global const BS* restrict b2 = COLUMN(2); global const BS* restrict b3 = COLUMN(3);)
  FOR_FEW(ROW)
  FOR_FEW(DECLARE)
  for (long from = 0; from < S.k; from += DEPTH * WIDTH) {
    long end = min(from + DEPTH * WIDTH, S.k), full = (end - from) / WIDTH;
    FOR_FEW(ZERO)
    for (long i = 0; i < full; ++i) {
      long k = from + i * WIDTH + lane;
      STEP_OF_FEW
    }
    long k = from + full * WIDTH + lane;
    if (k < end) STEP_OF_FEW
    if (from == 0) { FOR_FEW(KEEP) } else { FOR_FEW(KEEP_MORE) }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (long i = lane; i < S.m * EACH; i += WIDTH) {
    long row = i / EACH, column = n + i % EACH;
    T sum = 0;
    for (long j = 0; j < WIDTH; ++j) sum += sums[i * WIDTH + j];
    if (column < S.n) STOREO(out, row * S.out.row + PLACE(column), RESULT(sum, row, column));
  }
}
)";

int64_t lanes_of(const Factors& factors) { return factors.device.float_lanes >= 16 ? 16 : 8; }

bool has_contiguous_columns(const Operand& b) { return b.stride(2) == 1 && b.stride(3) != 1; }

// As many sums as there are registers for: 32 where vectors have 16 lanes, else 16. For 12 rows blocks are faster.
int64_t rows_max(int64_t lanes) { return lanes >= 16 ? 11 : 4; }
int64_t columns_each(int64_t rows, int64_t lanes) { return rows <= (lanes >= 16 ? 4 : 2) ? 4 : 2; }

bool suits(const Factors& factors, int64_t lanes) {
    return factors.a.size(2) <= rows_max(lanes) && factors.a.size(3) > 4 * lanes && has_contiguous_columns(factors.b) &&
           factors.b.size(3) > 1;
}

}  // namespace

bool multiply_few_rows(const Factors& given) {
    if (given.device.is_gpu)
        return false;
    const int64_t lanes = lanes_of(given);
    const bool is_turned = !suits(given, lanes);
    if (is_turned && (given.product.split != 0 || !suits(transposed(given), lanes)))
        return false;
    Factors factors = is_turned ? transposed(given) : given;
    // This factor is small.
    if (factors.a.stride(3) != 1)
        factors.a = is_turned ? Operand(given.b.tensor().transpose(-2, -1).contiguous()) : given.a.contiguous();
    const int64_t rows = factors.a.size(2);
    const int64_t computed = rows <= 2 ? rows : rows <= 4 ? 4 : rows <= 8 ? 8 : rows_max(lanes);
    const int64_t each = columns_each(computed, lanes);
    const std::string key =
        "multiply_few " + product_key(factors, false) + std::to_string(lanes) + "," + std::to_string(computed);
    Kernel& kernel = kernel_of(factors.device, key, "multiply_few", [&] {
        return product_macros(factors, false) + "#define WIDTH " + std::to_string(lanes) + "\n#define FEW_ROWS " +
               std::to_string(computed) + "\n#define EACH " + std::to_string(each) + "\n#define DEPTH " +
               std::to_string(depth) + kernel_text;
    });
    Launch launch(factors.device, kernel);
    add_factors(launch, factors, shape_of(factors));
    launch.run({static_cast<size_t>((factors.b.size(3) + each - 1) / each * lanes),
                static_cast<size_t>(factors.out.size(0) * factors.out.size(1)), 1},
               {static_cast<size_t>(lanes), 1, 1});
    return true;
}

}  // namespace torch_opencl
