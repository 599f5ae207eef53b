// Blocks SIGXFSZ in the calling thread during a write. A write beyond the process's limit of file sizes (RLIMIT_FSIZE) then only
// fails. Otherwise the signal would end the process, or reach a handler of the application that does not know the file.
//
// Lives during one write. A SIGXFSZ that the write raised is removed at the end.
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
    bool was_pending_ = false;  // a signal was pending before: it is the application's and stays pending
};

}  // namespace polder::compiler
