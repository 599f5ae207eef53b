// Connectionist temporal classification (Graves et al., 2006): the loss of sequences whose alignment is unknown, and its gradient.
//
// A target of n classes is a path of 2 n + 1 states: blanks between its classes and around them. alpha(t, s) is the logarithm of the sum of the
// probabilities of all beginnings of paths that are in state s at time t, and beta(t, s) that of all ends. One work-group has a sample: it goes
// through time step by step, and its items share the states of a step.
#include "native.h"
#include "rows.h"

#include <ATen/Functions.h>
#include <algorithm>
#include <torch/library.h>

namespace torch_opencl {
namespace {

using at::IntArrayRef;
using at::Tensor;

const char* const ctc_body = R"(
#define CLASS(s) ((s) % 2 == 0 ? blank : target[(s) / 2])
#define PROBABILITY(t, c) LOADX(probabilities, ((t) * samples + b) * classes + (c))
inline T log_sum(T a, T b, T c) {
  T m = fmax(a, fmax(b, c));
  return m == -INFINITY ? m : m + log(exp(a - m) + exp(b - m) + exp(c - m));
}
// A path goes to the same state, to the next one, or over a blank to another class.
)";
const char* const states_body =
    R"(states(global const X_T* probabilities, global const long* targets, global const long* layout,
    global X_T* table, global X_T* losses, long samples, long classes, long times, long width, long blank, int is_beta) {
  int lane = get_local_id(0);
  long b = get_group_id(0), length = layout[b], last = 2 * layout[samples + b];
  global const long* target = targets + layout[2 * samples + b];
  global X_T* mine = table + b * times * width;
  for (long step = 0; step < length; ++step) {
    long t = is_beta ? length - 1 - step : step;
    global X_T* before = mine + (is_beta ? t + 1 : t - 1) * width;
    for (long k = lane; k <= last; k += ITEMS) {
      // k counts from the end at which paths begin.
      long s = is_beta ? last - k : k, back = is_beta ? 1 : -1;
      T sum = k < 2 ? (T)0 : (T)-INFINITY;
      if (step > 0) {
        T same = LOADX(before, s), next = k > 0 ? LOADX(before, s + back) : (T)-INFINITY;
        T over = k > 1 && CLASS(s) != CLASS(s + 2 * back) ? LOADX(before, s + 2 * back) : (T)-INFINITY;
        sum = log_sum(same, next, over);
      }
      STOREX(mine, t * width + s, sum + PROBABILITY(t, CLASS(s)));
    }
    barrier(CLK_GLOBAL_MEM_FENCE);
  }
  if (lane == 0 && !is_beta) {
    global X_T* final = mine + (length - 1) * width;
    T sum = length == 0 ? (last == 0 ? (T)0 : (T)-INFINITY)
                        : log_sum(LOADX(final, last), last > 0 ? LOADX(final, last - 1) : (T)-INFINITY, -INFINITY);
    STOREX(losses, b, -sum);
  }
}
)";
// The gradient of a time: its paths by class, then the difference of the class's probability from them.
const char* const gradient_body = R"(
kernel void gradient(global const X_T* probabilities, global const long* targets, global const long* layout, global const X_T* alpha,
    global const X_T* beta, global const X_T* losses, global const X_T* grads, global X_T* out, long samples, long classes, long times,
    long width, long blank, int zero_infinity, long grad_step) {
  long t = get_global_id(0), b = get_global_id(1), length = layout[b], last = 2 * layout[samples + b], row = (t * samples + b) * classes;
  global const long* target = targets + layout[2 * samples + b];
  T loss = LOADX(losses, b), grad = LOADX(grads, b * grad_step);
  if (t >= length || (zero_infinity && loss == INFINITY)) {
    for (long c = 0; c < classes; ++c) STOREX(out, row + c, 0);
    return;
  }
  for (long c = 0; c < classes; ++c) STOREX(out, row + c, -INFINITY);
  for (long s = 0; s <= last; ++s) {
    long at = (b * times + t) * width + s, c = row + CLASS(s);
    STOREX(out, c, log_sum(LOADX(out, c), LOADX(alpha, at) + LOADX(beta, at), -INFINITY));
  }
  for (long c = 0; c < classes; ++c) {
    T p = PROBABILITY(t, c);
    STOREX(out, row + c, (exp(p) - exp(LOADX(out, row + c) + loss - p)) * grad);
  }
}
)";

Kernel& kernel_for(const Device& device, c10::ScalarType type, const char* name) {
    check_supported(type, device.index, "ctc_loss");
    return kernel_of(device, std::string("ctc ") + short_name(type) + name, name,
                     [&] { return row_macros(type) + ctc_body + row_kernel + states_body + gradient_body; });
}

struct Batch {
    Tensor probabilities, targets;  // contiguous
    Tensor layout;  // of all samples: lengths of inputs, lengths of targets, where targets begin
    int64_t times, samples, classes, width, blank;
};
Batch batch_of(const Tensor& probabilities, const Tensor& targets, IntArrayRef input_lengths,
               IntArrayRef target_lengths, int64_t blank) {
    const auto type = probabilities.scalar_type();
    TORCH_CHECK_NOT_IMPLEMENTED(type == at::kFloat || type == at::kDouble, "opencl: ctc_loss has no kernel for ", type);
    TORCH_CHECK(probabilities.dim() == 3 && (targets.dim() == 1 || targets.dim() == 2),
                "ctc_loss: log_probs of three dimensions and targets of one or two, but got ", probabilities.dim(),
                " and ", targets.dim());
    TORCH_CHECK(at::isIntegralType(targets.scalar_type(), false), "targets must be int or long, but got ",
                targets.scalar_type());
    check_same_device(probabilities.device(), targets);
    const int64_t times = probabilities.size(0), samples = probabilities.size(1), classes = probabilities.size(2);
    TORCH_CHECK(probabilities.numel() > 0, "log_probs tensor must not be empty");
    TORCH_CHECK(blank >= 0 && blank < classes, "blank must be in label range");
    TORCH_CHECK(static_cast<int64_t>(input_lengths.size()) == samples, "input_lengths must be of size batch_size");
    TORCH_CHECK(static_cast<int64_t>(target_lengths.size()) == samples, "target_lengths must be of size batch_size");
    std::vector<int64_t> layout(input_lengths.begin(), input_lengths.end());
    layout.insert(layout.end(), target_lengths.begin(), target_lengths.end());
    int64_t begin = 0, longest = targets.dim() == 2 ? targets.size(1) : 0;
    for (const int64_t length : input_lengths)
        TORCH_CHECK(length >= 0 && length <= times, "Expected input_lengths to have value at most ", times,
                    ", but got value ", length);
    for (const int64_t length : target_lengths) {
        TORCH_CHECK(length >= 0, "Expected target_lengths to have value at least 0, but got value ", length);
        TORCH_CHECK(targets.dim() == 1 || length <= targets.size(1), "Expected tensor to have size at least ", length,
                    " at dimension 1, but got size ", targets.size(-1));
        layout.push_back(begin);
        begin += targets.dim() == 1 ? length : targets.size(1);
        longest = std::max(longest, length);
    }
    TORCH_CHECK(targets.dim() == 2 ? targets.size(0) == samples : targets.size(0) == begin,
                "Expected tensor to have size ", targets.dim() == 2 ? samples : begin, " at dimension 0, but got size ",
                targets.size(0));
    return {probabilities.contiguous(),
            targets.to(at::kLong).contiguous(),
            at::tensor(layout, at::kLong).to(probabilities.device()),
            times,
            samples,
            classes,
            2 * longest + 1,
            blank};
}

// Fills a table of states; `losses` are computed with alpha alone.
void fill_states(const Batch& batch, const Tensor& table, const Tensor& losses, bool is_beta) {
    const Device& device = opencl_device(table);
    Launch launch(device, kernel_for(device, table.scalar_type(), "states"));
    launch.read(batch.probabilities)
        .read(batch.targets)
        .read(batch.layout)
        .written(table)
        .written(losses)
        .value(batch.samples)
        .value(batch.classes)
        .value(batch.times)
        .value(batch.width)
        .value(batch.blank)
        .value(is_beta ? 1 : 0);
    run_rows(launch, batch.samples);
}

std::tuple<Tensor, Tensor> ctc_loss(const Tensor& probabilities, const Tensor& targets, IntArrayRef input_lengths,
                                    IntArrayRef target_lengths, int64_t blank, bool) {
    const Batch batch = batch_of(probabilities, targets, input_lengths, target_lengths, blank);
    Tensor alpha = at::empty({batch.samples, batch.times, batch.width}, probabilities.options());
    Tensor losses = at::empty({batch.samples}, probabilities.options());
    fill_states(batch, alpha, losses, false);
    return {losses, alpha};
}

Tensor ctc_loss_backward(const Tensor& grad, const Tensor& probabilities, const Tensor& targets,
                         IntArrayRef input_lengths, IntArrayRef target_lengths, const Tensor& losses,
                         const Tensor& alpha, int64_t blank, bool zero_infinity) {
    const Batch batch = batch_of(probabilities, targets, input_lengths, target_lengths, blank);
    check_type(probabilities.scalar_type(), grad, losses, alpha);
    const Tensor beta = at::empty_like(alpha, at::MemoryFormat::Contiguous);
    fill_states(batch, beta, losses, true);
    Tensor out = at::empty(probabilities.sizes(), probabilities.options());
    const Device& device = opencl_device(out);
    Launch(device, kernel_for(device, out.scalar_type(), "gradient"))
        .read(batch.probabilities)
        .read(batch.targets)
        .read(batch.layout)
        .read(alpha.contiguous())
        .read(beta)
        .read(losses.contiguous())
        .read(grad)
        .written(out)
        .value(batch.samples)
        .value(batch.classes)
        .value(batch.times)
        .value(batch.width)
        .value(batch.blank)
        .value(zero_infinity ? 1 : 0)
        .value(grad.dim() == 0 ? int64_t{0} : grad.stride(0))
        .run({static_cast<size_t>(batch.times), static_cast<size_t>(batch.samples), 1});
    return out;
}

std::vector<int64_t> on_host(const Tensor& lengths) {
    TORCH_CHECK(at::isIntegralType(lengths.scalar_type(), false), "lengths must be integral");
    const Tensor values = lengths.to(at::kCPU, at::kLong).contiguous();
    const auto* const begin = values.const_data_ptr<int64_t>();
    return {begin, begin + values.numel()};
}
std::tuple<Tensor, Tensor> ctc_loss_of_tensors(const Tensor& probabilities, const Tensor& targets,
                                               const Tensor& input_lengths, const Tensor& target_lengths, int64_t blank,
                                               bool zero_infinity) {
    return torch_opencl::ctc_loss(probabilities, targets, on_host(input_lengths), on_host(target_lengths), blank,
                                  zero_infinity);
}
Tensor ctc_loss_backward_of_tensors(const Tensor& grad, const Tensor& probabilities, const Tensor& targets,
                                    const Tensor& input_lengths, const Tensor& target_lengths, const Tensor& losses,
                                    const Tensor& alpha, int64_t blank, bool zero_infinity) {
    return ctc_loss_backward(grad, probabilities, targets, on_host(input_lengths), on_host(target_lengths), losses,
                             alpha, blank, zero_infinity);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl(NATIVE("_ctc_loss", torch_opencl::ctc_loss));
    m.impl(NATIVE("_ctc_loss.Tensor", ctc_loss_of_tensors));
    m.impl(NATIVE("_ctc_loss_backward", ctc_loss_backward));
    m.impl(NATIVE("_ctc_loss_backward.Tensor", ctc_loss_backward_of_tensors));
}

}  // namespace torch_opencl
