// Kernels that torch.compile generated, and products of matrices in the code around them. python/calls.cpp makes Python objects of them. Any
// thread.
#pragma once

#include "program.h"

#include <ATen/core/Tensor.h>
#include <atomic>
#include <c10/util/ArrayRef.h>
#include <optional>

namespace torch_opencl {

// The source of one kernel, named `generated`, and the kernels that were made from it, by device. Lives as long as the process.
class [[gnu::visibility("default")]] GeneratedKernel {
public:
    explicit GeneratedKernel(std::string source);
    // Launches on the current device and stream, without waiting. The tensors are on that device. The scalars are tensors of the CPU with one
    // element, which is copied before the call returns: a parameter of the type of its bits. The values are parameters of the type long. Local
    // sizes of 0 are chosen by the implementation. Throws RuntimeError for a tensor that is elsewhere, as PyTorch's operators do.
    void launch(c10::ArrayRef<const at::Tensor*> tensors, c10::ArrayRef<const at::Tensor*> scalars,
                c10::ArrayRef<int64_t> values, std::array<size_t, 3> global, std::array<size_t, 3> local);

private:
    Kernel& kernel_for(const Device& device);
    std::string source_;
    std::vector<std::atomic<Kernel*>> kernels_;
};

// Where a tensor's memory has a matrix, or a batch of them: strides, and the distance of its first element from the tensor's, in elements.
struct MatrixPlace {
    at::DimVector sizes, strides;
    int64_t offset = 0;
};

// out = alpha * a b + beta * c for matrices whose places are constants.
class [[gnu::visibility("default")]] GeneratedProduct {
public:
    // Throws ValueError when the sizes do not fit. Without c there are only three tensors. c is broadcast.
    GeneratedProduct(MatrixPlace out, MatrixPlace a, MatrixPlace b, std::optional<MatrixPlace> c, double alpha,
                     double beta);
    [[nodiscard]] size_t tensors() const { return c_ ? 4 : 3; }
    // Multiplies on the current stream of out's device, without waiting. The tensors are out, a, b, c; none is changed but out.
    void run(c10::ArrayRef<const at::Tensor*> tensors) const;

private:
    MatrixPlace out_, a_, b_;
    std::optional<MatrixPlace> c_;
    double alpha_, beta_;
};

}  // namespace torch_opencl
