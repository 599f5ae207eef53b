// Optimizers with `fused=True`: one kernel for eight parameters, which are often small.
#include "native.h"
#include "pointwise.h"

#include <initializer_list>
#include <torch/library.h>

namespace torch_opencl {
namespace {

using at::Tensor;
using OptionalTensor = std::optional<Tensor>;

struct Adam {
    double lr, beta1, beta2, weight_decay, eps;
    bool amsgrad, maximize, is_decoupled;
};

// Several parameters are one launch: its dimension 1 chooses among them.
constexpr size_t slots = 8;
struct SlotText {
    std::string parameters;  // of the kernel
    std::string choice;  // declares the variables of the chosen slot
};
// For each declaration, such as "long n", a parameter for each slot.
SlotText slot_text(std::initializer_list<const char*> declarations) {
    SlotText text;
    std::string cases[slots];
    for (const std::string declaration : declarations) {
        const std::string variable = declaration.substr(declaration.rfind(' ') + 1);
        text.choice += "  " + declaration + ";\n";
        for (size_t slot = 0; slot < slots; ++slot) {
            text.parameters += declaration + std::to_string(slot) + ", ";
            cases[slot] += variable + " = " + variable + std::to_string(slot) + "; ";
        }
    }
    text.choice += "  switch (get_global_id(1)) {\n";
    for (size_t slot = 0; slot < slots; ++slot)
        text.choice += (slot + 1 < slots ? "  case " + std::to_string(slot) : std::string("  default")) + ": " +
                       cases[slot] + "break;\n";
    text.choice += "  }\n";
    return text;
}
// A slot without a parameter has the tensors of the first one, and no elements.
template <typename Tensors>
const Tensors& in_slot(c10::ArrayRef<Tensors> all, size_t slot) {
    return all[slot < all.size() ? slot : 0];
}
// Adds each slot's number of elements, and returns the greatest.
template <typename Tensors>
int64_t add_sizes(Launch& launch, c10::ArrayRef<Tensors> all) {
    int64_t longest = 0;
    for (size_t slot = 0; slot < slots; ++slot) {
        const int64_t n = slot < all.size() ? all[slot].param.numel() : 0;
        launch.value(n);
        longest = std::max(longest, n);
    }
    return longest;
}

// The tensors of one parameter.
struct AdamTensors {
    Tensor param, grad, exp_avg, exp_avg_sq, max_sq, step;
};
constexpr size_t group = 64;  // work-items that share the powers of the betas
constexpr size_t turns = 8;  // elements of a work-item

const char* const adam_element = R"(
inline void update(global X_T* param, global X_T* grad, global X_T* exp_avg, global X_T* exp_avg_sq, global X_T* max_sq, long i,
                   global const float* grad_scale, int maximize, int decoupled, T rate, T root, S lr, S beta1, S beta2, S decay, S eps) {
  T p = LOADX(param, i), g = LOADX(grad, i), m = LOADX(exp_avg, i), v = LOADX(exp_avg_sq, i);
#if HAS_SCALE
  g /= *grad_scale;
  STOREX(grad, i, g);
#endif
  g = maximize ? -g : g;
  if (decoupled) p -= (T)(lr * decay) * p; else g += (T)decay * p;
  m += (T)(1 - beta1) * (g - m);
  v = (T)beta2 * v + (T)(1 - beta2) * g * g;
  T greatest = v;
#if AMSGRAD
  greatest = max((T)LOADX(max_sq, i), v);
  STOREX(max_sq, i, greatest);
#endif
  p -= rate * m / (sqrt(greatest) * root + (T)eps);
  STOREX(param, i, p);
  STOREX(exp_avg, i, m);
  STOREX(exp_avg_sq, i, v);
}
)";
const char* const adam_body = R"(
  // A launch has as many groups for each parameter as the largest one needs.
  long first = (long)get_group_id(0) * TURNS * GROUP, mine = first + get_local_id(0);
  if (first >= n || (has_inf && *found_inf == 1.0f)) return;
  if (get_local_id(0) == 0) {
    S t = *step;
    shared[0] = (T)(lr / (1 - pow(beta1, t)));
    shared[1] = (T)(1 / sqrt(1 - pow(beta2, t)));
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  T rate = shared[0], root = shared[1];
#define UPDATE(i) update(param, grad, exp_avg, exp_avg_sq, max_sq, i, grad_scale, maximize, decoupled, rate, root, lr, beta1, beta2, decay, eps)
  // All but the last group of a parameter have no condition per element: it would cost as much as all the rest.
  if (first + TURNS * GROUP <= n) {
    for (int turn = 0; turn < TURNS; ++turn) UPDATE(mine + turn * GROUP);
  } else {
    for (int turn = 0; turn < TURNS; ++turn) if (mine + turn * GROUP < n) UPDATE(mine + turn * GROUP);
  }
}
)";

// The head of the kernel, with the parameters of each slot.
std::string adam_kernel(bool amsgrad, bool has_scale) {
    const SlotText text =
        slot_text({"global X_T* param", "global X_T* grad", "global X_T* exp_avg", "global X_T* exp_avg_sq",
                   "global X_T* max_sq", "global const float* step", "long n"});
    return "#define TURNS " + std::to_string(turns) + "\n#define AMSGRAD " + (amsgrad ? "1" : "0") +
           "\n#define HAS_SCALE " + (has_scale ? "1" : "0") + "\n#define GROUP " + std::to_string(group) +
           adam_element + "kernel __attribute__((reqd_work_group_size(" + std::to_string(group) +
           ", 1, 1))) void adam(" + text.parameters +
           "global const float* grad_scale, global const float* found_inf, int has_inf, "
           "int maximize, "
           "int decoupled, S lr, S beta1, S beta2, S decay, S eps) {\n" +
           "  local T shared[2];\n" + text.choice + adam_body;
}

// The kernels walk over the tensors of a parameter in the order of its memory. Those with other strides are copied, and copied back at the end.
class Copies {
public:
    // `tensor` with the strides of `like`, or with dense ones where those of `like` have gaps.
    Tensor walked_like(const Tensor& like, const Tensor& tensor) {
        if (!tensor.defined())
            return tensor;
        TORCH_CHECK(tensor.sizes() == like.sizes(), "opencl: a fused optimizer's tensors of sizes ", tensor.sizes(),
                    " and ", like.sizes());
        if (tensor.strides() == like.strides() && tensor.is_non_overlapping_and_dense())
            return tensor;
        copies_.emplace_back(tensor, at::empty_like(like).copy_(tensor));
        return copies_.back().second;
    }
    void give_back() const {
        for (const auto& [original, copy] : copies_)
            original.copy_(copy);
    }

private:
    std::vector<std::pair<Tensor, Tensor>> copies_;
};

std::string source(c10::ScalarType type, bool has_double, const std::string& body) {
    return compute_type_macros(type) + access_macros("X", type) + "#define X_T " + storage_name(type) + "\ntypedef " +
           (has_double ? "double" : "float") + " S;\n" + body;
}

const void* address_or(const OptionalTensor& tensor, const Tensor& other) {
    return tensor && tensor->defined() ? tensor->const_data_ptr() : other.const_data_ptr();
}
bool is_there(const OptionalTensor& tensor) { return tensor && tensor->defined(); }

AdamTensors checked(AdamTensors tensors, Copies& copies) {
    check_supported(tensors.param.scalar_type(), tensors.param.device().index(), "a fused optimizer");
    check_type(tensors.param.scalar_type(), tensors.grad, tensors.exp_avg, tensors.exp_avg_sq, tensors.max_sq);
    tensors.param = copies.walked_like(tensors.param, tensors.param);
    for (Tensor* const each : {&tensors.grad, &tensors.exp_avg, &tensors.exp_avg_sq, &tensors.max_sq})
        *each = copies.walked_like(tensors.param, *each);
    TORCH_CHECK(tensors.step.device() == tensors.param.device(), "opencl: the steps of a fused optimizer are on ",
                tensors.step.device(), ", not on ", tensors.param.device());
    if (!tensors.max_sq.defined())
        tensors.max_sq = tensors.param;  // not used
    return tensors;
}

// One launch for at most `slots` parameters of one type and device.
void adam_step(c10::ArrayRef<AdamTensors> all, const Adam& adam, const OptionalTensor& grad_scale,
               const OptionalTensor& found_inf) {
    const Device& device = opencl_device(all[0].param);
    const auto type = all[0].param.scalar_type();
    const auto scalar_type = device.has_double ? at::kDouble : at::kFloat;
    const bool has_scale = is_there(grad_scale);
    const std::string key =
        std::string("adam ") + (adam.amsgrad ? "a" : "") + (has_scale ? "s" : "") + short_name(type);
    Launch launch(device, kernel_of(device, key, "adam", [&] {
                      return source(type, device.has_double, adam_kernel(adam.amsgrad, has_scale));
                  }));
    for (const auto member : {&AdamTensors::param, &AdamTensors::grad, &AdamTensors::exp_avg, &AdamTensors::exp_avg_sq,
                              &AdamTensors::max_sq, &AdamTensors::step})
        for (size_t slot = 0; slot < slots; ++slot)
            launch.written(in_slot(all, slot).*member);
    const int64_t longest = add_sizes(launch, all);
    launch.address(address_or(grad_scale, all[0].step)).address(address_or(found_inf, all[0].step));
    launch.value<int32_t>(is_there(found_inf));
    launch.value<int32_t>(adam.maximize).value<int32_t>(adam.is_decoupled);
    for (const double value : {adam.lr, adam.beta1, adam.beta2, adam.weight_decay, adam.eps})
        launch.scalar(scalar_bytes(value, scalar_type));
    const size_t groups = (static_cast<size_t>(longest) + group * turns - 1) / (group * turns);
    launch.run({groups * group, all.size(), 1}, {group, 1, 1});
}

// Where memory can be evicted, all tensors of a launch must fit into the device's memory together.
size_t launch_bytes_max(const Device& device) {
    return Platform::get().addressing() == Addressing::none ? device.memory_bytes / 4 : SIZE_MAX;
}

// Collects parameters of one device and type, and steps `slots` of them at once.
template <typename Tensors, typename Step>
class Gathered {
public:
    // tensors_each: how many tensors of the parameter's size a step needs, the parameter included.
    Gathered(size_t tensors_each, Step step) : tensors_each_(tensors_each), step_(std::move(step)) {}
    void add(const Tensors& tensors) {
        const Tensor& param = tensors.param;
        const size_t bytes = param.nbytes() * tensors_each_;
        if (waiting_.size() == slots || waiting_bytes_ + bytes > launch_bytes_max(opencl_device(param)) ||
            (!waiting_.empty() &&
             (waiting_[0].param.device() != param.device() || waiting_[0].param.scalar_type() != param.scalar_type())))
            flush();
        waiting_bytes_ += bytes;
        waiting_.push_back(tensors);
    }
    void flush() {
        if (!waiting_.empty())
            step_(c10::ArrayRef<Tensors>(waiting_));
        waiting_.clear();
        waiting_bytes_ = 0;
    }

private:
    size_t tensors_each_;
    Step step_;
    std::vector<Tensors> waiting_;
    size_t waiting_bytes_ = 0;
};

void adam_steps(at::TensorList params, at::TensorList grads, at::TensorList exp_avgs, at::TensorList exp_avg_sqs,
                at::TensorList max_sqs, at::TensorList steps, const Adam& adam, const OptionalTensor& grad_scale,
                const OptionalTensor& found_inf) {
    const auto step = [&](c10::ArrayRef<AdamTensors> all) { adam_step(all, adam, grad_scale, found_inf); };
    Gathered<AdamTensors, decltype(step)> gathered(adam.amsgrad ? 5 : 4, step);
    Copies copies;
    for (size_t i = 0; i < params.size(); ++i)
        if (params[i].numel() > 0)
            gathered.add(checked(AdamTensors{params[i], grads[i], exp_avgs[i], exp_avg_sqs[i],
                                             adam.amsgrad ? max_sqs[i] : Tensor(), steps[i]},
                                 copies));
    gathered.flush();
    copies.give_back();
}

template <bool is_decoupled>
void fused_adam(at::TensorList params, at::TensorList grads, at::TensorList exp_avgs, at::TensorList exp_avg_sqs,
                at::TensorList max_sqs, at::TensorList steps, double lr, double beta1, double beta2,
                double weight_decay, double eps, bool amsgrad, bool maximize, const OptionalTensor& grad_scale,
                const OptionalTensor& found_inf) {
    adam_steps(params, grads, exp_avgs, exp_avg_sqs, max_sqs, steps,
               {lr, beta1, beta2, weight_decay, eps, amsgrad, maximize, is_decoupled}, grad_scale, found_inf);
}
template <bool is_decoupled>
void fused_adam_tensor_lr(at::TensorList params, at::TensorList grads, at::TensorList exp_avgs,
                          at::TensorList exp_avg_sqs, at::TensorList max_sqs, at::TensorList steps, const Tensor& lr,
                          double beta1, double beta2, double weight_decay, double eps, bool amsgrad, bool maximize,
                          const OptionalTensor& grad_scale, const OptionalTensor& found_inf) {
    fused_adam<is_decoupled>(params, grads, exp_avgs, exp_avg_sqs, max_sqs, steps, lr.item().toDouble(), beta1, beta2,
                             weight_decay, eps, amsgrad, maximize, grad_scale, found_inf);
}

struct Sgd {
    double lr, weight_decay, momentum, dampening;
    bool nesterov, maximize, is_first;
};

struct SgdTensors {
    Tensor param, grad, momentum_buffer;
};

const char* const sgd_body = R"(
  size_t i = get_global_id(0);
  if (i >= n || (has_inf && *found_inf == 1.0f)) return;
  T p = LOADX(param, i), g = LOADX(grad, i);
  if (has_scale) { g /= *grad_scale; STOREX(grad, i, g); }
  if (maximize) g = -g;
  g += (T)decay * p;
  if (momentum != 0) {
    T m = first ? g : (T)momentum * LOADX(momentum_buffer, i) + (T)(1 - dampening) * g;
    STOREX(momentum_buffer, i, m);
    g = nesterov ? g + (T)momentum * m : m;
  }
  STOREX(param, i, p - (T)lr * g);
}
)";

std::string sgd_kernel() {
    const SlotText text = slot_text({"global X_T* param", "global X_T* grad", "global X_T* momentum_buffer", "long n"});
    return "kernel void sgd(" + text.parameters +
           "global const float* grad_scale, global const float* found_inf, int has_scale, int has_inf, "
           "int nesterov, int maximize, int first, S lr, S decay, S momentum, S dampening) {\n" +
           text.choice + sgd_body;
}

// One launch for at most `slots` parameters of one type and device.
void sgd_step(c10::ArrayRef<SgdTensors> all, const Sgd& sgd, const OptionalTensor& grad_scale,
              const OptionalTensor& found_inf) {
    const Device& device = opencl_device(all[0].param);
    const auto type = all[0].param.scalar_type();
    const auto scalar_type = device.has_double ? at::kDouble : at::kFloat;
    Launch launch(device, kernel_of(device, std::string("sgd ") + short_name(type), "sgd",
                                    [&] { return source(type, device.has_double, sgd_kernel()); }));
    for (const auto member : {&SgdTensors::param, &SgdTensors::grad, &SgdTensors::momentum_buffer})
        for (size_t slot = 0; slot < slots; ++slot)
            launch.written(in_slot(all, slot).*member);
    const int64_t longest = add_sizes(launch, all);
    launch.address(address_or(grad_scale, all[0].param)).address(address_or(found_inf, all[0].param));
    launch.value<int32_t>(is_there(grad_scale)).value<int32_t>(is_there(found_inf)).value<int32_t>(sgd.nesterov);
    launch.value<int32_t>(sgd.maximize).value<int32_t>(sgd.is_first);
    for (const double value : {sgd.lr, sgd.weight_decay, sgd.momentum, sgd.dampening})
        launch.scalar(scalar_bytes(value, scalar_type));
    launch.run({static_cast<size_t>(longest), all.size(), 1});
}

SgdTensors checked(SgdTensors tensors, Copies& copies) {
    check_supported(tensors.param.scalar_type(), tensors.param.device().index(), "a fused optimizer");
    check_type(tensors.param.scalar_type(), tensors.grad, tensors.momentum_buffer);
    tensors.param = copies.walked_like(tensors.param, tensors.param);
    for (Tensor* const each : {&tensors.grad, &tensors.momentum_buffer})
        *each = copies.walked_like(tensors.param, *each);
    if (!tensors.momentum_buffer.defined())
        tensors.momentum_buffer = tensors.param;  // not used
    return tensors;
}

void fused_sgd(at::TensorList params, at::TensorList grads, at::TensorList momentum_buffers, double weight_decay,
               double momentum, double lr, double dampening, bool nesterov, bool maximize, bool is_first,
               const OptionalTensor& grad_scale, const OptionalTensor& found_inf) {
    const Sgd sgd{lr, weight_decay, momentum, dampening, nesterov, maximize, is_first};
    const auto step = [&](c10::ArrayRef<SgdTensors> all) { sgd_step(all, sgd, grad_scale, found_inf); };
    Gathered<SgdTensors, decltype(step)> gathered(momentum != 0 ? 3 : 2, step);
    Copies copies;
    for (size_t i = 0; i < params.size(); ++i)
        if (params[i].numel() > 0)
            gathered.add(
                checked(SgdTensors{params[i], grads[i], momentum != 0 ? momentum_buffers[i] : Tensor()}, copies));
    gathered.flush();
    copies.give_back();
}
void fused_sgd_tensor_lr(at::TensorList params, at::TensorList grads, at::TensorList momentum_buffers,
                         double weight_decay, double momentum, const Tensor& lr, double dampening, bool nesterov,
                         bool maximize, bool is_first, const OptionalTensor& grad_scale,
                         const OptionalTensor& found_inf) {
    fused_sgd(params, grads, momentum_buffers, weight_decay, momentum, lr.item().toDouble(), dampening, nesterov,
              maximize, is_first, grad_scale, found_inf);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl(NATIVE("_fused_adam_", fused_adam<false>));
    m.impl(NATIVE("_fused_adam_.tensor_lr", fused_adam_tensor_lr<false>));
    m.impl(NATIVE("_fused_adamw_", fused_adam<true>));
    m.impl(NATIVE("_fused_adamw_.tensor_lr", fused_adam_tensor_lr<true>));
    m.impl(NATIVE("_fused_sgd_", fused_sgd));
    m.impl(NATIVE("_fused_sgd_.tensor_lr", fused_sgd_tensor_lr));
}

}  // namespace torch_opencl
