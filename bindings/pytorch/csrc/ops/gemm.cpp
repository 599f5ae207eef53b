// A work-item computes 6 rows of two columns in registers; neighbouring items are neighbouring columns. So on a processor with
// lanes each step of k is two vector loads of b, six loads of one element of a for all lanes, and twelve fused multiply-adds
// (the register block of BLIS for AVX2: Van Zee and van de Geijn, "BLIS", 2015). Groups are ordered so that a panel of b's
// columns stays in the cache for all rows. Where the columns of b are contiguous instead, as in a linear layer, each item first copies
// its two columns to local memory, where those of neighbouring items are neighbours, and then walks over all rows of a. A b that has
// neither order, or columns too long for local memory, is copied first: that costs 1/M of the product.
#include "gemm.h"

#include "pointwise.h"

#include <ATen/ExpandUtils.h>

namespace torch_opencl {
namespace {

constexpr int64_t rows = 6;
constexpr int64_t lanes = 8;  // items of a group; it has two columns for each
constexpr int64_t packed_bytes_max = 32 << 10;
// The same for a dense b, which is only copied for better use of caches: by rows of this many bytes' multiples, and for enough rows of a.
constexpr int64_t dense_packed_bytes_max = 64 << 10;
constexpr int64_t conflicting_bytes = 512;
constexpr int64_t dense_packed_rows_min = 8 * rows;

// The kernel's structure of the same name. Strides in elements.
struct Matrix {
    int64_t row, column, outer, inner;
};
struct Shape {
    int64_t m, n, k, panels, inner_count, group_rows;
    Matrix a, b, c, out;
};

at::Tensor with_batch(const at::Tensor& matrix) {
    at::Tensor made = matrix;
    while (made.dim() < 4)
        made = made.unsqueeze(0);
    return made;
}

Matrix strides_of(const at::Tensor& matrix) {
    const auto stride = [&](int64_t dim) { return matrix.size(dim) == 1 && dim < 2 ? 0 : matrix.stride(dim); };
    return {stride(2), stride(3), stride(0), stride(1)};
}

const char* const body = R"(
typedef struct { long row, column, outer, inner; } Matrix;
typedef struct { long m, n, k, panels, inner_count, group_rows; Matrix a, b, c, out; } Shape;
#if IS_FLOAT
#define MADD(x, y, z) fma(x, y, z)
#else
#define MADD(x, y, z) ((T)((x) * (y) + (z)))
#endif
#if HAS_C
#define RESULT(v_, m_, n_) (alpha * (v_) + beta * (T)LOADC(c, (m_) * S.c.row + (n_) * S.c.column))
#else
#define RESULT(v_, m_, n_) (alpha * (v_))
#endif
#define FOR_ROWS(X) X(0) X(1) X(2) X(3) X(4) X(5)
#define DECLARE(r) T x##r = 0, y##r = 0; long a##r = min(m + r, S.m - 1) * S.a.row;
#define STEP(r) { T v = LOADA(a, a##r + k * S.a.column); x##r = MADD(v, p, x##r); y##r = MADD(v, q, y##r); }
#define FINISH(r) if (m + r < S.m) { \
    if (first < S.n) STOREO(out, (m + r) * S.out.row + first * S.out.column, RESULT(x##r, m + r, first)); \
    if (second < S.n) STOREO(out, (m + r) * S.out.row + second * S.out.column, RESULT(y##r, m + r, second)); }
#define FINISH_FULL(r) if (m + r < S.m) { \
    STOREO(out, (m + r) * S.out.row + first * OUT_COLUMN, RESULT(x##r, m + r, first)); \
    STOREO(out, (m + r) * S.out.row + second * OUT_COLUMN, RESULT(y##r, m + r, second)); }
kernel __attribute__((reqd_work_group_size(8, 1, 1)))
void multiply(global const AS* restrict a, global const BS* restrict b, global const CS* c, global OS* out, T alpha, T beta, Shape S PACKED_PARAMETER) {
  long panel = get_group_id(2) % S.panels, batch = get_group_id(2) / S.panels;
  long outer = batch / S.inner_count, inner = batch % S.inner_count;
  a += outer * S.a.outer + inner * S.a.inner;
  b += outer * S.b.outer + inner * S.b.inner;
  c += outer * S.c.outer + inner * S.c.inner;
  out += outer * S.out.outer + inner * S.out.inner;
  long first = panel * 16 + get_local_id(0), second = first + 8;
  bool is_full = panel * 16 + 16 <= S.n;
#if PACKED
  long f = min(first, S.n - 1) * S.b.column, s = min(second, S.n - 1) * S.b.column;
  local T* mine = packed + get_local_id(0);
  if (is_full) {
    for (long k = 0; k < S.k; ++k) {
      mine[k * 16] = LOADB(b, k * S.b.row + first * B_COLUMN);
      mine[k * 16 + 8] = LOADB(b, k * S.b.row + second * B_COLUMN);
    }
  } else {
    for (long k = 0; k < S.k; ++k) {
      mine[k * 16] = LOADB(b, k * S.b.row + f);
      mine[k * 16 + 8] = LOADB(b, k * S.b.row + s);
    }
  }
  long end = min(S.m, (long)(get_group_id(1) + 1) * S.group_rows);
  for (long m = get_group_id(1) * S.group_rows; m < end; m += 6) {
    FOR_ROWS(DECLARE)
    for (long k = 0; k < S.k; ++k) {
      T p = mine[k * 16], q = mine[k * 16 + 8];
      FOR_ROWS(STEP)
    }
    if (is_full) { FOR_ROWS(FINISH_FULL) } else { FOR_ROWS(FINISH) }
  }
#else
  long m = get_group_id(1) * 6;
  FOR_ROWS(DECLARE)
  if (is_full) {
    for (long k = 0; k < S.k; ++k) {
      T p = LOADB(b, k * S.b.row + first * B_COLUMN), q = LOADB(b, k * S.b.row + second * B_COLUMN);
      FOR_ROWS(STEP)
    }
    FOR_ROWS(FINISH_FULL)
  } else {
    long f = min(first, S.n - 1) * S.b.column, s = min(second, S.n - 1) * S.b.column;
    for (long k = 0; k < S.k; ++k) {
      T p = LOADB(b, k * S.b.row + f), q = LOADB(b, k * S.b.row + s);
      FOR_ROWS(STEP)
    }
    FOR_ROWS(FINISH)
  }
#endif
}
)";

std::string source_of(c10::ScalarType type, bool has_c, bool b_is_dense, bool out_is_dense, bool is_packed) {
    std::string text = compute_type_macros(type);
    text += is_packed ? "#define PACKED 1\n#define PACKED_PARAMETER , local T* packed\n"
                      : "#define PACKED 0\n#define PACKED_PARAMETER\n";
    for (const char* name : {"A", "B", "C", "O"})
        text += access_macros(name, type) + "#define " + name + "S " + storage_name(type) + "\n";
    text += std::string("#define HAS_C ") + (has_c ? "1\n" : "0\n");
    text += std::string("#define B_COLUMN ") + (b_is_dense ? "1\n" : "S.b.column\n");
    text += std::string("#define OUT_COLUMN ") + (out_is_dense ? "1\n" : "S.out.column\n");
    return text + body;
}

}  // namespace

void multiply(const Product& product) {
    const at::Tensor& out = product.out;
    if (out.numel() == 0)
        return;
    const Device& device = opencl_device(out);
    const auto type = out.scalar_type();
    check_supported(type, device.index, "a matrix product");
    const bool has_c = product.c.defined() && product.beta.toComplexDouble() != 0.0;
    const at::Tensor a = with_batch(product.a), to = with_batch(out);
    at::Tensor b = with_batch(product.b);
    const bool b_is_apart = b.stride(3) != 1 && b.size(3) > 1 && a.size(2) > rows;
    const int64_t packed_bytes = 2 * lanes * a.size(3) * static_cast<int64_t>(scalar_bytes(0, type).size);
    const bool is_dense_packed = !device.is_gpu && b.stride(3) == 1 && a.size(2) >= dense_packed_rows_min &&
                                 packed_bytes > conflicting_bytes * lanes && packed_bytes <= dense_packed_bytes_max &&
                                 b.stride(2) * b.element_size() % conflicting_bytes == 0;
    const bool is_packed = is_dense_packed || (b_is_apart && b.stride(2) == 1 && packed_bytes <= packed_bytes_max);
    if (b_is_apart && !is_packed)
        b = b.contiguous();
    const at::Tensor c = has_c ? with_batch(product.c.expand(out.sizes())) : to;
    const bool b_is_dense = b.stride(3) == 1, out_is_dense = to.stride(3) == 1;
    const int64_t panels = (to.size(3) + 2 * lanes - 1) / (2 * lanes);
    // Enough groups for all compute units; else as many rows as there are for each copy of a panel.
    const int64_t products = panels * to.size(0) * to.size(1);
    const int64_t parts = std::max<int64_t>(1, 4 * int64_t{device.compute_units} / products);
    const int64_t group_rows = is_packed ? (to.size(2) / parts / rows + 1) * rows : rows;
    const Shape shape{to.size(2), to.size(3),    a.size(3),     panels,        to.size(1),
                      group_rows, strides_of(a), strides_of(b), strides_of(c), strides_of(to)};
    const std::string key = std::string("multiply ") + short_name(type) + (has_c ? "c" : "") + (b_is_dense ? "b" : "") +
                            (out_is_dense ? "o" : "") + (is_packed ? "p" : "");
    Kernel& kernel =
        kernel_of(device, key, "multiply", [&] { return source_of(type, has_c, b_is_dense, out_is_dense, is_packed); });
    Launch launch(device, kernel);
    launch.read(a).read(b).read(c).written(out);
    launch.scalar(scalar_bytes(product.alpha, type)).scalar(scalar_bytes(product.beta, type)).value(shape);
    if (is_packed)
        launch.local(static_cast<size_t>(packed_bytes));
    launch.run({static_cast<size_t>(lanes), static_cast<size_t>((to.size(2) + group_rows - 1) / group_rows),
                static_cast<size_t>(products)},
               {static_cast<size_t>(lanes), 1, 1});
}

}  // namespace torch_opencl
