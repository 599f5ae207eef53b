// Operators without a kernel run on the CPU, with copies there and back. Each one is counted, and its first call prints a warning.
#include "fallback.h"

#include <ATen/native/CPUFallback.h>
#include <cstdlib>
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

// An operator runs on the CPU for a tensor of this backend. A first tensor that is on the CPU already is a program's error, such as an input
// that was not moved to the device of the weights; the copies there and back would hide it.
void check_first_tensor(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
    const auto arguments = torch::jit::last(stack, op.schema().arguments().size());
    const at::Tensor* first = nullptr;
    for (const c10::IValue& argument : arguments) {
        if (!argument.isTensor() || !argument.toTensor().defined())
            continue;
        const at::Tensor& tensor = argument.toTensor();
        if (!first && (!tensor.is_cpu() || tensor.dim() == 0))
            return;
        if (!first)
            first = &tensor;
        TORCH_CHECK(!tensor.is_privateuseone(),
                    "Expected all tensors to be on the same device, but found at least two devices, ", first->device(),
                    " and ", tensor.device(), "!");
    }
}

void run_on_cpu(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
    check_first_tensor(op, *stack);
    const auto& name = op.operator_name();
    const std::string full = name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
    count_fallback(full);
    at::native::cpu_fallback(op, stack);
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

}  // namespace torch_opencl
