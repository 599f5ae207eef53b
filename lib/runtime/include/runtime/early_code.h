// Machine code before the first launch. When a kernel object is created, the code that its first launch probably needs is requested;
// threads of the class for batch work make it while the application goes on, in the order of the requests. A launch never waits for a
// request that no thread has begun: it makes its code itself (MadeOnce). Decision 117 has the reasons and limits.
//
// Requests are dropped when their kernel object is destroyed, when the process ends or forks. Running ones go on; forks and exit wait
// for them (build_threads.h). Without memory or threads, nothing is made ahead.
//
// Any thread may call any function.
#pragma once

#include <runtime/device_code.h>

namespace polder::runtime::early_code {

// `kernel` names the kernel object for `cancel`.
void request(const void* kernel, const Ref<DeviceCode>& code, const compiler::KernelInfo& info) noexcept;
void cancel(const void* kernel) noexcept;

}  // namespace polder::runtime::early_code
