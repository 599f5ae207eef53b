// The platform, the device and the context, and the table of all functions.
#include "fake_functions.h"

#include <cstdlib>
#include <cstring>
#include <string_view>
#include <unistd.h>

using namespace polder::fake_icd;

namespace {

std::string_view mode() {
    const char* const text = std::getenv("FAKE_ICD");
    return text ? text : "";
}

const cl_icd_dispatch& poor_dispatch() {
    static const cl_icd_dispatch table = [] {
        cl_icd_dispatch without = fake_dispatch;
        without.clEnqueueFillBuffer = nullptr;
        return without;
    }();
    return table;
}

cl_platform_id the_platform() {
    static auto* const platform = new _cl_platform_id;
    return platform;
}
cl_device_id the_device() {
    static auto* const device = [] {
        auto* const made = new _cl_device_id;
        if (mode() == "poor")
            made->dispatch = &poor_dispatch();
        return made;
    }();
    return device;
}

cl_int give(const void* value, size_t bytes, size_t capacity, void* to, size_t* size) {
    if (to && capacity < bytes)
        return CL_INVALID_VALUE;
    if (to)
        std::memcpy(to, value, bytes);
    if (size)
        *size = bytes;
    return CL_SUCCESS;
}

} // namespace

// --- platform ---

cl_int fake_get_platform_ids(cl_uint capacity, cl_platform_id* platforms, cl_uint* count) {
    if (mode() == "crash")
        std::abort();
    if (mode() == "exit")
        _exit(3);
    while (mode() == "hang")
        pause();
    const cl_uint there = mode() == "empty" ? 0 : 1;
    if (count)
        *count = there;
    if (platforms && capacity > 0 && there)
        platforms[0] = the_platform();
    return enter("clIcdGetPlatformIDsKHR");
}

cl_int CL_API_CALL fake_get_platform_info(cl_platform_id, cl_platform_info name, size_t capacity, void* to,
                                          size_t* size) {
    const char* text = "fake";
    if (name == CL_PLATFORM_ICD_SUFFIX_KHR && mode() == "polder")
        text = "POLDER";
    return give(text, std::strlen(text) + 1, capacity, to, size);
}

cl_int CL_API_CALL fake_get_device_ids(cl_platform_id, cl_device_type, cl_uint capacity, cl_device_id* devices,
                                       cl_uint* count) {
    if (mode() == "crash-later")
        std::abort();
    if (const cl_int code = enter("clGetDeviceIDs"))
        return code;
    if (count)
        *count = 1;
    if (devices && capacity > 0)
        devices[0] = the_device();
    return CL_SUCCESS;
}

void* CL_API_CALL fake_get_function(cl_platform_id, const char*) { return nullptr; }

// --- device ---

cl_int CL_API_CALL fake_get_device_info(cl_device_id, cl_device_info name, size_t capacity, void* to, size_t* size) {
    const auto number = [&](auto value) { return give(&value, sizeof value, capacity, to, size); };
    const auto text = [&](const char* value) { return give(value, std::strlen(value) + 1, capacity, to, size); };
    switch (name) {
    case CL_DEVICE_NAME: return text("fake device");
    case CL_DEVICE_VENDOR: return text("the tests");
    case CL_DEVICE_VERSION: return text("OpenCL 3.0 fake");
    case CL_DRIVER_VERSION: return text("1");
    case CL_DEVICE_EXTENSIONS: return text("cl_khr_byte_addressable_store cl_khr_fp64 cl_khr_images_of_the_future");
    case CL_DEVICE_IL_VERSION: return text("");
    case CL_DEVICE_TYPE: return number(cl_device_type{CL_DEVICE_TYPE_ACCELERATOR});
    case CL_DEVICE_AVAILABLE:
    case CL_DEVICE_COMPILER_AVAILABLE:
    case CL_DEVICE_NON_UNIFORM_WORK_GROUP_SUPPORT: return number(cl_bool{CL_TRUE});
    case CL_DEVICE_ADDRESS_BITS: return number(cl_uint{64});
    case CL_DEVICE_MAX_COMPUTE_UNITS: return number(cl_uint{3});
    case CL_DEVICE_MAX_WORK_GROUP_SIZE: return number(size_t{1024});
    case CL_DEVICE_MAX_WORK_ITEM_SIZES: {
        const size_t sizes[3] = {1024, 512, 256};
        return give(sizes, sizeof sizes, capacity, to, size);
    }
    case CL_DEVICE_GLOBAL_MEM_SIZE: return number(cl_ulong{1} << 30);
    case CL_DEVICE_MAX_MEM_ALLOC_SIZE: return number(cl_ulong{1} << 28);
    case CL_DEVICE_MEM_BASE_ADDR_ALIGN: return number(cl_uint{256 * 8});
    case CL_DEVICE_IMAGE_SUPPORT: return number(static_cast<cl_bool>(mode() == "images"));
    case CL_DEVICE_MAX_READ_IMAGE_ARGS: return number(cl_uint{200});
    case CL_DEVICE_MAX_WRITE_IMAGE_ARGS:
    case CL_DEVICE_MAX_READ_WRITE_IMAGE_ARGS: return number(cl_uint{8});
    case CL_DEVICE_IMAGE2D_MAX_WIDTH:
    case CL_DEVICE_IMAGE2D_MAX_HEIGHT: return number(size_t{4096});
    case CL_DEVICE_IMAGE3D_MAX_WIDTH:
    case CL_DEVICE_IMAGE3D_MAX_HEIGHT:
    case CL_DEVICE_IMAGE3D_MAX_DEPTH: return number(size_t{100'000});
    case CL_DEVICE_IMAGE_MAX_ARRAY_SIZE: return number(size_t{256});
    case CL_DEVICE_IMAGE_MAX_BUFFER_SIZE: return number(size_t{65536});
    case CL_DEVICE_MAX_SAMPLERS: return number(cl_uint{16});
    case CL_DEVICE_LOCAL_MEM_SIZE: return number(cl_ulong{65536});
    case CL_DEVICE_SINGLE_FP_CONFIG: return number(cl_device_fp_config{CL_FP_INF_NAN | CL_FP_ROUND_TO_NEAREST});
    case CL_DEVICE_OPENCL_C_ALL_VERSIONS: {
        cl_name_version versions[2] = {};
        versions[0].version = CL_MAKE_VERSION(1, 2, 0);
        versions[1].version = CL_MAKE_VERSION(3, 0, 0);
        return give(versions, sizeof versions, capacity, to, size);
    }
    case CL_DEVICE_OPENCL_C_FEATURES: {
        cl_name_version features[4] = {};
        std::strcpy(features[0].name, "__opencl_c_int64");
        std::strcpy(features[1].name, "__opencl_c_images");
        std::strcpy(features[2].name, "__opencl_c_read_write_images");
        std::strcpy(features[3].name, "__opencl_c_fp64");
        return give(features, sizeof features, capacity, to, size);
    }
    default: return CL_INVALID_VALUE;
    }
}

// --- context, queues, memory ---

cl_context CL_API_CALL fake_create_context(const cl_context_properties*, cl_uint, const cl_device_id*,
                                           void(CL_CALLBACK*)(const char*, const void*, size_t, void*), void*,
                                           cl_int* code) {
    *code = enter("clCreateContext");
    return *code ? nullptr : new _cl_context;
}
cl_int CL_API_CALL fake_release_context(cl_context context) {
    if (context->objects != 0)
        count("early release");
    release(context);
    return CL_SUCCESS;
}

cl_command_queue CL_API_CALL fake_create_queue(cl_context context, cl_device_id, cl_command_queue_properties,
                                               cl_int* code) {
    *code = enter("clCreateCommandQueue");
    return *code ? nullptr : new _cl_command_queue(context);
}
cl_int CL_API_CALL fake_release_queue(cl_command_queue queue) {
    release(queue);
    return CL_SUCCESS;
}

cl_mem CL_API_CALL fake_create_buffer(cl_context context, cl_mem_flags, size_t size, void*, cl_int* code) {
    *code = enter("clCreateBuffer");
    if (*code)
        return nullptr;
    auto buffer = std::make_unique<_cl_mem>(context);
    buffer->bytes = std::make_shared<std::vector<std::byte>>(size);
    buffer->size = size;
    return buffer.release();
}
cl_mem CL_API_CALL fake_create_sub_buffer(cl_mem parent, cl_mem_flags, cl_buffer_create_type, const void* range,
                                          cl_int* code) {
    *code = enter("clCreateSubBuffer");
    const auto& region = *static_cast<const cl_buffer_region*>(range);
    if (*code == CL_SUCCESS && region.origin % 256 != 0)
        *code = CL_MISALIGNED_SUB_BUFFER_OFFSET;
    if (*code == CL_SUCCESS && (region.size == 0 || region.origin + region.size > parent->size))
        *code = CL_INVALID_VALUE;
    if (*code)
        return nullptr;
    auto* const buffer = new _cl_mem(parent->context);
    buffer->bytes = parent->bytes;
    buffer->origin = parent->origin + region.origin;
    buffer->size = region.size;
    return buffer;
}
cl_int CL_API_CALL fake_release_buffer(cl_mem buffer) {
    release(buffer);
    return CL_SUCCESS;
}

// --- the library ---

const cl_icd_dispatch fake_dispatch = [] {
    cl_icd_dispatch table{};
    table.clGetPlatformInfo = guarded<fake_get_platform_info>;
    table.clGetDeviceIDs = guarded<fake_get_device_ids>;
    table.clGetDeviceInfo = guarded<fake_get_device_info>;
    table.clGetExtensionFunctionAddressForPlatform = fake_get_function;
    table.clCreateContext = guarded<fake_create_context>;
    table.clReleaseContext = guarded<fake_release_context>;
    table.clCreateCommandQueue = guarded<fake_create_queue>;
    table.clReleaseCommandQueue = guarded<fake_release_queue>;
    table.clCreateBuffer = guarded<fake_create_buffer>;
    table.clCreateSubBuffer = guarded<fake_create_sub_buffer>;
    table.clReleaseMemObject = guarded<fake_release_buffer>;
    add_program_functions(table);
    add_command_functions(table);
    add_image_functions(table);
    return table;
}();

#define FAKE_EXPORT extern "C" __attribute__((visibility("default")))
FAKE_EXPORT cl_int clIcdGetPlatformIDsKHR(cl_uint capacity, cl_platform_id* platforms, cl_uint* count) {
    return fake_get_platform_ids(capacity, platforms, count);
}
FAKE_EXPORT void* clGetExtensionFunctionAddress(const char* name) {
    return std::string_view(name) == "clIcdGetPlatformIDsKHR" ? reinterpret_cast<void*>(&clIcdGetPlatformIDsKHR)
                                                              : nullptr;
}
