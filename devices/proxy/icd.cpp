// Loading an ICD: its exported functions are found, and it is asked for its platforms while the variable POCL_DEVICES is hidden from it.
// Then the devices of each platform are listed. Loaders and Polder itself are recognized by the library that a function is in.
#include <base/mutex.h>

#include <array>
#include <atomic>
#include <cstring>
#include <dlfcn.h>
#include <map>
#include <memory>
#include <proxy/icd.h>
#include <proxy/icd_probe.h>
#include <string_view>
#include <unistd.h>
#include <vector>

namespace polder::proxy {
namespace {

constexpr const char* own_suffix = "POLDER";

// POCL_DEVICES names Polder's devices; another implementation that knows the variable would find none of them. Hidden by
// another list of variables for a moment, since setenv would change what other threads read. One at a time: under the
// mutex of the loaded ICDs.
class HiddenDevicesVariable {
public:
    HiddenDevicesVariable() : before_(environ) {
        constexpr std::string_view hidden = "POCL_DEVICES=";
        size_t count = 0;
        while (before_ && before_[count])
            ++count;
        // Kept for ever: a thread may still read it.
        static auto& kept_lists = *new std::vector<std::unique_ptr<char*[]>>;
        char** const list = kept_lists.emplace_back(new char*[count + 1]).get();
        size_t kept = 0;
        for (size_t i = 0; i < count; ++i)
            if (std::strncmp(before_[i], hidden.data(), hidden.size()) != 0)
                list[kept++] = before_[i];
        list[kept] = nullptr;
        list_ = list;
        environ = list;
    }
    HiddenDevicesVariable(const HiddenDevicesVariable&) = delete;
    HiddenDevicesVariable& operator=(const HiddenDevicesVariable&) = delete;
    // Where another thread has changed the variables meanwhile, its list stays.
    ~HiddenDevicesVariable() {
        if (environ == list_)
            environ = before_;
    }

private:
    char** const before_;
    char** list_ = nullptr;
};

bool is_in_this_library(const void* address) {
    static const char here = 0;
    Dl_info own;
    Dl_info other;
    return dladdr(&here, &own) != 0 && dladdr(address, &other) != 0 && own.dli_fbase == other.dli_fbase;
}

// Of the library that an address is in.
std::string_view file_name_of(const void* address) {
    Dl_info info;
    if (dladdr(address, &info) == 0 || !info.dli_fname)
        return {};
    const std::string_view path(info.dli_fname);
    return path.substr(path.rfind('/') + 1);
}

std::string platform_text(cl_platform_id platform, cl_platform_info name) {
    const cl_icd_dispatch& cl = functions_of(platform);
    size_t size = 0;
    if (cl.clGetPlatformInfo(platform, name, 0, nullptr, &size) != CL_SUCCESS || size == 0)
        return {};
    std::string text(size, '\0');
    if (cl.clGetPlatformInfo(platform, name, size, text.data(), nullptr) != CL_SUCCESS)
        return {};
    text.resize(std::strlen(text.c_str()));
    return text;
}

bool is_polder(cl_platform_id platform) {
    return is_in_this_library(reinterpret_cast<const void*>(functions_of(platform).clGetPlatformInfo)) ||
           platform_text(platform, CL_PLATFORM_ICD_SUFFIX_KHR) == own_suffix;
}

std::vector<ForeignDevice> devices_of(cl_platform_id platform) {
    const cl_icd_dispatch& cl = functions_of(platform);
    cl_uint count = 0;
    if (cl.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count) != CL_SUCCESS || count == 0)
        return {};
    std::vector<cl_device_id> ids(count);
    if (cl.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, ids.data(), nullptr) != CL_SUCCESS)
        return {};
    std::vector<ForeignDevice> devices;
    for (const cl_device_id id : ids)
        devices.push_back({platform, id, &functions_of(id)});
    return devices;
}

}  // namespace

std::string name_of(cl_int code) {
    struct Name {
        cl_int code;
        const char* name;
    };
    static constexpr Name names[] = {
        {CL_DEVICE_NOT_FOUND, "CL_DEVICE_NOT_FOUND"},
        {CL_DEVICE_NOT_AVAILABLE, "CL_DEVICE_NOT_AVAILABLE"},
        {CL_COMPILER_NOT_AVAILABLE, "CL_COMPILER_NOT_AVAILABLE"},
        {CL_MEM_OBJECT_ALLOCATION_FAILURE, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
        {CL_OUT_OF_RESOURCES, "CL_OUT_OF_RESOURCES"},
        {CL_OUT_OF_HOST_MEMORY, "CL_OUT_OF_HOST_MEMORY"},
        {CL_BUILD_PROGRAM_FAILURE, "CL_BUILD_PROGRAM_FAILURE"},
        {CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST"},
        {CL_COMPILE_PROGRAM_FAILURE, "CL_COMPILE_PROGRAM_FAILURE"},
        {CL_LINK_PROGRAM_FAILURE, "CL_LINK_PROGRAM_FAILURE"},
        {CL_INVALID_VALUE, "CL_INVALID_VALUE"},
        {CL_INVALID_PLATFORM, "CL_INVALID_PLATFORM"},
        {CL_INVALID_DEVICE, "CL_INVALID_DEVICE"},
        {CL_INVALID_CONTEXT, "CL_INVALID_CONTEXT"},
        {CL_INVALID_COMMAND_QUEUE, "CL_INVALID_COMMAND_QUEUE"},
        {CL_INVALID_MEM_OBJECT, "CL_INVALID_MEM_OBJECT"},
        {CL_INVALID_BINARY, "CL_INVALID_BINARY"},
        {CL_INVALID_BUILD_OPTIONS, "CL_INVALID_BUILD_OPTIONS"},
        {CL_INVALID_PROGRAM, "CL_INVALID_PROGRAM"},
        {CL_INVALID_PROGRAM_EXECUTABLE, "CL_INVALID_PROGRAM_EXECUTABLE"},
        {CL_INVALID_KERNEL_NAME, "CL_INVALID_KERNEL_NAME"},
        {CL_INVALID_KERNEL, "CL_INVALID_KERNEL"},
        {CL_INVALID_ARG_SIZE, "CL_INVALID_ARG_SIZE"},
        {CL_INVALID_KERNEL_ARGS, "CL_INVALID_KERNEL_ARGS"},
        {CL_INVALID_WORK_GROUP_SIZE, "CL_INVALID_WORK_GROUP_SIZE"},
        {CL_INVALID_WORK_ITEM_SIZE, "CL_INVALID_WORK_ITEM_SIZE"},
        {CL_INVALID_EVENT, "CL_INVALID_EVENT"},
        {CL_INVALID_OPERATION, "CL_INVALID_OPERATION"},
        {CL_INVALID_BUFFER_SIZE, "CL_INVALID_BUFFER_SIZE"},
    };
    for (const Name& name : names)
        if (name.code == code)
            return name.name + (" (" + std::to_string(code) + ")");
    return "error " + std::to_string(code);
}

Result<IcdExports> open_icd(const std::string& library) {
    IcdExports icd;
    icd.handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!icd.handle) {
        const char* const why = dlerror();
        return fail(Status::device_not_found, why ? why : library + " cannot be loaded");
    }
    const auto find = [&](const char* name) { return dlsym(icd.handle, name); };
    void* const by_name = find("clGetExtensionFunctionAddress");
    if (by_name && is_in_this_library(by_name))
        return fail(Status::device_not_found, library + " is Polder itself");
    // Asking it for a function would have it load every ICD, Polder included.
    if (by_name && file_name_of(by_name).starts_with("libOpenCL.so"))
        return fail(Status::device_not_found, library + " is an OpenCL loader, not an ICD");
    void* get = find("clIcdGetPlatformIDsKHR");
    if (!get && by_name)
        get = reinterpret_cast<cl_api_clGetExtensionFunctionAddress>(by_name)("clIcdGetPlatformIDsKHR");
    if (!get)
        return fail(Status::device_not_found, library + " is no ICD: it has no clIcdGetPlatformIDsKHR");
    icd.get_platform_ids = reinterpret_cast<clIcdGetPlatformIDsKHR_fn>(get);
    return icd;
}

Result<const Icd*> Icd::load(const std::string& library) {
    struct Loaded {
        Mutex mutex;
        std::map<std::string, std::unique_ptr<const Icd>> icds POLDER_GUARDED_BY(mutex);
    };
    // Never destroyed, as libraries are never unloaded.
    static Loaded& loaded = *new Loaded;
    const Lock lock(loaded.mutex);
    if (const auto known = loaded.icds.find(library); known != loaded.icds.end())
        return known->second.get();

    POLDER_TRY(probe_icd(library));
    const HiddenDevicesVariable hidden;
    POLDER_ASSIGN(exports, open_icd(library));
    cl_uint count = 0;
    cl_int code = exports.get_platform_ids(0, nullptr, &count);
    if (code != CL_SUCCESS)
        return fail(Status::device_not_found, library + " has no platform: " + name_of(code));
    std::vector<cl_platform_id> ids(count);
    if (count != 0)
        code = exports.get_platform_ids(count, ids.data(), nullptr);
    if (code != CL_SUCCESS)
        return fail(Status::device_not_found, library + " has no platform: " + name_of(code));
    std::unique_ptr<Icd> icd(new Icd(library));
    for (const cl_platform_id id : ids) {
        if (is_polder(id))
            return fail(Status::device_not_found, library + " lists Polder's own platform");
        icd->platforms_.push_back(devices_of(id));
    }
    return loaded.icds.emplace(library, std::move(icd)).first->second.get();
}

}  // namespace polder::proxy
