// A kernel that faults (writes through null, recurses without end, divides by zero) ends the process, as the
// specification allows. With POCL_DEBUG set to any category, a line on stderr names the kernel and the work-group first;
// then happens what would have happened without Polder: the application's handler runs, or the default.
//
// Without POCL_DEBUG nothing is installed. Any thread; the handler itself calls async-signal-safe functions only.
#pragma once

#include <cstdint>

namespace polder::devices {

class HostKernel;

// What the calling thread executes, for the handler. Set around work-group functions.
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
