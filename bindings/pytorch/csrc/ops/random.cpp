// Random numbers: Philox 4x32-10 (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", 2011). Element i of a tensor takes
// the counter offset + i, whatever the device and the tensor's strides.
#include "../generator.h"
#include "native.h"
#include "pointwise.h"

#include <ATen/Functions.h>
#include <ATen/native/Resize.h>
#include <torch/library.h>

namespace torch_opencl {
namespace {

using at::Tensor;
using OptionalGenerator = std::optional<at::Generator>;

const char* const philox = R"(
inline uint4 philox(ulong seed, ulong counter) {
  uint4 c = (uint4)((uint)counter, (uint)(counter >> 32), 0, 0);
  uint2 k = (uint2)((uint)seed, (uint)(seed >> 32));
  for (int round = 0; round < 10; ++round) {
    uint high0 = mul_hi(0xD2511F53u, c.x), low0 = 0xD2511F53u * c.x;
    uint high1 = mul_hi(0xCD9E8D57u, c.z), low1 = 0xCD9E8D57u * c.z;
    c = (uint4)(high1 ^ c.y ^ k.x, low1, high0 ^ c.w ^ k.y, low0);
    k += (uint2)(0x9E3779B9u, 0xBB67AE85u);
  }
  return c;
}
// In [0, 1), with 24 or 53 random bits.
inline float unit_float(uint4 r) { return (r.x >> 8) * 0x1p-24f; }
#ifdef cl_khr_fp64
inline double unit_double(uint4 r) { return (((ulong)r.x << 32 | r.y) >> 11) * 0x1p-53; }
#endif
)";

// `expression` yields the element from r (four random words), u (in [0, 1)), s0 and s1 (of the scalar type S), with T the compute type.
struct Draw {
    const char* name;
    const char* expression;
    double s0 = 0, s1 = 0;
    int64_t n0 = 0;
    uint64_t n1 = 0;
};

void fill_random(const Tensor& self, const OptionalGenerator& generator, const Draw& draw) {
    if (self.numel() == 0)
        return;
    if (!self.is_contiguous()) {
        const Tensor dense = at::empty(self.sizes(), self.options().memory_format(at::MemoryFormat::Contiguous));
        fill_random(dense, generator, draw);
        self.copy_(dense);
        return;
    }
    const Device& device = opencl_device(self);
    const auto type = self.scalar_type();
    check_supported(type, device.index, draw.name);
    const auto count = static_cast<uint64_t>(self.numel());
    const RandomPart part = take_random(generator, device.index, count);
    const bool is_double = type == at::kDouble;
    Kernel& kernel = kernel_of(device, std::string("random ") + draw.name + short_name(type), "draw", [&] {
        const std::string real = is_double ? "double" : "float";
        return compute_type_macros(type) + access_macros("X", type) + philox + "typedef " + real +
               " S;\nkernel void draw(global " + storage_name(type) +
               "* out, ulong seed, ulong offset, S s0, S s1, long n0, ulong n1) {\n"
               "  size_t i = get_global_id(0);\n  uint4 r = philox(seed, offset + i);\n  S u = unit_" +
               real +
               "(r);\n"
               "  STOREX(out, i, (" +
               draw.expression + "));\n}\n";
    });
    const auto real_type = is_double ? at::kDouble : at::kFloat;
    Launch(device, kernel)
        .written(self)
        .value(part.seed)
        .value(part.offset)
        .scalar(scalar_bytes(draw.s0, real_type))
        .scalar(scalar_bytes(draw.s1, real_type))
        .value(draw.n0)
        .value(draw.n1)
        .run({count, 1, 1});
}

Tensor& uniform_(Tensor& self, double from, double to, OptionalGenerator generator) {
    check_floating(self.scalar_type(), "uniform_");
    TORCH_CHECK(from <= to, "uniform_ expects to return a [from, to) range, but found from=", from, " > to=", to);
    fill_random(self, generator, {"uniform", "s0 + u * (s1 - s0)", from, to});
    return self;
}
Tensor& normal_(Tensor& self, double mean, double std, OptionalGenerator generator) {
    check_floating(self.scalar_type(), "normal_");
    TORCH_CHECK(std >= 0, "normal expects std >= 0.0, but found std ", std);
    // Box and Muller; 1 - u is never 0.
    fill_random(self, generator,
                {"normal", "s0 + s1 * sqrt(-2 * log(1 - u)) * cospi(2 * ((S)r.z * (S)0x1p-32))", mean, std});
    return self;
}
Tensor& exponential_(Tensor& self, double lambda, OptionalGenerator generator) {
    check_floating(self.scalar_type(), "exponential_");
    TORCH_CHECK(lambda > 0, "exponential_ expects lambda > 0.0, but found lambda=", lambda);
    fill_random(self, generator, {"exponential", "-log1p(-u) / s0", lambda});
    return self;
}
Tensor& bernoulli_(Tensor& self, double p, OptionalGenerator generator) {
    TORCH_CHECK(0 <= p && p <= 1, "bernoulli_ expects p to be in [0, 1], but got p=", p);
    fill_random(self, generator, {"bernoulli", "u < s0", p});
    return self;
}
Tensor& bernoulli_tensor_(Tensor& self, const Tensor& p, OptionalGenerator generator) {
    Tensor u = at::empty(self.sizes(), self.options().dtype(p.scalar_type() == at::kDouble ? at::kDouble : at::kFloat));
    return self.copy_(at::lt(uniform_(u, 0, 1, generator), p.to(self.device())));
}
Tensor& bernoulli_out(const Tensor& p, OptionalGenerator generator, Tensor& out) {
    at::native::resize_output(out, p.sizes());
    return bernoulli_tensor_(out, p, generator);
}
Tensor bernoulli(const Tensor& p, OptionalGenerator generator) {
    Tensor out = at::empty_like(p);
    return bernoulli_tensor_(out, p, generator);
}

Tensor& random_below(Tensor& self, int64_t from, uint64_t range, OptionalGenerator generator) {
    fill_random(self, generator, {"random", "n0 + (long)(((ulong)r.x << 32 | r.y) % n1)", 0, 0, from, range});
    return self;
}
// As many values as the type holds exactly.
uint64_t values_of(at::ScalarType type) {
    switch (type) {
    case at::kBool: return 2;
    case at::kByte: return 256;
    case at::kChar: return 128;
    case at::kShort: return 1ULL << 15;
    case at::kInt: return 1ULL << 31;
    case at::kHalf: return (1ULL << 11) + 1;
    case at::kBFloat16: return (1ULL << 8) + 1;
    case at::kFloat: return (1ULL << 24) + 1;
    case at::kDouble: return (1ULL << 53) + 1;
    default: return 1ULL << 63;
    }
}
Tensor& random_(Tensor& self, OptionalGenerator generator) {
    return random_below(self, 0, values_of(self.scalar_type()), generator);
}
Tensor& random_from_(Tensor& self, int64_t from, std::optional<int64_t> to, OptionalGenerator generator) {
    TORCH_CHECK(!to || from < *to, "random_ expects 'from' to be less than 'to', but got from=", from,
                " >= to=", to.value_or(0));
    const uint64_t range = to ? static_cast<uint64_t>(*to) - static_cast<uint64_t>(from)
                              : values_of(self.scalar_type()) - static_cast<uint64_t>(from);
    return random_below(self, from, range, generator);
}
Tensor& random_to_(Tensor& self, int64_t to, OptionalGenerator generator) {
    return random_from_(self, 0, to, generator);
}

Tensor& randperm_out(int64_t n, OptionalGenerator generator, Tensor& out) {
    TORCH_CHECK(n >= 0, "n must be non-negative, got ", n);
    at::native::resize_output(out, {n});
    // A permutation is made in order: on the host, from the device's generator.
    const RandomPart part = take_random(generator, out.device().index(), 1);
    at::Generator host = at::globalContext().defaultGenerator(at::kCPU).clone();
    host.set_current_seed(part.seed + part.offset * 0x9E3779B97F4A7C15ULL);
    return out.copy_(at::randperm(n, host, at::TensorOptions().dtype(out.scalar_type())));
}

std::tuple<Tensor, Tensor> native_dropout(const Tensor& self, double p, std::optional<bool> train) {
    if (train.has_value() && !*train)
        return {self.clone(), at::ones_like(self, self.options().dtype(at::kBool))};
    check_floating(self.scalar_type(), "native_dropout");
    Tensor mask = at::empty_like(self, self.options().dtype(at::kBool));
    bernoulli_(mask, 1 - p, std::nullopt);
    return {p == 1 ? at::zeros_like(self) : at::mul(at::mul(self, mask), 1 / (1 - p)), mask};
}
Tensor native_dropout_backward(const Tensor& grad, const Tensor& mask, double scale) {
    return at::mul(at::mul(grad, mask), scale);
}

}  // namespace

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl(NATIVE("uniform_", uniform_));
    m.impl(NATIVE("normal_", normal_));
    m.impl(NATIVE("exponential_", exponential_));
    m.impl(NATIVE("bernoulli_.float", bernoulli_));
    m.impl(NATIVE("bernoulli_.Tensor", bernoulli_tensor_));
    m.impl(NATIVE("bernoulli.out", bernoulli_out));
    m.impl(NATIVE("bernoulli", bernoulli));
    m.impl(NATIVE("random_", random_));
    m.impl(NATIVE("random_.from", random_from_));
    m.impl(NATIVE("random_.to", random_to_));
    m.impl(NATIVE("randperm.generator_out", randperm_out));
    m.impl(NATIVE("native_dropout", native_dropout));
    m.impl(NATIVE("native_dropout_backward", native_dropout_backward));
}

}  // namespace torch_opencl
