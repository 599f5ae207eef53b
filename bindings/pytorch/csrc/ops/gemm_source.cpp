#include "gemm_source.h"

#include <limits>

namespace torch_opencl {
namespace {

const char* const tile_macros = R"(
typedef struct { long row, column, outer, inner; } Matrix;
typedef struct { long m, n, k, panels, inner_count, group_rows; Matrix a, b, c, out; long split, out_high; } Shape;
#define MOVE_TO_BATCH(batch_) { long outer = (batch_) / S.inner_count, inner = (batch_) % S.inner_count; \
  a += outer * S.a.outer + inner * S.a.inner; b += outer * S.b.outer + inner * S.b.inner; \
  c += outer * S.c.outer + inner * S.c.inner; out += outer * S.out.outer + inner * S.out.inner; }
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
// The panel of columns that begins at n_. A full one whose results are neighbours in memory is stored without conditions.
#define PLACE(n_) ((n_) / S.split * S.out_high + (n_) % S.split * S.out.column)
#define PANEL(n_) long first = (n_) + get_local_id(0), second = first + 8; \
  bool is_full = (n_) + 16 <= S.n, is_plain = is_full && S.out.column == 1 && S.split % 16 == 0; \
  long f = min(first, S.n - 1) * S.b.column, s = min(second, S.n - 1) * S.b.column, place = PLACE(n_) + get_local_id(0); \
  long first_place = place, second_place = place; \
  if (!is_plain) { first_place = PLACE(first); second_place = PLACE(second); }
#define FOR_ROWS(X) X(0) X(1) X(2) X(3) X(4) X(5)
#define STEP(r) { T v = A_AT(r); x##r = MADD(v, p, x##r); y##r = MADD(v, q, y##r); }
#define FINISH(r) if (m + r < S.m) { \
    if (first < S.n) STOREO(out, (m + r) * S.out.row + first_place, RESULT(x##r, m + r, first)); \
    if (second < S.n) STOREO(out, (m + r) * S.out.row + second_place, RESULT(y##r, m + r, second)); }
#define FINISH_PLAIN(r) if (m + r < S.m) { \
    STOREO(out, (m + r) * S.out.row + place, RESULT(x##r, m + r, first)); \
    STOREO(out, (m + r) * S.out.row + place + 8, RESULT(y##r, m + r, second)); }
#define FINISH_ROWS if (is_plain) { FOR_ROWS(FINISH_PLAIN) } else { FOR_ROWS(FINISH) }
)";

Matrix strides_of(const at::Tensor& matrix) {
    // One row, column or matrix serves for all of the result's.
    const auto stride = [&](int64_t dim) { return matrix.size(dim) == 1 ? 0 : matrix.stride(dim); };
    return {stride(2), stride(3), stride(0), stride(1)};
}

}  // namespace

Shape shape_of(const Factors& factors) {
    const int64_t split = factors.product.split > 0 ? factors.product.split : int64_t{1} << 62;
    return {factors.a.size(2),
            factors.b.size(3),
            factors.a.size(3),
            0,
            factors.out.size(1),
            0,
            strides_of(factors.a),
            strides_of(factors.b),
            strides_of(factors.c),
            strides_of(factors.out),
            split,
            factors.product.split_stride};
}

std::string product_macros(const Factors& factors, bool b_is_dense) {
    std::string text = compute_type_macros(factors.type);
    for (const char* name : {"A", "B", "C", "O"})
        text += access_macros(name, factors.type) + "#define " + name + "S " + storage_name(factors.type) + "\n";
    text += std::string("#define HAS_C ") + (factors.has_c ? "1\n" : "0\n");
    text += std::string("#define B_COLUMN ") + (b_is_dense ? "1\n" : "S.b.column\n");
    return text + tile_macros;
}

std::string product_key(const Factors& factors, bool b_is_dense) {
    return std::string(short_name(factors.type)) + (factors.has_c ? "c" : "") + (b_is_dense ? "b" : "");
}

void add_factors(Launch& launch, const Factors& factors, const Shape& shape) {
    launch.read(factors.a).read(factors.b).read(factors.c).written(factors.out);
    launch.scalar(scalar_bytes(factors.product.alpha, factors.type));
    launch.scalar(scalar_bytes(factors.product.beta, factors.type)).value(shape);
}

}  // namespace torch_opencl
