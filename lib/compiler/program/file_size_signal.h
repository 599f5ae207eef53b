// Keeps a write beyond the process's limit of a file's size (RLIMIT_FSIZE) an error: without this, the signal that
// comes with it ends the process, or reaches a handler of the application that knows nothing of the file.
//
// While one lives, SIGXFSZ is blocked in the calling thread; what was raised there meanwhile is taken away.
#pragma once

#include <csignal>

namespace polder::compiler {

class FileSizeSignalBlocked {
public:
    FileSizeSignalBlocked();
    ~FileSizeSignalBlocked();
    FileSizeSignalBlocked(const FileSizeSignalBlocked&) = delete;
    FileSizeSignalBlocked& operator=(const FileSizeSignalBlocked&) = delete;

private:
    sigset_t before_{};
    bool was_pending_ = false;  // one that is the application's
};

} // namespace polder::compiler
