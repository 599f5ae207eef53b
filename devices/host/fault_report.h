// A kernel that faults (writes through null, recurses without end, divides by zero) ends the process, as the
// specification allows. With POCL_DEBUG set to any category, a line on stderr first names the kernel and the work-group.
// Then the application's handler or the default action runs, as without Polder.
//
// Without POCL_DEBUG nothing is installed. Any thread; the handler itself calls async-signal-safe functions only.
#pragma once

#include <cstdint>

namespace polder::devices {

class HostKernel;

// The work-group that the calling thread is executing. Set around calls of work-group functions; the handler reads it.
struct RunningGroups {
    const HostKernel* kernel = nullptr;
    const uint64_t* group_id = nullptr;  // three numbers
};
[[gnu::tls_model("initial-exec")]] extern constinit thread_local RunningGroups running_groups;

namespace fault_report {

// Installs the handlers, once, when POCL_DEBUG names a category.
void install_when_debugging();
extern constinit bool is_installed;
// Gives the calling thread a signal stack if it has none, so that a stack overflow can be reported, too.
void prepare_thread_slowly();
inline void prepare_thread() {
    if (is_installed) [[unlikely]]
        prepare_thread_slowly();
}

}  // namespace fault_report
}  // namespace polder::devices
