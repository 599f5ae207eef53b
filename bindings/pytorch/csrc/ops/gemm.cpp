// A product tile by tile (gemm_source.h). Groups are ordered so that a panel of b's columns stays in the cache for all rows. Where the
// columns of b are contiguous instead, as in a linear layer, each item first copies its two columns to local memory, where those of
// neighbouring items are neighbours, and then walks over all rows of a. A b that has neither order, or columns too long for local
// memory, is copied first: that costs 1/M of the product. A deep sum is computed as a sum of sums, which is more accurate (decision 296).
#include "gemm_source.h"
#include "pointwise.h"

#include <ATen/ExpandUtils.h>

namespace torch_opencl {
namespace {

constexpr int64_t packed_bytes_max = 32 << 10;
constexpr int64_t depth = 256;  // of a sum that has no parts

const char* const kernel_text = R"(
#define A_AT(r) LOADA(a, a##r + k * S.a.column)
#define DECLARE(r) T x##r = 0, y##r = 0; long a##r = min(m + r, S.m - 1) * S.a.row;
#define STEPS(from_, end_, first_, second_) for (long k = from_, end = end_; k < end; ++k) { \
    T p = LOADB(b, k * S.b.row + first_), q = LOADB(b, k * S.b.row + second_); \
    FOR_ROWS(STEP) }
#define WALK(from_, end_) if (is_full) STEPS(from_, end_, first * B_COLUMN, second * B_COLUMN) else STEPS(from_, end_, f, s)
#define ADD_PARTS(r) x##r += mine[r * COLUMNS]; y##r += mine[r * COLUMNS + LANES];
#define KEEP(r) mine[r * COLUMNS] = x##r; mine[r * COLUMNS + LANES] = y##r;
kernel __attribute__((reqd_work_group_size(LANES, 1, 1)))
void multiply()" TORCH_OPENCL_FACTORS R"( PACKED_PARAMETER) {
  MOVE_TO_BATCH(get_group_id(2) / S.panels)
  PANEL(get_group_id(2) % S.panels * COLUMNS)
#if PACKED
  local T* mine = packed + get_local_id(0);
  for (long k = 0; k < S.k; ++k) {
    mine[k * COLUMNS] = LOADB(b, k * S.b.row + f);
    mine[k * COLUMNS + LANES] = LOADB(b, k * S.b.row + s);
  }
  long end = min(S.m, (long)(get_group_id(1) + 1) * S.group_rows);
  for (long m = get_group_id(1) * S.group_rows; m < end; m += TILE_ROWS) {
    FOR_ROWS(DECLARE)
    for (long k = 0; k < S.k; ++k) {
      T p = mine[k * COLUMNS], q = mine[k * COLUMNS + LANES];
      FOR_ROWS(STEP)
    }
    FINISH_ROWS
  }
#else
  long m = get_group_id(1) * TILE_ROWS;
#if IS_DEEP
  local T sums[TILE_ROWS * COLUMNS];
  local T* mine = sums + get_local_id(0);
  for (long from = 0; from < S.k; from += DEPTH) {
    FOR_ROWS(DECLARE)
    WALK(from, min(from + DEPTH, S.k))
    if (from > 0) { FOR_ROWS(ADD_PARTS) }
    FOR_ROWS(KEEP)
  }
  FOR_ROWS(DECLARE)
  FOR_ROWS(ADD_PARTS)
#else
  FOR_ROWS(DECLARE)
  WALK(0, S.k)
#endif
  FINISH_ROWS
#endif
}
)";

// Tile by tile.
void multiply_tiles(Factors& factors) {
    Operand& b = factors.b;
    const Tile tile = tile_of(factors);
    const int64_t rows = factors.a.size(2);
    const bool b_is_apart = b.stride(3) != 1 && b.size(3) > 1 && rows > tile.rows;
    const int64_t packed_bytes =
        tile.columns() * factors.a.size(3) * static_cast<int64_t>(scalar_bytes(0, factors.type).size);
    const bool is_packed = b_is_apart && b.stride(2) == 1 && packed_bytes <= packed_bytes_max;
    if (b_is_apart && !is_packed)
        b = b.contiguous();
    const bool b_is_dense = b.stride(3) == 1;
    Shape shape = shape_of(factors);
    shape.panels = (shape.n + tile.columns() - 1) / tile.columns();
    // Enough groups for all compute units; else as many rows as there are for each copy of a panel.
    const int64_t products = shape.panels * factors.out.size(0) * factors.out.size(1);
    const int64_t parts = std::max<int64_t>(1, 4 * int64_t{factors.device.compute_units} / products);
    shape.group_rows = is_packed ? (rows / parts / tile.rows + 1) * tile.rows : tile.rows;
    const bool is_deep = !is_packed && shape.k > depth;
    const std::string key =
        "multiply " + product_key(factors, b_is_dense) + (is_packed ? "p" : "") + (is_deep ? "d" : "");
    Kernel& kernel = kernel_of(factors.device, key, "multiply", [&] {
        return product_macros(factors, b_is_dense) + "#define DEPTH " + std::to_string(depth) + "\n#define IS_DEEP " +
               (is_deep ? "1\n" : "0\n") +
               (is_packed ? "#define PACKED 1\n#define PACKED_PARAMETER , local T* packed\n"
                          : "#define PACKED 0\n#define PACKED_PARAMETER\n") +
               kernel_text;
    });
    Launch launch(factors.device, kernel);
    add_factors(launch, factors, shape);
    if (is_packed)
        launch.local(static_cast<size_t>(packed_bytes));
    launch.run({static_cast<size_t>(tile.lanes), static_cast<size_t>((rows + shape.group_rows - 1) / shape.group_rows),
                static_cast<size_t>(products)},
               {static_cast<size_t>(tile.lanes), 1, 1});
}

}  // namespace

void check_has_products(c10::ScalarType type) {
    TORCH_CHECK_NOT_IMPLEMENTED(type != at::kBool, "opencl: a product of vectors or matrices has no kernel for Bool");
}

void multiply(const Product& product) {
    const at::Tensor& out = product.out;
    if (out.numel() == 0)
        return;
    const Device& device = opencl_device(out);
    const auto type = out.scalar_type();
    check_supported(type, device.index, "a matrix product");
    check_has_products(type);
    const auto computed_as = compute_type(type);
    TORCH_CHECK(
        compute_type(product.a.scalar_type()) == computed_as && compute_type(product.b.scalar_type()) == computed_as &&
            (!product.c.defined() || compute_type(product.c.scalar_type()) == computed_as),
        "opencl: a matrix product of ", product.a.scalar_type(), " and ", product.b.scalar_type(), " in ", type);
    const bool has_c = product.c.defined() && product.beta.toComplexDouble() != 0.0;
    const Operand to(out);
    Factors factors{device,
                    product,
                    Operand(product.a),
                    Operand(product.b),
                    has_c ? Operand(product.c.sizes() == out.sizes() ? product.c : product.c.expand(out.sizes())) : to,
                    to,
                    has_c,
                    type};
    if (suits_groups(factors))
        multiply_groups(factors);
    else if (multiply_few_rows(factors))
        return;
    else if (suits_blocks(factors))
        multiply_blocks(factors);
    else
        multiply_tiles(factors);
}

}  // namespace torch_opencl
