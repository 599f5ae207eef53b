// Pointwise kernels: one expression in OpenCL C over the elements of up to eight operands, with broadcasting, strides and casts in
// the same kernel. TensorIterator decides shapes and types, as for PyTorch's other backends.
//
// In an expression, a, b, c, ... are the inputs and s0, s1, ... the scalars, all of the compute type T. It yields the
// output's element. For complex numbers an expression has another form, from a table (complex.cpp).
#pragma once

#include "../program.h"
#include "types.h"

#include <ATen/TensorIterator.h>
#include <initializer_list>

namespace torch_opencl {

// Call it with an iterator of one output. `compute` is usually the common type of the inputs. Throws NotImplementedError for types that have
// no kernels, before anything is enqueued.
void pointwise(at::TensorIteratorBase& iter, const char* expression, c10::ScalarType compute,
               c10::ArrayRef<c10::Scalar> scalars = {});

// The form of an expression whose T is a complex number: a vector of two R. Throws NotImplementedError where there is none.
const char* complex_form(const char* expression);

const Device& opencl_device(const at::TensorBase& tensor);

}  // namespace torch_opencl
