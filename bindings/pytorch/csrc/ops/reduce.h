// Reductions over any dimensions of a tensor: a value per element, combined in a tree whose shape depends on the sizes alone, so
// that results do not change between runs or devices.
#pragma once

#include "../program.h"
#include "types.h"

#include <ATen/core/Tensor.h>

namespace torch_opencl {

// In the expressions, x is an element and i its index in the order of the reduced dimensions, as values of the compute type A
// and of long; acc and v are values of A. `finish` sees acc, and n, the count of reduced elements.
struct Reduction {
    const char* name;  // unique
    const char* identity;
    const char* element;
    const char* combine;
    const char* finish;
};

// Reduces the dimensions `dims` (all of them when empty) of `self` into `out`, which has the kept dimensions' sizes in order,
// with or without ones at the reduced places. Computes in `compute`.
void reduce(const at::Tensor& self, at::OptionalIntArrayRef dims, const at::Tensor& out, const Reduction& reduction,
            c10::ScalarType compute, c10::ArrayRef<c10::Scalar> scalars = {});

}  // namespace torch_opencl
