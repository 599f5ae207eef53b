// Products of matrices, batched over up to two dimensions: out = alpha * a b + beta * c, for any strides.
#pragma once

#include "../program.h"
#include "types.h"

#include <ATen/core/Tensor.h>

namespace torch_opencl {

// a [..., M, K], b [..., K, N], out [..., M, N] with zero, one or two batch dimensions, all of the same number; sizes of 1 in a
// batch dimension of a or b are broadcast. c, when defined, is expanded to out's shape. beta == 0: c is not read. The matrices may be stored in
// different types that are computed in one (compute_type); sizes are not checked.
struct Product {
    const at::Tensor& a;
    const at::Tensor& b;
    const at::Tensor& out;
    at::Tensor c = {};
    c10::Scalar alpha = 1;
    c10::Scalar beta = 0;
    // When not 0: column n of the result is column n % split of the matrix that lies n / split * split_stride elements after out, whose
    // size is [M, split]. So a product over the places of several images has their order as its result.
    int64_t split = 0;
    int64_t split_stride = 0;
};
void multiply(const Product& product);

// PyTorch has no products of truth values: throws NotImplementedError for Bool.
void check_has_products(c10::ScalarType type);

}  // namespace torch_opencl
