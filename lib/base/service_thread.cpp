#include <base/service_thread.h>

#include <initializer_list>

namespace polder {

sigset_t signals_to_block() {
    sigset_t set;
    sigfillset(&set);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS})
        sigdelset(&set, fault);
    return set;
}

bool ServiceThread::start(const char* name, void* (*main)(void*), void* argument) {
    if (is_started_)
        return true;
    const sigset_t blocked = signals_to_block();
    sigset_t before;
    pthread_sigmask(SIG_SETMASK, &blocked, &before);
    is_started_ = pthread_create(&thread_, nullptr, main, argument) == 0;
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (is_started_)
        pthread_setname_np(thread_, name);
    return is_started_;
}

void ServiceThread::join() {
    if (is_started_)
        pthread_join(thread_, nullptr);
    is_started_ = false;
}

}  // namespace polder
