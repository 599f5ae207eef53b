// Kernels are kept by context and key. A look-up takes a shared lock. A missing kernel is built without a lock, and then stored.
#include "program.h"

#include "backward.h"
#include "memory.h"
#include "offsets.h"

#include <atomic>
#include <c10/util/Exception.h>
#include <memory>
#include <shared_mutex>
#include <unordered_map>

namespace torch_opencl {
namespace {

struct Cache {
    std::shared_mutex mutex;
    std::unordered_map<std::string, std::unique_ptr<Kernel>> kernels;
};

// By context. Never destroyed, as the platform.
Cache& cache_of(cl_context context) {
    static std::mutex mutex;
    static auto* const all = new std::unordered_map<cl_context, std::unique_ptr<Cache>>;
    thread_local cl_context last_context = nullptr;
    thread_local Cache* last = nullptr;
    if (context == last_context)
        return *last;
    const std::lock_guard lock(mutex);
    auto& place = (*all)[context];
    if (!place)
        place = std::make_unique<Cache>();
    last_context = context;
    last = place.get();
    return *last;
}

std::atomic<uint64_t> launch_count{0};

std::string build_log(cl_program program, cl_device_id device) {
    size_t bytes = 0;
    clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &bytes);
    std::string text(bytes, '\0');
    clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, bytes, text.data(), nullptr);
    return text;
}

std::unique_ptr<Kernel> build(const Device& device, const char* name, const std::string& given) {
    const std::string source = Platform::get().addressing() == Addressing::none ? with_offsets(given) : given;
    const char* text = source.c_str();
    cl_int error = CL_SUCCESS;
    const cl_program program = clCreateProgramWithSource(device.context, 1, &text, nullptr, &error);
    check(error, "clCreateProgramWithSource");
    error = clBuildProgram(program, 0, nullptr, "-cl-std=CL3.0", nullptr, nullptr);
    if (error != CL_SUCCESS) {
        const std::string log = build_log(program, device.id);
        clReleaseProgram(program);
        TORCH_CHECK(false, "opencl: the kernel ", name, " was not compiled: ", error_name(error), "\n", log, "\n",
                    source);
    }
    auto kernel = std::make_unique<Kernel>(program, name);
    clReleaseProgram(program);
    return kernel;
}

}  // namespace

Kernel::Kernel(cl_program program, const char* name) {
    cl_int error = CL_SUCCESS;
    handle = clCreateKernel(program, name, &error);
    check(error, "clCreateKernel");
}

Kernel& kernel_of(const Device& device, const std::string& key, const char* name,
                  const std::function<std::string()>& make_source) {
    Cache& cache = cache_of(device.context);
    {
        const std::shared_lock lock(cache.mutex);
        const auto found = cache.kernels.find(key);
        if (found != cache.kernels.end()) [[likely]]
            return *found->second;
    }
    // Two threads may build the same kernel; one of them is kept.
    std::unique_ptr<Kernel> made = build(device, name, make_source());
    const std::unique_lock lock(cache.mutex);
    return *cache.kernels.try_emplace(key, std::move(made)).first->second;
}

Launch::Launch(const Device& device, Kernel& kernel) : device_(device), kernel_(kernel), lock_(kernel.mutex) {}

Launch& Launch::address(const void* address) {
    const Functions& functions = Platform::get().functions();
    switch (Platform::get().addressing()) {
    case Addressing::unified:
        check(functions.set_unified_pointer(kernel_.handle, index_++, address), "clSetKernelArgMemPointerINTEL");
        return *this;
    case Addressing::buffers:
        check(functions.set_device_pointer(kernel_.handle, index_++, reinterpret_cast<uintptr_t>(address)),
              "clSetKernelArgDevicePointerEXT");
        return *this;
    case Addressing::none: break;
    }
    const Place place = place_of(address);
    const cl_ulong offset = place.offset;
    return bytes(&place.buffer, sizeof(place.buffer)).bytes(&offset, sizeof(offset));
}

void check_same_device(c10::Device device, const at::TensorBase& tensor) {
    TORCH_CHECK(tensor.device() == device,
                "Expected all tensors to be on the same device, but found at least two devices, ", device, " and ",
                tensor.device(), "!");
}

static c10::Device torch_device(const Device& device) {
    return {c10::DeviceType::PrivateUse1, static_cast<c10::DeviceIndex>(device.index)};
}

Launch& Launch::read(const at::TensorBase& tensor) {
    check_same_device(torch_device(device_), tensor);
    return address(tensor.const_data_ptr());
}

Launch& Launch::written(const at::TensorBase& tensor) {
    check_same_device(torch_device(device_), tensor);
    return address(tensor.mutable_data_ptr());
}

Launch& Launch::bytes(const void* value, size_t size) {
    check(clSetKernelArg(kernel_.handle, index_++, size, value), "clSetKernelArg");
    return *this;
}

Launch& Launch::local(size_t bytes) {
    check(clSetKernelArg(kernel_.handle, index_++, bytes, nullptr), "clSetKernelArg");
    return *this;
}

void Launch::run(std::array<size_t, 3> global, std::array<size_t, 3> local) {
    if (global[0] == 0 || global[1] == 0 || global[2] == 0)
        return;
    const cl_uint dimensions = global[2] > 1 ? 3 : global[1] > 1 ? 2 : 1;
    launch_count.fetch_add(1, std::memory_order_relaxed);
    compute_gradients_here();
    check(clEnqueueNDRangeKernel(current_queue(device_.index), kernel_.handle, dimensions, nullptr, global.data(),
                                 local[0] ? local.data() : nullptr, 0, nullptr, nullptr),
          "clEnqueueNDRangeKernel");
}

uint64_t launches() { return launch_count.load(std::memory_order_relaxed); }

}  // namespace torch_opencl
