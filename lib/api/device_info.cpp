// The tables of clGetDeviceInfo: each row is one query, with its name and the function that computes its value.
#include "device_info.h"

#include "command_buffer.h"
#include "external_memory.h"
#include "unified_memory.h"

#include <base/build_id.h>
#include <base/options.h>
#include <compiler/compiler.h>
#include <compiler/opencl_version.h>
#include <compiler/spirv.h>
#include <runtime/device_images.h>
#include <runtime/device_queue.h>
#include <runtime/extensions.h>
#include <runtime/image.h>
#include <runtime/mem_object.h>
#include <runtime/platform.h>

#include <algorithm>
#include <polder/device_enqueue_abi.h>

namespace polder::api {
namespace {

using runtime::Device;
using runtime::DeviceQueue;
using Kind = runtime::Allocation::Kind;
using UnifiedMemory = cl_device_unified_shared_memory_capabilities_intel;

struct Query {
    cl_device_info name;
    Result<void> (*answer)(const Device& device, const Info& info);
};

// Macros for the rows of the tables. The expression may use `device`.
#define POLDER_VALUE(name, type, expression)                                                                           \
    {name, [](const Device& device, const Info& info) -> Result<void> {                                                \
         static_cast<void>(device);                                                                                    \
         return info.value<type>(static_cast<type>(expression));                                                       \
     }},
#define POLDER_STRING(name, expression)                                                                                \
    {name, [](const Device& device, const Info& info) -> Result<void> {                                                \
         static_cast<void>(device);                                                                                    \
         return info.string(expression);                                                                               \
     }},
#define POLDER_ARRAY(name, expression)                                                                                 \
    {name, [](const Device& device, const Info& info) -> Result<void> {                                                \
         static_cast<void>(device);                                                                                    \
         return info.array(expression);                                                                                \
     }},

// The queries of cl_khr_spirv_queries, which OpenCL 3.1 has without the suffix; this platform's headers have neither.
constexpr cl_device_info spirv_extended_instruction_sets = 0x12B9;
constexpr cl_device_info spirv_extensions = 0x12BA;
constexpr cl_device_info spirv_capabilities = 0x12BB;

// cl_ext_cxx_for_opencl, cl_ext_float_atomics and cl_khr_kernel_clock; headers of 2023 lack one or the other.
constexpr cl_device_info cxx_for_opencl_version = 0x4230;
constexpr cl_device_info single_fp_atomic_capabilities = 0x4231;
constexpr cl_device_info double_fp_atomic_capabilities = 0x4232;
constexpr cl_device_info half_fp_atomic_capabilities = 0x4233;
constexpr cl_device_info kernel_clock_capabilities = 0x1076;

constexpr uint64_t printf_bytes_max = 1u << 20;

// A limit of the device's own compiler if it has one, otherwise of Polder's compiler.
template <class T>
T limit(const Device& device, T ours, T driver::LanguageLimits::* member) {
    const std::optional<driver::LanguageLimits>& language = device.info().language;
    return language ? std::min(ours, (*language).*member) : ours;
}

// The bits that both the device's own compiler and Polder have.
uint64_t common_bits(const Device& device, uint64_t ours, uint64_t driver::LanguageLimits::* member) {
    const std::optional<driver::LanguageLimits>& language = device.info().language;
    return language ? ours & (*language).*member : ours;
}

bool has_feature(const Device& device, std::string_view name) { return runtime::offers_feature(device.info(), name); }

bool has_pipes(const Device& device) { return has_feature(device, "__opencl_c_pipes"); }

bool has_uneven_work_groups(const Device& device) {
    const std::optional<driver::LanguageLimits>& language = device.info().language;
    return !language || language->work_groups == driver::LanguageLimits::WorkGroups::any;
}

// The list, or an empty list for a device whose own compiler does not accept SPIR-V.
template <class List>
std::vector<typename List::value_type> of_spirv(const Device& device, const List& list) {
    if (runtime::il_versions(device.info()).empty())
        return {};
    return {list.begin(), list.end()};
}

cl_uint vector_width(const Device& device, uint32_t element_bytes) {
    return std::clamp(device.info().preferred_vector_bytes / element_bytes, 1u, 16u);
}

bool has_host_code(const Device& device) { return device.info().code.format == driver::CodeFormat::host_function; }

// On GPUs a sub-group is a warp.
std::vector<size_t> sub_group_sizes(const Device& device) {
    if (device.info().language)
        return {};
    if (!has_host_code(device))
        return {device.info().code.sub_group_size};
    const auto sizes = compiler::sub_group_sizes();
    return {sizes.begin(), sizes.end()};
}

size_t sub_groups_max(const Device& device) {
    const std::vector<size_t> sizes = sub_group_sizes(device);
    return sizes.empty() ? 0 : device.info().max_work_group_size / sizes.front();
}

// False for host code, where one thread executes the sub-groups of a work-group one after the other.
cl_bool sub_groups_progress_alone(const Device& device) {
    return has_feature(device, "__opencl_c_subgroups") && !has_host_code(device) ? CL_TRUE : CL_FALSE;
}

constexpr uint64_t single_fp =
    CL_FP_DENORM | CL_FP_INF_NAN | CL_FP_ROUND_TO_NEAREST | CL_FP_FMA | CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT;
constexpr uint64_t half_fp = CL_FP_DENORM | CL_FP_INF_NAN | CL_FP_ROUND_TO_NEAREST | CL_FP_FMA;
constexpr uint64_t double_fp =
    CL_FP_DENORM | CL_FP_INF_NAN | CL_FP_ROUND_TO_NEAREST | CL_FP_ROUND_TO_ZERO | CL_FP_ROUND_TO_INF | CL_FP_FMA;

// The floating-point configuration of the device's own compiler, which may have more bits than `ours`; otherwise `ours`.
uint64_t fp_config(const Device& device, uint64_t ours, uint64_t driver::LanguageLimits::* member) {
    const std::optional<driver::LanguageLimits>& language = device.info().language;
    return language ? (*language).*member : ours;
}

cl_uint double_width(const Device& device) {
    return fp_config(device, double_fp, &driver::LanguageLimits::double_fp_config) != 0 ? vector_width(device, 8) : 0;
}

bool has_half(const Device& device) {
    const auto extensions = runtime::extensions();
    const auto found = std::ranges::find(extensions, std::string_view{"cl_khr_fp16"}, &runtime::Extension::name);
    return found != extensions.end() && runtime::offers(device.info(), *found);
}

// Loads and stores, additions, minima and maxima: bits 0 to 2 for global memory, 16 to 18 for local memory.
cl_bitfield float_atomics(const Device& device) { return device.info().language ? 0 : 0x70007; }

// Clocks of the device, of work-groups and of sub-groups.
cl_bitfield kernel_clocks(const Device& device) { return device.info().language ? 0 : 0x7; }

std::string driver_version(const Device& device) {
    if (const auto& version = options::driver_version_override())
        return *version;
    // Applications cache binaries by the name and version of a device, so the version must be different for each build.
    return device.info().driver_version + " build " + std::string(build_id());
}

cl_uint vendor_id(const Device& device) {
    const bool is_cpu = device.info().type == driver::DeviceType::cpu;
    return is_cpu ? options::cpu_vendor_id_override().value_or(device.info().vendor_id) : device.info().vendor_id;
}

cl_device_svm_capabilities svm(const Device& device) {
    if (!device.has_svm())
        return 0;
    if (!device.has_fine_grained_svm())
        return CL_DEVICE_SVM_COARSE_GRAIN_BUFFER;
    return CL_DEVICE_SVM_COARSE_GRAIN_BUFFER | CL_DEVICE_SVM_FINE_GRAIN_BUFFER | CL_DEVICE_SVM_FINE_GRAIN_SYSTEM |
           CL_DEVICE_SVM_ATOMICS;
}

constexpr cl_device_atomic_capabilities atomics = CL_DEVICE_ATOMIC_ORDER_RELAXED | CL_DEVICE_ATOMIC_ORDER_ACQ_REL |
                                                  CL_DEVICE_ATOMIC_ORDER_SEQ_CST | CL_DEVICE_ATOMIC_SCOPE_WORK_GROUP |
                                                  CL_DEVICE_ATOMIC_SCOPE_DEVICE | CL_DEVICE_ATOMIC_SCOPE_ALL_DEVICES;

// Converts a number of the form major * 100 + minor * 10.
cl_version made_version(uint32_t number) { return CL_MAKE_VERSION(number / 100, number / 10 % 10, 0); }

// 3.1, or 3.0 if the device lacks something that 3.1 makes mandatory.
cl_version version_of(const Device& device) { return made_version(compiler::opencl_version(device.target())); }

// The newest version that the device supports completely. (Programs without -cl-std are OpenCL C 1.2.)
cl_version complete_language_version(const Device& device) {
    return made_version(device.info().language ? 120 : compiler::complete_language_version(device.target()));
}

std::string complete_language_version_text(const Device& device) {
    const cl_version version = complete_language_version(device);
    return "OpenCL C " + std::to_string(CL_VERSION_MAJOR(version)) + "." + std::to_string(CL_VERSION_MINOR(version)) +
           " Polder";
}

std::string version_text(const Device& device) {
    const cl_version version = version_of(device);
    std::string text = runtime::Platform::version();  // "OpenCL 3.1 Polder ..."
    return text.replace(text.find(' ') + 1, 3,
                        std::to_string(CL_VERSION_MAJOR(version)) + "." + std::to_string(CL_VERSION_MINOR(version)));
}

std::vector<cl_name_version> language_versions(const Device& device) {
    std::vector<cl_name_version> versions;
    const auto& language = device.info().language;
    for (const cl_version version : {CL_MAKE_VERSION(1, 0, 0), CL_MAKE_VERSION(1, 1, 0), CL_MAKE_VERSION(1, 2, 0),
                                     CL_MAKE_VERSION(2, 0, 0), CL_MAKE_VERSION(3, 0, 0), CL_MAKE_VERSION(3, 1, 0)})
        if (version <= version_of(device) &&
            (version != CL_MAKE_VERSION(2, 0, 0) || compiler::has_opencl_c_2_0(device.target())) &&
            (!language || std::ranges::find(language->versions, version) != language->versions.end()))
            versions.push_back(runtime::name_version("OpenCL C", version));
    return versions;
}

// Sixteen bytes that differ between devices and stay the same from run to run (FNV-1a, twice).
std::array<cl_uchar, CL_UUID_SIZE_KHR> uuid_of(std::string_view text) {
    std::array<cl_uchar, CL_UUID_SIZE_KHR> uuid{};
    uint64_t hash = 0xcbf29ce484222325;
    for (size_t half = 0; half < 2; ++half) {
        for (const char c : text)
            hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
        for (size_t i = 0; i < 8; ++i)
            uuid[half * 8 + i] = static_cast<cl_uchar>(hash >> (8 * i));
    }
    return uuid;
}

std::string device_identity(const Device& device) {
    const std::span<const Ref<Device>> devices = runtime::Platform::get().devices();
    const Device* root = &device;
    while (root->parent())
        root = root->parent();
    const auto index = std::ranges::find(devices, root, &Ref<Device>::get) - devices.begin();
    return device.driver_name() + "/" + std::to_string(index) + "/" + device.info().name;
}

std::vector<cl_device_id> sync_devices(const Device& device) {
    std::vector<cl_device_id> handles;
    for (const Ref<Device>& other : runtime::Platform::get().devices())
        if (command_buffer::can_sync(device, *other))
            handles.push_back(handle_of<cl_device_id>(other.get()));
    return handles;
}

cl_uint api_references(const Device& device) {
    // Root devices are not counted.
    return device.parent() ? device.api_references() : 1;
}

size_t of_images(const Device& device, size_t limit) { return device.has_images() ? limit : 0; }

cl_device_integer_dot_product_acceleration_properties_khr dot_product_acceleration() { return {}; }

// One row per query, which the formatter would break up.
// clang-format off
const Query identity_queries[] = {
    POLDER_VALUE(CL_DEVICE_TYPE, cl_device_type, device_type(device))
    POLDER_VALUE(CL_DEVICE_VENDOR_ID, cl_uint, vendor_id(device))
    POLDER_STRING(CL_DEVICE_NAME, device.info().name)
    POLDER_STRING(CL_DEVICE_VENDOR, device.info().vendor)
    POLDER_STRING(CL_DRIVER_VERSION, driver_version(device))
    POLDER_STRING(CL_DEVICE_PROFILE, "FULL_PROFILE")
    POLDER_STRING(CL_DEVICE_VERSION, version_text(device))
    POLDER_VALUE(CL_DEVICE_NUMERIC_VERSION, cl_version, version_of(device))
    POLDER_STRING(CL_DEVICE_OPENCL_C_VERSION, complete_language_version_text(device))
    POLDER_VALUE(CL_DEVICE_OPENCL_C_NUMERIC_VERSION_KHR, cl_version, complete_language_version(device))
    POLDER_ARRAY(CL_DEVICE_OPENCL_C_ALL_VERSIONS, language_versions(device))
    POLDER_VALUE(CL_DEVICE_SEMAPHORE_TYPES_KHR, cl_semaphore_type_khr, CL_SEMAPHORE_TYPE_BINARY_KHR)
    POLDER_ARRAY(CL_DEVICE_EXTERNAL_MEMORY_IMPORT_HANDLE_TYPES_KHR, external_memory_types())
    POLDER_ARRAY(device_linear_image_types, external_memory_types())
    POLDER_VALUE(cxx_for_opencl_version, cl_version, device.info().language ? 0 : CL_MAKE_VERSION(1, 0, 0))
    POLDER_ARRAY(CL_DEVICE_OPENCL_C_FEATURES, runtime::feature_versions(device.info()))
    POLDER_STRING(CL_DEVICE_EXTENSIONS, runtime::device_extension_names(device.info()))
    POLDER_ARRAY(CL_DEVICE_EXTENSIONS_WITH_VERSION, runtime::device_extension_versions(device.info()))
    // Polder was never submitted for conformance. The query must return a date, so this is a date before the first test suite.
    POLDER_STRING(CL_DEVICE_LATEST_CONFORMANCE_VERSION_PASSED, "v0000-01-01-00")
    POLDER_VALUE(CL_DEVICE_PLATFORM, cl_platform_id, handle_of<cl_platform_id>(&runtime::Platform::get()))
    POLDER_VALUE(CL_DEVICE_REFERENCE_COUNT, cl_uint, api_references(device))
    POLDER_VALUE(CL_DEVICE_AVAILABLE, cl_bool, CL_TRUE)
    POLDER_VALUE(CL_DEVICE_COMPILER_AVAILABLE, cl_bool, CL_TRUE)
    POLDER_VALUE(CL_DEVICE_LINKER_AVAILABLE, cl_bool, CL_TRUE)
    POLDER_STRING(CL_DEVICE_BUILT_IN_KERNELS, "")
    POLDER_ARRAY(CL_DEVICE_BUILT_IN_KERNELS_WITH_VERSION, std::span<const cl_name_version>{})
    POLDER_STRING(CL_DEVICE_IL_VERSION, runtime::il_names(device.info()))
    POLDER_ARRAY(CL_DEVICE_ILS_WITH_VERSION, runtime::il_versions(device.info()))
    POLDER_ARRAY(spirv_extended_instruction_sets, of_spirv(device, compiler::spirv_instruction_sets()))
    POLDER_ARRAY(spirv_extensions, of_spirv(device, compiler::spirv_extensions(device.target())))
    POLDER_ARRAY(spirv_capabilities, of_spirv(device, compiler::spirv_capabilities(device.target())))
    {CL_DEVICE_UUID_KHR, [](const Device& device, const Info& info) { return info.value(uuid_of(device_identity(device))); }},
    {CL_DRIVER_UUID_KHR, [](const Device& device, const Info& info) { return info.value(uuid_of(driver_version(device))); }},
    POLDER_VALUE(CL_DEVICE_COMMAND_BUFFER_CAPABILITIES_KHR, cl_bitfield, command_buffer::capabilities |
        (has_device_queues(device) ? CL_COMMAND_BUFFER_CAPABILITY_DEVICE_SIDE_ENQUEUE_KHR : 0))
    POLDER_VALUE(command_buffer::device_supported_queue_properties, cl_command_queue_properties, command_buffer::queue_properties)
    POLDER_VALUE(CL_DEVICE_COMMAND_BUFFER_REQUIRED_QUEUE_PROPERTIES_KHR, cl_command_queue_properties, 0)
    {command_buffer::device_num_sync_devices, [](const Device& device, const Info& info) { return info.value(static_cast<cl_uint>(sync_devices(device).size())); }},
    {command_buffer::device_sync_devices, [](const Device& device, const Info& info) { return info.array(sync_devices(device)); }},
    POLDER_VALUE(CL_DEVICE_MUTABLE_DISPATCH_CAPABILITIES_KHR, cl_bitfield, command_buffer::mutable_fields)
    POLDER_VALUE(CL_DEVICE_LUID_VALID_KHR, cl_bool, CL_FALSE)
    {CL_DEVICE_LUID_KHR, [](const Device&, const Info& info) { return info.value(std::array<cl_uchar, CL_LUID_SIZE_KHR>{}); }},
    POLDER_VALUE(CL_DEVICE_NODE_MASK_KHR, cl_uint, 0)
};

const Query compute_queries[] = {
    POLDER_VALUE(CL_DEVICE_MAX_COMPUTE_UNITS, cl_uint, device.info().compute_units)
    POLDER_VALUE(CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS, cl_uint, 3)
    {CL_DEVICE_MAX_WORK_ITEM_SIZES, [](const Device& device, const Info& info) {
         const uint64_t(&sizes)[3] = device.info().max_work_item_sizes;
         return info.value(std::array<size_t, 3>{sizes[0], sizes[1], sizes[2]});
     }},
    POLDER_VALUE(CL_DEVICE_MAX_WORK_GROUP_SIZE, size_t, device.info().max_work_group_size)
    POLDER_VALUE(CL_DEVICE_PREFERRED_WORK_GROUP_SIZE_MULTIPLE, size_t, vector_width(device, sizeof(cl_float)))
    POLDER_VALUE(CL_DEVICE_NON_UNIFORM_WORK_GROUP_SUPPORT, cl_bool, has_uneven_work_groups(device))
    POLDER_VALUE(CL_DEVICE_WORK_GROUP_COLLECTIVE_FUNCTIONS_SUPPORT, cl_bool, has_feature(device, "__opencl_c_work_group_collective_functions"))
    POLDER_VALUE(CL_DEVICE_GENERIC_ADDRESS_SPACE_SUPPORT, cl_bool, has_feature(device, "__opencl_c_generic_address_space"))
    POLDER_VALUE(CL_DEVICE_MAX_NUM_SUB_GROUPS, cl_uint, sub_groups_max(device))
    POLDER_VALUE(CL_DEVICE_SUB_GROUP_INDEPENDENT_FORWARD_PROGRESS, cl_bool, sub_groups_progress_alone(device))
    POLDER_ARRAY(CL_DEVICE_SUB_GROUP_SIZES_INTEL, sub_group_sizes(device))
    POLDER_VALUE(CL_DEVICE_MAX_CLOCK_FREQUENCY, cl_uint, device.info().clock_mhz)
    POLDER_VALUE(CL_DEVICE_ADDRESS_BITS, cl_uint, 64)
    POLDER_VALUE(CL_DEVICE_ENDIAN_LITTLE, cl_bool, std::endian::native == std::endian::little)
    POLDER_VALUE(CL_DEVICE_PREFERRED_VECTOR_WIDTH_CHAR, cl_uint, vector_width(device, 1))
    POLDER_VALUE(CL_DEVICE_PREFERRED_VECTOR_WIDTH_SHORT, cl_uint, vector_width(device, 2))
    POLDER_VALUE(CL_DEVICE_PREFERRED_VECTOR_WIDTH_INT, cl_uint, vector_width(device, 4))
    POLDER_VALUE(CL_DEVICE_PREFERRED_VECTOR_WIDTH_LONG, cl_uint, vector_width(device, 8))
    POLDER_VALUE(CL_DEVICE_PREFERRED_VECTOR_WIDTH_FLOAT, cl_uint, vector_width(device, 4))
    POLDER_VALUE(CL_DEVICE_PREFERRED_VECTOR_WIDTH_DOUBLE, cl_uint, double_width(device))
    POLDER_VALUE(CL_DEVICE_PREFERRED_VECTOR_WIDTH_HALF, cl_uint, has_half(device) ? vector_width(device, 2) : 0)
    POLDER_VALUE(CL_DEVICE_NATIVE_VECTOR_WIDTH_CHAR, cl_uint, vector_width(device, 1))
    POLDER_VALUE(CL_DEVICE_NATIVE_VECTOR_WIDTH_SHORT, cl_uint, vector_width(device, 2))
    POLDER_VALUE(CL_DEVICE_NATIVE_VECTOR_WIDTH_INT, cl_uint, vector_width(device, 4))
    POLDER_VALUE(CL_DEVICE_NATIVE_VECTOR_WIDTH_LONG, cl_uint, vector_width(device, 8))
    POLDER_VALUE(CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT, cl_uint, vector_width(device, 4))
    POLDER_VALUE(CL_DEVICE_NATIVE_VECTOR_WIDTH_DOUBLE, cl_uint, double_width(device))
    POLDER_VALUE(CL_DEVICE_NATIVE_VECTOR_WIDTH_HALF, cl_uint, has_half(device) ? vector_width(device, 2) : 0)
    POLDER_VALUE(CL_DEVICE_SINGLE_FP_CONFIG, cl_device_fp_config,
                 fp_config(device, single_fp, &driver::LanguageLimits::single_fp_config))
    POLDER_VALUE(CL_DEVICE_DOUBLE_FP_CONFIG, cl_device_fp_config,
                 fp_config(device, double_fp, &driver::LanguageLimits::double_fp_config))
    POLDER_VALUE(CL_DEVICE_HALF_FP_CONFIG, cl_device_fp_config, has_half(device) ? half_fp : 0)
    POLDER_VALUE(CL_DEVICE_EXECUTION_CAPABILITIES, cl_device_exec_capabilities,
                 CL_EXEC_KERNEL | (device.info().native_kernels ? CL_EXEC_NATIVE_KERNEL : 0))
    POLDER_VALUE(CL_DEVICE_ATOMIC_MEMORY_CAPABILITIES, cl_device_atomic_capabilities,
                 common_bits(device, atomics, &driver::LanguageLimits::atomic_memory_capabilities))
    POLDER_VALUE(CL_DEVICE_ATOMIC_FENCE_CAPABILITIES, cl_device_atomic_capabilities,
                 common_bits(device, atomics | CL_DEVICE_ATOMIC_SCOPE_WORK_ITEM,
                             &driver::LanguageLimits::atomic_fence_capabilities))
    // 0: the natural alignment of the type.
    POLDER_VALUE(CL_DEVICE_PREFERRED_PLATFORM_ATOMIC_ALIGNMENT, cl_uint, 0)
    POLDER_VALUE(CL_DEVICE_PREFERRED_GLOBAL_ATOMIC_ALIGNMENT, cl_uint, 0)
    POLDER_VALUE(CL_DEVICE_PREFERRED_LOCAL_ATOMIC_ALIGNMENT, cl_uint, 0)
    POLDER_VALUE(single_fp_atomic_capabilities, cl_bitfield, float_atomics(device))
    POLDER_VALUE(double_fp_atomic_capabilities, cl_bitfield, float_atomics(device))
    POLDER_VALUE(half_fp_atomic_capabilities, cl_bitfield, float_atomics(device))
    POLDER_VALUE(kernel_clock_capabilities, cl_bitfield, kernel_clocks(device))
    POLDER_VALUE(CL_DEVICE_INTEGER_DOT_PRODUCT_CAPABILITIES_KHR, cl_device_integer_dot_product_capabilities_khr,
                 !has_feature(device, "__opencl_c_integer_dot_product_input_4x8bit") ? 0 :
                 CL_DEVICE_INTEGER_DOT_PRODUCT_INPUT_4x8BIT_PACKED_KHR | CL_DEVICE_INTEGER_DOT_PRODUCT_INPUT_4x8BIT_KHR)
    POLDER_VALUE(CL_DEVICE_INTEGER_DOT_PRODUCT_ACCELERATION_PROPERTIES_8BIT_KHR,
                 cl_device_integer_dot_product_acceleration_properties_khr, dot_product_acceleration())
    POLDER_VALUE(CL_DEVICE_INTEGER_DOT_PRODUCT_ACCELERATION_PROPERTIES_4x8BIT_PACKED_KHR,
                 cl_device_integer_dot_product_acceleration_properties_khr, dot_product_acceleration())
};

// AMD's query: KiB that new buffers could get, together and in the largest block.
std::array<size_t, 2> free_memory_kib(const Device& device) {
    memory::Space& space = device.space();
    return {space.free_bytes().value / 1024, space.largest_free(space.pool().statistics()).value / 1024};
}

const Query memory_queries[] = {
    {CL_DEVICE_GLOBAL_FREE_MEMORY_AMD, [](const Device& device, const Info& info) {
         const std::array<size_t, 2> kib = free_memory_kib(device);
         // As AMD's driver, for programs that ask for one number only.
         const bool is_one = info.place() != nullptr && info.capacity() == sizeof kib[0];
         return info.array(std::span{kib}.first(is_one ? 1 : kib.size()));
     }},
    POLDER_VALUE(CL_DEVICE_GLOBAL_MEM_SIZE, cl_ulong, device.info().memory_bytes)
    POLDER_VALUE(CL_DEVICE_MAX_MEM_ALLOC_SIZE, cl_ulong, runtime::max_allocation_bytes(device))
    POLDER_VALUE(CL_DEVICE_GLOBAL_MEM_CACHE_TYPE, cl_device_mem_cache_type,
                 device.info().global_cache.size_bytes ? CL_READ_WRITE_CACHE : CL_NONE)
    POLDER_VALUE(CL_DEVICE_GLOBAL_MEM_CACHELINE_SIZE, cl_uint, device.info().global_cache.line_bytes)
    POLDER_VALUE(CL_DEVICE_GLOBAL_MEM_CACHE_SIZE, cl_ulong, device.info().global_cache.size_bytes)
    POLDER_VALUE(CL_DEVICE_LOCAL_MEM_TYPE, cl_device_local_mem_type,
                 device.info().local_memory_is_dedicated ? CL_LOCAL : CL_GLOBAL)
    POLDER_VALUE(CL_DEVICE_LOCAL_MEM_SIZE, cl_ulong,
                 device.info().planned_local_memory_bytes ? device.info().planned_local_memory_bytes
                                                          : device.info().code.local_memory_bytes)
    POLDER_VALUE(CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE, cl_ulong, runtime::max_constant_bytes(device))
    POLDER_VALUE(CL_DEVICE_MAX_CONSTANT_ARGS, cl_uint,
                 limit(device, static_cast<uint32_t>(runtime::parameter_bytes_max / sizeof(void*)),
                       &driver::LanguageLimits::constant_arguments_max))
    POLDER_VALUE(CL_DEVICE_MAX_PARAMETER_SIZE, size_t,
                 limit(device, runtime::parameter_bytes_max, &driver::LanguageLimits::parameter_bytes_max))
    POLDER_VALUE(CL_DEVICE_MAX_GLOBAL_VARIABLE_SIZE, size_t,
                 limit(device, runtime::program_variables_bytes_max, &driver::LanguageLimits::program_variables_bytes_max))
    POLDER_VALUE(CL_DEVICE_GLOBAL_VARIABLE_PREFERRED_TOTAL_SIZE, size_t,
                 limit(device, runtime::program_variables_bytes_max, &driver::LanguageLimits::program_variables_bytes_max))
    POLDER_VALUE(CL_DEVICE_MEM_BASE_ADDR_ALIGN, cl_uint, device.info().base_address_alignment * 8)
    POLDER_VALUE(CL_DEVICE_MIN_DATA_TYPE_ALIGN_SIZE, cl_uint, sizeof(cl_long16))
    POLDER_VALUE(CL_DEVICE_HOST_UNIFIED_MEMORY, cl_bool, device.space_id().is_host())
    POLDER_VALUE(CL_DEVICE_ERROR_CORRECTION_SUPPORT, cl_bool, CL_FALSE)
    POLDER_VALUE(CL_DEVICE_MEMORY_SPACE_POLDER, cl_uint, device.space_id().value)
    POLDER_VALUE(CL_DEVICE_SVM_CAPABILITIES, cl_device_svm_capabilities, svm(device))
    POLDER_VALUE(CL_DEVICE_HOST_MEM_CAPABILITIES_INTEL, UnifiedMemory, memory_capabilities(device, Kind::host))
    POLDER_VALUE(CL_DEVICE_DEVICE_MEM_CAPABILITIES_INTEL, UnifiedMemory, memory_capabilities(device, Kind::device))
    POLDER_VALUE(CL_DEVICE_SINGLE_DEVICE_SHARED_MEM_CAPABILITIES_INTEL, UnifiedMemory,
                 memory_capabilities(device, Kind::shared))
    POLDER_VALUE(CL_DEVICE_CROSS_DEVICE_SHARED_MEM_CAPABILITIES_INTEL, UnifiedMemory,
                 memory_capabilities(device, Kind::shared))
    POLDER_VALUE(CL_DEVICE_SHARED_SYSTEM_MEM_CAPABILITIES_INTEL, UnifiedMemory, system_memory_capabilities(device))
};

const Query queue_queries[] = {
    POLDER_VALUE(CL_DEVICE_QUEUE_ON_HOST_PROPERTIES, cl_command_queue_properties,
                 CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | CL_QUEUE_PROFILING_ENABLE)
    POLDER_VALUE(CL_DEVICE_QUEUE_ON_DEVICE_PROPERTIES, cl_command_queue_properties, !has_device_queues(device) ? 0 :
                 CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | CL_QUEUE_PROFILING_ENABLE)
    POLDER_VALUE(CL_DEVICE_QUEUE_ON_DEVICE_PREFERRED_SIZE, cl_uint, has_device_queues(device) ? DeviceQueue::preferred_bytes : 0)
    POLDER_VALUE(CL_DEVICE_QUEUE_ON_DEVICE_MAX_SIZE, cl_uint, has_device_queues(device) ? DeviceQueue::bytes_max : 0)
    POLDER_VALUE(CL_DEVICE_MAX_ON_DEVICE_QUEUES, cl_uint, has_device_queues(device) ? DeviceQueue::count_max : 0)
    POLDER_VALUE(CL_DEVICE_MAX_ON_DEVICE_EVENTS, cl_uint, has_device_queues(device) ? events_of_blocks_max : 0)
    POLDER_VALUE(CL_DEVICE_DEVICE_ENQUEUE_CAPABILITIES, cl_device_device_enqueue_capabilities, !has_device_queues(device) ? 0 :
                 CL_DEVICE_QUEUE_SUPPORTED | CL_DEVICE_QUEUE_REPLACEABLE_DEFAULT)
    POLDER_VALUE(CL_DEVICE_PROFILING_TIMER_RESOLUTION, size_t, device.info().timer_resolution_ns)
    POLDER_VALUE(CL_DEVICE_PREFERRED_INTEROP_USER_SYNC, cl_bool, CL_TRUE)
    POLDER_VALUE(CL_DEVICE_PRINTF_BUFFER_SIZE, size_t,
                 limit(device, printf_bytes_max, &driver::LanguageLimits::printf_bytes_max))
};

// A device without images reports 0.
const Query image_queries[] = {
    POLDER_VALUE(CL_DEVICE_IMAGE_SUPPORT, cl_bool, device.has_images() ? CL_TRUE : CL_FALSE)
    POLDER_VALUE(CL_DEVICE_MAX_READ_IMAGE_ARGS, cl_uint, runtime::image_arguments(device, driver::ImageUse::read))
    POLDER_VALUE(CL_DEVICE_MAX_WRITE_IMAGE_ARGS, cl_uint, runtime::image_arguments(device, driver::ImageUse::write))
    POLDER_VALUE(CL_DEVICE_MAX_READ_WRITE_IMAGE_ARGS, cl_uint, runtime::image_arguments(device, driver::ImageUse::read_write))
    POLDER_VALUE(CL_DEVICE_IMAGE2D_MAX_WIDTH, size_t, runtime::largest_extents(device, CL_MEM_OBJECT_IMAGE2D).width)
    POLDER_VALUE(CL_DEVICE_IMAGE2D_MAX_HEIGHT, size_t, runtime::largest_extents(device, CL_MEM_OBJECT_IMAGE2D).height)
    POLDER_VALUE(CL_DEVICE_IMAGE3D_MAX_WIDTH, size_t, runtime::largest_extents(device, CL_MEM_OBJECT_IMAGE3D).width)
    POLDER_VALUE(CL_DEVICE_IMAGE3D_MAX_HEIGHT, size_t, runtime::largest_extents(device, CL_MEM_OBJECT_IMAGE3D).height)
    POLDER_VALUE(CL_DEVICE_IMAGE3D_MAX_DEPTH, size_t, runtime::largest_extents(device, CL_MEM_OBJECT_IMAGE3D).depth)
    POLDER_VALUE(CL_DEVICE_IMAGE_MAX_BUFFER_SIZE, size_t, runtime::largest_extents(device, CL_MEM_OBJECT_IMAGE1D_BUFFER).width)
    POLDER_VALUE(CL_DEVICE_IMAGE_MAX_ARRAY_SIZE, size_t, runtime::largest_extents(device, CL_MEM_OBJECT_IMAGE2D_ARRAY).array_size)
    POLDER_VALUE(CL_DEVICE_IMAGE_PITCH_ALIGNMENT, cl_uint, of_images(device, runtime::image_alignment_elements))
    POLDER_VALUE(CL_DEVICE_IMAGE_BASE_ADDRESS_ALIGNMENT, cl_uint, of_images(device, runtime::image_alignment_elements))
    POLDER_VALUE(CL_DEVICE_MAX_SAMPLERS, cl_uint, runtime::samplers(device))
};

// The specification wants 0 where pipes are not supported. A reservation is a value, so that there may be any number.
const Query pipe_queries[] = {
    POLDER_VALUE(CL_DEVICE_PIPE_SUPPORT, cl_bool, has_pipes(device) ? CL_TRUE : CL_FALSE)
    POLDER_VALUE(CL_DEVICE_MAX_PIPE_ARGS, cl_uint, has_pipes(device) ? 64 : 0)
    POLDER_VALUE(CL_DEVICE_PIPE_MAX_ACTIVE_RESERVATIONS, cl_uint, has_pipes(device) ? 65536 : 0)
    POLDER_VALUE(CL_DEVICE_PIPE_MAX_PACKET_SIZE, cl_uint, has_pipes(device) ? runtime::pipe_packet_bytes_max : 0)
};

const Query partition_queries[] = {
    POLDER_VALUE(CL_DEVICE_PARENT_DEVICE, cl_device_id, handle_of<cl_device_id>(device.parent()))
    POLDER_VALUE(CL_DEVICE_PARTITION_MAX_SUB_DEVICES, cl_uint, device.info().max_sub_devices)
    {CL_DEVICE_PARTITION_PROPERTIES, [](const Device& device, const Info& info) {
         runtime::PartitionList kinds = partition_kinds(device);
         if (kinds.empty())
             kinds.push_back(0);  // "supports no partition" is a list of one zero
         return info.array(kinds);
     }},
    POLDER_VALUE(CL_DEVICE_PARTITION_AFFINITY_DOMAIN, cl_device_affinity_domain, affinity_domains(device))
    POLDER_ARRAY(CL_DEVICE_PARTITION_TYPE, device.partition())
};

// clang-format on
#undef POLDER_VALUE
#undef POLDER_STRING
#undef POLDER_ARRAY

const std::span<const Query> tables[] = {identity_queries, compute_queries, memory_queries,   queue_queries,
                                         image_queries,    pipe_queries,    partition_queries};

}  // namespace

bool has_device_queues(const Device& device) { return has_feature(device, "__opencl_c_device_enqueue"); }

cl_device_type device_type(const Device& device) {
    switch (device.info().type) {
    case driver::DeviceType::gpu: return CL_DEVICE_TYPE_GPU;
    case driver::DeviceType::accelerator: return CL_DEVICE_TYPE_ACCELERATOR;
    default: return CL_DEVICE_TYPE_CPU;
    }
}

Result<void> answer_device(const Device& device, cl_device_info name, const Info& info) {
    for (const std::span<const Query> table : tables)
        for (const Query& query : table)
            if (query.name == name)
                return query.answer(device, info);
    // CL_INVALID_VALUE: param_name is unknown.
    return fail(Status::invalid_value);
}

}  // namespace polder::api
