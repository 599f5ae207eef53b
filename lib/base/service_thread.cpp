#include <base/service_thread.h>

#include <initializer_list>

namespace polder {

SignalsBlocked::SignalsBlocked() {
    sigset_t blocked;
    sigfillset(&blocked);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS})
        sigdelset(&blocked, fault);
    pthread_sigmask(SIG_SETMASK, &blocked, &before_);
}

SignalsBlocked::~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

bool ServiceThread::start(const char* name, void* (*main)(void*), void* argument) {
    if (is_started_)
        return true;
    const SignalsBlocked blocked;
    is_started_ = pthread_create(&thread_, nullptr, main, argument) == 0;
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
