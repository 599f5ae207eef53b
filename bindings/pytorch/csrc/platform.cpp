// Looks for the first platform with a device with the addressing that TORCH_OPENCL_ADDRESSES chooses, describes its devices, and makes
// one context for all of them (with `buffers`, one for each). Functions of extensions are looked up once, by name.
#include "platform.h"

#include <atomic>
#include <c10/util/Exception.h>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace torch_opencl {
namespace {

std::atomic<bool> was_initialized{false};

struct Report {
    std::mutex mutex;
    std::string text;
};

// Never destroyed: a platform's thread may report during exit.
Report& report() {
    static auto* const it = new Report;
    return *it;
}

void CL_CALLBACK on_report(const char* text, const void*, size_t, void*) {
    const std::lock_guard lock(report().mutex);
    report().text = text ? text : "";
}

template <typename T>
T device_info(cl_device_id device, cl_device_info name) {
    T value{};
    clGetDeviceInfo(device, name, sizeof(T), &value, nullptr);
    return value;
}

std::string device_text(cl_device_id device, cl_device_info name) {
    size_t bytes = 0;
    clGetDeviceInfo(device, name, 0, nullptr, &bytes);
    std::string text(bytes, '\0');
    clGetDeviceInfo(device, name, bytes, text.data(), nullptr);
    return text.c_str();
}

bool has_extension(const std::string& list, const char* name) {
    return (' ' + list + ' ').find(std::string(" ") + name + ' ') != std::string::npos;
}

bool allocates_unified(cl_device_id device) {
    return has_extension(device_text(device, CL_DEVICE_EXTENSIONS), "cl_intel_unified_shared_memory") &&
           (device_info<cl_bitfield>(device, CL_DEVICE_DEVICE_MEM_CAPABILITIES_INTEL) &
            CL_UNIFIED_SHARED_MEMORY_ACCESS_INTEL);
}

bool has_buffer_addresses(cl_device_id device) {
    return has_extension(device_text(device, CL_DEVICE_EXTENSIONS), "cl_ext_buffer_device_address");
}

Device describe(cl_device_id id, int index) {
    Device device;
    device.id = id;
    device.index = index;
    device.name = device_text(id, CL_DEVICE_NAME);
    device.has_double = device_info<cl_device_fp_config>(id, CL_DEVICE_DOUBLE_FP_CONFIG) != 0;
    device.is_gpu = (device_info<cl_device_type>(id, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_GPU) != 0;
    device.compute_units = device_info<cl_uint>(id, CL_DEVICE_MAX_COMPUTE_UNITS);
    device.float_lanes = device_info<cl_uint>(id, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT);
    device.group_size_max = device_info<size_t>(id, CL_DEVICE_MAX_WORK_GROUP_SIZE);
    device.local_bytes = device_info<cl_ulong>(id, CL_DEVICE_LOCAL_MEM_SIZE);
    device.memory_bytes = device_info<cl_ulong>(id, CL_DEVICE_GLOBAL_MEM_SIZE);
    device.allocation_bytes_max = device_info<cl_ulong>(id, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
    device.space = device_info<cl_uint>(id, CL_DEVICE_MEMORY_SPACE_POLDER);
    return device;
}

// Null when the platform does not have the function.
template <typename Function>
void find(cl_platform_id platform, const char* name, Function& function) {
    function = reinterpret_cast<Function>(clGetExtensionFunctionAddressForPlatform(platform, name));
}

Functions find_functions(cl_platform_id platform) {
    Functions found;
    find(platform, "clDeviceMemAllocINTEL", found.device_alloc);
    find(platform, "clHostMemAllocINTEL", found.host_alloc);
    find(platform, "clMemFreeINTEL", found.free);
    find(platform, "clMemBlockingFreeINTEL", found.blocking_free);
    find(platform, "clEnqueueMemcpyINTEL", found.copy);
    find(platform, "clSetKernelArgMemPointerINTEL", found.set_unified_pointer);
    find(platform, "clSetKernelArgDevicePointerEXT", found.set_device_pointer);
    find(platform, "clGetMemoryStatisticsPOLDER", found.statistics);
    find(platform, "clResetMemoryPeaksPOLDER", found.reset_peaks);
    find(platform, "clTrimMemoryPOLDER", found.trim);
    return found;
}

// Whether TORCH_OPENCL_ADDRESSES has this value: `buffers` uses cl_ext_buffer_device_address even where there is unified shared memory, `none`
// uses neither.
bool prefers(const char* addresses) {
    const char* const value = std::getenv("TORCH_OPENCL_ADDRESSES");
    return value && std::strcmp(value, addresses) == 0;
}

cl_context make_context(const std::vector<cl_device_id>& ids) {
    return clCreateContext(nullptr, static_cast<cl_uint>(ids.size()), ids.data(), on_report, nullptr, nullptr);
}

}  // namespace

const Platform& Platform::get() {
    // Never destroyed: tensors may be released by static destructors.
    static const Platform* const it = new Platform;
    return *it;
}

bool Platform::is_initialized() { return was_initialized.load(std::memory_order_acquire); }

Platform::Platform() {
    cl_uint count = 0;
    if (clGetPlatformIDs(0, nullptr, &count) != CL_SUCCESS)
        count = 0;
    std::vector<cl_platform_id> platforms(count);
    if (count > 0)
        clGetPlatformIDs(count, platforms.data(), nullptr);
    why_none_ = count == 0 ? "there is no OpenCL platform"
                           : "no OpenCL device has cl_intel_unified_shared_memory or cl_ext_buffer_device_address";
    for (cl_platform_id platform : platforms)
        if (try_platform(platform))
            break;
    was_initialized.store(true, std::memory_order_release);
}

bool Platform::try_platform(cl_platform_id platform) {
    cl_uint count = 0;
    if (clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count) != CL_SUCCESS || count == 0)
        return false;
    std::vector<cl_device_id> ids(count);
    clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, ids.data(), nullptr);
    const auto take = [&](Addressing addressing, bool (*serves)(cl_device_id)) {
        addressing_ = addressing;
        for (cl_device_id id : ids)
            if (serves(id))
                devices_.push_back(describe(id, static_cast<int>(devices_.size())));
    };
    if (prefers("none"))
        take(Addressing::none, [](cl_device_id) { return true; });
    else if (!prefers("buffers"))
        take(Addressing::unified, allocates_unified);
    if (devices_.empty())
        take(Addressing::buffers, has_buffer_addresses);
    return !devices_.empty() && make_contexts(platform);
}

bool Platform::make_contexts(cl_platform_id platform) {
    functions_ = find_functions(platform);
    std::vector<cl_device_id> ids;
    for (Device& device : devices_) {
        ids.push_back(device.id);
        if (addressing_ == Addressing::buffers)
            device.context = make_context({device.id});
    }
    if (addressing_ != Addressing::buffers) {
        const cl_context context = make_context(ids);
        for (Device& device : devices_)
            device.context = context;
    }
    for (const Device& device : devices_)
        if (!device.context) {
            why_none_ = "the OpenCL context could not be created";
            devices_.clear();
            return false;
        }
    return true;
}

const Device& Platform::device(int index) const {
    TORCH_CHECK(!devices_.empty(), "opencl: ", why_none_);
    TORCH_CHECK(index >= 0 && index < static_cast<int>(devices_.size()), "opencl: invalid device index ", index,
                ", there are ", devices_.size(), " devices");
    return devices_[static_cast<size_t>(index)];
}

std::string Platform::take_report() {
    const std::lock_guard lock(report().mutex);
    return std::exchange(report().text, {});
}

std::string error_name(cl_int error) {
    static constexpr struct {
        cl_int code;
        const char* name;
    } names[] = {
        {CL_DEVICE_NOT_FOUND, "CL_DEVICE_NOT_FOUND"},
        {CL_DEVICE_NOT_AVAILABLE, "CL_DEVICE_NOT_AVAILABLE"},
        {CL_MEM_OBJECT_ALLOCATION_FAILURE, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
        {CL_OUT_OF_RESOURCES, "CL_OUT_OF_RESOURCES"},
        {CL_OUT_OF_HOST_MEMORY, "CL_OUT_OF_HOST_MEMORY"},
        {CL_BUILD_PROGRAM_FAILURE, "CL_BUILD_PROGRAM_FAILURE"},
        {CL_INVALID_VALUE, "CL_INVALID_VALUE"},
        {CL_INVALID_BUFFER_SIZE, "CL_INVALID_BUFFER_SIZE"},
        {CL_INVALID_ARG_VALUE, "CL_INVALID_ARG_VALUE"},
        {CL_INVALID_ARG_SIZE, "CL_INVALID_ARG_SIZE"},
        {CL_INVALID_KERNEL_ARGS, "CL_INVALID_KERNEL_ARGS"},
        {CL_INVALID_WORK_GROUP_SIZE, "CL_INVALID_WORK_GROUP_SIZE"},
        {CL_INVALID_GLOBAL_WORK_SIZE, "CL_INVALID_GLOBAL_WORK_SIZE"},
        {CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST"},
    };
    for (const auto& [code, name] : names)
        if (code == error)
            return name;
    return "error " + std::to_string(error);
}

void check(cl_int error, const char* call) {
    if (error == CL_SUCCESS) [[likely]]
        return;
    const std::string report = Platform::take_report();
    const std::string text =
        std::string("opencl: ") + call + " returned " + error_name(error) + (report.empty() ? "" : ": " + report);
    const bool is_memory =
        error == CL_MEM_OBJECT_ALLOCATION_FAILURE || error == CL_OUT_OF_RESOURCES || error == CL_OUT_OF_HOST_MEMORY;
    TORCH_CHECK_WITH(OutOfMemoryError, !is_memory, text);
    TORCH_CHECK(false, text);
}

}  // namespace torch_opencl
