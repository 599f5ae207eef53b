// Early code: machine code that is made before a launch needs it. The creation of a kernel object requests the code that its first launch
// probably needs, and launches of quick code (decision 312) request the code that replaces it. Threads with the scheduling policy SCHED_BATCH make it, in the order of the requests. A launch never waits for a
// request that no thread has begun: it makes its code itself (MadeOnce). Decision 117 has the reasons and limits.
//
// Requests are dropped when their kernel object is destroyed, and when the process ends or forks. One that a thread has begun is abandoned between two of the
// compiler's steps when the process ends, or when nothing but the request refers to the program (decision 333); forks wait for it (build_threads.h). Without memory or threads, no early code is made.
//
// Any thread may call any function.
#pragma once

#include <runtime/device_code.h>

#include <functional>

namespace polder::runtime::early_code {

// `kernel` identifies the kernel object, for `cancel`.
void request(const void* kernel, const Ref<DeviceCode>& code, const compiler::KernelInfo& info) noexcept;
void cancel(const void* kernel) noexcept;

// Calls `make`, which makes another form of code of `code` (decision 325), on the same threads.
void request_form(const Ref<DeviceCode>& code, std::function<void()> make) noexcept;

}  // namespace polder::runtime::early_code
