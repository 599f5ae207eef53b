// Results of clGetDeviceInfo become a driver::DeviceInfo: the limits, the versions of OpenCL C and SPIR-V, and those extensions and
// features that work through the proxy, which are in the tables below.
#include <algorithm>
#include <bit>
#include <cstdio>
#include <proxy/foreign_images.h>
#include <proxy/language.h>

namespace polder::proxy {
namespace {

// Extensions of kernels that need nothing of the host.
constexpr std::string_view kernel_extensions[] = {
    "cl_khr_byte_addressable_store",
    "cl_khr_expect_assume",
    "cl_khr_extended_bit_ops",
    "cl_khr_fp64",
    "cl_khr_global_int32_base_atomics",
    "cl_khr_global_int32_extended_atomics",
    "cl_khr_int64_base_atomics",
    "cl_khr_int64_extended_atomics",
    "cl_khr_integer_dot_product",
    "cl_khr_local_int32_base_atomics",
    "cl_khr_local_int32_extended_atomics",
    "cl_khr_spirv_linkonce_odr",
    "cl_khr_spirv_no_integer_wrap_decoration",
};

constexpr std::string_view kernel_features[] = {
    "__opencl_c_atomic_order_acq_rel",
    "__opencl_c_atomic_order_seq_cst",
    "__opencl_c_atomic_scope_all_devices",
    "__opencl_c_atomic_scope_device",
    "__opencl_c_fp64",
    "__opencl_c_generic_address_space",
    "__opencl_c_int64",
    "__opencl_c_integer_dot_product_input_4x8bit",
    "__opencl_c_integer_dot_product_input_4x8bit_packed",
    "__opencl_c_program_scope_global_variables",
    "__opencl_c_work_group_collective_functions",
};

// Of devices that have images here.
constexpr std::string_view image_extensions[] = {"cl_khr_3d_image_writes", "cl_khr_depth_images"};
constexpr std::string_view image_features[] = {"__opencl_c_3d_image_writes", "__opencl_c_images",
                                               "__opencl_c_read_write_images"};
// What Polder has without the other implementation.
constexpr std::string_view own_image_extensions[] = {"cl_ext_image_from_buffer", "cl_ext_image_requirements_info",
                                                     "cl_khr_image2d_from_buffer"};

// What OpenCL C 2.0 has and 3.0 makes optional.
constexpr std::string_view features_of_2_0[] = {
    "__opencl_c_atomic_order_acq_rel",
    "__opencl_c_atomic_order_seq_cst",
    "__opencl_c_atomic_scope_device",
    "__opencl_c_generic_address_space",
    "__opencl_c_program_scope_global_variables",
    "__opencl_c_work_group_collective_functions",
};

bool has_word(const std::string& text, std::string_view word) {
    return (" " + text + " ").find(" " + std::string(word) + " ") != std::string::npos;
}

// Facts of one device.
class Facts {
public:
    explicit Facts(const ForeignContext& context) : context_(context) {}

    template <class Value>
    [[nodiscard]] Value get(cl_device_info what, Value otherwise = {}) const {
        return ask<Value>(context_.cl, context_.device, what, otherwise);
    }
    [[nodiscard]] std::string text(cl_device_info what) const { return ask_text(context_.cl, context_.device, what); }
    [[nodiscard]] std::vector<cl_name_version> versions(cl_device_info what) const {
        return is_3() ? ask_versions(context_.cl, context_.device, what) : std::vector<cl_name_version>{};
    }
    [[nodiscard]] bool is_3() const { return context_.version >= CL_MAKE_VERSION(3, 0, 0); }
    [[nodiscard]] bool is_2() const { return context_.version >= CL_MAKE_VERSION(2, 0, 0); }

private:
    const ForeignContext& context_;
};

template <class List>
bool contains(const List& list, std::string_view name) {
    return std::ranges::find(list, name) != std::end(list);
}

std::vector<std::string> features_of(const Facts& facts, const driver::LanguageLimits& language) {
    const std::vector<std::string>& extensions = language.extensions;
    std::vector<std::string> features;
    if (facts.is_3()) {
        for (const cl_name_version& feature : facts.versions(CL_DEVICE_OPENCL_C_FEATURES))
            if (contains(kernel_features, feature.name) || (language.images && contains(image_features, feature.name)))
                features.emplace_back(feature.name);
        std::ranges::sort(features);
        return features;
    }
    if (language.images) {
        features.emplace_back("__opencl_c_images");
        if (contains(extensions, "cl_khr_3d_image_writes"))
            features.emplace_back("__opencl_c_3d_image_writes");
        if (language.images->arguments[static_cast<size_t>(driver::ImageUse::read_write)] != 0)
            features.emplace_back("__opencl_c_read_write_images");
    }
    features.emplace_back("__opencl_c_int64");
    if (std::ranges::find(extensions, "cl_khr_fp64") != extensions.end())
        features.emplace_back("__opencl_c_fp64");
    if (facts.is_2())
        features.insert(features.end(), std::begin(features_of_2_0), std::end(features_of_2_0));
    std::ranges::sort(features);
    return features;
}

std::vector<uint32_t> language_versions_of(const Facts& facts) {
    std::vector<uint32_t> versions;
    for (const cl_name_version& version : facts.versions(CL_DEVICE_OPENCL_C_ALL_VERSIONS))
        versions.push_back(CL_MAKE_VERSION(CL_VERSION_MAJOR(version.version), CL_VERSION_MINOR(version.version), 0));
    if (!facts.is_3())
        versions = {CL_MAKE_VERSION(1, 0, 0), CL_MAKE_VERSION(1, 1, 0), CL_MAKE_VERSION(1, 2, 0)};
    return versions;
}

// "SPIR-V_1.0 SPIR-V_1.2 ".
std::vector<uint32_t> spirv_versions_of(const std::string& text) {
    constexpr std::string_view prefix = "SPIR-V_";
    std::vector<uint32_t> versions;
    for (size_t at = text.find(prefix); at != std::string::npos; at = text.find(prefix, at + 1)) {
        unsigned major = 0;
        unsigned minor = 0;
        if (std::sscanf(text.c_str() + at + prefix.size(), "%u.%u", &major, &minor) == 2)
            versions.push_back(CL_MAKE_VERSION(major, minor, 0));
    }
    return versions;
}

// An OpenCL 3.0 device names the feature, too.
std::optional<driver::ImageLimits> images_of(const ForeignContext& context, const Facts& facts) {
    std::optional<driver::ImageLimits> images = image_limits_of(context);
    if (images && facts.is_3() &&
        std::ranges::none_of(facts.versions(CL_DEVICE_OPENCL_C_FEATURES),
                             [](const auto& feature) { return std::string_view(feature.name) == "__opencl_c_images"; }))
        return std::nullopt;
    return images;
}

driver::LanguageLimits language_of(const ForeignContext& context, const Facts& facts) {
    driver::LanguageLimits language;
    language.images = images_of(context, facts);
    const std::string extensions = facts.text(CL_DEVICE_EXTENSIONS);
    for (const std::string_view name : kernel_extensions)
        if (has_word(extensions, name))
            language.extensions.emplace_back(name);
    if (language.images) {
        for (const std::string_view name : image_extensions)
            if (has_word(extensions, name))
                language.extensions.emplace_back(name);
        language.extensions.insert(language.extensions.end(), std::begin(own_image_extensions),
                                   std::end(own_image_extensions));
    }
    language.features = features_of(facts, language);
    language.versions = language_versions_of(facts);
    // The extension's query has the number of OpenCL 2.1's.
    language.spirv_versions = spirv_versions_of(facts.text(CL_DEVICE_IL_VERSION));
    if (!language.spirv_versions.empty())
        language.extensions.emplace_back("cl_khr_il_program");
    // Required of OpenCL 2, a query in 3.0.
    const bool any = facts.is_3() ? facts.get<cl_bool>(CL_DEVICE_NON_UNIFORM_WORK_GROUP_SUPPORT) != 0 : facts.is_2();
    if (any)
        language.work_groups = driver::LanguageLimits::WorkGroups::any;
    language.single_fp_config = facts.get<cl_device_fp_config>(CL_DEVICE_SINGLE_FP_CONFIG);
    language.double_fp_config = facts.get<cl_device_fp_config>(CL_DEVICE_DOUBLE_FP_CONFIG);
    constexpr uint64_t least = CL_DEVICE_ATOMIC_ORDER_RELAXED | CL_DEVICE_ATOMIC_SCOPE_WORK_GROUP;
    const uint64_t usual = facts.is_2() ? least | CL_DEVICE_ATOMIC_ORDER_ACQ_REL | CL_DEVICE_ATOMIC_ORDER_SEQ_CST |
                                              CL_DEVICE_ATOMIC_SCOPE_DEVICE
                                        : least;
    language.atomic_memory_capabilities =
        facts.get<cl_device_atomic_capabilities>(CL_DEVICE_ATOMIC_MEMORY_CAPABILITIES, usual);
    language.atomic_fence_capabilities =
        facts.get<cl_device_atomic_capabilities>(CL_DEVICE_ATOMIC_FENCE_CAPABILITIES, usual);
    language.constant_bytes_max = facts.get<cl_ulong>(CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE, 65536);
    language.constant_arguments_max = facts.get<cl_uint>(CL_DEVICE_MAX_CONSTANT_ARGS, 8);
    language.parameter_bytes_max = facts.get<size_t>(CL_DEVICE_MAX_PARAMETER_SIZE, 1024);
    if (facts.is_2())
        language.program_variables_bytes_max = facts.get<size_t>(CL_DEVICE_MAX_GLOBAL_VARIABLE_SIZE);
    language.printf_bytes_max = facts.get<size_t>(CL_DEVICE_PRINTF_BUFFER_SIZE, 65536);
    return language;
}

driver::DeviceType type_of(cl_device_type type) {
    if (type & CL_DEVICE_TYPE_GPU)
        return driver::DeviceType::gpu;
    return type & CL_DEVICE_TYPE_CPU ? driver::DeviceType::cpu : driver::DeviceType::accelerator;
}

}  // namespace

driver::DeviceInfo info_of(const ForeignContext& context, const Parameters& parameters, SpaceId space) {
    const Facts facts(context);
    driver::DeviceInfo info;
    info.name = context.name;
    info.vendor = facts.text(CL_DEVICE_VENDOR);
    if (info.vendor.empty())
        info.vendor = "unknown";
    info.vendor_id = facts.get<cl_uint>(CL_DEVICE_VENDOR_ID);
    info.driver_version =
        POLDER_VERSION " (" + facts.text(CL_DEVICE_VERSION) + ", " + facts.text(CL_DRIVER_VERSION) + ")";
    info.type = type_of(facts.get<cl_device_type>(CL_DEVICE_TYPE));
    info.space = space;
    info.compute_units = std::max(1u, facts.get<cl_uint>(CL_DEVICE_MAX_COMPUTE_UNITS, 1));
    info.clock_mhz = facts.get<cl_uint>(CL_DEVICE_MAX_CLOCK_FREQUENCY);
    info.max_work_group_size = std::max<size_t>(1, facts.get<size_t>(CL_DEVICE_MAX_WORK_GROUP_SIZE, 1));
    struct Sizes {
        size_t of[8];
    };
    // The answer is as long as the device has dimensions.
    Sizes sizes{};
    if (context.cl.clGetDeviceInfo(context.device, CL_DEVICE_MAX_WORK_ITEM_SIZES, sizeof sizes, &sizes, nullptr) ==
        CL_SUCCESS)
        for (int d = 0; d < 3; ++d)
            info.max_work_item_sizes[d] = std::max<size_t>(1, sizes.of[d]);
    info.memory_bytes = facts.get<cl_ulong>(CL_DEVICE_GLOBAL_MEM_SIZE);
    info.allocation_bytes_max = facts.get<cl_ulong>(CL_DEVICE_MAX_MEM_ALLOC_SIZE, info.memory_bytes);
    if (parameters.memory_bytes)
        info.memory_bytes = std::min(info.memory_bytes, *parameters.memory_bytes);
    info.allocation_bytes_max = std::min(info.allocation_bytes_max, info.memory_bytes);
    // Each region is a buffer of the implementation, and touched at once: begin small, regions double.
    info.region_bytes = std::min<uint64_t>(uint64_t{64} << 20, std::max<uint64_t>(info.memory_bytes / 16, 4096));
    info.global_cache = {facts.get<cl_uint>(CL_DEVICE_GLOBAL_MEM_CACHELINE_SIZE),
                         facts.get<cl_ulong>(CL_DEVICE_GLOBAL_MEM_CACHE_SIZE)};
    info.local_memory_is_dedicated = facts.get<cl_device_local_mem_type>(CL_DEVICE_LOCAL_MEM_TYPE) == CL_LOCAL;
    info.preferred_vector_bytes = std::max(4u, facts.get<cl_uint>(CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT, 1) * 4);
    // Sub-buffers begin at multiples of this; never less than what the memory layer uses.
    info.base_address_alignment =
        std::bit_ceil(std::max<uint64_t>(128, facts.get<cl_uint>(CL_DEVICE_MEM_BASE_ADDR_ALIGN, 1024) / 8));
    info.timer_resolution_ns = std::max<size_t>(1, facts.get<size_t>(CL_DEVICE_PROFILING_TIMER_RESOLUTION, 1));
    info.native_kernels = false;
    info.code.format = driver::CodeFormat::opencl_c;
    info.code.processor = info.name;
    info.code.local_memory_bytes = facts.get<cl_ulong>(CL_DEVICE_LOCAL_MEM_SIZE);
    info.language = language_of(context, facts);
    return info;
}

}  // namespace polder::proxy
