// POCL_SIGUSR2_HANDLER: on SIGUSR2 the process reports on stderr how many OpenCL objects of each type are alive, such as
// "polder: alive: 1 context, 2 queues, 20000 memory objects". For finding what a running application leaks.
#pragma once

namespace polder::runtime {

// Replaces the process's handler of SIGUSR2. The handler reads the heap of handles and writes one line, with
// nothing but what a signal handler may call; objects that other threads make or release meanwhile may be missed.
void report_live_objects_on_sigusr2();

}  // namespace polder::runtime
