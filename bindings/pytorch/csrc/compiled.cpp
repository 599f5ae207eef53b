// C functions for kernels that torch.compile generated. torch_opencl/inductor/kernels.py calls them by ctypes, because a launch
// by an operator costs more than most of these kernels. A failure leaves its message for the calling thread: an exception cannot
// leave a C function. Any thread.
#include "program.h"

#include <atomic>
#include <c10/util/Exception.h>

namespace {

using torch_opencl::Device;
using torch_opencl::Kernel;
using torch_opencl::Platform;

thread_local std::string message;
enum : int { success = 0, failed = 1, out_of_memory = 2 };

template <typename Action>
int guarded(const Action& action) noexcept {
    try {
        action();
        return success;
    } catch (const c10::OutOfMemoryError& error) {
        message = error.what_without_backtrace();
        return out_of_memory;
    } catch (const c10::Error& error) {
        message = error.what_without_backtrace();
    } catch (const std::exception& error) {
        message = error.what();
    }
    return failed;
}

}  // namespace

// The source of one kernel, named `generated`, and the kernels that were made from it, by device. Lives as long as the process.
struct torch_opencl_generated {
    explicit torch_opencl_generated(const char* text) : source(text), kernels(Platform::get().devices().size()) {}

    Kernel& kernel_for(const Device& device) {
        std::atomic<Kernel*>& place = kernels[static_cast<size_t>(device.index)];
        Kernel* kernel = place.load(std::memory_order_acquire);
        if (!kernel) [[unlikely]] {
            kernel = &torch_opencl::kernel_of(device, source, "generated", [&] { return source; });
            place.store(kernel, std::memory_order_release);
        }
        return *kernel;
    }

    std::string source;
    std::vector<std::atomic<Kernel*>> kernels;
};

#define EXPORTED extern "C" [[gnu::visibility("default")]]

EXPORTED const char* torch_opencl_message() { return message.c_str(); }

EXPORTED torch_opencl_generated* torch_opencl_generated_kernel(const char* source) {
    return new torch_opencl_generated(source);
}

// Launches on the current device and stream. `numbers`: three global sizes, three local sizes (0: chosen by the implementation), the
// addresses, then the values, which are parameters of the type long.
EXPORTED int torch_opencl_launch(torch_opencl_generated* generated, unsigned addresses, unsigned values,
                                 const int64_t* numbers) {
    return guarded([&] {
        const Device& device = Platform::get().device(torch_opencl::current_device());
        torch_opencl::Launch launch(device, generated->kernel_for(device));
        const int64_t* argument = numbers + 6;
        for (unsigned i = 0; i < addresses; ++i)
            launch.address(reinterpret_cast<const void*>(static_cast<uintptr_t>(*argument++)));
        for (unsigned i = 0; i < values; ++i)
            launch.value(*argument++);
        const auto size = [numbers](int i) { return static_cast<size_t>(numbers[i]); };
        launch.run({size(0), size(1), size(2)}, {size(3), size(4), size(5)});
    });
}
