// Kernels made from OpenCL C source when they are first used, kept for the life of the process by a key, and launched with
// addresses and plain values as arguments. Any thread: setting arguments and enqueuing is one step under the kernel's lock.
#pragma once

#include "stream.h"

#include <ATen/core/TensorBase.h>
#include <array>
#include <functional>
#include <string>
#include <string_view>

namespace torch_opencl {

class Kernel {
public:
    Kernel(cl_program program, const char* name);
    std::mutex mutex;
    cl_kernel handle = nullptr;
};

// The kernel named `name` of the source that `make_source` returns, compiled once per context and key.
Kernel& kernel_of(const Device& device, const std::string& key, const char* name,
                  const std::function<std::string()>& make_source);

// One launch on the current stream of a device: arguments in order, then run().
class Launch {
public:
    Launch(const Device& device, Kernel& kernel);
    Launch& address(const void* address);
    // The elements of a tensor. Throws when it is on another device than the launch.
    Launch& read(const at::TensorBase& tensor);
    Launch& written(const at::TensorBase& tensor);
    template <typename T>
    Launch& value(const T& value) {
        return bytes(&value, sizeof(T));
    }
    Launch& bytes(const void* value, size_t size);
    template <typename Scalar>
    Launch& scalar(const Scalar& scalar) {
        return bytes(scalar.bytes, scalar.size);
    }
    // Local memory of `bytes` bytes.
    Launch& local(size_t bytes);
    // Global sizes, at most three; local sizes of 0 leave the choice to the implementation. Nothing is enqueued when a size is 0.
    void run(std::array<size_t, 3> global, std::array<size_t, 3> local = {0, 0, 0});

private:
    const Device& device_;
    Kernel& kernel_;
    std::unique_lock<std::mutex> lock_;
    cl_uint index_ = 0;
};

// Throws PyTorch's error for a tensor on another device than `device`.
void check_same_device(c10::Device device, const at::TensorBase& tensor);

// Launches since the process began.
uint64_t launches();

}  // namespace torch_opencl
