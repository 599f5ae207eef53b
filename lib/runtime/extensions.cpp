// The tables of extensions, features and intermediate languages, and the queries that list them.
#include <compiler/spirv.h>
#include <runtime/extensions.h>
#include <runtime/platform.h>

#include <algorithm>
#include <cstring>

namespace polder::runtime {
namespace {

constexpr cl_version v1 = CL_MAKE_VERSION(1, 0, 0);
using enum Extension::Owner;

// clang-format off
constexpr Extension extension_table[] = {
    {"cl_ext_buffer_device_address", CL_MAKE_VERSION(1, 0, 2), both, "Buffers with an address on each device, as numbers."},
    {"cl_intel_unified_shared_memory", CL_MAKE_VERSION(1, 2, 0), both, "Memory of host and devices by its address."},
    {"cl_ext_cxx_for_opencl", v1, both, "Programs in C++ for OpenCL."},
    {"cl_ext_float_atomics", v1, own_compiler, "Atomic addition, minimum and maximum of floating-point numbers."},
    {"cl_ext_immutable_memory_objects", v1, both, "Memory objects that nothing can change once they are there."},
    {"cl_ext_image_from_buffer", v1, images, "Images of all types that show the bytes of a buffer."},
    {"cl_ext_image_requirements_info", CL_MAKE_VERSION(0, 5, 0), images, "What an image would need, before it is created."},
    {"cl_khr_3d_image_writes", v1, images, "Writes to 3D images in kernels."},
    {"cl_khr_async_work_group_copy_fence", v1, both, "Orders asynchronous copies of a work-group."},
    {"cl_khr_byte_addressable_store", v1, both, "Stores of types smaller than 32 bits through pointers."},
    {"cl_khr_command_buffer", CL_MAKE_VERSION(0, 9, 8), both, "Commands recorded once and enqueued many times."},
    {"cl_khr_command_buffer_multi_device", CL_MAKE_VERSION(0, 9, 2), both, "A command buffer on several queues and devices."},
    {"cl_khr_command_buffer_mutable_dispatch", CL_MAKE_VERSION(0, 9, 5), both, "Their kernels' arguments and sizes can change."},
    {"cl_khr_create_command_queue", v1, both, "clCreateCommandQueueWithPropertiesKHR for OpenCL 1.x hosts."},
    {"cl_khr_depth_images", v1, images, "2D images and arrays of depth values."},
    {"cl_khr_device_uuid", v1, both, "A device's and a driver's universally unique identifier."},
    {"cl_khr_expect_assume", v1, both, "__builtin_expect and __builtin_assume in kernels."},
    {"cl_khr_extended_async_copies", v1, both, "Asynchronous copies of lines and planes."},
    {"cl_khr_extended_bit_ops", v1, both, "Bit-field insertion and extraction, and bit reversal."},
    {"cl_khr_extended_versioning", v1, both, "Versions as numbers, of the platform, devices and extensions."},
    {"cl_khr_external_memory", CL_MAKE_VERSION(1, 0, 1), both, "Buffers and images in memory of other APIs and processes."},
    {"cl_khr_external_memory_dma_buf", v1, both, "Their memory as Linux dma-bufs."},
    {"cl_khr_external_memory_opaque_fd", v1, both, "Their memory as file descriptors that can be mapped."},
    {"cl_khr_fp16", v1, both, "Half precision."},
    {"cl_khr_fp64", v1, both, "Double precision."},
    {"cl_khr_global_int32_base_atomics", v1, both, "OpenCL 1.0's atomics on global 32-bit integers."},
    {"cl_khr_global_int32_extended_atomics", v1, both, "Their minimum, maximum and bit operations."},
    {"cl_khr_icd", v1, platform, "Loading through an installable client driver loader."},
    {"cl_khr_il_program", v1, both, "Programs from SPIR-V."},
    {"cl_khr_image2d_from_buffer", v1, images, "2D images that show the bytes of a buffer."},
    {"cl_khr_initialize_memory", v1, own_compiler, "Local and private memory that is zero when a kernel begins."},
    {"cl_khr_int64_base_atomics", v1, both, "Atomics on 64-bit integers."},
    {"cl_khr_int64_extended_atomics", v1, both, "Their minimum, maximum and bit operations."},
    {"cl_khr_integer_dot_product", CL_MAKE_VERSION(2, 0, 0), both, "Dot products of four 8-bit integers."},
    {"cl_khr_kernel_clock", v1, own_compiler, "Reads of a clock in kernels."},
    {"cl_khr_local_int32_base_atomics", v1, both, "OpenCL 1.0's atomics on local 32-bit integers."},
    {"cl_khr_local_int32_extended_atomics", v1, both, "Their minimum, maximum and bit operations."},
    {"cl_khr_priority_hints", v1, both, "A queue's priority; all are served alike."},
    {"cl_intel_required_subgroup_size", v1, own_compiler, "A kernel can ask for a sub-group size."},
    {"cl_intel_spirv_subgroups", v1, own_compiler, "The functions of cl_intel_subgroups in programs from SPIR-V."},
    {"cl_intel_subgroups", v1, own_compiler, "Sub-group shuffles, and reads and writes of blocks."},
    {"cl_intel_subgroups_char", v1, own_compiler, "The same for 8-bit integers."},
    {"cl_intel_subgroups_long", v1, own_compiler, "The same for 64-bit integers."},
    {"cl_intel_subgroups_short", v1, own_compiler, "The same for 16-bit integers."},
    {"cl_khr_subgroup_ballot", v1, own_compiler, "Predicates of a sub-group as bits, and broadcasts under divergent control."},
    {"cl_khr_subgroup_clustered_reduce", v1, own_compiler, "Reductions over parts of a sub-group."},
    {"cl_khr_subgroup_extended_types", v1, own_compiler, "Sub-group functions for small integers and vectors."},
    {"cl_khr_subgroup_non_uniform_arithmetic", v1, own_compiler, "Reductions and scans under divergent control."},
    {"cl_khr_subgroup_non_uniform_vote", v1, own_compiler, "Votes under divergent control."},
    {"cl_khr_subgroup_rotate", v1, own_compiler, "Rotations of values in a sub-group."},
    {"cl_khr_subgroup_shuffle", v1, own_compiler, "Values of any other work-item of a sub-group."},
    {"cl_khr_subgroup_shuffle_relative", v1, own_compiler, "Values of work-items at a distance."},
    {"cl_khr_subgroups", v1, other_code, "Sub-groups that progress independently of each other."},
    {"cl_khr_semaphore", v1, both, "Objects that queues signal and wait for, again and again."},
    {"cl_khr_spirv_linkonce_odr", v1, both, "SPIR-V definitions that several modules have."},
    {"cl_khr_spirv_queries", v1, both, "Asks what SPIR-V modules may declare."},
    {"cl_khr_spirv_no_integer_wrap_decoration", v1, both, "SPIR-V arithmetic that promises not to overflow."},
    {"cl_khr_suggested_local_work_size", v1, both, "Asks which work-group size a launch without one gets."},
    {"cl_khr_throttle_hints", v1, both, "How much power a queue's commands may take; all run alike."},
    {"cl_khr_work_group_uniform_arithmetic", v1, both, "Products, bitwise and logical operations over a work-group."},
    {"cl_polder_memory_statistics", CL_MAKE_VERSION(3, 0, 0), both, "Where a context's bytes are, which were moved between memories, what the allocators count."},
};

constexpr Feature feature_table[] = {
    {"__opencl_c_3d_image_writes", "Writes to 3D images."},
    {"__opencl_c_atomic_order_acq_rel", "Acquire and release order of atomics."},
    {"__opencl_c_atomic_order_seq_cst", "Sequentially consistent atomics."},
    {"__opencl_c_atomic_scope_all_devices", "Atomics between devices."},
    {"__opencl_c_atomic_scope_device", "Atomics between the work-groups of a device."},
    {"__opencl_c_device_enqueue", "Kernels that enqueue blocks.", Needs::host_code},
    {"__opencl_c_ext_fp16_global_atomic_add", "Atomic addition of halves in global memory."},
    {"__opencl_c_ext_fp16_global_atomic_load_store", "Their atomic loads, stores and exchanges."},
    {"__opencl_c_ext_fp16_global_atomic_min_max", "Their atomic minimum and maximum."},
    {"__opencl_c_ext_fp16_local_atomic_add", "Atomic addition of halves in local memory."},
    {"__opencl_c_ext_fp16_local_atomic_load_store", "Their atomic loads, stores and exchanges."},
    {"__opencl_c_ext_fp16_local_atomic_min_max", "Their atomic minimum and maximum."},
    {"__opencl_c_ext_fp32_global_atomic_add", "Atomic addition of floats in global memory."},
    {"__opencl_c_ext_fp32_global_atomic_min_max", "Their atomic minimum and maximum."},
    {"__opencl_c_ext_fp32_local_atomic_add", "Atomic addition of floats in local memory."},
    {"__opencl_c_ext_fp32_local_atomic_min_max", "Their atomic minimum and maximum."},
    {"__opencl_c_ext_fp64_global_atomic_add", "Atomic addition of doubles in global memory."},
    {"__opencl_c_ext_fp64_global_atomic_min_max", "Their atomic minimum and maximum."},
    {"__opencl_c_ext_fp64_local_atomic_add", "Atomic addition of doubles in local memory."},
    {"__opencl_c_ext_fp64_local_atomic_min_max", "Their atomic minimum and maximum."},
    {"__opencl_c_fp64", "Double precision."},
    {"__opencl_c_generic_address_space", "Pointers that need not say their address space."},
    {"__opencl_c_images", "Images."},
    {"__opencl_c_int64", "64-bit integers."},
    {"__opencl_c_integer_dot_product_input_4x8bit", "Dot products of char4 and uchar4."},
    {"__opencl_c_integer_dot_product_input_4x8bit_packed", "Dot products of four 8-bit integers packed in a uint."},
    {"__opencl_c_kernel_clock_scope_device", "A clock of the device."},
    {"__opencl_c_kernel_clock_scope_sub_group", "A clock of a sub-group."},
    {"__opencl_c_kernel_clock_scope_work_group", "A clock of a work-group."},
    {"__opencl_c_pipes", "Pipes."},
    {"__opencl_c_program_scope_global_variables", "Variables of program scope in global memory."},
    {"__opencl_c_read_write_images", "Images that one kernel reads and writes."},
    {"__opencl_c_subgroups", "Sub-group functions."},
    {"__opencl_c_work_group_collective_functions", "Broadcast, reductions and scans over a work-group."},
};
// clang-format on

// Extensions that Polder implements without the device's compiler, and without addresses in kernels.
constexpr std::string_view host_extensions[] = {"cl_ext_immutable_memory_objects",
                                                "cl_khr_command_buffer",
                                                "cl_khr_command_buffer_multi_device",
                                                "cl_khr_command_buffer_mutable_dispatch",
                                                "cl_khr_create_command_queue",
                                                "cl_khr_device_uuid",
                                                "cl_khr_extended_versioning",
                                                "cl_khr_external_memory",
                                                "cl_khr_external_memory_dma_buf",
                                                "cl_khr_external_memory_opaque_fd",
                                                "cl_khr_priority_hints",
                                                "cl_khr_semaphore",
                                                "cl_khr_suggested_local_work_size",
                                                "cl_khr_throttle_hints",
                                                "cl_polder_memory_statistics"};

bool contains(std::span<const std::string> list, std::string_view name) {
    return std::ranges::find(list, name) != list.end();
}

// The platform reports what all its devices have.
bool of_platform(const Extension& extension) {
    if (extension.owner == platform || extension.owner == both)
        return true;
    const std::span<const Ref<Device>> devices = Platform::get().devices();
    return !devices.empty() &&
           std::ranges::all_of(devices, [&](const Ref<Device>& device) { return offers(device->info(), extension); });
}

template <class Wanted>
std::string names(Wanted wanted) {
    std::string text;
    for (const Extension& extension : extension_table)
        if (wanted(extension))
            text.append(text.empty() ? "" : " ").append(extension.name);
    return text;
}

template <class Wanted>
std::vector<cl_name_version> versions(Wanted wanted) {
    std::vector<cl_name_version> list;
    for (const Extension& extension : extension_table)
        if (wanted(extension))
            list.push_back(name_version(extension.name, extension.version));
    return list;
}

} // namespace

std::span<const Extension> extensions() { return extension_table; }

std::span<const Feature> features() { return feature_table; }

std::string platform_extension_names() { return names(of_platform); }

bool offers(const driver::DeviceInfo& device, const Extension& extension) {
    switch (extension.owner) {
    case platform: return false;
    case images: return !device.language || contains(device.language->extensions, extension.name);
    case both:
        return !device.language || contains(device.language->extensions, extension.name) ||
               std::ranges::find(host_extensions, extension.name) != std::end(host_extensions);
    case own_compiler: return !device.language;
    case other_code: return device.code.format != driver::CodeFormat::host_function && !device.language;
    }
    return false;
}

bool offers(const driver::DeviceInfo& device, const Feature& feature) {
    if (device.language)
        return contains(device.language->features, feature.name);
    return feature.needs != Needs::host_code || device.code.format == driver::CodeFormat::host_function;
}

bool offers_feature(const driver::DeviceInfo& device, std::string_view name) {
    const auto* const feature = std::ranges::find(feature_table, name, &Feature::name);
    return feature != std::end(feature_table) && offers(device, *feature);
}

std::string device_extension_names(const driver::DeviceInfo& device) {
    return names([&device](const Extension& extension) { return offers(device, extension); });
}

std::vector<cl_name_version> platform_extension_versions() { return versions(of_platform); }

std::vector<cl_name_version> device_extension_versions(const driver::DeviceInfo& device) {
    return versions([&device](const Extension& extension) { return offers(device, extension); });
}

std::vector<cl_name_version> feature_versions(const driver::DeviceInfo& device) {
    std::vector<cl_name_version> list;
    for (const Feature& feature : feature_table)
        if (offers(device, feature))
            list.push_back(name_version(feature.name, CL_MAKE_VERSION(3, 0, 0)));
    return list;
}

std::string il_names(const driver::DeviceInfo& device) {
    std::string text;
    for (const cl_name_version& il : il_versions(device))
        text.append(text.empty() ? "" : " ")
            .append(il.name)
            .append("_" + std::to_string(CL_VERSION_MAJOR(il.version)) + "." +
                    std::to_string(CL_VERSION_MINOR(il.version)));
    return text;
}

std::vector<cl_name_version> il_versions(const driver::DeviceInfo& device) {
    std::vector<cl_name_version> list;
    for (uint32_t minor = compiler::spirv_minor_version_max + 1; minor-- > 0;) {
        const cl_version version = CL_MAKE_VERSION(1, minor, 0);
        if (!device.language ||
            std::ranges::find(device.language->spirv_versions, version) != device.language->spirv_versions.end())
            list.push_back(name_version("SPIR-V", version));
    }
    return list;
}

cl_name_version name_version(std::string_view name, cl_version version) {
    cl_name_version result{};
    result.version = version;
    name.copy(result.name, sizeof result.name - 1);
    return result;
}

} // namespace polder::runtime
