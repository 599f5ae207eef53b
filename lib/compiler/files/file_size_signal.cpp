#include "file_size_signal.h"

#include <cerrno>
#include <ctime>

namespace polder::compiler {
namespace {

sigset_t the_signal() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGXFSZ);
    return set;
}

bool is_pending() {
    sigset_t pending;
    return sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1;
}

} // namespace

FileSizeSignalBlocked::FileSizeSignalBlocked() : was_pending_(is_pending()) {
    const sigset_t set = the_signal();
    pthread_sigmask(SIG_BLOCK, &set, &before_);
}

FileSizeSignalBlocked::~FileSizeSignalBlocked() {
    const int error = errno;
    if (!was_pending_) {
        const sigset_t set = the_signal();
        const timespec at_once{};
        while (sigtimedwait(&set, nullptr, &at_once) < 0 && errno == EINTR) {
        }
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = error;
}

} // namespace polder::compiler
