// The operators that torch.nn's encoder layers and attention call in evaluation, without gradients: a whole layer is one call.
// Composed of the package's products, norms and fused attention.
#include "../program.h"

#include <ATen/Functions.h>
#include <torch/library.h>

namespace torch_opencl {
namespace {

using at::Tensor;
using OptionalTensor = std::optional<Tensor>;

// The kind of a mask, with PyTorch's numbers.
enum class MaskKind : int64_t { positions = 0, keys = 1, all = 2 };

struct Heads {
    Tensor q, k, v;  // [batch, heads, length, width]
};

Heads project(const Tensor& query, const Tensor& key, const Tensor& value, int64_t heads, const Tensor& weight,
              const Tensor& bias) {
    std::vector<Tensor> parts;
    if (query.is_same(key) && key.is_same(value)) {
        parts = at::linear(query, weight, bias).chunk(3, -1);
    } else {
        const auto weights = weight.chunk(3), biases = bias.chunk(3);
        size_t place = 0;
        for (const Tensor& from : {query, key, value}) {
            parts.push_back(at::linear(from, weights[place], biases[place]));
            ++place;
        }
    }
    const auto split = [heads](const Tensor& x) {
        return x.reshape({x.size(0), x.size(1), heads, x.size(2) / heads}).transpose(1, 2);
    };
    return {split(parts[0]), split(parts[1]), split(parts[2])};
}

// A mask that can be added to scores [batch, heads, queries, keys]. PyTorch's are true where a score does not count.
OptionalTensor as_added(const OptionalTensor& mask, std::optional<int64_t> kind, const Tensor& query) {
    if (!mask || !mask->defined())
        return std::nullopt;
    TORCH_CHECK(kind.has_value(), "opencl: an attention mask needs its mask_type");
    Tensor added = *mask;
    if (static_cast<MaskKind>(*kind) == MaskKind::keys)
        added = added.reshape({added.size(0), 1, 1, added.size(1)});
    if (added.scalar_type() == at::kBool)
        added = at::zeros(added.sizes(), query.options()).masked_fill_(added, -std::numeric_limits<double>::infinity());
    return added.to(query.scalar_type());
}

std::tuple<Tensor, Tensor> multi_head_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                                int64_t width, int64_t heads, const Tensor& qkv_weight,
                                                const Tensor& qkv_bias, const Tensor& out_weight,
                                                const Tensor& out_bias, const OptionalTensor& mask, bool need_weights,
                                                bool average_weights, std::optional<int64_t> mask_kind) {
    TORCH_CHECK(query.dim() == 3 && key.dim() == 3 && value.dim() == 3,
                "opencl: attention expects [batch, length, width], but got ", query.sizes());
    TORCH_CHECK(query.size(2) == width && width % heads == 0, "opencl: attention of width ", width, " with ", heads,
                " heads does not fit a query of ", query.sizes());
    const auto [q, k, v] = project(query, key, value, heads, qkv_weight, qkv_bias);
    const OptionalTensor added = as_added(mask, mask_kind, query);
    Tensor attended, weights;
    if (need_weights) {
        Tensor scores = at::matmul(q, k.transpose(2, 3)).mul_(1 / std::sqrt(static_cast<double>(width / heads)));
        if (added)
            scores.add_(*added);
        weights = at::softmax(scores, -1);
        attended = at::matmul(weights, v);
        if (average_weights)
            weights = weights.mean(1);
    } else {
        const OptionalTensor full =
            added ? OptionalTensor(added->expand({q.size(0), heads, q.size(2), k.size(2)})) : std::nullopt;
        attended = at::scaled_dot_product_attention(q, k, v, full);
    }
    attended = attended.transpose(1, 2).reshape({query.size(0), query.size(1), width});
    return {at::linear(attended, out_weight, out_bias), weights};
}

Tensor encoder_layer(const Tensor& source, int64_t width, int64_t heads, const Tensor& qkv_weight,
                     const Tensor& qkv_bias, const Tensor& out_weight, const Tensor& out_bias, bool use_gelu,
                     bool norm_first, double eps, const Tensor& norm_weight_1, const Tensor& norm_bias_1,
                     const Tensor& norm_weight_2, const Tensor& norm_bias_2, const Tensor& weight_1,
                     const Tensor& bias_1, const Tensor& weight_2, const Tensor& bias_2, const OptionalTensor& mask,
                     std::optional<int64_t> mask_kind) {
    const auto norm_1 = [&](const Tensor& x) { return at::layer_norm(x, {width}, norm_weight_1, norm_bias_1, eps); };
    const auto norm_2 = [&](const Tensor& x) { return at::layer_norm(x, {width}, norm_weight_2, norm_bias_2, eps); };
    const Tensor in = norm_first ? norm_1(source) : source;
    Tensor x = std::get<0>(multi_head_attention(in, in, in, width, heads, qkv_weight, qkv_bias, out_weight, out_bias,
                                                mask, false, true, mask_kind))
                   .add_(source);
    if (!norm_first)
        x = norm_1(x);
    Tensor hidden = at::linear(norm_first ? norm_2(x) : x, weight_1, bias_1);
    hidden = use_gelu ? at::gelu_(hidden) : at::relu_(hidden);
    x = at::linear(hidden, weight_2, bias_2).add_(x);
    return norm_first ? x : norm_2(x);
}

// Whether each row of the mask is true up to some place and false from there on.
bool is_left_aligned(const Tensor&, const Tensor& mask) {
    const int64_t length = mask.size(1);
    if (mask.numel() == 0 || length == 1)
        return true;
    const Tensor begins_again =
        at::logical_and(mask.narrow(1, 1, length - 1), mask.narrow(1, 0, length - 1).logical_not());
    return !begins_again.any().item<bool>();
}

// torch_opencl/encoder.py knows the message: an encoder then keeps its batch as it is, with the mask.
Tensor nested(const Tensor&, const Tensor&, bool) { TORCH_CHECK_NOT_IMPLEMENTED(false, "opencl: no nested tensors"); }

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl("_native_multi_head_attention", multi_head_attention);
    m.impl("_transformer_encoder_layer_fwd", encoder_layer);
    m.impl("_nested_tensor_from_mask", nested);
    m.impl("_nested_tensor_from_mask_left_aligned", is_left_aligned);
}

}  // namespace torch_opencl
