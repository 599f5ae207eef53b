// The cells of LSTM and GRU after their products: gates, activations and the new state in one kernel, and its gradient in another. What
// the forward pass leaves for the gradient: of an LSTM the four activated gates; of a GRU the gates, the old state, and what
// the reset gate multiplies.
#include "native.h"
#include "pointwise.h"

#include <ATen/Functions.h>
#include <torch/library.h>

namespace torch_opencl {
namespace {

using at::Tensor;
using OptionalTensor = std::optional<Tensor>;

bool is_there(const OptionalTensor& tensor) { return tensor && tensor->defined(); }

// x: the work-item's element of the state, b: its place in the batch. Gates are rows of GATES * n elements.
const char* const cell_kernels = R"(
#define SIGMOID(v_) (1 / (1 + exp(-(v_))))
#define CELL long n = get_global_size(0), x = get_global_id(0), b = get_global_id(1), at = b * n + x;
#define OF(p_, gates_, g_) LOADX(p_, (b * gates_ + g_) * n + x)
#define KEEP(p_, gates_, g_, v_) STOREX(p_, (b * gates_ + g_) * n + x, v_)
#if HAS_BIAS
#define BIAS(p_, g_) LOADX(p_, g_ * n + x)
#else
#define BIAS(p_, g_) 0
#endif
#define INPUT(gates_, g_) (OF(input, gates_, g_) + BIAS(input_bias, g_))
#define HIDDEN(gates_, g_) (OF(hidden, gates_, g_) + BIAS(hidden_bias, g_))
#define GATE(gates_, g_) (INPUT(gates_, g_) + HIDDEN(gates_, g_))
#define INPUTS global const X_T* input, global const X_T* hidden, global const X_T* input_bias, global const X_T* hidden_bias, global const X_T* old

kernel void lstm(INPUTS, global X_T* state, global X_T* cell, global X_T* kept) {
  CELL
  T i = SIGMOID(GATE(4, 0)), f = SIGMOID(GATE(4, 1)), g = tanh(GATE(4, 2)), o = SIGMOID(GATE(4, 3));
  T c = f * LOADX(old, at) + i * g;
  STOREX(cell, at, c);
  STOREX(state, at, o * tanh(c));
  KEEP(kept, 4, 0, i); KEEP(kept, 4, 1, f); KEEP(kept, 4, 2, g); KEEP(kept, 4, 3, o);
}
kernel void lstm_grad(global const X_T* grad_state, global const X_T* grad_cell, global const X_T* old, global const X_T* cell,
                      global const X_T* kept, global X_T* grad_gates, global X_T* grad_old, int has_state, int has_cell) {
  CELL
  T i = OF(kept, 4, 0), f = OF(kept, 4, 1), g = OF(kept, 4, 2), o = OF(kept, 4, 3), t = tanh(LOADX(cell, at));
  T dh = has_state ? LOADX(grad_state, at) : (T)0;
  T dc = dh * o * (1 - t * t) + (has_cell ? LOADX(grad_cell, at) : (T)0);
  KEEP(grad_gates, 4, 0, dc * g * i * (1 - i));
  KEEP(grad_gates, 4, 1, dc * LOADX(old, at) * f * (1 - f));
  KEEP(grad_gates, 4, 2, dc * i * (1 - g * g));
  KEEP(grad_gates, 4, 3, dh * t * o * (1 - o));
  STOREX(grad_old, at, dc * f);
}
kernel void gru(INPUTS, global X_T* state, global X_T* kept) {
  CELL
  T r = SIGMOID(GATE(3, 0)), z = SIGMOID(GATE(3, 1)), h = HIDDEN(3, 2), m = tanh(INPUT(3, 2) + r * h), before = LOADX(old, at);
  STOREX(state, at, m + z * (before - m));
  KEEP(kept, 5, 0, r); KEEP(kept, 5, 1, z); KEEP(kept, 5, 2, m); KEEP(kept, 5, 3, before); KEEP(kept, 5, 4, h);
}
kernel void gru_grad(global const X_T* grad, global const X_T* kept, global X_T* grad_input, global X_T* grad_hidden, global X_T* grad_old) {
  CELL
  T r = OF(kept, 5, 0), z = OF(kept, 5, 1), m = OF(kept, 5, 2), before = OF(kept, 5, 3), h = OF(kept, 5, 4), d = LOADX(grad, at);
  T dm = d * (1 - z) * (1 - m * m), dr = dm * h * r * (1 - r), dz = d * (before - m) * z * (1 - z);
  KEEP(grad_input, 3, 0, dr); KEEP(grad_input, 3, 1, dz); KEEP(grad_input, 3, 2, dm);
  KEEP(grad_hidden, 3, 0, dr); KEEP(grad_hidden, 3, 1, dz); KEEP(grad_hidden, 3, 2, dm * r);
  STOREX(grad_old, at, d * z);
}
)";

// A launch over the elements of a state [batch, n].
struct CellLaunch {
    CellLaunch(const Tensor& like, const char* name, bool has_bias)
        : launch(opencl_device(like), kernel_for(like, name, has_bias)) {}

    static Kernel& kernel_for(const Tensor& like, const char* name, bool has_bias) {
        const auto type = like.scalar_type();
        check_supported(type, opencl_device(like).index, name);
        const std::string key = std::string("cell ") + name + (has_bias ? " biased " : " ") + short_name(type);
        return kernel_of(opencl_device(like), key, name, [&] {
            return compute_type_macros(type) + access_macros("X", type) + "#define X_T " + storage_name(type) +
                   "\n#define HAS_BIAS " + (has_bias ? "1" : "0") + cell_kernels;
        });
    }
    void run(const Tensor& state) {
        launch.run({static_cast<size_t>(state.size(1)), static_cast<size_t>(state.size(0)), 1});
    }
    Launch launch;
};

// The gates' inputs and the old state, contiguous. A state in another precision than the gates is computed in the wider of both. Without biases
// the gates are read in their place and not used.
struct Inputs {
    Inputs(const Tensor& input_gates, const Tensor& hidden_gates, const OptionalTensor& input_biases,
           const OptionalTensor& hidden_biases, const Tensor& old_state)
        : has_bias(is_there(input_biases)), type(at::result_type(input_gates, old_state)), input(prepared(input_gates)),
          hidden(prepared(hidden_gates)), input_bias(has_bias ? prepared(*input_biases) : input),
          hidden_bias(has_bias ? prepared(*hidden_biases) : hidden), old(prepared(old_state)) {
        check_type(input_gates.scalar_type(), hidden_gates);
        check_floating(type, "a recurrent cell");
        TORCH_CHECK(input.sizes() == hidden.sizes() &&
                        input_bias.numel() == (has_bias ? input.size(1) : input.numel()) &&
                        hidden_bias.numel() == input_bias.numel(),
                    "opencl: the gates ", input.sizes(), " and ", hidden.sizes(),
                    " of a recurrent cell have biases of ", input_bias.sizes(), " and ", hidden_bias.sizes());
    }
    Tensor prepared(const Tensor& tensor) const { return tensor.to(type).contiguous(); }
    void add(Launch& launch) const { launch.read(input).read(hidden).read(input_bias).read(hidden_bias).read(old); }
    bool has_bias;
    c10::ScalarType type;
    Tensor input, hidden, input_bias, hidden_bias, old;
};

Tensor like_state(const Tensor& state) { return at::empty(state.sizes(), state.options()); }
Tensor of_gates(const Tensor& state, int64_t gates) {
    return at::empty({state.size(0), gates * state.size(1)}, state.options());
}

std::tuple<Tensor, Tensor, Tensor> lstm(const Tensor& input, const Tensor& hidden, const Tensor& cell,
                                        const OptionalTensor& input_bias, const OptionalTensor& hidden_bias) {
    const Inputs inputs(input, hidden, input_bias, hidden_bias, cell);
    const Tensor &old = inputs.old, state = like_state(old), next = like_state(old), kept = of_gates(old, 4);
    CellLaunch step(old, "lstm", inputs.has_bias);
    inputs.add(step.launch);
    step.launch.written(state).written(next).written(kept);
    step.run(old);
    return {state, next, kept};
}

std::tuple<Tensor, Tensor, Tensor> lstm_backward(const OptionalTensor& grad_state, const OptionalTensor& grad_cell,
                                                 const Tensor& old, const Tensor& cell, const Tensor& kept,
                                                 bool has_bias) {
    if (!is_there(grad_state) && !is_there(grad_cell))
        return {};
    const Tensor after = cell.contiguous(), gates = kept.contiguous();
    const Tensor before = old.to(after.scalar_type()).contiguous();
    check_type(after.scalar_type(), gates);
    const Tensor dh = is_there(grad_state) ? grad_state->contiguous() : after;
    const Tensor dc = is_there(grad_cell) ? grad_cell->contiguous() : after;
    const Tensor grad_gates = of_gates(before, 4), grad_old = like_state(before);
    {
        CellLaunch step(before, "lstm_grad", false);
        step.launch.read(dh).read(dc).read(before).read(after).read(gates).written(grad_gates).written(grad_old);
        step.launch.value<int32_t>(is_there(grad_state)).value<int32_t>(is_there(grad_cell));
        step.run(before);
    }
    return {grad_gates, grad_old, has_bias ? at::sum(grad_gates, at::IntArrayRef{0}) : Tensor()};
}

std::tuple<Tensor, Tensor> gru(const Tensor& input, const Tensor& hidden, const Tensor& before,
                               const OptionalTensor& input_bias, const OptionalTensor& hidden_bias) {
    const Inputs inputs(input, hidden, input_bias, hidden_bias, before);
    const Tensor &old = inputs.old, state = like_state(old), kept = of_gates(old, 5);
    CellLaunch step(old, "gru", inputs.has_bias);
    inputs.add(step.launch);
    step.launch.written(state).written(kept);
    step.run(old);
    return {state, kept};
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> gru_backward(const Tensor& grad, const Tensor& kept, bool has_bias) {
    const Tensor d = grad.contiguous(), gates = kept.contiguous();
    const Tensor grad_input = of_gates(d, 3), grad_hidden = of_gates(d, 3), grad_old = like_state(d);
    {
        CellLaunch step(d, "gru_grad", false);
        step.launch.read(d).read(gates).written(grad_input).written(grad_hidden).written(grad_old);
        step.run(d);
    }
    const auto bias = [has_bias](const Tensor& gradients) {
        return has_bias ? at::sum(gradients, at::IntArrayRef{0}) : Tensor();
    };
    return {grad_input, grad_hidden, grad_old, bias(grad_input), bias(grad_hidden)};
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl(NATIVE("_thnn_fused_lstm_cell", lstm));
    m.impl(NATIVE("_thnn_fused_lstm_cell_backward_impl", lstm_backward));
    m.impl(NATIVE("_thnn_fused_gru_cell", gru));
    m.impl(NATIVE("_thnn_fused_gru_cell_backward", gru_backward));
}

}  // namespace torch_opencl
