// Layer, batch and group normalization. Statistics take one kernel of rows or channels; the elements are pointwise kernels with
// broadcast statistics.
#include "formats.h"
#include "native.h"
#include "rows.h"

#include <ATen/Functions.h>
#include <torch/library.h>

namespace torch_opencl {
namespace {

using at::Tensor;
using Optional = std::optional<Tensor>;

Tensor or_none(const std::optional<Tensor>& tensor) { return tensor ? *tensor : Tensor(); }

at::TensorOptions accumulating(const Tensor& self) { return self.options().dtype(compute_type(self.scalar_type())); }

void elements(const Tensor& out, std::initializer_list<Tensor> inputs, const char* expression,
              c10::ScalarType compute) {
    at::TensorIteratorConfig config;
    config.add_output(out).check_all_same_dtype(false).resize_outputs(false);
    for (const Tensor& input : inputs)
        config.add_owned_const_input(input);
    auto iter = config.build();
    pointwise(iter, expression, compute);
}

// (x - mean) * scale, times weight, plus bias, where these are there.
void normalize(const Tensor& out, const Tensor& x, const Tensor& mean, const Tensor& scale, const Tensor& weight,
               const Tensor& bias, c10::ScalarType compute) {
    if (weight.defined() && bias.defined())
        elements(out, {x, mean, scale, weight, bias}, "(a - b) * c * d + e", compute);
    else if (weight.defined())
        elements(out, {x, mean, scale, weight}, "(a - b) * c * d", compute);
    else if (bias.defined())
        elements(out, {x, mean, scale, bias}, "(a - b) * c + d", compute);
    else
        elements(out, {x, mean, scale}, "(a - b) * c", compute);
}

// Mean and 1 / sqrt(variance + eps) of each row of n elements.
void row_statistics(const Tensor& in, int64_t n, const Tensor& mean, const Tensor& rstd, double eps) {
    const Device& device = opencl_device(in);
    const auto type = in.scalar_type();
    check_supported(type, device.index, "a normalization");
    check_floating(type, "a normalization");
    Kernel& kernel = kernel_of(device, std::string("row statistics ") + short_name(type), "statistics", [&] {
        return row_macros(type) + row_kernel +
               R"(statistics(global const X_T* in, global T* means, global T* rstds, long n, T eps) {
  local T shared[ITEMS];
  int lane = get_local_id(0);
  long base = get_group_id(0) * n;
  T mean = 0, square = 0;
  for (long i = lane; i < n; i += ITEMS) mean += LOADX(in, base + i);
  REDUCE_SUM(mean);
  mean /= n;
  for (long i = lane; i < n; i += ITEMS) { T d = LOADX(in, base + i) - mean; square += d * d; }
  REDUCE_SUM(square);
  if (lane == 0) { means[get_group_id(0)] = mean; rstds[get_group_id(0)] = 1 / sqrt(square / n + eps); }
}
)";
    });
    Launch launch(device, kernel);
    launch.read(in).written(mean).written(rstd).value(n).scalar(scalar_bytes(eps, type));
    run_rows(launch, in.numel() / n);
}

std::tuple<Tensor, Tensor, Tensor> layer_norm(const Tensor& input, at::IntArrayRef shape,
                                              const std::optional<Tensor>& weight, const std::optional<Tensor>& bias,
                                              double eps) {
    TORCH_CHECK(!shape.empty() && input.dim() >= static_cast<int64_t>(shape.size()) &&
                    input.sizes().slice(static_cast<size_t>(input.dim()) - shape.size()) == shape,
                "Given normalized_shape=", shape, ", expected input with shape [*, ...], but got input of size ",
                input.sizes());
    const Tensor in = input.contiguous();
    Tensor out = at::empty(in.sizes(), in.options());
    at::DimVector kept(in.sizes().begin(), in.sizes().end() - static_cast<std::ptrdiff_t>(shape.size()));
    kept.resize(static_cast<size_t>(in.dim()), 1);
    Tensor mean = at::empty(kept, accumulating(in)), rstd = at::empty(kept, accumulating(in));
    const int64_t n = c10::multiply_integers(shape);
    if (in.numel() > 0) {
        row_statistics(in, n, mean, rstd, eps);
        normalize(out, in, mean, rstd, or_none(weight), or_none(bias), compute_type(in.scalar_type()));
    }
    return {out, mean, rstd};
}

const char* const layer_grad =
    R"(layer_grad(global const X_T* grad, global const X_T* in, global const T* means, global const T* rstds,
                global const P_T* weight, int has_weight, global X_T* out, long n) {
  local T shared[ITEMS];
  int lane = get_local_id(0);
  long base = get_group_id(0) * n;
  T mean = means[get_group_id(0)], rstd = rstds[get_group_id(0)], s = 0, p = 0;
  for (long i = lane; i < n; i += ITEMS) {
    T g = LOADX(grad, base + i) * (has_weight ? (T)LOADP(weight, i) : (T)1);
    s += g; p += g * (LOADX(in, base + i) - mean) * rstd;
  }
  REDUCE_SUM(s);
  REDUCE_SUM(p);
  s /= n; p /= n;
  for (long i = lane; i < n; i += ITEMS) {
    T g = LOADX(grad, base + i) * (has_weight ? (T)LOADP(weight, i) : (T)1);
    STOREX(out, base + i, rstd * (g - s - (LOADX(in, base + i) - mean) * rstd * p));
  }
}
kernel void layer_grad_weight(global const X_T* grad, global const X_T* in, global const T* means, global const T* rstds,
                              global P_T* weight, global P_T* bias, int has_weight, int has_bias, long n, long rows) {
  long i = get_global_id(0);
  T w = 0, b = 0;
  // Sums of sums, which are more accurate than long sums.
  for (long begin = 0; begin < rows; begin += 128) {
    T part_w = 0, part_b = 0;
    for (long r = begin, end = min(rows, begin + 128); r < end; ++r) {
      T g = LOADX(grad, r * n + i);
      part_b += g; part_w += g * (LOADX(in, r * n + i) - means[r]) * rstds[r];
    }
    w += part_w; b += part_b;
  }
  if (has_weight) STOREP(weight, i, w);
  if (has_bias) STOREP(bias, i, b);
}
)";

std::tuple<Tensor, Tensor, Tensor> layer_norm_backward(const Tensor& grad, const Tensor& input, at::IntArrayRef shape,
                                                       const Tensor& mean, const Tensor& rstd,
                                                       const std::optional<Tensor>& weight,
                                                       const std::optional<Tensor>& bias, std::array<bool, 3> mask) {
    check_type(input.scalar_type(), grad);
    const Tensor g = grad.contiguous(), in = input.contiguous(),
                 w = or_none(weight).defined() ? weight->contiguous() : Tensor();
    const int64_t n = c10::multiply_integers(shape), rows = n > 0 ? in.numel() / n : 0;
    // The parameters may have more precision than the input.
    const Tensor& typical = w.defined() ? w : or_none(bias);
    const auto parameter_options = typical.defined() ? typical.options() : in.options();
    const auto parameter_type = c10::typeMetaToScalarType(parameter_options.dtype());
    Tensor grad_in, grad_weight, grad_bias;
    if (mask[0])
        grad_in = at::zeros_like(in);
    if (mask[1])
        grad_weight = at::zeros(shape, parameter_options);
    if (mask[2])
        grad_bias = at::zeros(shape, parameter_options);
    if (in.numel() == 0)
        return {grad_in, grad_weight, grad_bias};
    const Device& device = opencl_device(in);
    const auto source = [&] {
        return row_macros(in.scalar_type()) + access_macros("P", parameter_type) + "#define P_T " +
               storage_name(parameter_type) + "\n" + row_kernel + layer_grad;
    };
    const std::string type = std::string(short_name(in.scalar_type())) + short_name(parameter_type);
    const Tensor m = mean.contiguous(), r = rstd.contiguous();
    if (mask[0]) {
        Launch launch(device, kernel_of(device, "layer grad " + type, "layer_grad", source));
        launch.read(g).read(in).read(m).read(r);
        launch.read(w.defined() ? w : in).value<int32_t>(w.defined());
        run_rows(launch.written(grad_in).value(n), rows);
    }
    if (mask[1] || mask[2]) {
        Launch launch(device, kernel_of(device, "layer grad weight " + type, "layer_grad_weight", source));
        launch.read(g).read(in).read(m).read(r);
        launch.written(mask[1] ? grad_weight : grad_bias);
        launch.written(mask[2] ? grad_bias : grad_weight);
        launch.value<int32_t>(mask[1]).value<int32_t>(mask[2]).value(n).value(rows).run({static_cast<size_t>(n), 1, 1});
    }
    return {grad_in, grad_weight, grad_bias};
}

// [C] as [1, C, 1, ...], to be broadcast over x.
Tensor by_channel(const Tensor& values, const Tensor& x) {
    if (!values.defined())
        return values;
    at::DimVector shape(static_cast<size_t>(x.dim()), 1);
    shape[1] = x.size(1);
    return values.reshape(shape);
}

// Sums over a channel are sums of parts, of at least 128 elements an item: more accurate than long sums.
const char* const parts_of_channel = R"(
#define FOR_PARTS for (long images = max(1L, 128L * ITEMS / max(inner, (long)ITEMS)), first = 0; first < n; first += images)
#define FOR_IMAGES_OF_PART for (long b = first, end_of_part = min(n, first + images); b < end_of_part; ++b)
)";

// WHOLE 1: the kernel goes on to the elements, and nothing else is launched.
const char* const batch_kernels =
    R"(batch_statistics(global const X_T* in, global T* means, global T* invstds, global P_T* running_mean,
                 global P_T* running_var, int has_running, long n, long channels, long inner, T momentum, T eps
#if WHOLE
                 , global const P_T* weight, global const P_T* bias, int has_weight, int has_bias, global X_T* out
#endif
                 ) {
  local T shared[ITEMS];
  int lane = get_local_id(0);
  long c = get_group_id(0);
  T mean = 0, square = 0, count = n * inner;
  FOR_PARTS {
    T part = 0;
    FOR_IMAGES_OF_PART for (long i = lane; i < inner; i += ITEMS) part += LOADX(in, (b * channels + c) * inner + i);
    mean += part;
  }
  REDUCE_SUM(mean);
  mean /= count;
  FOR_PARTS {
    T part = 0;
    FOR_IMAGES_OF_PART for (long i = lane; i < inner; i += ITEMS) {
      T d = LOADX(in, (b * channels + c) * inner + i) - mean;
      part += d * d;
    }
    square += part;
  }
  REDUCE_SUM(square);
  T invstd = 1 / sqrt(square / count + eps);
  if (lane == 0) {
    means[c] = mean;
    invstds[c] = invstd;
    if (has_running) {
      STOREP(running_mean, c, (1 - momentum) * LOADP(running_mean, c) + momentum * mean);
      STOREP(running_var, c, (1 - momentum) * LOADP(running_var, c) + momentum * square / (count - 1));
    }
  }
#if WHOLE
  T scale = has_weight ? invstd * LOADP(weight, c) : invstd, offset = has_bias ? (T)LOADP(bias, c) : (T)0;
  for (long b = 0; b < n; ++b)
    for (long i = lane; i < inner; i += ITEMS) {
      long at = (b * channels + c) * inner + i;
      STOREX(out, at, (LOADX(in, at) - mean) * scale + offset);
    }
#endif
}
)";
const char* const batch_sums =
    R"(batch_sums(global const X_T* grad, global const X_T* in, global const T* means, global const T* invstds,
                 global T* sums, global T* products, long n, long channels, long inner
#if WHOLE
                 , global const P_T* weight, int has_weight, int training, global X_T* out
#endif
                 ) {
  local T shared[ITEMS];
  int lane = get_local_id(0);
  long c = get_group_id(0);
  T mean = means[c], invstd = invstds[c], s = 0, p = 0;
  FOR_PARTS {
    T part_s = 0, part_p = 0;
    FOR_IMAGES_OF_PART for (long i = lane; i < inner; i += ITEMS) {
      T g = LOADX(grad, (b * channels + c) * inner + i);
      part_s += g; part_p += g * (LOADX(in, (b * channels + c) * inner + i) - mean) * invstd;
    }
    s += part_s; p += part_p;
  }
  REDUCE_SUM(s);
  REDUCE_SUM(p);
  if (lane == 0) { sums[c] = s; products[c] = p; }
#if WHOLE
  T count = n * inner, scale = has_weight ? invstd * LOADP(weight, c) : invstd;
  T mean_grad = training ? s / count : (T)0, mean_product = training ? p * invstd / count : (T)0;
  for (long b = 0; b < n; ++b)
    for (long i = lane; i < inner; i += ITEMS) {
      long at = (b * channels + c) * inner + i;
      STOREX(out, at, (LOADX(grad, at) - mean_grad - (LOADX(in, at) - mean) * mean_product) * scale);
    }
#endif
}
)";

// Whether there are enough channels to keep the device busy with one group each: then one kernel does all, and finds its elements in the
// caches. With fewer, the elements are launched apart.
bool suits_one_kernel(const Tensor& in) { return in.size(1) >= 2 * int64_t{opencl_device(in).compute_units}; }

int64_t inner_of(const Tensor& x) { return x.numel() / std::max<int64_t>(1, x.size(0) * x.size(1)); }

struct BatchParameters {
    Tensor weight, bias;  // may be undefined
    Tensor running_mean, running_var;
};

std::string batch_source(c10::ScalarType type, c10::ScalarType parameter_type, bool whole, const char* kernel) {
    return row_macros(type) + access_macros("P", parameter_type) + "#define P_T " + storage_name(parameter_type) +
           "\n#define WHOLE " + (whole ? "1" : "0") + parts_of_channel + row_kernel + kernel;
}

// Writes `out`, too, where it is defined.
void batch_statistics(const Tensor& in, const Tensor& mean, const Tensor& invstd, const BatchParameters& parameters,
                      double momentum, double eps, const Tensor& out) {
    const Device& device = opencl_device(in);
    const auto type = in.scalar_type();
    const Tensor &running_mean = parameters.running_mean, &running_var = parameters.running_var;
    const Tensor &weight = parameters.weight, &bias = parameters.bias;
    const Tensor& typical = running_mean.defined() ? running_mean : weight.defined() ? weight : bias;
    const auto parameter_type = typical.defined() ? typical.scalar_type() : type;
    check_supported(type, device.index, "batch_norm");
    check_floating(type, "batch_norm");
    const bool whole = out.defined();
    Kernel& kernel = kernel_of(
        device, std::string("batch statistics ") + short_name(type) + short_name(parameter_type) + (whole ? "w" : ""),
        "batch_statistics", [&] { return batch_source(type, parameter_type, whole, batch_kernels); });
    const bool has_running = running_mean.defined() && running_var.defined();
    Launch launch(device, kernel);
    launch.read(in).written(mean).written(invstd);
    launch.written(has_running ? running_mean : mean).written(has_running ? running_var : mean);
    launch.value<int32_t>(has_running).value(in.size(0)).value(in.size(1)).value(inner_of(in));
    launch.scalar(scalar_bytes(momentum, type)).scalar(scalar_bytes(eps, type));
    if (whole) {
        launch.read(weight.defined() ? weight : in).read(bias.defined() ? bias : in);
        launch.value<int32_t>(weight.defined()).value<int32_t>(bias.defined()).written(out);
    }
    run_rows(launch, in.size(1));
}

bool is_of_one_type(const BatchParameters& parameters) {
    std::optional<c10::ScalarType> type;
    for (const Tensor* each : {&parameters.weight, &parameters.bias, &parameters.running_mean, &parameters.running_var})
        if (each->defined()) {
            if (type && *type != each->scalar_type())
                return false;
            type = each->scalar_type();
        }
    return true;
}

std::tuple<Tensor, Tensor, Tensor> batch_norm_of_dense(const Tensor& in, const Optional& weight, const Optional& bias,
                                                       const Optional& running_mean, const Optional& running_var,
                                                       bool training, double momentum, double eps) {
    Tensor out = at::empty(in.sizes(), in.options());
    const auto compute = compute_type(in.scalar_type());
    if (!training) {
        TORCH_CHECK(or_none(running_mean).defined() && or_none(running_var).defined(),
                    "Expected running_mean and running_var to be defined when training=False");
        const Tensor scale = at::rsqrt(at::add(running_var->to(compute), eps));
        if (in.numel() > 0)
            normalize(out, in, by_channel(*running_mean, in), by_channel(scale, in), by_channel(or_none(weight), in),
                      by_channel(or_none(bias), in), compute);
        return {out, at::empty({0}, accumulating(in)), at::empty({0}, accumulating(in))};
    }
    // The kernel walks over the running statistics in order.
    if (or_none(running_mean).defined() && or_none(running_var).defined() &&
        !(running_mean->is_contiguous() && running_var->is_contiguous())) {
        const Tensor dense_mean = running_mean->contiguous(), dense_var = running_var->contiguous();
        const auto results = batch_norm_of_dense(in, weight, bias, dense_mean, dense_var, training, momentum, eps);
        running_mean->copy_(dense_mean);
        running_var->copy_(dense_var);
        return results;
    }
    Tensor mean = at::empty({in.size(1)}, accumulating(in)), invstd = at::empty({in.size(1)}, accumulating(in));
    if (in.numel() > 0) {
        const auto plain = [](const std::optional<Tensor>& each) {
            return or_none(each).defined() ? each->contiguous() : Tensor();
        };
        const BatchParameters parameters{plain(weight), plain(bias), or_none(running_mean), or_none(running_var)};
        const bool whole = is_of_one_type(parameters) && suits_one_kernel(in);
        batch_statistics(in, mean, invstd, parameters, momentum, eps, whole ? out : Tensor());
        if (whole)
            return {out, mean, invstd};
        normalize(out, in, by_channel(mean, in), by_channel(invstd, in), by_channel(or_none(weight), in),
                  by_channel(or_none(bias), in), compute);
    }
    return {out, mean, invstd};
}
std::tuple<Tensor, Tensor, Tensor> batch_norm(const Tensor& input, const Optional& weight, const Optional& bias,
                                              const Optional& running_mean, const Optional& running_var, bool training,
                                              double momentum, double eps) {
    auto [out, mean, invstd] =
        batch_norm_of_dense(input.contiguous(), weight, bias, running_mean, running_var, training, momentum, eps);
    return {in_format_of(input, out), mean, invstd};
}

std::tuple<Tensor, Tensor, Tensor> batch_norm_backward(const Tensor& grad, const Tensor& input, const Optional& weight,
                                                       const Optional& running_mean, const Optional& running_var,
                                                       const Optional& save_mean, const Optional& save_invstd,
                                                       bool training, double eps, std::array<bool, 3> mask) {
    check_type(input.scalar_type(), grad);
    const Tensor in = input.contiguous(), g = grad.contiguous();
    const auto compute = compute_type(in.scalar_type());
    const Tensor mean = (training ? *save_mean : running_mean->to(compute)).contiguous();
    const Tensor invstd = (training ? *save_invstd : at::rsqrt(at::add(running_var->to(compute), eps))).contiguous();
    const Tensor sums = at::empty({in.size(1)}, accumulating(in)), products = at::empty({in.size(1)}, accumulating(in));
    const Device& device = opencl_device(in);
    const auto type = in.scalar_type();
    const Tensor factors = or_none(weight).defined() ? weight->contiguous() : Tensor();
    const auto parameter_type = factors.defined() ? factors.scalar_type() : compute;
    const bool whole = mask[0] && suits_one_kernel(in);
    Tensor grad_in;
    {
        Kernel& kernel =
            kernel_of(device, std::string("batch sums ") + short_name(type) + (whole ? short_name(parameter_type) : ""),
                      "batch_sums", [&] { return batch_source(type, parameter_type, whole, batch_sums); });
        Launch launch(device, kernel);
        launch.read(g).read(in).read(mean).read(invstd).written(sums).written(products);
        launch.value(in.size(0)).value(in.size(1)).value(inner_of(in));
        if (whole) {
            grad_in = at::empty(in.sizes(), in.options());
            launch.read(factors.defined() ? factors : in).value<int32_t>(factors.defined());
            launch.value<int32_t>(training).written(grad_in);
        }
        run_rows(launch, in.size(1));
    }
    if (mask[0] && !whole) {
        grad_in = at::empty(in.sizes(), in.options());
        const Tensor scale = or_none(weight).defined() ? at::mul(invstd, *weight) : invstd;
        if (training) {
            const double count = static_cast<double>(in.numel()) / static_cast<double>(in.size(1));
            const Tensor mean_grad = at::div(sums, count), mean_product = at::div(at::mul(products, invstd), count);
            elements(grad_in,
                     {g, in, by_channel(mean, in), by_channel(mean_grad, in), by_channel(mean_product, in),
                      by_channel(scale, in)},
                     "(a - d - (b - c) * e) * f", compute);
        } else {
            elements(grad_in, {g, by_channel(scale, in)}, "a * b", compute);
        }
    }
    return {grad_in, mask[1] ? products.to(parameter_type) : Tensor(), mask[2] ? sums.to(parameter_type) : Tensor()};
}

struct Groups {
    Tensor x;  // [N, group, C / group, inner]
    Tensor mean, rstd;  // [N, group, 1, 1]
};

Groups groups_of(const Tensor& in, int64_t n, int64_t channels, int64_t inner, int64_t count, const Tensor& mean,
                 const Tensor& rstd) {
    return {in.reshape({n, count, channels / count, inner}), mean.reshape({n, count, 1, 1}),
            rstd.reshape({n, count, 1, 1})};
}

std::tuple<Tensor, Tensor, Tensor> group_norm(const Tensor& input, const std::optional<Tensor>& weight,
                                              const std::optional<Tensor>& bias, int64_t n, int64_t channels,
                                              int64_t inner, int64_t count, double eps) {
    const Tensor in = input.contiguous();
    Tensor out = at::empty(in.sizes(), in.options());
    Tensor mean = at::empty({n, count}, accumulating(in)), rstd = at::empty({n, count}, accumulating(in));
    if (in.numel() == 0)
        return {out, mean, rstd};
    row_statistics(in, channels / count * inner, mean, rstd, eps);
    const Groups groups = groups_of(in, n, channels, inner, count, mean, rstd);
    const auto parameter = [&](const std::optional<Tensor>& values) {
        return or_none(values).defined() ? values->reshape({1, count, channels / count, 1}) : Tensor();
    };
    normalize(out.view(groups.x.sizes()), groups.x, groups.mean, groups.rstd, parameter(weight), parameter(bias),
              compute_type(in.scalar_type()));
    return {in_format_of(input, out), mean, rstd};
}

std::tuple<Tensor, Tensor, Tensor> group_norm_backward(const Tensor& grad, const Tensor& input, const Tensor& mean,
                                                       const Tensor& rstd, const std::optional<Tensor>& weight,
                                                       int64_t n, int64_t channels, int64_t inner, int64_t count,
                                                       std::array<bool, 3> mask) {
    const Tensor in = input.contiguous();
    const Groups groups = groups_of(in, n, channels, inner, count, mean, rstd);
    const Tensor g = grad.contiguous().view(groups.x.sizes());
    const auto compute = compute_type(in.scalar_type());
    const Tensor normal = at::empty(groups.x.sizes(), accumulating(in));
    if (in.numel() > 0)
        elements(normal, {groups.x, groups.mean, groups.rstd}, "(a - b) * c", compute);
    Tensor grad_in, grad_weight, grad_bias;
    if (mask[0]) {
        const Tensor weighted =
            or_none(weight).defined() ? at::mul(g, weight->reshape({1, count, channels / count, 1})) : g;
        const Tensor first = at::mean(weighted, at::IntArrayRef{2, 3}, true),
                     second = at::mean(at::mul(weighted, normal), at::IntArrayRef{2, 3}, true);
        grad_in = at::empty(in.sizes(), in.options());
        if (in.numel() > 0)
            elements(grad_in.view(groups.x.sizes()), {weighted, first, normal, second, groups.rstd},
                     "(a - b - c * d) * e", compute);
    }
    if (mask[1])
        grad_weight = at::sum(at::mul(g, normal), at::IntArrayRef{0, 3})
                          .reshape({channels})
                          .to(or_none(weight).defined() ? weight->scalar_type() : compute);
    if (mask[2])
        grad_bias = at::sum(g, at::IntArrayRef{0, 3}).reshape({channels});
    return {grad_in, grad_weight, grad_bias};
}

// The forms that exported programs are decomposed to.
std::tuple<Tensor, Tensor, Tensor> batch_norm_legit(const Tensor& input, const std::optional<Tensor>& weight,
                                                    const std::optional<Tensor>& bias, Tensor& running_mean,
                                                    Tensor& running_var, bool training, double momentum, double eps) {
    return batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps);
}
std::tuple<Tensor, Tensor, Tensor> batch_norm_no_stats(const Tensor& input, const std::optional<Tensor>& weight,
                                                       const std::optional<Tensor>& bias, bool training,
                                                       double momentum, double eps) {
    return batch_norm(input, weight, bias, std::nullopt, std::nullopt, training, momentum, eps);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl(NATIVE("native_layer_norm", layer_norm));
    m.impl(NATIVE("native_layer_norm_backward", layer_norm_backward));
    m.impl(NATIVE("_native_batch_norm_legit", batch_norm_legit));
    m.impl(NATIVE("_native_batch_norm_legit.no_stats", batch_norm_no_stats));
    m.impl(NATIVE("native_batch_norm", batch_norm));
    m.impl(NATIVE("native_batch_norm_backward", batch_norm_backward));
    m.impl(NATIVE("native_group_norm", group_norm));
    m.impl(NATIVE("native_group_norm_backward", group_norm_backward));
}

}  // namespace torch_opencl
