// mm, bmm, addmm, baddbmm, addmv, dot, vdot.
#include "gemm.h"
#include "native.h"
#include "pointwise.h"

#include <ATen/Functions.h>
#include <ATen/native/Resize.h>
#include <torch/library.h>

namespace torch_opencl {
namespace {

using at::Scalar;
using at::Tensor;

// The kernel writes rows of out while others read c or the factors, so out is neither of them in memory, except for c itself.
bool overlaps(const Tensor& out, const Tensor& input) { return out.is_alias_of(input); }

void check_types(const Tensor& a, const Tensor& b, const Tensor& out) {
    check_same_device(a.device(), b);
    check_same_device(a.device(), out);
    TORCH_CHECK(a.scalar_type() == b.scalar_type(),
                "expected m1 and m2 to have the same dtype, but got: ", a.scalar_type(), " != ", b.scalar_type());
    check_result_type(a.scalar_type(), out);
}

// PyTorch checks the sizes where it makes the result, but not where the caller gives it.
void check_matrices(const Tensor& a, const Tensor& b) {
    TORCH_CHECK(a.dim() == 2, "self must be a matrix");
    TORCH_CHECK(b.dim() == 2, "mat2 must be a matrix");
    TORCH_CHECK(a.size(1) == b.size(0), "mat1 and mat2 shapes cannot be multiplied (", a.size(0), "x", a.size(1),
                " and ", b.size(0), "x", b.size(1), ")");
}
void check_batches(const Tensor& a, const Tensor& b) {
    TORCH_CHECK(a.dim() == 3, "batch1 must be a 3D tensor");
    TORCH_CHECK(b.dim() == 3, "batch2 must be a 3D tensor");
    TORCH_CHECK(a.size(0) == b.size(0) && a.size(2) == b.size(1),
                "Expected size for first two dimensions of batch2 tensor to be: [", a.size(0), ", ", a.size(2),
                "] but got: [", b.size(0), ", ", b.size(1), "].");
}

Tensor& run(const Tensor& a, const Tensor& b, const Tensor& c, const Scalar& alpha, const Scalar& beta, Tensor& out) {
    check_types(a, b, out);
    TORCH_CHECK(!c.defined() || c.scalar_type() == out.scalar_type(), "expected scalar type ", out.scalar_type(),
                " but found ", c.scalar_type());
    const bool is_safe =
        !overlaps(out, a) && !overlaps(out, b) && (!c.defined() || !overlaps(out, c) || out.is_same(c));
    if (is_safe) {
        multiply({a, b, out, c, alpha, beta});
        return out;
    }
    const Tensor apart = at::empty(out.sizes(), out.options());
    multiply({a, b, apart, c, alpha, beta});
    return out.copy_(apart);
}

// A product of complex matrices: four of their parts.
Tensor& run_complex(const Tensor& a, const Tensor& b, Tensor& out) {
    const Tensor left = at::view_as_real(a.resolve_conj()), right = at::view_as_real(b.resolve_conj());
    const Tensor a_real = left.select(-1, 0), a_imaginary = left.select(-1, 1);
    const Tensor b_real = right.select(-1, 0), b_imaginary = right.select(-1, 1);
    Tensor parts = at::empty(out.sizes(), a_real.options()), others = at::empty_like(parts);
    run(a_real, b_real, {}, 1, 0, parts);
    run(a_imaginary, b_imaginary, parts, -1, 1, parts);
    run(a_real, b_imaginary, {}, 1, 0, others);
    run(a_imaginary, b_real, others, 1, 1, others);
    return out.copy_(at::complex(parts, others));
}

bool is_complex(const Tensor& a, const Tensor& b, const Tensor& out) {
    const auto type = out.scalar_type();
    return is_supported_complex(type, true) && a.scalar_type() == type && b.scalar_type() == type;
}

Tensor& mm_out(const Tensor& a, const Tensor& b, Tensor& out) {
    check_matrices(a, b);
    at::native::resize_output(out, {a.size(0), b.size(1)});
    return is_complex(a, b, out) ? run_complex(a, b, out) : run(a, b, {}, 1, 0, out);
}
Tensor& bmm_out(const Tensor& a, const Tensor& b, Tensor& out) {
    check_batches(a, b);
    at::native::resize_output(out, {a.size(0), a.size(1), b.size(2)});
    return is_complex(a, b, out) ? run_complex(a, b, out) : run(a, b, {}, 1, 0, out);
}
Tensor& addmm_out(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha,
                  Tensor& out) {
    check_matrices(a, b);
    at::native::resize_output(out, {a.size(0), b.size(1)});
    return run(a, b, self, alpha, beta, out);
}
Tensor& baddbmm_out(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha,
                    Tensor& out) {
    check_batches(a, b);
    at::native::resize_output(out, {a.size(0), a.size(1), b.size(2)});
    return run(a, b, self, alpha, beta, out);
}
// The sum of products over the batch is one product, of the matrices side by side.
Tensor& addbmm_out(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha,
                   Tensor& out) {
    TORCH_CHECK(a.dim() == 3 && b.dim() == 3 && a.size(0) == b.size(0) && a.size(2) == b.size(1), "addbmm: sizes ",
                a.sizes(), " and ", b.sizes(), " do not fit");
    return at::addmm_out(out, self, a.transpose(0, 1).reshape({a.size(1), -1}), b.reshape({-1, b.size(2)}), beta,
                         alpha);
}
Tensor addbmm(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) {
    Tensor out = at::empty({0}, self.options());
    return torch_opencl::addbmm_out(self, a, b, beta, alpha, out);
}
Tensor& addbmm_(Tensor& self, const Tensor& a, const Tensor& b, const Scalar& beta, const Scalar& alpha) {
    return self.copy_(torch_opencl::addbmm(self, a, b, beta, alpha));
}
Tensor& addmv_out(const Tensor& self, const Tensor& a, const Tensor& x, const Scalar& beta, const Scalar& alpha,
                  Tensor& out) {
    TORCH_CHECK(a.dim() == 2 && x.dim() == 1 && a.size(1) == x.size(0), "size mismatch, got mat ", a.sizes(), ", vec ",
                x.sizes());
    at::native::resize_output(out, {a.size(0)});
    Tensor column = out.unsqueeze(1);
    run(a, x.unsqueeze(1), self.expand({a.size(0)}).unsqueeze(1), alpha, beta, column);
    return out;
}
Tensor mv(const Tensor& a, const Tensor& x) {
    TORCH_CHECK(a.dim() == 2 && x.dim() == 1 && a.size(1) == x.size(0), "mv: sizes ", a.sizes(), " and ", x.sizes(),
                " do not fit");
    return at::mm(a, x.unsqueeze(1)).squeeze(1);
}
Tensor dot(const Tensor& a, const Tensor& b) {
    check_same_device(a.device(), b);
    TORCH_CHECK(a.dim() == 1 && b.dim() == 1, "1D tensors expected, but got ", a.dim(), "D and ", b.dim(), "D tensors");
    TORCH_CHECK(a.scalar_type() == b.scalar_type(), "dot : expected both vectors to have same dtype, but found ",
                a.scalar_type(), " and ", b.scalar_type());
    TORCH_CHECK(a.numel() == b.numel(), "inconsistent tensor size, expected tensor [", a.numel(), "] and src [",
                b.numel(), "] to have the same number of elements");
    const auto type = a.scalar_type();
    check_has_products(type);
    TORCH_CHECK_NOT_IMPLEMENTED(is_known(type) || is_supported_complex(type, opencl_device(a).has_double),
                                "opencl: dot has no kernel for elements of type ", type);
    return at::sum(at::mul(a, b), std::nullopt, false, type);
}
// The dot product with the conjugate of `a`.
Tensor vdot(const Tensor& a, const Tensor& b) { return torch_opencl::dot(a.conj(), b); }

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl(NATIVE_COMPLEX("mm.out", mm_out));
    m.impl(NATIVE_COMPLEX("bmm.out", bmm_out));
    m.impl(NATIVE("addmm.out", addmm_out));
    m.impl(NATIVE("baddbmm.out", baddbmm_out));
    m.impl(NATIVE("addbmm", addbmm));
    m.impl(NATIVE("addbmm_", addbmm_));
    m.impl(NATIVE("addbmm.out", addbmm_out));
    m.impl(NATIVE("addmv.out", addmv_out));
    m.impl(NATIVE("mv", mv));
    m.impl(NATIVE_COMPLEX("dot", torch_opencl::dot));
    m.impl(NATIVE_COMPLEX("vdot", torch_opencl::vdot));
}

}  // namespace torch_opencl
