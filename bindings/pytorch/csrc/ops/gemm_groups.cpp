// Products for GPUs: a work-group of 16 x 16 items computes a tile of the result, and each item up to 8 x 8 elements of it in registers. The
// items copy 16 columns of a and 16 rows of b to local memory, and fetch the next ones into registers while they compute (the scheme of
// Volkov and Demmel, "Benchmarking GPUs to tune dense linear algebra", 2008). Each order of the factors is read so that neighbouring items
// read neighbours in memory. Where tiles are too few for the device, several groups compute parts of k, and a second kernel adds them in
// their order, so that results do not change between runs.
#include "gemm_source.h"

#include <ATen/Functions.h>
#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace torch_opencl {
namespace {

constexpr int64_t items = 16;  // in each dimension of a group
constexpr int64_t depth = 16;
constexpr int64_t vector_max = 4;
constexpr int64_t part_min = 256;  // the least depth of a part
constexpr int64_t parts_max = 64;

// V: the width of the vectors that an item reads from local memory; an item's rows and columns are vectors that lie 16 V apart, so that the
// vectors of neighbouring items are neighbours. SKEW keeps the vectors aligned, and the items that write a column in different banks.
const char* const kernel_text = R"(
#define SIDE (16 * EACH)
#define SKEW 4
#define PITCH (SIDE + SKEW)
#define INSIDE(i_) ((i_) / V * 16 * V + (i_) % V)
// Where the item's i-th element of a tile of SIDE x 16 is: across it, and in k.
#if A_HAS_DENSE_ROWS
#define A_ACROSS(i_) ((item + 256 * (i_)) % SIDE)
#define A_DOWN(i_) ((item + 256 * (i_)) / SIDE)
#else
#define A_ACROSS(i_) (item / 16 + 16 * (i_))
#define A_DOWN(i_) (item % 16)
#endif
#if B_HAS_DENSE_ROWS
#define B_ACROSS(i_) (item / 16 + 16 * (i_))
#define B_DOWN(i_) (item % 16)
#else
#define B_ACROSS(i_) ((item + 256 * (i_)) % SIDE)
#define B_DOWN(i_) ((item + 256 * (i_)) / SIDE)
#endif
// Rows and columns outside are read as the last one and not stored; beyond the end of k are zeros.
#define FETCH(k_) _Pragma("unroll") for (int i = 0; i < EACH; ++i) { \
    long down_a = (k_) + A_DOWN(i), down_b = (k_) + B_DOWN(i); \
    next_a[i] = down_a < end ? LOADA(a, a_row[i] + down_a * A_COLUMN) : (T)0; \
    next_b[i] = down_b < end ? LOADB(b, b_column[i] + down_b * B_ROW) : (T)0; }
kernel __attribute__((reqd_work_group_size(16, 16, 1)))
void multiply_groups()" TORCH_OPENCL_FACTORS R"(, long batches, long part_depth, global T* parts) {
  local Vector a_tile[16 * PITCH / V], b_tile[16 * PITCH / V];
  int item = get_local_id(1) * 16 + get_local_id(0);
  long batch = get_group_id(2) % batches, part = get_group_id(2) / batches;
  MOVE_TO_BATCH(batch)
  long m = (long)get_group_id(1) * SIDE, n = (long)get_group_id(0) * SIDE;
  long begin = part * part_depth, end = min(begin + part_depth, S.k);
  long a_row[EACH], b_column[EACH];
  T next_a[EACH], next_b[EACH], sums[EACH][EACH];
  _Pragma("unroll") for (int i = 0; i < EACH; ++i) {
    a_row[i] = min(m + A_ACROSS(i), S.m - 1) * A_ROW;
    b_column[i] = min(n + B_ACROSS(i), S.n - 1) * B_COLUMN;
    _Pragma("unroll") for (int j = 0; j < EACH; ++j) sums[i][j] = 0;
  }
  FETCH(begin)
  for (long k = begin; k < end; k += 16) {
    _Pragma("unroll") for (int i = 0; i < EACH; ++i) {
      ((local T*)a_tile)[A_DOWN(i) * PITCH + A_ACROSS(i)] = next_a[i];
      ((local T*)b_tile)[B_DOWN(i) * PITCH + B_ACROSS(i)] = next_b[i];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (k + 16 < end) { FETCH(k + 16) }
    _Pragma("unroll") for (int step = 0; step < 16; ++step) {
      T left[EACH], right[EACH];
      _Pragma("unroll") for (int i = 0; i < EACH; i += V) {
        *(Vector*)(left + i) = a_tile[(step * PITCH + INSIDE(i)) / V + get_local_id(1)];
        *(Vector*)(right + i) = b_tile[(step * PITCH + INSIDE(i)) / V + get_local_id(0)];
      }
      _Pragma("unroll") for (int i = 0; i < EACH; ++i)
        _Pragma("unroll") for (int j = 0; j < EACH; ++j) sums[i][j] = MADD(left[i], right[j], sums[i][j]);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  _Pragma("unroll") for (int j = 0; j < EACH; ++j) {
    long column = n + get_local_id(0) * V + INSIDE(j);
    if (column < S.n) {
#if !IN_PARTS
      long place = HAS_SPLIT ? PLACE(column) : column * S.out.column;
#endif
      _Pragma("unroll") for (int i = 0; i < EACH; ++i) {
        long row = m + get_local_id(1) * V + INSIDE(i);
        if (row < S.m) {
#if IN_PARTS
          parts[(get_group_id(2) * S.m + row) * S.n + column] = sums[i][j];
#else
          STOREO(out, row * S.out.row + place, RESULT(sums[i][j], row, column));
#endif
        }
      }
    }
  }
}
kernel void add_parts()" TORCH_OPENCL_FACTORS R"(, long batches, long count, global const T* restrict parts) {
  long column = get_global_id(0), row = get_global_id(1), batch = get_global_id(2);
  MOVE_TO_BATCH(batch)
  T sum = 0;
  for (long part = 0; part < count; ++part) sum += parts[((part * batches + batch) * S.m + row) * S.n + column];
  STOREO(out, row * S.out.row + (HAS_SPLIT ? PLACE(column) : column * S.out.column), RESULT(sum, row, column));
}
)";

int64_t groups_for(const Shape& shape, int64_t each) {
    const int64_t side = items * each;
    return (shape.m + side - 1) / side * ((shape.n + side - 1) / side);
}

// The largest tile that leaves enough groups for all compute units, and whose sums fit the registers.
int64_t elements_of_item(const Shape& shape, int64_t batches, int64_t compute_units, size_t element_bytes) {
    for (const int64_t each : {8, 4})
        if (groups_for(shape, each) * batches >= compute_units && each * element_bytes <= 32)
            return each;
    return shape.m > 2 * items && shape.n > 2 * items ? 4 : 2;
}

// TORCH_OPENCL_PRODUCTS=groups chooses this way on processors too, and =blocks chooses theirs on GPUs, for tests.
std::string_view chosen_by_environment() {
    static const char* const value = std::getenv("TORCH_OPENCL_PRODUCTS");
    return value ? value : "";
}

}  // namespace

bool suits_groups(const Factors& factors) {
    return chosen_by_environment() == "groups" || (factors.device.is_gpu && chosen_by_environment().empty());
}

void multiply_groups(const Factors& factors) {
    Shape shape = shape_of(factors);
    shape.panels = 1;
    const int64_t batches = factors.out.size(0) * factors.out.size(1);
    const int64_t each =
        elements_of_item(shape, batches, factors.device.compute_units, scalar_bytes(0, factors.type).size);
    const int64_t groups = groups_for(shape, each) * batches;
    int64_t count = std::clamp(2 * int64_t{factors.device.compute_units} / groups, int64_t{1},
                               std::clamp(shape.k / part_min, int64_t{1}, parts_max));
    const int64_t part_depth = std::max((shape.k + count - 1) / count + depth - 1, depth) / depth * depth;
    count = std::max<int64_t>((shape.k + part_depth - 1) / part_depth, 1);
    const bool in_parts = count > 1, has_split = factors.product.split > 0;
    const auto has_dense_rows = [](const Operand& matrix) { return matrix.stride(2) == 1 && matrix.size(2) > 1; };
    const bool a_is_dense = factors.a.stride(3) == 1, b_is_dense = factors.b.stride(3) == 1;
    const bool a_has_dense_rows = !a_is_dense && has_dense_rows(factors.a);
    const bool b_has_dense_rows = !b_is_dense && has_dense_rows(factors.b);
    const std::string variant = product_key(factors, b_is_dense) + std::to_string(each) + (in_parts ? "p" : "") +
                                (has_split ? "s" : "") + (a_is_dense ? "a" : "") + (a_has_dense_rows ? "r" : "") +
                                (b_has_dense_rows ? "c" : "");
    const std::string vector = std::to_string(std::min(each, vector_max));
    const auto source = [&] {
        const auto flag = [](const char* name, bool is_set) {
            return std::string("#define ") + name + (is_set ? " 1\n" : " 0\n");
        };
        return product_macros(factors, b_is_dense) + "#define EACH " + std::to_string(each) + "\n" +
               flag("IN_PARTS", in_parts) + flag("HAS_SPLIT", has_split) + flag("A_HAS_DENSE_ROWS", a_has_dense_rows) +
               flag("B_HAS_DENSE_ROWS", b_has_dense_rows) + "#define A_COLUMN " + (a_is_dense ? "1" : "S.a.column") +
               "\n#define A_ROW " + (a_has_dense_rows ? "1" : "S.a.row") + "\n#define B_ROW " +
               (b_has_dense_rows ? "1" : "S.b.row") + "\n#define V " + vector + "\ntypedef " +
               compute_name(factors.type) + vector + " Vector;\n" + kernel_text;
    };
    const at::Tensor parts = in_parts ? at::empty({count * batches * shape.m * shape.n},
                                                  factors.product.out.options().dtype(compute_type(factors.type)))
                                      : factors.product.out;
    {
        Launch launch(factors.device,
                      kernel_of(factors.device, "multiply_groups " + variant, "multiply_groups", source));
        add_factors(launch, factors, shape);
        launch.value(batches).value(part_depth).written(parts);
        const int64_t side = items * each;
        launch.run({static_cast<size_t>((shape.n + side - 1) / side * items),
                    static_cast<size_t>((shape.m + side - 1) / side * items), static_cast<size_t>(batches * count)},
                   {items, items, 1});
    }
    if (!in_parts)
        return;
    Launch launch(factors.device, kernel_of(factors.device, "add_parts " + variant, "add_parts", source));
    add_factors(launch, factors, shape);
    launch.value(batches).value(count).read(parts);
    launch.run({static_cast<size_t>(shape.n), static_cast<size_t>(shape.m), static_cast<size_t>(batches)});
}

}  // namespace torch_opencl
