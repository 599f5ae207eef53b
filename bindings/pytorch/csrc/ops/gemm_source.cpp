// The text of the kernels' common part, which depends on the types and on the order of the factors, and the choice of the tile.
#include "gemm_source.h"

#include <limits>
#include <utility>

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
#define RESULT(v_, m_, n_) (alpha * (v_) + beta * (T)LOADC(c, (m_) * S.c.row + (n_) * C_COLUMN))
#else
#define RESULT(v_, m_, n_) (alpha * (v_))
#endif
// The panel of columns that begins at n_. A full one whose results are neighbours in memory is stored without conditions.
#define PLACE(n_) ((n_) / S.split * S.out_high + (n_) % S.split * S.out.column)
#define PANEL(n_) long first = (n_) + get_local_id(0), second = first + LANES; \
  bool is_full = (n_) + COLUMNS <= S.n, is_plain = is_full && S.out.column == 1 && S.split % COLUMNS == 0; \
  long f = min(first, S.n - 1) * S.b.column, s = min(second, S.n - 1) * S.b.column, place = PLACE(n_) + get_local_id(0); \
  long first_place = place, second_place = place; \
  if (!is_plain) { first_place = PLACE(first); second_place = PLACE(second); }
#if TILE_ROWS == 12
#define FOR_ROWS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11)
#elif TILE_ROWS == 8
#define FOR_ROWS(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
#else
#define FOR_ROWS(X) X(0) X(1) X(2) X(3) X(4) X(5)
#endif
#define STEP(r) { T v = A_AT(r); x##r = MADD(v, p, x##r); y##r = MADD(v, q, y##r); }
#define FINISH(r) if (m + r < S.m) { \
    if (first < S.n) STOREO(out, (m + r) * S.out.row + first_place, RESULT(x##r, m + r, first)); \
    if (second < S.n) STOREO(out, (m + r) * S.out.row + second_place, RESULT(y##r, m + r, second)); }
#define FINISH_PLAIN(r) if (m + r < S.m) { \
    STOREO(out, (m + r) * S.out.row + place, RESULT(x##r, m + r, first)); \
    STOREO(out, (m + r) * S.out.row + place + LANES, RESULT(y##r, m + r, second)); }
#define FINISH_ROWS if (is_plain) { FOR_ROWS(FINISH_PLAIN) } else { FOR_ROWS(FINISH) }
)";

Matrix strides_of(const Operand& matrix) {
    // One row, column or matrix serves for all of the result's.
    const auto stride = [&](size_t dim) { return matrix.size(dim) == 1 ? 0 : matrix.stride(dim); };
    return {stride(2), stride(3), stride(0), stride(1)};
}

// The distance of c's columns as text: constants, as of a bias, where a stride that the compiler does not know would be a gather.
const char* c_column(const Factors& factors) {
    const int64_t stride = strides_of(factors.c).column;
    return stride == 0 ? "0" : stride == 1 ? "1" : "S.c.column";
}

bool gathers_c(const Factors& factors) { return factors.has_c && strides_of(factors.c).column > 1; }

// Of a tile of 8 rows loads take more time, which larger products do not regain.
constexpr int64_t few_rows = 64;

}  // namespace

Operand::Operand(at::Tensor matrix) : tensor_(std::move(matrix)) {
    const auto dims = static_cast<size_t>(tensor_.dim()), missing = sizes_.size() - dims;
    for (size_t d = 0; d < dims; ++d) {
        sizes_[missing + d] = tensor_.sizes()[d];
        strides_[missing + d] = tensor_.strides()[d];
    }
}

Operand Operand::transposed() const {
    Operand turned = *this;
    std::swap(turned.sizes_[2], turned.sizes_[3]);
    std::swap(turned.strides_[2], turned.strides_[3]);
    return turned;
}

Factors transposed(const Factors& factors) {
    return {factors.device,         factors.product,          factors.b.transposed(), factors.a.transposed(),
            factors.c.transposed(), factors.out.transposed(), factors.has_c,          factors.type};
}

Tile tile_of(const Factors& factors) {
    const bool has_wide_vectors = !factors.device.is_gpu && factors.device.float_lanes >= 16;
    const bool is_four_bytes = scalar_bytes(0, factors.type).size == 4;
    // Sixteen columns fill half of a wide tile.
    if (!has_wide_vectors || !is_four_bytes || gathers_c(factors) || factors.b.size(3) <= Tile{}.columns())
        return Tile{};
    // Few rows, such as a batch of 16, 32 or 64, take the tile that computes fewer rows for nothing.
    const int64_t rows = factors.a.size(2);
    return {rows <= few_rows && (rows + 7) / 8 * 8 < (rows + 11) / 12 * 12 ? 8 : 12, 16};
}

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
    const auto matrix = [&](const char* name, const Operand& operand) {
        text += access_macros(name, operand.type()) + "#define " + name + "S " + storage_name(operand.type()) + "\n";
    };
    matrix("A", factors.a);
    matrix("B", factors.b);
    matrix("C", factors.c);
    matrix("O", factors.out);
    text += std::string("#define HAS_C ") + (factors.has_c ? "1\n" : "0\n");
    const Tile tile = tile_of(factors);
    text += "#define TILE_ROWS " + std::to_string(tile.rows) + "\n#define LANES " + std::to_string(tile.lanes) +
            "\n#define COLUMNS " + std::to_string(tile.columns()) + "\n";
    text += std::string("#define C_COLUMN ") + c_column(factors) + "\n";
    text += std::string("#define B_COLUMN ") + (b_is_dense ? "1\n" : "S.b.column\n");
    return text + tile_macros;
}

std::string product_key(const Factors& factors, bool b_is_dense) {
    std::string types = short_name(factors.type);
    for (const Operand* operand : {&factors.a, &factors.b, &factors.c})
        types += operand->type() == factors.type ? "=" : short_name(operand->type());
    const Tile tile = tile_of(factors);
    return std::to_string(tile.lanes) + (tile.rows == 8 ? "r" : "") + types +
           (factors.has_c ? std::string("c") + c_column(factors) : "") + (b_is_dense ? "b" : "");
}

void add_factors(Launch& launch, const Factors& factors, const Shape& shape) {
    launch.read(factors.a.tensor()).read(factors.b.tensor()).read(factors.c.tensor()).written(factors.out.tensor());
    launch.scalar(scalar_bytes(factors.product.alpha, factors.type));
    launch.scalar(scalar_bytes(factors.product.beta, factors.type)).value(shape);
}

}  // namespace torch_opencl
