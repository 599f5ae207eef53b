// Threads that a driver starts for itself. The application's signal handlers must not run on them, so they block all signals
// except those of faults. Any thread may call these functions.
#pragma once

#include <csignal>
#include <pthread.h>

namespace polder::devices {

// The set of all signals except those of faults.
[[nodiscard]] sigset_t signals_to_block();
// Starts a thread that calls `main(argument)`; its name has at most 15 characters. False when the system refuses.
[[nodiscard]] bool start_service_thread(pthread_t& thread, const char* name, void* (*main)(void*), void* argument);

}  // namespace polder::devices
