// Threads of this library's own. The application's signal handlers must not run on them, so they block all signals except those of faults.
#pragma once

#include <csignal>
#include <pthread.h>

namespace polder {

// While it exists, the calling thread blocks all signals except those of faults. A thread that it starts meanwhile blocks them for good.
class SignalsBlocked {
public:
    SignalsBlocked();
    ~SignalsBlocked();
    SignalsBlocked(const SignalsBlocked&) = delete;
    SignalsBlocked& operator=(const SignalsBlocked&) = delete;

private:
    sigset_t before_{};
};

// A thread that its owner starts when there is something to do. The owner ends what the thread does, and joins it, before it destroys
// this object. Functions are called by one thread at a time.
class ServiceThread {
public:
    ServiceThread() = default;
    ServiceThread(const ServiceThread&) = delete;
    ServiceThread& operator=(const ServiceThread&) = delete;

    // Starts a thread that calls `main(argument)`, unless it was started; its name has at most 15 characters. False when the system refuses.
    [[nodiscard]] bool start(const char* name, void* (*main)(void*), void* argument);
    // Waits for its end, if it was started.
    void join();
    // In the child of a fork, where the thread does not exist.
    void forget() { is_started_ = false; }

private:
    pthread_t thread_{};
    bool is_started_ = false;
};

}  // namespace polder
