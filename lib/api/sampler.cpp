// Samplers. OpenCL 3.0, section 5.7.
#include "mem_checks.h"

#include <runtime/sampler.h>

using namespace polder;
using namespace polder::api;
using runtime::Context;
using runtime::Sampler;
using runtime::SamplerState;

namespace {

bool is_addressing_mode(cl_sampler_properties value) {
    return value >= CL_ADDRESS_NONE && value <= CL_ADDRESS_MIRRORED_REPEAT;
}

bool is_filter_mode(cl_sampler_properties value) { return value == CL_FILTER_NEAREST || value == CL_FILTER_LINEAR; }

bool is_boolean(cl_sampler_properties value) { return value == CL_TRUE || value == CL_FALSE; }

Result<void> set_property(SamplerState& state, cl_sampler_properties name, cl_sampler_properties value) {
    // CL_INVALID_VALUE (all checks): a property is unknown or has an unknown value.
    switch (name) {
    case CL_SAMPLER_NORMALIZED_COORDS:
        if (!is_boolean(value))
            return fail(Status::invalid_value);
        state.normalized_coords = static_cast<cl_bool>(value);
        return {};
    case CL_SAMPLER_ADDRESSING_MODE:
        if (!is_addressing_mode(value))
            return fail(Status::invalid_value);
        state.addressing_mode = static_cast<cl_addressing_mode>(value);
        return {};
    case CL_SAMPLER_FILTER_MODE:
        if (!is_filter_mode(value))
            return fail(Status::invalid_value);
        state.filter_mode = static_cast<cl_filter_mode>(value);
        return {};
    default: return fail(Status::invalid_value);
    }
}

// Reads the properties into `state`, and returns the list with its terminating zero; an empty list when `list` is null.
Result<std::vector<cl_sampler_properties>> read_properties(const cl_sampler_properties* list, SamplerState& state) {
    std::vector<cl_sampler_properties> read;
    if (!list)
        return read;
    for (const cl_sampler_properties* property = list; property[0] != 0; property += 2) {
        // CL_INVALID_VALUE: a property is listed twice.
        for (size_t i = 0; i < read.size(); i += 2)
            if (read[i] == property[0])
                return fail(Status::invalid_value);
        POLDER_TRY(set_property(state, property[0], property[1]));
        read.insert(read.end(), property, property + 2);
    }
    read.push_back(0);
    return read;
}

Result<cl_sampler> create_sampler(cl_context handle, const cl_sampler_properties* list) {
    POLDER_ASSIGN(context, from_handle<Context>(handle));
    // CL_INVALID_OPERATION: no device of the context supports images.
    if (!has_images(*context))
        return fail(Status::invalid_operation);
    SamplerState state;
    POLDER_ASSIGN(properties, read_properties(list, state));
    return expose<cl_sampler>(Sampler::create(Ref<Context>::share(context), state, std::move(properties)));
}

Result<void> get_sampler_info(cl_sampler handle, cl_sampler_info name, const Info& info) {
    POLDER_ASSIGN(sampler, from_handle<Sampler>(handle));
    switch (name) {
    case CL_SAMPLER_REFERENCE_COUNT: return info.value<cl_uint>(sampler->api_references());
    case CL_SAMPLER_CONTEXT: return info.value<cl_context>(handle_of<cl_context>(&sampler->context()));
    case CL_SAMPLER_NORMALIZED_COORDS: return info.value<cl_bool>(sampler->state().normalized_coords);
    case CL_SAMPLER_ADDRESSING_MODE: return info.value<cl_addressing_mode>(sampler->state().addressing_mode);
    case CL_SAMPLER_FILTER_MODE: return info.value<cl_filter_mode>(sampler->state().filter_mode);
    case CL_SAMPLER_PROPERTIES: return info.array(sampler->properties());
    // CL_INVALID_VALUE: param_name is unknown.
    default: return fail(Status::invalid_value);
    }
}

}  // namespace

CL_API_ENTRY cl_sampler CL_API_CALL clCreateSampler(cl_context context, cl_bool normalized_coords,
                                                    cl_addressing_mode addressing_mode, cl_filter_mode filter_mode,
                                                    cl_int* errcode_ret) {
    return create<cl_sampler>(errcode_ret, [&]() -> Result<cl_sampler> {
        const cl_sampler_properties properties[] = {CL_SAMPLER_NORMALIZED_COORDS,
                                                    normalized_coords,
                                                    CL_SAMPLER_ADDRESSING_MODE,
                                                    addressing_mode,
                                                    CL_SAMPLER_FILTER_MODE,
                                                    filter_mode,
                                                    0};
        POLDER_ASSIGN(checked, from_handle<Context>(context));
        // CL_INVALID_OPERATION: no device of the context supports images.
        if (!has_images(*checked))
            return fail(Status::invalid_operation);
        SamplerState state;
        POLDER_TRY(read_properties(properties, state));
        return expose<cl_sampler>(Sampler::create(Ref<Context>::share(checked), state, {}));
    });
}

CL_API_ENTRY cl_sampler CL_API_CALL clCreateSamplerWithProperties(cl_context context,
                                                                  const cl_sampler_properties* properties,
                                                                  cl_int* errcode_ret) {
    return create<cl_sampler>(errcode_ret, [&] { return create_sampler(context, properties); });
}

CL_API_ENTRY cl_int CL_API_CALL clRetainSampler(cl_sampler sampler) {
    return entry([&] { return retain<Sampler>(sampler); });
}

CL_API_ENTRY cl_int CL_API_CALL clReleaseSampler(cl_sampler sampler) {
    return entry([&] { return release<Sampler>(sampler); });
}

CL_API_ENTRY cl_int CL_API_CALL clGetSamplerInfo(cl_sampler sampler, cl_sampler_info param_name,
                                                 size_t param_value_size, void* param_value,
                                                 size_t* param_value_size_ret) {
    return entry([&] {
        return get_sampler_info(sampler, param_name, Info{param_value_size, param_value, param_value_size_ret});
    });
}
