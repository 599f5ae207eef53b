// A key names the expression, the types, and for each operand how it steps along the innermost dimension (0, 1 or any stride):
// constant steps let the compiler use vector loads. The dimensions 0 and 1 are dimensions of the launch; the others are
// computed from the third index, once per row.
#include "pointwise.h"

#include "kernels.h"

#include <c10/util/SmallVector.h>

namespace torch_opencl {
namespace {

constexpr int operands_max = 9;

enum class Step : char { none = '0', one = '1', any = 'n', scalar = 's' };

struct Operand {
    c10::ScalarType type;
    Step step;
};

struct Shape {
    c10::SmallVector<Operand, operands_max> operands;
    int dimensions = 1;
    bool is_flat = false;  // all operands are contiguous and have the same shape
};

Step step_of(const at::TensorIteratorBase& iter, int argument, int dimensions) {
    if (argument > 0 && iter.is_cpu_scalar(argument))
        return Step::scalar;
    if (dimensions == 0)
        return Step::none;
    const int64_t stride = iter.strides(argument)[0];
    if (stride == 0)
        return Step::none;
    return stride == static_cast<int64_t>(iter.element_size(argument)) ? Step::one : Step::any;
}

Shape shape_of(const at::TensorIteratorBase& iter) {
    Shape shape;
    shape.dimensions = iter.ndim();
    shape.is_flat = iter.ndim() <= 1;
    for (int i = 0; i < iter.ntensors(); ++i) {
        shape.operands.push_back({iter.dtype(i), step_of(iter, i, iter.ndim())});
        shape.is_flat = shape.is_flat && shape.operands.back().step != Step::any;
    }
    return shape;
}

std::string key_of(const Shape& shape, const char* expression, c10::ScalarType compute, size_t scalars) {
    std::string key = "pointwise ";
    key += short_name(compute);
    key += shape.is_flat ? "|" : std::to_string(shape.dimensions);
    for (const Operand& operand : shape.operands) {
        key += static_cast<char>(operand.step);
        key += short_name(operand.type);
    }
    key += static_cast<char>('0' + scalars);
    return key += expression;
}

std::string index_of(const Shape& shape, int operand) {
    const std::string number = std::to_string(operand);
    switch (shape.operands[static_cast<size_t>(operand)].step) {
    case Step::one: return "x0" + (shape.is_flat ? "" : " + r" + number);
    case Step::none: return shape.is_flat ? "0" : "r" + number;
    default: return "x0 * L.s[" + number + "][0] + r" + number;
    }
}

// r<k>: the index of the row's first element in operand k.
std::string rows_source(const Shape& shape) {
    const auto count = static_cast<int>(shape.operands.size());
    std::string text = "  size_t row = get_global_id(2);\n";
    for (int k = 0; k < count; ++k)
        text += "  long r" + std::to_string(k) + " = 0;\n";
    for (int d = 1; d < shape.dimensions; ++d) {
        const std::string dimension = std::to_string(d);
        if (d == 1)
            text += "  { size_t x = get_global_id(1);";
        else if (d + 1 == shape.dimensions)
            text += "  { size_t x = row;";
        else
            text += "  { size_t x = row % L.n[" + dimension + "]; row /= L.n[" + dimension + "];";
        for (int k = 0; k < count; ++k)
            if (shape.operands[static_cast<size_t>(k)].step != Step::scalar)
                text += " r" + std::to_string(k) + " += x * L.s[" + std::to_string(k) + "][" + dimension + "];";
        text += " }\n";
    }
    return text;
}

// A value of an operand's type as one of the compute type.
std::string converted(const std::string& value, c10::ScalarType from, c10::ScalarType compute) {
    if (!c10::isComplexType(compute))
        return "(T)" + value;
    return c10::isComplexType(from) ? std::string("convert_") + compute_name(compute) + "(" + value + ")"
                                    : "(T)((R)" + value + ", 0)";
}

std::string source_of(const Shape& shape, const char* expression, c10::ScalarType compute, size_t scalars) {
    const auto count = static_cast<int>(shape.operands.size());
    std::string text = compute_type_macros(compute);
    std::string parameters;
    std::string loads;
    for (int k = 0; k < count; ++k) {
        const Operand& operand = shape.operands[static_cast<size_t>(k)];
        const std::string number = std::to_string(k);
        const std::string name(1, static_cast<char>('a' + k - 1));
        if (operand.step == Step::scalar) {
            parameters += "T v" + number + ", ";
            loads += "  T " + name + " = v" + number + ";\n";
            continue;
        }
        text += access_macros(number, operand.type);
        parameters +=
            std::string("global ") + storage_name(operand.type) + "* " + (k == 0 ? "p" : "const p") + number + ", ";
        const std::string value = "LOAD" + number + "(p" + number + ", " + index_of(shape, k) + ")";
        if (k > 0)
            loads += "  T " + name + " = " + converted(value, operand.type, compute) + ";\n";
    }
    for (size_t s = 0; s < scalars; ++s)
        parameters += "T s" + std::to_string(s) + ", ";
    const std::string dimensions = std::to_string(std::max(1, shape.dimensions));
    text += "typedef struct { long n[" + dimensions + "]; long s[" + std::to_string(count) + "][" + dimensions +
            "]; } Layout;\n";
    text += helper_functions(expression);
    text += "kernel void pointwise(" + parameters + "Layout L) {\n  size_t x0 = get_global_id(0);\n";
    if (!shape.is_flat)
        text += rows_source(shape);
    return text + loads + "  STORE0(p0, " + index_of(shape, 0) + ", (" + expression + "));\n}\n";
}

// n and s of the kernel's Layout: sizes, and strides in elements.
c10::SmallVector<int64_t, 64> layout_of(const at::TensorIteratorBase& iter) {
    const int dimensions = std::max(1, iter.ndim());
    c10::SmallVector<int64_t, 64> layout;
    for (int d = 0; d < dimensions; ++d)
        layout.push_back(iter.ndim() == 0 ? 1 : iter.shape()[d]);
    for (int k = 0; k < iter.ntensors(); ++k)
        for (int d = 0; d < dimensions; ++d)
            layout.push_back(iter.ndim() == 0 ? 0 : iter.strides(k)[d] / static_cast<int64_t>(iter.element_size(k)));
    return layout;
}

std::array<size_t, 3> global_of(const at::TensorIteratorBase& iter) {
    std::array<size_t, 3> global{1, 1, 1};
    for (int d = 0; d < iter.ndim(); ++d)
        global[static_cast<size_t>(std::min(d, 2))] *= static_cast<size_t>(iter.shape()[d]);
    return global;
}

void check_types(const at::TensorIteratorBase& iter, c10::ScalarType compute, const Device& device) {
    constexpr const char* what = "a pointwise operation";
    const bool is_complex = is_supported_complex(compute, device.has_double);
    for (int k = 0; k < iter.ntensors(); ++k)
        if (!(is_complex && is_supported_complex(iter.dtype(k), device.has_double)))
            check_supported(iter.dtype(k), device.index, what);
    if (!is_complex)
        check_supported(compute, device.index, what);
}

}  // namespace

const Device& opencl_device(const at::TensorBase& tensor) { return Platform::get().device(tensor.device().index()); }

void pointwise(at::TensorIteratorBase& iter, const char* expression, c10::ScalarType compute,
               c10::ArrayRef<c10::Scalar> scalars) {
    if (iter.numel() == 0)
        return;
    const Device& device = opencl_device(iter.tensor_base(0));
    check_types(iter, compute, device);
    if (c10::isComplexType(compute)) [[unlikely]]
        expression = complex_form(expression);
    const Shape shape = shape_of(iter);
    Kernel& kernel = kernel_of(device, key_of(shape, expression, compute, scalars.size()), "pointwise",
                               [&] { return source_of(shape, expression, compute, scalars.size()); });
    Launch launch(device, kernel);
    for (int k = 0; k < iter.ntensors(); ++k) {
        if (shape.operands[static_cast<size_t>(k)].step == Step::scalar)
            launch.scalar(scalar_bytes(iter.tensor(k).item(), compute));
        else
            launch.address(iter.data_ptr(k));
    }
    for (const c10::Scalar& scalar : scalars)
        launch.scalar(scalar_bytes(scalar, compute));
    const auto layout = layout_of(iter);
    launch.bytes(layout.data(), layout.size() * sizeof(int64_t)).run(global_of(iter));
}

}  // namespace torch_opencl
