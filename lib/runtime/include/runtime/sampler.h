// Sampler: a cl_sampler, which says how a kernel reads an image at coordinates. Immutable. Any thread.
#pragma once

#include <runtime/context.h>

#include <vector>

namespace polder::runtime {

struct SamplerState {
    cl_bool normalized_coords = CL_TRUE;
    cl_addressing_mode addressing_mode = CL_ADDRESS_CLAMP;
    cl_filter_mode filter_mode = CL_FILTER_NEAREST;
};

class Sampler final : public Object {
public:
    static constexpr Kind kind = Kind::sampler;
    static constexpr Status invalid = Status::invalid_sampler;

    // Arguments are valid. `properties` with the terminating zero, or empty.
    static Ref<Sampler> create(Ref<Context> context, const SamplerState& state,
                               std::vector<cl_sampler_properties> properties);

    [[nodiscard]] Context& context() const { return *context_; }
    [[nodiscard]] const SamplerState& state() const { return state_; }
    [[nodiscard]] const std::vector<cl_sampler_properties>& properties() const { return properties_; }
    // The kernel argument: OpenCL C's CLK_* bits.
    [[nodiscard]] uint64_t bits() const;

private:
    Sampler(Ref<Context> context, const SamplerState& state, std::vector<cl_sampler_properties> properties);

    Ref<Context> context_;
    SamplerState state_;
    std::vector<cl_sampler_properties> properties_;
};

}  // namespace polder::runtime
