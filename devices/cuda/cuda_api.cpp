#include <cuda/cuda_api.h>
#include <dlfcn.h>

namespace polder::cuda {
namespace {

// The oldest driver whose functions are all there: CUDA 11.7 has the second version of stream memory operations.
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

Error CudaApi::error(Code code, const char* what) const {
    return Error{code == code_out_of_memory ? Status::mem_object_allocation_failure : Status::out_of_resources,
                 std::string(what) + ": " + name_of(code)};
}

} // namespace polder::cuda
