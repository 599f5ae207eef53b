// Runs one function of the compiler so that an internal failure of LLVM (a fatal error, a crash of a pass, a stack overflow)
// ends only that function, not the process. The application's signal handlers never change.
//
// The kernel keeps one table of signal handlers for all threads of a process. So the function runs in a task that shares all memory
// and files with this process but has its own table of handlers (clone with CLONE_VM and without CLONE_SIGHAND, as
// posix_spawn does):
//
//   the caller            a thread of Polder            the task
//   waits in join ------> waits for the task ---------> runs the function on the thread's stack, with the
//   (its handlers run      (all signals blocked)        thread's thread-local variables and its own handlers;
//    as always)                                         a fatal signal ends only the task
//
// Faults of other threads reach the application's handlers directly. The thread's stack has 256 MiB of address space. The
// memory that a failed function had allocated is leaked, and locks that it held stay locked.
//
// Where no such task can be made (a sandbox that forbids clone, an emulator, the thread sanitizer), the function runs on the
// thread without protection. Where no thread can be made, it runs on the caller. Without protection, a compiler that runs out of
// memory ends the process with one line that says so. Where there is no address space for a stack, the call fails.
//
// Any thread. A call inside of another call is part of the outer one. Exceptions of `work` reach the caller.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace polder::compiler {

// Nothing when `work` returned; otherwise a sentence for the build log that says what failed.
[[nodiscard]] std::optional<std::string> run_guarded(const std::function<void()>& work);

}  // namespace polder::compiler
