// Operators without a kernel run on the CPU, with copies there and back. Each one is counted, and its first call prints a warning.
#include "fallback.h"

#include "../program.h"

#include <ATen/native/CPUFallback.h>
#include <algorithm>
#include <cstddef>
#include <map>
#include <mutex>
#include <torch/library.h>

namespace torch_opencl {
namespace {

struct Counts {
    std::mutex mutex;
    std::map<std::string, int64_t> by_name;
};

Counts& counts() {
    static auto* const it = new Counts;
    return *it;
}

// An operator runs on the CPU for a tensor of this backend. Another tensor that is on the CPU already is a program's error, such as an input
// that was not moved to the device of the weights; the copies there and back would hide it. Numbers may be on the CPU, and so may the
// indices of `index` and `index_put`, which are lists.
void check_devices(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
    const at::Tensor* first = nullptr;
    for (const c10::IValue& argument : torch::jit::last(stack, op.schema().arguments().size())) {
        if (!argument.isTensor() || !argument.toTensor().defined())
            continue;
        const at::Tensor& tensor = argument.toTensor();
        if (tensor.is_cpu() && tensor.dim() == 0)
            continue;
        if (first)
            check_same_device(first->device(), tensor);
        else
            first = &tensor;
    }
}

std::string full_name(const c10::OperatorHandle& op) {
    const auto& name = op.operator_name();
    return name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
}

void run_on_cpu(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
    check_devices(op, *stack);
    count_fallback(full_name(op));
    at::native::cpu_fallback(op, stack);
}

c10::IValue moved(const c10::IValue& value, c10::Device device) {
    if (value.isTensor())
        return value.toTensor().defined() ? value.toTensor().to(device) : value;
    if (!value.isTensorList())
        return value;
    c10::List<at::Tensor> tensors;
    for (const at::Tensor& tensor : value.toTensorVector())
        tensors.push_back(tensor.to(device));
    return tensors;
}

// PyTorch's function for the above does not move sparse tensors. Those that the operator would change are not supported.
void run_sparse_on_cpu(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
    check_devices(op, *stack);
    TORCH_CHECK_NOT_IMPLEMENTED(!op.schema().is_mutable(), "opencl: ", full_name(op), " of sparse tensors");
    count_fallback(full_name(op));
    std::optional<c10::Device> device;
    const auto from = [stack](size_t count) { return stack->end() - static_cast<std::ptrdiff_t>(count); };
    std::for_each(from(op.schema().arguments().size()), stack->end(), [&device](c10::IValue& argument) {
        if (argument.isTensor() && argument.toTensor().defined() && argument.toTensor().is_privateuseone())
            device = argument.toTensor().device();
        argument = moved(argument, at::kCPU);
    });
    op.callBoxed(stack);
    std::for_each(from(op.schema().returns().size()), stack->end(), [&device](c10::IValue& result) {
        if (device)
            result = moved(result, *device);
    });
}

}  // namespace

void count_fallback(const std::string& name) {
    bool is_first = false;
    {
        const std::lock_guard lock(counts().mutex);
        is_first = counts().by_name[name]++ == 0;
    }
    if (is_first)
        TORCH_WARN("opencl: ", name,
                   " has no kernel and runs on the CPU; torch.opencl.fallbacks() lists such operators");
}

std::vector<std::pair<std::string, int64_t>> fallback_counts() {
    const std::lock_guard lock(counts().mutex);
    return {counts().by_name.begin(), counts().by_name.end()};
}

void reset_fallback_counts() {
    const std::lock_guard lock(counts().mutex);
    counts().by_name.clear();
}

c10::BoxedKernel fallback_kernel() { return c10::BoxedKernel::makeFromFunction<&run_on_cpu>(); }

c10::OperatorHandle find_operator(const std::string& name) {
    const size_t dot = name.find('.');
    const std::string overload = dot == std::string::npos ? "" : name.substr(dot + 1);
    return c10::Dispatcher::singleton().findSchemaOrThrow(("aten::" + name.substr(0, dot)).c_str(), overload.c_str());
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&run_on_cpu>()); }
TORCH_LIBRARY_IMPL(_, SparsePrivateUse1, m) {
    m.fallback(torch::CppFunction::makeFromBoxedFunction<&run_sparse_on_cpu>());
}

}  // namespace torch_opencl
