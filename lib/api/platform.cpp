// The platform: OpenCL 3.1, section 4.1.
#include "command_buffer.h"
#include "entry.h"
#include "external_memory.h"

#include <compiler/compiler.h>
#include <runtime/extensions.h>
#include <runtime/platform.h>

using namespace polder;
using namespace polder::api;
using runtime::Platform;

namespace {

Result<void> answer_platform(cl_platform_info name, const Info& info) {
    switch (name) {
    case CL_PLATFORM_PROFILE: return info.string("FULL_PROFILE");
    case CL_PLATFORM_VERSION: return info.string(Platform::version());
    case CL_PLATFORM_NUMERIC_VERSION: return info.value<cl_version>(CL_MAKE_VERSION(3, 1, 0));
    case CL_PLATFORM_NAME: return info.string(Platform::name());
    case CL_PLATFORM_VENDOR: return info.string("The Polder developers");
    case CL_PLATFORM_EXTENSIONS: return info.string(runtime::platform_extension_names());
    case CL_PLATFORM_EXTENSIONS_WITH_VERSION: return info.array(runtime::platform_extension_versions());
    case CL_PLATFORM_ICD_SUFFIX_KHR: return info.string("POLDER");
    case CL_PLATFORM_SEMAPHORE_TYPES_KHR: return info.value<cl_semaphore_type_khr>(CL_SEMAPHORE_TYPE_BINARY_KHR);
    case CL_PLATFORM_EXTERNAL_MEMORY_IMPORT_HANDLE_TYPES_KHR: return info.array(external_memory_types());
    case command_buffer::platform_capabilities_info: return info.value(command_buffer::platform_capabilities);
    // Device and host share a clock that counts nanoseconds.
    case CL_PLATFORM_HOST_TIMER_RESOLUTION: return info.value<cl_ulong>(1);
    // CL_INVALID_VALUE: param_name is unknown.
    default: return fail(Status::invalid_value);
    }
}

// The platform of a handle. Null means the only platform.
Result<Platform*> platform_or_default(cl_platform_id platform) {
    if (!platform)
        return &Platform::get();
    return from_handle<Platform>(platform);
}

} // namespace

CL_API_ENTRY cl_int CL_API_CALL clGetPlatformIDs(cl_uint num_entries, cl_platform_id* platforms,
                                                 cl_uint* num_platforms) {
    return entry([&]() -> Result<void> {
        // CL_INVALID_VALUE: num_entries is 0 and platforms is not null, or platforms and num_platforms are null.
        if ((platforms && num_entries == 0) || (!platforms && !num_platforms))
            return fail(Status::invalid_value);
        Platform& platform = Platform::get();
        if (!platform.handle())
            return fail(Status::out_of_host_memory);
        if (platforms)
            platforms[0] = handle_of<cl_platform_id>(&platform);
        if (num_platforms)
            *num_platforms = 1;
        return {};
    });
}

__attribute__((visibility("default"))) CL_API_ENTRY cl_int CL_API_CALL clGetPlatformInfo(cl_platform_id platform,
                                                                                         cl_platform_info param_name,
                                                                                         size_t param_value_size,
                                                                                         void* param_value,
                                                                                         size_t* param_value_size_ret) {
    return entry([&]() -> Result<void> {
        POLDER_TRY(platform_or_default(platform));
        return answer_platform(param_name, Info{param_value_size, param_value, param_value_size_ret});
    });
}

CL_API_ENTRY cl_int CL_API_CALL clUnloadPlatformCompiler(cl_platform_id platform) {
    return entry([&]() -> Result<void> {
        POLDER_TRY(from_handle<Platform>(platform));
        compiler::unload();
        return {};
    });
}

CL_API_ENTRY cl_int CL_API_CALL clUnloadCompiler() {
    return entry([&]() -> Result<void> {
        compiler::unload();
        return {};
    });
}
