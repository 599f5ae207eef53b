#include "backward.h"

#include "platform.h"

#include <ATen/Context.h>
#include <c10/core/AutogradState.h>

namespace torch_opencl {
namespace {

// With several devices, their threads compute at the same time.
bool is_only_device() {
    static const bool is_only = Platform::get().devices().size() == 1 && !at::globalContext().hasCUDA() &&
                                !at::globalContext().hasXPU() && !at::globalContext().hasMPS();
    return is_only;
}

}  // namespace

void compute_gradients_here() {
    thread_local bool was_called = false;
    if (was_called) [[likely]]
        return;
    was_called = true;
    if (is_only_device())
        c10::AutogradState::get_tls_state().set_multithreading_enabled(false);
}

}  // namespace torch_opencl
