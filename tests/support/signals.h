// Whether the calling thread is one of the library's own, on which no signal handler of the application runs.
#pragma once

#include <csignal>
#include <pthread.h>

namespace polder::test {

[[nodiscard]] inline bool blocks_signals() {
    sigset_t blocked;
    pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
    return sigismember(&blocked, SIGALRM) == 1 && sigismember(&blocked, SIGUSR1) == 1 &&
           sigismember(&blocked, SIGSEGV) == 0;
}

}  // namespace polder::test
