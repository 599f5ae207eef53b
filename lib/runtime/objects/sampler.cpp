#include <runtime/sampler.h>

namespace polder::runtime {
namespace {

// OpenCL C's names for the bits of a sampler.
constexpr uint64_t clk_normalized_coords_true = 0x1;
constexpr uint64_t clk_address_clamp_to_edge = 0x2;
constexpr uint64_t clk_address_clamp = 0x4;
constexpr uint64_t clk_address_repeat = 0x6;
constexpr uint64_t clk_address_mirrored_repeat = 0x8;
constexpr uint64_t clk_filter_nearest = 0x10;
constexpr uint64_t clk_filter_linear = 0x20;

uint64_t addressing_bits(cl_addressing_mode mode) {
    switch (mode) {
    case CL_ADDRESS_CLAMP_TO_EDGE: return clk_address_clamp_to_edge;
    case CL_ADDRESS_CLAMP: return clk_address_clamp;
    case CL_ADDRESS_REPEAT: return clk_address_repeat;
    case CL_ADDRESS_MIRRORED_REPEAT: return clk_address_mirrored_repeat;
    default: return 0;
    }
}

} // namespace

Sampler::Sampler(Ref<Context> context, const SamplerState& state, std::vector<cl_sampler_properties> properties)
    : context_(std::move(context)), state_(state), properties_(std::move(properties)) {}

Ref<Sampler> Sampler::create(Ref<Context> context, const SamplerState& state,
                             std::vector<cl_sampler_properties> properties) {
    return Ref<Sampler>::adopt(new Sampler(std::move(context), state, std::move(properties)));
}

uint64_t Sampler::bits() const {
    return (state_.normalized_coords ? clk_normalized_coords_true : 0) | addressing_bits(state_.addressing_mode) |
           (state_.filter_mode == CL_FILTER_LINEAR ? clk_filter_linear : clk_filter_nearest);
}

} // namespace polder::runtime
