// Icd: another OpenCL implementation, loaded like the OpenCL loader loads it, but without the loader: the loader calls Polder, so Polder
// must not call the loader. The functions are those of the dispatch table with which every handle begins.
//
// A library is loaded once in a process and stays. It is tried in a child process first (icd_probe.h): when it crashes or hangs
// there, it is not loaded here, and a message says so. Refused: a library that is no ICD, an OpenCL loader, and Polder
// itself from any path. Errors: device_not_found with the reason as detail. Any thread.
#pragma once

#include <CL/cl_icd.h>
#include <polder/result.h>
#include <string>
#include <vector>

namespace polder::proxy {

// The functions of an object's implementation.
template <class Handle>
[[nodiscard]] const cl_icd_dispatch& functions_of(Handle handle) {
    return **reinterpret_cast<const cl_icd_dispatch* const*>(handle);
}

struct ForeignDevice {
    cl_platform_id platform = nullptr;
    cl_device_id device = nullptr;
    const cl_icd_dispatch* functions = nullptr;
};

class Icd {
public:
    // Loads a library, or returns the Icd of a library that was loaded before.
    [[nodiscard]] static Result<const Icd*> load(const std::string& library);

    [[nodiscard]] const std::string& library() const { return library_; }
    // In the ICD's order; a platform may have none.
    [[nodiscard]] const std::vector<std::vector<ForeignDevice>>& platforms() const { return platforms_; }

private:
    explicit Icd(std::string library) : library_(std::move(library)) {}

    const std::string library_;
    std::vector<std::vector<ForeignDevice>> platforms_;
};

// What an ICD exports.
struct IcdExports {
    void* handle = nullptr;
    clIcdGetPlatformIDsKHR_fn get_platform_ids = nullptr;
};
// Loads the library and finds its functions, calling none but clGetExtensionFunctionAddress.
[[nodiscard]] Result<IcdExports> open_icd(const std::string& library);

// "CL_OUT_OF_RESOURCES (-5)", for messages.
[[nodiscard]] std::string name_of(cl_int code);

}  // namespace polder::proxy
