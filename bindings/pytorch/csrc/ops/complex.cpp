// Complex numbers: the forms of pointwise expressions for them, and operators that only they have.
#include "native.h"
#include "pointwise.h"

#include <ATen/native/Resize.h>
#include <algorithm>
#include <iterator>
#include <string_view>
#include <torch/library.h>

namespace torch_opencl {
namespace {

using at::Tensor;

struct Form {
    std::string_view plain;
    const char* complex;
};

// Functions t_complex_* are in kernels.cpp.
constexpr Form forms[] = {
    {"a", "a"},
    {"-a", "-a"},
    {"s0", "s0"},
    {"a + b", "a + b"},
    {"a - b", "a - b"},
    {"a + s0 * b", "a + t_complex_mul(s0, b)"},
    {"a - s0 * b", "a - t_complex_mul(s0, b)"},
    {"a * b", "t_complex_mul(a, b)"},
    {"a * a", "t_complex_mul(a, a)"},
    {"a / b", "t_complex_div(a, b)"},
    {"1 / a", "t_complex_div((T)(1, 0), a)"},
    {"a + s0 * b * c", "a + t_complex_mul(s0, t_complex_mul(b, c))"},
    {"a + s0 * (b / c)", "a + t_complex_mul(s0, t_complex_div(b, c))"},
    {"a == b", "a.x == b.x && a.y == b.y"},
    {"a != b", "a.x != b.x || a.y != b.y"},
    {"a != 0", "a.x != 0 || a.y != 0"},
    {"a == 0", "a.x == 0 && a.y == 0"},
    {"a != a", "isnan(a.x) || isnan(a.y)"},
    {"a != 0 ? b : c", "a.x != 0 ? b : c"},
    {"b != 0 ? s0 : a", "b.x != 0 ? s0 : a"},
    {"t_abs(a)", "hypot(a.x, a.y)"},
    {"t_sign(a)", "t_complex_sign(a)"},
    {"exp(a)", "t_complex_exp(a)"},
    {"log(a)", "(T)(log(hypot(a.x, a.y)), atan2(a.y, a.x))"},
    // Those of this file.
    {"conj(a)", "(T)(a.x, -a.y)"},
    {"angle(a)", "atan2(a.y, a.x)"},
    {"real(a)", "a.x"},
    {"complex(a, b)", "(T)(a.x, b.x)"},
    {"polar(a, b)", "(T)(a.x * cos(b.x), a.x * sin(b.x))"},
};

c10::ScalarType complex_type(const Tensor& parts) { return c10::toComplexType(parts.scalar_type()); }

// The types of the operands are what they are; `compute` is a complex one.
void elements(const Tensor& out, std::initializer_list<Tensor> inputs, const char* expression,
              c10::ScalarType compute) {
    at::TensorIteratorConfig config;
    config.add_output(out).check_all_same_dtype(false).set_check_mem_overlap(true);
    config.declare_static_dtype_and_device(out.scalar_type(), out.device());
    for (const Tensor& input : inputs)
        config.add_owned_const_input(input);
    auto iter = config.build();
    pointwise(iter, expression, compute);
}

Tensor& conj_out(const Tensor& a, Tensor& out) {
    TORCH_CHECK_NOT_IMPLEMENTED(a.is_complex(), "opencl: conj_physical of numbers that are not complex");
    elements(out, {a}, "conj(a)", a.scalar_type());
    return out;
}
Tensor& angle_out(const Tensor& a, Tensor& out) {
    if (a.is_complex()) {
        elements(out, {a}, "angle(a)", a.scalar_type());
        return out;
    }
    auto iter = at::TensorIterator::unary_float_op(out, a);
    pointwise(iter, "a != a ? a : a < 0 ? (T)3.14159265358979323846 : (T)0", iter.common_dtype());
    return out;
}
// PyTorch does not make it from the one above.
Tensor angle(const Tensor& a) {
    const auto type = a.is_complex()          ? c10::toRealValueType(a.scalar_type())
                      : a.is_floating_point() ? a.scalar_type()
                                              : c10::typeMetaToScalarType(at::get_default_dtype());
    Tensor out = at::empty_like(a, a.options().dtype(type));
    return angle_out(a, out);
}
Tensor& complex_out(const Tensor& real, const Tensor& imaginary, Tensor& out) {
    TORCH_CHECK(real.scalar_type() == imaginary.scalar_type(), "Expected object of scalar type ", real.scalar_type(),
                " but got scalar type ", imaginary.scalar_type(), " for second argument");
    elements(out, {real, imaginary}, "complex(a, b)", complex_type(real));
    return out;
}
Tensor& polar_out(const Tensor& length, const Tensor& angle, Tensor& out) {
    TORCH_CHECK(length.scalar_type() == angle.scalar_type(), "Expected object of scalar type ", length.scalar_type(),
                " but got scalar type ", angle.scalar_type(), " for second argument");
    elements(out, {length, angle}, "polar(a, b)", complex_type(length));
    return out;
}

}  // namespace

const char* complex_form(const char* expression) {
    const auto* const found = std::find_if(std::begin(forms), std::end(forms),
                                           [expression](const Form& form) { return form.plain == expression; });
    TORCH_CHECK_NOT_IMPLEMENTED(found != std::end(forms), "opencl: no kernel for complex numbers");
    return found->complex;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl(NATIVE_COMPLEX("conj_physical.out", conj_out));
    m.impl(NATIVE_COMPLEX("angle", torch_opencl::angle));
    m.impl(NATIVE_COMPLEX("angle.out", angle_out));
    m.impl(NATIVE_COMPLEX("complex.out", complex_out));
    m.impl(NATIVE_COMPLEX("polar.out", polar_out));
}

}  // namespace torch_opencl
