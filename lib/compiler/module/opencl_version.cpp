#include <compiler/opencl_version.h>

#include <algorithm>

namespace polder::compiler {
namespace {

constexpr std::array<std::string_view, 9> mandatory_extensions{
    "cl_khr_device_uuid",      "cl_khr_extended_bit_ops",          "cl_khr_integer_dot_product",
    "cl_khr_spirv_queries",    "cl_khr_subgroup_extended_types",   "cl_khr_subgroup_rotate",
    "cl_khr_subgroup_shuffle", "cl_khr_subgroup_shuffle_relative", "cl_khr_suggested_local_work_size",
};

// Of OpenCL C 2.0 ("features that were introduced in OpenCL C 2.0 as mandatory").
constexpr std::array<std::string_view, 12> features_of_2_0{
    "__opencl_c_3d_image_writes",
    "__opencl_c_atomic_order_acq_rel",
    "__opencl_c_atomic_order_seq_cst",
    "__opencl_c_atomic_scope_all_devices",
    "__opencl_c_atomic_scope_device",
    "__opencl_c_device_enqueue",
    "__opencl_c_generic_address_space",
    "__opencl_c_images",
    "__opencl_c_pipes",
    "__opencl_c_program_scope_global_variables",
    "__opencl_c_read_write_images",
    "__opencl_c_work_group_collective_functions",
};

// The rest of the table of optional features in OpenCL C 3.1. The features of extensions are not part of the language.
constexpr std::array<std::string_view, 5> other_features{
    "__opencl_c_fp64",
    "__opencl_c_int64",
    "__opencl_c_subgroups",
    "__opencl_c_integer_dot_product_input_4x8bit",
    "__opencl_c_integer_dot_product_input_4x8bit_packed",
};

bool has_features(const Target& target, std::span<const std::string_view> names) {
    return std::ranges::all_of(names, [&](std::string_view name) { return target.has_feature(name); });
}

} // namespace

std::span<const std::string_view> extensions_of_opencl_3_1() { return mandatory_extensions; }

uint32_t opencl_version(const Target& target) {
    const auto has = [&](std::string_view name) {
        return std::ranges::find(target.extensions, name) != target.extensions.end();
    };
    const bool has_sub_groups = std::ranges::find(target.features, "__opencl_c_subgroups") != target.features.end();
    return has_sub_groups && std::ranges::all_of(mandatory_extensions, has) ? 310 : 300;
}

bool has_opencl_c_2_0(const Target& target) { return has_features(target, features_of_2_0); }

uint32_t complete_language_version(const Target& target) {
    // An older version than 1.2 is never reported: OpenCL 3.0 and 3.1 are backwards compatible with it.
    return has_opencl_c_2_0(target) && has_features(target, other_features) ? opencl_version(target) : 120;
}

} // namespace polder::compiler
