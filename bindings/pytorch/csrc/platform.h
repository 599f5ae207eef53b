// The OpenCL devices that PyTorch sees, and the functions of extensions. Made once, when a device is first used, so that
// importing the package neither starts threads nor keeps a later fork from working. Any thread.
//
// A device can be used if its kernels can use addresses: cl_intel_unified_shared_memory, or else cl_ext_buffer_device_address. If the
// user chooses so (`none`), any device can be used, without addresses. All devices of the platform are in one context, so that copies between them
// stay inside of OpenCL. With cl_ext_buffer_device_address each device has its own context, because a buffer with an address
// takes memory on every device of its context.
#pragma once

#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <CL/cl_ext_buffer_device_address.h>
#include <CL/cl_ext_polder.h>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace torch_opencl {

struct Device {
    cl_device_id id = nullptr;
    cl_context context = nullptr;
    int index = 0;
    std::string name;
    bool has_double = false;
    bool is_gpu = false;
    cl_uint compute_units = 1;
    cl_uint float_lanes = 1;  // of its widest vectors
    size_t group_size_max = 1;
    cl_ulong memory_bytes = 0;
    cl_ulong local_bytes = 0;  // of a work-group
    cl_ulong allocation_bytes_max = 0;
    cl_uint space = 0;  // Polder's memory space
};

// Which extension gives the addresses of device memory. Without one (`none`), kernels take buffers and offsets (offsets.h), the
// address of a tensor is a name for them, and the implementation may evict memory that no command uses.
enum class Addressing { unified, buffers, none };

// Functions of extensions; null where the platform has none.
struct Functions {
    clDeviceMemAllocINTEL_fn device_alloc = nullptr;
    clHostMemAllocINTEL_fn host_alloc = nullptr;
    clMemFreeINTEL_fn free = nullptr;
    clMemBlockingFreeINTEL_fn blocking_free = nullptr;
    clEnqueueMemcpyINTEL_fn copy = nullptr;
    clSetKernelArgMemPointerINTEL_fn set_unified_pointer = nullptr;
    clSetKernelArgDevicePointerEXT_fn set_device_pointer = nullptr;
    clGetMemoryStatisticsPOLDER_fn statistics = nullptr;
    clResetMemoryPeaksPOLDER_fn reset_peaks = nullptr;
    clTrimMemoryPOLDER_fn trim = nullptr;
};

class Platform {
public:
    // Never throws: without a suitable platform there are no devices, and why_none() returns the reason.
    static const Platform& get();
    // Whether get() has been called in this process.
    static bool is_initialized();

    [[nodiscard]] const std::vector<Device>& devices() const { return devices_; }
    // Throws c10::Error when there is no such device.
    [[nodiscard]] const Device& device(int index) const;
    [[nodiscard]] const Functions& functions() const { return functions_; }
    [[nodiscard]] Addressing addressing() const { return addressing_; }
    // Whether the implementation itself keeps released memory until the commands that use it are complete.
    [[nodiscard]] bool orders_releases() const {
        return functions_.statistics != nullptr || addressing_ == Addressing::none;
    }
    [[nodiscard]] const std::string& why_none() const { return why_none_; }

    // Returns and clears the newest message that the platform reported about a context, such as why memory ran out.
    static std::string take_report();

private:
    Platform();
    bool try_platform(cl_platform_id platform);
    bool make_contexts(cl_platform_id platform);

    std::vector<Device> devices_;
    Functions functions_;
    Addressing addressing_ = Addressing::unified;
    std::string why_none_;
};

// "CL_OUT_OF_RESOURCES" for -5, and so on.
std::string error_name(cl_int error);
// Throws c10::Error when `error` is not CL_SUCCESS; `call` is the function that returned it.
void check(cl_int error, const char* call);

}  // namespace torch_opencl
