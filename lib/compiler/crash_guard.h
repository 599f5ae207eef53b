// Runs a piece of compilation so that an internal failure of LLVM (a fatal error, a crash of a pass, a stack that is full)
// ends that piece and not the process, and so that the application's signal handlers never change.
//
// Signal handlers belong to a process. So the piece runs in a task that shares all memory and files with this process
// but has a table of signal handlers of its own (clone with CLONE_VM and without CLONE_SIGHAND, as posix_spawn uses it):
//
//   the caller            a thread of ours              the task
//   waits in join ------> waits for the task ---------> runs the piece on the thread's stack, with the
//   (its handlers run      (all signals blocked)        thread's thread-local variables and handlers of its own;
//    as always)                                         a fatal signal ends the task alone
//
// Faults of other threads reach the application's handlers directly, with nothing in between. The thread's stack has
// 256 MiB of address space. What a failed piece had allocated, and locks that it held, are lost.
//
// Where no such task can be made (a sandbox that forbids clone, an emulator, the thread sanitizer), the piece runs on the
// thread without protection; where no thread can be made, on the caller. Without protection, a compiler that runs out of
// memory ends the process with a line that says so. Where there is no address space for a stack, the piece fails.
//
// Any thread. A piece within a piece belongs to the outer one. Exceptions of `work` reach the caller.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace polder::compiler {

// Empty when `work` returned; otherwise what failed, for the build log.
[[nodiscard]] std::optional<std::string> run_guarded(const std::function<void()>& work);

}  // namespace polder::compiler
