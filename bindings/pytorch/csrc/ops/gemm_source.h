// The common part of the two kernels of matrix products: their parameters, and the macros of a tile of 6 rows and 16 columns, of which each of 8
// work-items computes two columns in registers. On a processor with lanes of vectors each step of k is two vector loads of b, six
// loads of one element of a for all lanes, and twelve fused multiply-adds (the register block of BLIS for AVX2: Van Zee and
// van de Geijn, "BLIS", 2015). Where vectors have 16 lanes there are 32 registers of them, and a tile has 12 or 8 rows and 32 columns.
// gemm.cpp walks over all of k for a tile; gemm_blocks.cpp goes by blocks that fit the caches. GPUs use gemm_groups.cpp, which shares
// only the parameters and accessors.
#pragma once

#include "gemm.h"

#include <array>
#include <string>

namespace torch_opencl {

struct Tile {
    int64_t rows = 6;
    int64_t lanes = 8;  // items of a group
    [[nodiscard]] int64_t columns() const { return 2 * lanes; }
};

// The kernels' structures of the same names. Strides in elements. Column n of the result is at
// n / split * out_high + n % split * out.column.
struct Matrix {
    int64_t row, column, outer, inner;
};
struct Shape {
    int64_t m, n, k, panels, inner_count, group_rows;
    Matrix a, b, c, out;
    int64_t split, out_high;
};

// A matrix with two batch dimensions in front. It has sizes and strides of its own, because views of tensors cost calls of PyTorch's dispatcher:
// together more than a launch.
class Operand {
public:
    explicit Operand(at::Tensor matrix);
    [[nodiscard]] int64_t size(size_t dim) const { return sizes_[dim]; }
    [[nodiscard]] int64_t stride(size_t dim) const { return strides_[dim]; }
    [[nodiscard]] c10::ScalarType type() const { return tensor_.scalar_type(); }
    // Its first element is the matrix's.
    [[nodiscard]] const at::Tensor& tensor() const { return tensor_; }
    [[nodiscard]] Operand contiguous() const { return Operand(tensor_.contiguous()); }
    [[nodiscard]] Operand transposed() const;

private:
    at::Tensor tensor_;
    std::array<int64_t, 4> sizes_{1, 1, 1, 1};
    std::array<int64_t, 4> strides_{0, 0, 0, 0};
};

struct Factors {
    const Device& device;
    const Product& product;
    Operand a, b, c, out;
    bool has_c;
    c10::ScalarType type;  // of the result; the others are computed in the same type
};

// The same product of the transposed factors, in the other order. Its operands keep the tensors of the given ones.
Factors transposed(const Factors& factors);
Tile tile_of(const Factors& factors);
// The shape without panels and group_rows, which the caller sets.
Shape shape_of(const Factors& factors);
// Types, accessors and macros for a kernel whose b has neighbouring columns (b_is_dense), and the variant's name for its key.
std::string product_macros(const Factors& factors, bool b_is_dense);
std::string product_key(const Factors& factors, bool b_is_dense);
// The parameters that both kernels begin with. Not a macro of the kernels: where tensors have no addresses, with_offsets must see the pointers.
#define TORCH_OPENCL_FACTORS                                                                                           \
    "global const AS* restrict a, global const BS* restrict b, global const CS* c, global OS* out, T alpha, T beta, "  \
    "Shape S"
// Their arguments.
void add_factors(Launch& launch, const Factors& factors, const Shape& shape);

// Whether the kernel by blocks is the faster one.
bool suits_blocks(const Factors& factors);
void multiply_blocks(const Factors& factors);

// Multiplies where one factor has few rows (or columns) and the other is contiguous along k; false where that is not so.
bool multiply_few_rows(const Factors& factors);

// Whether the device's products are computed by whole work-groups.
bool suits_groups(const Factors& factors);
void multiply_groups(const Factors& factors);

}  // namespace torch_opencl
