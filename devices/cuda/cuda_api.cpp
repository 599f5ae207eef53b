#include <cuda/cuda_api.h>
#include <dlfcn.h>

namespace polder::cuda {
namespace {

// The oldest driver that has all functions: CUDA 11.7 has the second version of stream memory operations.
constexpr int oldest_version = 11070;

} // namespace

Result<std::unique_ptr<const CudaApi>> CudaApi::load(const char* library) {
    void* const handle = ::dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return fail(Status::device_not_found, std::string(library) + " is not installed");
    auto api = std::make_unique<CudaApi>();
    const char* missing = nullptr;
    const auto find = [handle, &missing](auto& function, const char* symbol) {
        function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(handle, symbol));
        if (!function && !missing)
            missing = symbol;
    };
#define POLDER_CUDA_FIND(name, symbol, parameters) find(api->name, symbol);
    POLDER_CUDA_FUNCTIONS(POLDER_CUDA_FIND)
#undef POLDER_CUDA_FIND
    if (missing)
        return fail(Status::device_not_found,
                    std::string(library) + " has no function " + missing + ": the driver is too old");
    POLDER_CUDA_TRY(*api, init(0), "cuInit");
    int version = 0;
    POLDER_CUDA_TRY(*api, driver_version(&version), "cuDriverGetVersion");
    if (version < oldest_version)
        return fail(Status::device_not_found, "the NVIDIA driver supports CUDA " + std::to_string(version / 1000) +
                                                  "." + std::to_string(version % 1000 / 10) +
                                                  ", at least 11.7 is needed");
    return api;
}

std::string CudaApi::name_of(Code code) const {
    const char* name = nullptr;
    if (error_name(code, &name) == code_success && name)
        return name;
    return "CUDA error " + std::to_string(static_cast<int>(code));
}

Status CudaApi::status_of(Code code) {
    return code == code_out_of_memory ? Status::mem_object_allocation_failure : Status::out_of_resources;
}

bool CudaApi::is_fatal(Code code) {
    switch (static_cast<int>(code)) {
    case 3:    // not initialized: the child of a fork
    case 4:    // deinitialized: the process exits
    case 46:   // device unavailable
    case 214:  // uncorrectable memory error
    case 220:  // the same, of NVLink
    case 226:  // the same, contained in this process
    case 700:  // illegal address
    case 702:  // launch timeout
    case 709:  // context is destroyed
    case 710:  // assert
    case 714:
    case 715:
    case 716:
    case 717:
    case 718:
    case 719:  // stack, instruction, alignment, address space, pc, launch
    case 809:  // the server of a shared GPU has ended the client
    case 911:  // another device
    case 999: return true;
    default: return false;
    }
}

Error CudaApi::error(Code code, const char* what) const {
    return Error{status_of(code), std::string(what) + ": " + name_of(code)};
}

} // namespace polder::cuda
