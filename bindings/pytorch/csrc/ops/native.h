// Registration of operators with kernels. Such an operator runs on the CPU as one without kernels does, counted and with its warning, where it
// has no kernel for what it is called with: complex numbers and other types (types.h), or what a kernel refuses with NotImplementedError
// before it changes anything. So whatever the CPU backend computes works here.
//
// m.impl(NATIVE("add.out", add_out)); in place of m.impl("add.out", add_out);
#pragma once

#include "fallback.h"
#include "types.h"

#include <ATen/core/IListRef.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/boxing/BoxedKernel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <algorithm>
#include <c10/util/Exception.h>

namespace torch_opencl {

// NATIVE_COMPLEX in place of NATIVE lets complex numbers pass: the operator has kernels for some of them, and refuses the others itself.
enum class Complex : bool { refused, accepted };

template <typename Other>
bool may_have_kernels(const Other&) {
    return true;
}
inline bool may_have_kernels(const at::Tensor& tensor) { return !tensor.defined() || is_known(tensor.scalar_type()); }
inline bool may_have_kernels(const c10::Scalar& scalar) { return !scalar.isComplex(); }
inline bool may_have_kernels(c10::ScalarType type) { return is_known(type); }
inline bool may_have_kernels(at::TensorList tensors) {
    return std::all_of(tensors.begin(), tensors.end(), [](const at::Tensor& each) { return may_have_kernels(each); });
}
template <typename Value>
bool may_have_kernels(const std::optional<Value>& value) {
    return !value || may_have_kernels(*value);
}

// Kernels take the memory of a tensor for elements of the type that they were made for. PyTorch checks the types of the results that it makes, but
// not of those that the caller gives, nor of each input. Tensors may be undefined.
template <typename... Tensors>
void check_type(c10::ScalarType type, const Tensors&... tensors) {
    const auto check = [type](const at::Tensor& tensor) {
        TORCH_CHECK(!tensor.defined() || tensor.scalar_type() == type, "expected scalar type ", type, " but found ",
                    tensor.scalar_type());
    };
    (check(tensors), ...);
}

// A result that the caller gives has the type that the operator would have made it with.
inline void check_result_type(c10::ScalarType type, const at::Tensor& out) {
    TORCH_CHECK(out.scalar_type() == type, "Expected out tensor to have dtype ", type, ", but got ", out.scalar_type(),
                " instead");
}

// The name of an operator and its overload as a template argument.
template <size_t size>
struct OperatorName {
    char text[size];
    consteval OperatorName(const char (&given)[size]) { std::copy_n(given, size, text); }
};

template <OperatorName name, Complex complex, auto function>
struct OrOnCpu;

template <OperatorName name, Complex complex, typename Result, typename... Arguments, Result (*function)(Arguments...)>
struct OrOnCpu<name, complex, function> {
    static Result call(Arguments... arguments) {
        if (complex == Complex::accepted || (may_have_kernels(arguments) && ...)) [[likely]] {
            try {
                return function(arguments...);
            } catch (const c10::NotImplementedError&) {
            }
        }
        static const c10::OperatorHandle op = find_operator(name.text);
        return c10::impl::BoxedKernelWrapper<Result(Arguments...)>::call(fallback_kernel(), op, c10::DispatchKeySet(),
                                                                         std::forward<Arguments>(arguments)...);
    }
};

#define NATIVE(name, ...) name, &OrOnCpu<OperatorName(name), Complex::refused, __VA_ARGS__>::call
#define NATIVE_COMPLEX(name, ...) name, &OrOnCpu<OperatorName(name), Complex::accepted, __VA_ARGS__>::call

}  // namespace torch_opencl
