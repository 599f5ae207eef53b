#include <compiler/opencl_version.h>

#include <algorithm>

namespace polder::compiler {
namespace {

constexpr std::array<std::string_view, 9> mandatory_extensions{
    "cl_khr_device_uuid",      "cl_khr_extended_bit_ops",          "cl_khr_integer_dot_product",
    "cl_khr_spirv_queries",    "cl_khr_subgroup_extended_types",   "cl_khr_subgroup_rotate",
    "cl_khr_subgroup_shuffle", "cl_khr_subgroup_shuffle_relative", "cl_khr_suggested_local_work_size",
};

} // namespace

std::span<const std::string_view> extensions_of_opencl_3_1() { return mandatory_extensions; }

uint32_t opencl_version(const Target& target) {
    const auto has = [&](std::string_view name) {
        return std::ranges::find(target.extensions, name) != target.extensions.end();
    };
    const bool has_sub_groups = std::ranges::find(target.features, "__opencl_c_subgroups") != target.features.end();
    return has_sub_groups && std::ranges::all_of(mandatory_extensions, has) ? 310 : 300;
}

} // namespace polder::compiler
