// The system call membarrier, which glibc has no function for. Any thread.
#pragma once

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace polder {

// `command`: MEMBARRIER_CMD_... False when the system refuses it.
inline bool membarrier(int command) { return ::syscall(SYS_membarrier, command, 0, 0) == 0; }

}  // namespace polder
