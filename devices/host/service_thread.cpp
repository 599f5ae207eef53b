#include <host/service_thread.h>
#include <initializer_list>

namespace polder::devices {

sigset_t signals_to_block() {
    sigset_t set;
    sigfillset(&set);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS})
        sigdelset(&set, fault);
    return set;
}

bool start_service_thread(pthread_t& thread, const char* name, void* (*main)(void*), void* argument) {
    const sigset_t blocked = signals_to_block();
    sigset_t before;
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    const bool is_started = pthread_create(&thread, nullptr, main, argument) == 0;
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (is_started)
        pthread_setname_np(thread, name);
    return is_started;
}

}  // namespace polder::devices
