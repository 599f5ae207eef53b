// Scaled dot product attention: scores by one product, then scale, mask and softmax in one kernel, then the product with the values.
// The gradient computes the probabilities again from the scores and the saved logarithms of their sums, so that between the two
// passes only these are kept. Scores have the type that is computed in: rounded to half precision, their exponentials would be wrong in the third
// digit. Dropout, and queries that share keys, take PyTorch's own composition of operators.
#include "gemm.h"
#include "native.h"
#include "rows.h"

#include <ATen/Functions.h>
#include <ATen/native/transformers/attention.h>
#include <ATen/native/transformers/sdp_utils_cpp.h>
#include <algorithm>
#include <torch/library.h>

namespace torch_opencl {
namespace {

using at::Tensor;
using OptionalTensor = std::optional<Tensor>;

bool is_there(const OptionalTensor& tensor) { return tensor && tensor->defined(); }

int64_t choose(const Tensor& query, const Tensor& key, const Tensor& value, const OptionalTensor& mask, double dropout,
               bool, std::optional<double>, bool shares_keys) {
    const bool has_four = query.dim() == 4 && key.dim() == 4 && value.dim() == 4;
    const bool is_fused =
        has_four && dropout == 0 && !shares_keys && query.numel() > 0 && key.numel() > 0 && value.numel() > 0 &&
        query.size(0) == key.size(0) && query.size(1) == key.size(1) && query.size(0) == value.size(0) &&
        query.size(1) == value.size(1) && query.size(3) == key.size(3) && key.size(2) == value.size(2) &&
        !(is_there(mask) && mask->requires_grad()) &&
        is_supported(query.scalar_type(), opencl_device(query).has_double) && query.is_floating_point();
    return static_cast<int64_t>(is_fused ? sdp::SDPBackend::overrideable : sdp::SDPBackend::math);
}

// For processors, float and no bias: a row by one work-item in vectors of WIDTH, without barriers, and of a causal row only the keys that
// its query sees. Rows are long enough for these vectors, and groups have several.
constexpr int64_t vector_rows = 16;
const char* const vectors_of_8 = R"(
#define WIDTH 8
typedef float8 V;
typedef int8 I;
#define VLOAD vload8
#define VSTORE vstore8
#define LANES ((int8)(0, 1, 2, 3, 4, 5, 6, 7))
#define SUM(v_) SUM8(v_)
#define GREATEST(v_) GREATEST8(v_)
)";
const char* const vectors_of_16 = R"(
#define WIDTH 16
typedef float16 V;
typedef int16 I;
#define VLOAD vload16
#define VSTORE vstore16
#define LANES ((int16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15))
#define SUM(v_) SUM8((v_.lo + v_.hi))
#define GREATEST(v_) GREATEST8(fmax(v_.lo, v_.hi))
)";
const char* const vector_kernels = R"(
#define PARAMETERS long n, long queries, int is_causal, float scale, long rows
#define FOR_ROWS for (long row = get_group_id(0) * ROWS, end = min(rows, row + ROWS); row < end; ++row)
// Keys [0, seen) are seen; vectors cover [0, whole), of which the last one may have keys that are not.
#define ROW long base = row * n, seen = is_causal ? min(n, row % queries + 1) : n, \
  whole = min((seen + WIDTH - 1) / WIDTH * WIDTH, n / WIDTH * WIDTH);
#define ONLY_SEEN(v_, other_) (i + WIDTH > seen ? select((V)(other_), v_, (I)(seen - i) > LANES) : (v_))
#define SUM8(v_) ((v_.s0 + v_.s4) + (v_.s1 + v_.s5) + ((v_.s2 + v_.s6) + (v_.s3 + v_.s7)))
#define GREATEST8(v_) fmax(fmax(fmax(v_.s0, v_.s4), fmax(v_.s1, v_.s5)), fmax(fmax(v_.s2, v_.s6), fmax(v_.s3, v_.s7)))
kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void attend(global float* scores, global float* sums, PARAMETERS) {
  FOR_ROWS {
    ROW
    global float* s = scores + base;
    V greatest = -INFINITY;
    for (long i = 0; i < whole; i += WIDTH) {
      V v = ONLY_SEEN(VLOAD(0, s + i) * scale, -INFINITY);
      greatest = select(greatest, v, v > greatest);
    }
    float m = GREATEST(greatest);
    for (long i = whole; i < seen; ++i) m = fmax(m, s[i] * scale);
    float from = m == -INFINITY ? 0 : m, sum = 0;
    V sums_of_lanes = 0;
    for (long i = 0; i < whole; i += WIDTH) {
      V e = ONLY_SEEN(exp(VLOAD(0, s + i) * scale - from), 0);
      VSTORE(e, 0, s + i);
      sums_of_lanes += e;
    }
    for (long i = whole; i < seen; ++i) { s[i] = exp(s[i] * scale - from); sum += s[i]; }
    sum += SUM(sums_of_lanes);
    // A query that may see no key has probabilities of 0.
    float factor = sum > 0 || sum != sum ? 1 / sum : 0;
    for (long i = 0; i < whole; i += WIDTH) VSTORE(VLOAD(0, s + i) * factor, 0, s + i);
    for (long i = whole; i < seen; ++i) s[i] *= factor;
    for (long i = max(whole, seen); i < n; ++i) s[i] = 0;
    sums[row] = from + log(sum);
  }
}
// scores become probabilities, and grad (of the probabilities) that of the unscaled scores.
kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void attend_grad(global float* scores, global const float* sums, global float* grad, PARAMETERS) {
  FOR_ROWS {
    ROW
    global float* s = scores + base;
    global float* g = grad + base;
    float shift = sums[row], dot = 0;
    if (shift == -INFINITY) shift = INFINITY;  // no key is seen: all are 0
    V dots_of_lanes = 0;
    for (long i = 0; i < whole; i += WIDTH) {
      V p = ONLY_SEEN(exp(VLOAD(0, s + i) * scale - shift), 0);
      VSTORE(p, 0, s + i);
      dots_of_lanes += p * ONLY_SEEN(VLOAD(0, g + i), 0);
    }
    for (long i = whole; i < seen; ++i) { s[i] = exp(s[i] * scale - shift); dot += s[i] * g[i]; }
    dot += SUM(dots_of_lanes);
    for (long i = 0; i < whole; i += WIDTH) VSTORE(ONLY_SEEN(VLOAD(0, s + i) * (VLOAD(0, g + i) - dot) * scale, 0), 0, g + i);
    for (long i = whole; i < seen; ++i) g[i] = s[i] * (g[i] - dot) * scale;
    for (long i = max(whole, seen); i < n; ++i) s[i] = g[i] = 0;
  }
}
)";

// One row of scores per group: of query q of batch b and head h.
const char* const kernels = R"(
#define MASKED(i) (is_causal && (i) > q)
#if HAS_BIAS
#define SCORE(i) (LOADX(scores, base + (i)) * scale + LOADB(bias, b * bias_batch + h * bias_head + q * bias_row + (i) * bias_column))
#else
#define SCORE(i) (LOADX(scores, base + (i)) * scale)
#endif
#define PARAMETERS long n, long queries, long heads, int is_causal, T scale, long bias_batch, long bias_head, long bias_row, long bias_column
#define PLACE local T shared[ITEMS]; int lane = get_local_id(0); long row = get_group_id(0), base = row * n, q = row % queries, \
    h = row / queries % heads, b = row / queries / heads;
)";
const char* const forward_kernel = R"(attend(global X_T* scores, global T* sums, global const B_T* bias, PARAMETERS) {
  PLACE
  T m = -INFINITY;
  // Without branches, so that items are lanes of vectors.
  for (long i = lane; i < n; i += ITEMS) {
    T s = SCORE(i);
    s = MASKED(i) ? (T)-INFINITY : s;
    STOREX(scores, base + i, s);
    m = MAX_OF(m, s);
  }
  REDUCE_MAX(m);
  T sum = 0, from = m == -INFINITY ? (T)0 : m;
  for (long i = lane; i < n; i += ITEMS) {
    T e = exp(LOADX(scores, base + i) - from);
    STOREX(scores, base + i, e);
    sum += e;
  }
  REDUCE_SUM(sum);
  // A query that may see no key has probabilities of 0.
  T factor = sum > 0 || sum != sum ? 1 / sum : 0;
  for (long i = lane; i < n; i += ITEMS) STOREX(scores, base + i, LOADX(scores, base + i) * factor);
  if (lane == 0) sums[row] = from + log(sum);
}
)";
// scores become probabilities, and grad (of the probabilities) that of the unscaled scores.
const char* const backward_kernel =
    R"(attend_grad(global X_T* scores, global const T* sums, global const B_T* bias, global X_T* grad, PARAMETERS) {
  PLACE
  T shift = sums[row], dot = 0;
  for (long i = lane; i < n; i += ITEMS) {
    T p = MASKED(i) || shift == -INFINITY ? (T)0 : exp(SCORE(i) - shift);
    STOREX(scores, base + i, p);
    dot += p * LOADX(grad, base + i);
  }
  REDUCE_SUM(dot);
  for (long i = lane; i < n; i += ITEMS) STOREX(grad, base + i, LOADX(scores, base + i) * (LOADX(grad, base + i) - dot) * scale);
}
)";

struct Attention {
    const Tensor& query;
    const Tensor& key;
    OptionalTensor bias;  // expanded to the scores
    bool is_causal;
    double scale;
};

Attention attention_of(const Tensor& query, const Tensor& key, const OptionalTensor& bias, bool is_causal,
                       std::optional<double> scale) {
    OptionalTensor expanded;
    if (is_there(bias))
        expanded = bias->expand({query.size(0), query.size(1), query.size(2), key.size(2)});
    return {query, key, expanded, is_causal, scale.value_or(1 / std::sqrt(static_cast<double>(query.size(3))))};
}

Tensor scores_of(const Attention& attention) {
    const Tensor &q = attention.query, &k = attention.key;
    Tensor scores =
        at::empty({q.size(0), q.size(1), q.size(2), k.size(2)},
                  q.options().dtype(compute_type(q.scalar_type())).memory_format(at::MemoryFormat::Contiguous));
    multiply({q, k.transpose(2, 3), scores});
    return scores;
}

bool goes_by_vectors(const Attention& attention) {
    return !opencl_device(attention.query).is_gpu && compute_type(attention.query.scalar_type()) == at::kFloat &&
           !is_there(attention.bias);
}

// Runs the kernel with its arguments before the parameters: `scores` and the sums' tensor, and `grad` if there is one.
void run_vectors(const Attention& attention, const char* name, const Tensor& scores, const Tensor& sums,
                 const Tensor& grad) {
    const Device& device = opencl_device(scores);
    Launch launch(device, kernel_of(device, std::string(name) + " by vectors", name, [&] {
                      return "#define ROWS " + std::to_string(vector_rows) +
                             (device.float_lanes >= 16 ? vectors_of_16 : vectors_of_8) + vector_kernels;
                  }));
    launch.written(scores).written(sums);
    if (grad.defined())
        launch.written(grad);
    launch.value(attention.key.size(2)).value(attention.query.size(2)).value<int32_t>(attention.is_causal);
    launch.value(static_cast<float>(attention.scale)).value(sums.numel());
    launch.run({static_cast<size_t>((sums.numel() + vector_rows - 1) / vector_rows), 1, 1}, {1, 1, 1});
}

void add_parameters(Launch& launch, const Attention& attention) {
    const auto type = attention.query.scalar_type();
    launch.value(attention.key.size(2)).value(attention.query.size(2)).value(attention.query.size(1));
    launch.value<int32_t>(attention.is_causal).scalar(scalar_bytes(attention.scale, type));
    for (int64_t d = 0; d < 4; ++d)
        launch.value<int64_t>(is_there(attention.bias) ? attention.bias->stride(d) : 0);
}

Kernel& kernel_for(const Attention& attention, const char* name, const char* body) {
    const auto type = compute_type(attention.query.scalar_type());
    const bool has_bias = is_there(attention.bias);
    const auto bias_type = has_bias ? attention.bias->scalar_type() : type;
    const std::string key = std::string(name) + " " + short_name(type) + (has_bias ? short_name(bias_type) : "");
    return kernel_of(opencl_device(attention.query), key, name, [&] {
        return row_macros(type) + access_macros("B", bias_type) + "#define B_T " + storage_name(bias_type) + "\n" +
               "#define HAS_BIAS " + (has_bias ? "1" : "0") + kernels + row_kernel + body;
    });
}

// The result's dimensions have the order in memory that the query's have: compiled code relies on it (meta__scaled_dot_product_fused_attention_overrideable
// of PyTorch).
Tensor result_like(const Tensor& query, int64_t channels) {
    if (query.size(3) == channels)
        return at::empty_like(query);
    std::array<int64_t, 4> order{0, 1, 2, 3}, back{};
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return query.stride(a) > query.stride(b); });
    at::DimVector sizes;
    for (size_t place = 0; place < order.size(); ++place) {
        sizes.push_back(order[place] == 3 ? channels : query.size(order[place]));
        back[static_cast<size_t>(order[place])] = static_cast<int64_t>(place);
    }
    return at::empty(sizes, query.options().memory_format(at::MemoryFormat::Contiguous)).permute(back);
}

using Forward = std::tuple<Tensor, Tensor, Tensor, Tensor, c10::SymInt, c10::SymInt, Tensor, Tensor, Tensor>;

Forward forward(const Tensor& query, const Tensor& key, const Tensor& value, const OptionalTensor& bias, double dropout,
                bool is_causal, bool, std::optional<double> scale) {
    TORCH_CHECK_NOT_IMPLEMENTED(dropout == 0, "opencl: fused attention has no dropout");
    const Attention attention = attention_of(query, key, bias, is_causal, scale);
    const Tensor scores = scores_of(attention);
    const Tensor sums = at::empty(scores.sizes().slice(0, 3), query.options().dtype(compute_type(query.scalar_type())));
    if (goes_by_vectors(attention)) {
        run_vectors(attention, "attend", scores, sums, {});
    } else {
        Launch launch(opencl_device(query), kernel_for(attention, "attend", forward_kernel));
        launch.written(scores).written(sums);
        launch.read(is_there(attention.bias) ? *attention.bias : scores);
        add_parameters(launch, attention);
        run_rows(launch, sums.numel());
    }
    const Tensor out = result_like(query, value.size(3));
    multiply({scores, value, out});
    const Tensor none = at::empty({}, query.options().dtype(at::kLong));
    return {out, sums, Tensor(), Tensor(), query.size(2), key.size(2), none, none, Tensor()};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> backward(const Tensor& grad_out, const Tensor& query, const Tensor& key,
                                                    const Tensor& value, const Tensor& bias, std::array<bool, 4> mask,
                                                    const Tensor&, const Tensor& sums, const Tensor&, const Tensor&,
                                                    c10::SymInt, c10::SymInt, double, bool is_causal, const Tensor&,
                                                    const Tensor&, std::optional<double> scale) {
    TORCH_CHECK_NOT_IMPLEMENTED(!mask[3] || !bias.defined(), "opencl: fused attention has no gradient of the mask");
    const Attention attention =
        attention_of(query, key, bias.defined() ? OptionalTensor(bias) : std::nullopt, is_causal, scale);
    const Tensor probabilities = scores_of(attention);
    const Tensor grad_scores = at::empty(probabilities.sizes(), probabilities.options());
    multiply({grad_out, value.transpose(2, 3), grad_scores});
    const Tensor dense_sums = sums.contiguous();
    if (goes_by_vectors(attention)) {
        run_vectors(attention, "attend_grad", probabilities, dense_sums, grad_scores);
    } else {
        Launch launch(opencl_device(query), kernel_for(attention, "attend_grad", backward_kernel));
        launch.written(probabilities).read(dense_sums);
        launch.read(is_there(attention.bias) ? *attention.bias : probabilities);
        launch.written(grad_scores);
        add_parameters(launch, attention);
        run_rows(launch, dense_sums.numel());
    }
    Tensor grad_query, grad_key, grad_value;
    const auto product = [](const Tensor& a, const Tensor& b, const Tensor& like) {
        Tensor out = at::empty_like(like);
        multiply({a, b, out});
        return out;
    };
    if (mask[0])
        grad_query = product(grad_scores, key, query);
    if (mask[1])
        grad_key = product(grad_scores.transpose(2, 3), query, key);
    if (mask[2])
        grad_value = product(probabilities.transpose(2, 3), grad_out, value);
    return {grad_query, grad_key, grad_value, Tensor()};
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl("_fused_sdp_choice", choose);  // composed of operators for types without kernels
    m.impl(NATIVE("_scaled_dot_product_fused_attention_overrideable", forward));
    m.impl(NATIVE("_scaled_dot_product_fused_attention_overrideable_backward", backward));
}

}  // namespace torch_opencl

namespace at::native {
REGISTER_PRIVATEUSE1_DISPATCH(_fused_sdp_choice_stub, &torch_opencl::choose)
}  // namespace at::native
