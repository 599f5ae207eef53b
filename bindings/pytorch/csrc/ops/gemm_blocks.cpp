// Products by blocks, for processors (Goto and van de Geijn, "Anatomy of high-performance matrix multiplication", 2008). A group copies
// a few panels of b's columns, 256 deep, to local memory, and where a is transposed or stored in less precision, blocks of 96 rows
// of a as well. So each order of the factors costs almost the same, and columns whose distance is a power of two do not drive
// each other out of the cache. Where k is deeper, the sums of the blocks so far wait in local memory; each block begins from 0, because
// a long sum is more accurate as a sum of sums (decision 296).
#include "gemm_source.h"
#include "pointwise.h"

#include <algorithm>

namespace torch_opencl {
namespace {

constexpr int64_t block_rows = 96;
constexpr int64_t group_rows_max = 4 * block_rows;
constexpr int64_t group_columns_max = 128;
constexpr int64_t rows_min = 12;

const char* const kernel_text = R"(
#define ROWS 96
// A tile of a packed block has LANES elements for each k, so that whole vectors are copied.
#if A_IS_PACKED
#define TILE_A(tile) (a_block + (tile) * A_TILE)
#define A_AT(r) tile_a[k * LANES + r]
#define DECLARE_A(r)
#else
#define A_AT(r) LOADA(a##r, k * A_COLUMN)
#define DECLARE_A(r) global const AS* restrict a##r = a + min(m + r, S.m - 1) * S.a.row + from * A_COLUMN;
#endif
#define DECLARE(r) T x##r = 0, y##r = 0; DECLARE_A(r)
#define ADD_WAITING(r) x##r += waiting[r * group_panels * COLUMNS]; y##r += waiting[r * group_panels * COLUMNS + LANES];
#define WAIT(r) waiting[r * group_panels * COLUMNS] = x##r; waiting[r * group_panels * COLUMNS + LANES] = y##r;
kernel __attribute__((reqd_work_group_size(LANES, 1, 1)))
void multiply_blocks()" TORCH_OPENCL_FACTORS
                                R"(, long group_panels, local T* a_block, local T* b_block, local T* sums) {
  MOVE_TO_BATCH(get_group_id(2) / S.panels)
  long lane = get_local_id(0), begin_n = get_group_id(2) % S.panels * group_panels * COLUMNS;
  long panels = min(group_panels, (S.n - begin_n + COLUMNS - 1) / COLUMNS);
  long begin = get_group_id(1) * S.group_rows, end = min(S.m, begin + S.group_rows);
  for (long from = 0; from < S.k; from += DEPTH) {
    long depth = min((long)DEPTH, S.k - from);
    for (long panel = 0; panel < panels; ++panel) {
      PANEL(begin_n + panel * COLUMNS)
      local T* mine = b_block + panel * DEPTH * COLUMNS + lane;
      if (is_full) {
        for (long k = 0; k < depth; ++k) {
          mine[k * COLUMNS] = LOADB(b, (from + k) * S.b.row + first * B_COLUMN);
          mine[k * COLUMNS + LANES] = LOADB(b, (from + k) * S.b.row + second * B_COLUMN);
        }
      } else {
        for (long k = 0; k < depth; ++k) {
          mine[k * COLUMNS] = LOADB(b, (from + k) * S.b.row + f);
          mine[k * COLUMNS + LANES] = LOADB(b, (from + k) * S.b.row + s);
        }
      }
    }
    for (long block = begin; block < end; block += ROWS) {
      long block_end = min(end, block + ROWS);
#if A_IS_PACKED
      long tiles = (block_end - block + TILE_ROWS - 1) / TILE_ROWS;
      // Tiles whose vectors end within a. Only the last tile of a's rows is another one.
      long whole = min(tiles, max(0L, S.m - block - LANES + TILE_ROWS) / TILE_ROWS);
      barrier(CLK_LOCAL_MEM_FENCE);
#if A_HAS_VECTORS
      if (lane == 0)
        for (long k = 0; k < depth; ++k)
          for (long tile = 0; tile < whole; ++tile)
            VSTORE(VLOAD(0, a + block + tile * TILE_ROWS + (from + k) * A_COLUMN), 0, TILE_A(tile) + k * LANES);
#else
      for (long k = 0; k < depth; ++k)
        for (long tile = 0; tile < whole; ++tile)
          TILE_A(tile)[k * LANES + lane] = LOADA(a, (block + tile * TILE_ROWS + lane) * A_ROW + (from + k) * A_COLUMN);
#endif
      for (long tile = whole; tile < tiles; ++tile) {
        long row = min(block + tile * TILE_ROWS + lane, S.m - 1) * A_ROW;
        for (long k = 0; k < depth; ++k) TILE_A(tile)[k * LANES + lane] = LOADA(a, row + (from + k) * A_COLUMN);
      }
      barrier(CLK_LOCAL_MEM_FENCE);
#endif
      for (long panel = 0; panel < panels; ++panel) {
        PANEL(begin_n + panel * COLUMNS)
        const local T* mine = b_block + panel * DEPTH * COLUMNS + lane;
        for (long m = block; m < block_end; m += TILE_ROWS) {
          local T* waiting = sums + (m - begin) * group_panels * COLUMNS + panel * COLUMNS + lane;
#if A_IS_PACKED
          const local T* tile_a = TILE_A((m - block) / TILE_ROWS);
#endif
          FOR_ROWS(DECLARE)
          for (long k = 0; k < depth; ++k) {
            T p = mine[k * COLUMNS], q = mine[k * COLUMNS + LANES];
            FOR_ROWS(STEP)
          }
          if (from > 0) { FOR_ROWS(ADD_WAITING) }
          if (from + DEPTH < S.k) { FOR_ROWS(WAIT) } else { FINISH_ROWS }
        }
      }
    }
  }
}
)";

int64_t quotient_up(int64_t n, int64_t divisor) { return (n + divisor - 1) / divisor; }
int64_t rounded_up(int64_t n, int64_t unit) { return quotient_up(n, unit) * unit; }

int64_t element_bytes(const Factors& factors) { return static_cast<int64_t>(scalar_bytes(0, factors.type).size); }

int64_t depth_for(const Factors& factors) { return element_bytes(factors) > 4 ? 128 : 256; }

// The distance of two tiles of a packed block of a. A depth of 256 would be a power of two of bytes, and the tiles' elements of one k, which are
// stored one after another, would share a set of the cache.
int64_t packed_tile(const Factors& factors) { return tile_of(factors).lanes * depth_for(factors) + 16; }

// A block of a in local memory.
int64_t packed_elements(const Factors& factors) {
    return quotient_up(std::min(block_rows, factors.a.size(2)), tile_of(factors).rows) * packed_tile(factors);
}

// The rows whose sums can wait in the local memory that the blocks leave.
int64_t waiting_rows(const Factors& factors, int64_t group_columns) {
    const int64_t size = element_bytes(factors), rows_each = tile_of(factors).rows;
    const int64_t blocks = (packed_elements(factors) + group_columns * depth_for(factors)) * size;
    const int64_t rows = (static_cast<int64_t>(factors.device.local_bytes) - blocks) / (group_columns * size);
    return std::min(group_rows_max, rows / rows_each * rows_each);
}

// Whether neighbouring rows, and not neighbouring columns, are neighbours in memory.
bool has_dense_rows(const Operand& matrix) { return matrix.stride(2) == 1 && matrix.stride(3) != 1; }

// The narrower one of the factors should be b, which is copied once for many rows. With b transposed this saves the slower copy of the
// wider one; with a transposed, a's blocks are copied again for each group of panels.
bool prefers_transposed(const Factors& factors) {
    const bool gains = has_dense_rows(factors.b) || has_dense_rows(factors.a);
    return gains && factors.product.split == 0 && factors.a.size(2) < factors.b.size(3);
}

}  // namespace

bool suits_blocks(const Factors& factors) {
    // Shallow products of a transposed a read the lines of its columns for several tiles before they leave the cache.
    const int64_t depth_min = has_dense_rows(factors.a) ? 192 : 64;
    return !factors.device.is_gpu && waiting_rows(factors, group_columns_max) >= block_rows &&
           factors.a.size(2) >= rows_min && factors.a.size(3) >= depth_min;
}

void multiply_blocks(const Factors& given) {
    const Factors factors = prefers_transposed(given) ? transposed(given) : given;
    const int64_t size = element_bytes(factors);
    const int64_t depth = depth_for(factors);
    const bool a_is_transposed = has_dense_rows(factors.a);
    const bool is_stored_as_computed = compute_type(factors.a.type()) == factors.a.type();
    const bool a_is_packed = a_is_transposed || !is_stored_as_computed;
    // One item copies vectors, because the place of each item's element is a value of its own after a barrier, and items would gather.
    const bool a_has_vectors = a_is_transposed && is_stored_as_computed;
    const bool a_is_dense = factors.a.stride(3) == 1, b_is_dense = factors.b.stride(3) == 1;
    Shape shape = shape_of(factors);
    const Tile tile = tile_of(factors);
    const int64_t all_panels = quotient_up(shape.n, tile.columns());
    // More panels for each copy of a.
    const int64_t group_panels =
        std::min<int64_t>((a_is_packed ? group_columns_max : group_columns_max / 2) / tile.columns(), all_panels);
    const int64_t group_columns = group_panels * tile.columns();
    shape.panels = quotient_up(all_panels, group_panels);
    // Two groups for each compute unit, so that one that is late takes fewer; else as many rows as there are for each copy of a panel.
    const int64_t products = shape.panels * factors.out.size(0) * factors.out.size(1);
    const int64_t units = factors.device.compute_units;
    const int64_t parts = quotient_up(units > 1 ? 2 * units : 1, products);
    const int64_t rows_max = shape.k > depth ? waiting_rows(factors, group_columns) : shape.m;
    shape.group_rows = rounded_up(std::min(rows_max, quotient_up(shape.m, parts)), tile.rows);
    const std::string key = "multiply_blocks " + product_key(factors, b_is_dense) + (a_is_packed ? "p" : "") +
                            (a_is_transposed ? "t" : "") + (a_is_dense ? "a" : "");
    Kernel& kernel = kernel_of(factors.device, key, "multiply_blocks", [&] {
        return product_macros(factors, b_is_dense) + "#define DEPTH " + std::to_string(depth) +
               "\n#define A_IS_PACKED " + (a_is_packed ? "1" : "0") + "\n#define A_TILE " +
               std::to_string(packed_tile(factors)) + "\n#define A_HAS_VECTORS " + (a_has_vectors ? "1" : "0") +
               "\n#define VLOAD vload" + std::to_string(tile.lanes) + "\n#define VSTORE vstore" +
               std::to_string(tile.lanes) + "\n#define A_ROW " + (a_is_transposed ? "1" : "S.a.row") +
               "\n#define A_COLUMN " + (a_is_dense ? "1" : "S.a.column") + kernel_text;
    });
    const auto local_bytes = [size](int64_t elements) { return static_cast<size_t>(elements * size); };
    Launch launch(factors.device, kernel);
    add_factors(launch, factors, shape);
    launch.value(group_panels);
    launch.local(local_bytes(a_is_packed ? packed_elements(factors) : 1));
    launch.local(local_bytes(group_columns * depth));
    launch.local(local_bytes(shape.k > depth ? shape.group_rows * group_columns : 1));
    launch.run({static_cast<size_t>(tile.lanes), static_cast<size_t>(quotient_up(shape.m, shape.group_rows)),
                static_cast<size_t>(products)},
               {static_cast<size_t>(tile.lanes), 1, 1});
}

}  // namespace torch_opencl
