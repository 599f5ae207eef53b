// The thread and the task that crash_guard.h describes.
//
// To the kernel the task is a process of its own. The application must not notice it:
// - It is made without an exit signal, so that the application gets no SIGCHLD for it and its wait() does not see it.
// - All signals except faults are blocked in it: a Ctrl-C of the terminal is for the application.
// - It ends with the thread that made it (PR_SET_PDEATHSIG), so also with the process.
// - It registers the thread's area for restartable sequences, because allocators that keep memory per processor use it.
// Handlers are set by the system call itself: libraries that interpose sigaction keep tables in memory, which is shared.
// A handler never returns; it leaves its reason in memory and ends the task.
#include "crash_guard.h"

#include "compiler_stack.h"

#include <base/log.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <llvm/Support/ErrorHandling.h>
#include <mutex>
#include <pthread.h>
#include <sched.h>
#include <string_view>
#include <sys/prctl.h>
#include <sys/rseq.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace polder::compiler {
namespace {

#if defined(__SANITIZE_THREAD__)
constexpr bool has_tasks = false;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
constexpr bool has_tasks = false;
#else
constexpr bool has_tasks = true;
#endif
#else
constexpr bool has_tasks = true;
#endif

// Valgrind ends a program that makes such a task. Under Valgrind, LD_PRELOAD names Valgrind's libraries.
bool is_under_valgrind() {
    const char* preloaded = std::getenv("LD_PRELOAD");
    return preloaded != nullptr && std::strstr(preloaded, "vgpreload_") != nullptr;
}

// One guarded piece: written by the task, read by its thread when the task has ended.
struct Piece {
    const std::function<void()>* work = nullptr;
    CompilerStack stack;
    bool has_returned = false;
    std::exception_ptr exception;
    int signal = 0;
    bool is_stack_full = false;
    std::array<char, 1024> fatal_message{};
    pid_t process = 0;  // the application's
};

// The piece that this thread (or the task on it) runs.
thread_local Piece* current = nullptr;

[[noreturn]] void end_task(int status) {
    for (;;)
        syscall(SYS_exit_group, status);
}

// When this returns, LLVM ends the process. It returns when the failing thread runs no piece in a task: another user of the same LLVM, or a
// piece without protection.
void on_fatal_error(void*, const char* reason, bool) {
    if (current == nullptr || getpid() == current->process)
        return;
    if (reason != nullptr)
        std::strncpy(current->fatal_message.data(), reason, current->fatal_message.size() - 1);
    end_task(1);
}

// A piece that runs without protection cannot continue either: LLVM would crash in a destructor. So the process ends with one line.
void on_out_of_memory(void*, const char*, bool) {
    on_fatal_error(nullptr, "out of memory", false);
    if (current == nullptr)
        return;
    constexpr std::string_view line = "polder: out of memory: the compiler cannot go on\n";
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
    std::abort();
}

void install_error_handlers() {
    static std::once_flag once;
    std::call_once(once, [] {
        llvm::install_fatal_error_handler(on_fatal_error);
        llvm::install_bad_alloc_error_handler(on_out_of_memory);
    });
}

// Clang starts a thread in the task when it finds its stack nearly full. Such a thread has no piece (`current` is null).
void on_fault(int signal, siginfo_t* info, void*) {
    if (current != nullptr) {
        current->signal = signal;
        current->is_stack_full = signal == SIGSEGV && current->stack.is_in_guard(info->si_addr);
    }
    end_task(1);
}

constexpr std::array fault_signals{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};

// The structure of the system call, which differs from the C library's.
struct KernelSigaction {
    void (*handler)(int, siginfo_t*, void*);
    unsigned long flags;
    void (*restorer)();
    unsigned long mask;
};

void set_handlers(const CompilerStack& stack) {
    stack_t place{};
    place.ss_sp = stack.signal_stack();
    place.ss_size = CompilerStack::signal_stack_bytes;
    sigaltstack(&place, nullptr);
    constexpr unsigned long has_restorer = 0x04000000;
    KernelSigaction action{on_fault, SA_SIGINFO | SA_ONSTACK | has_restorer, [] { end_task(1); }, ~0UL};
    unsigned long unblocked = 0;
    for (const int signal : fault_signals) {
        syscall(SYS_rt_sigaction, signal, &action, nullptr, sizeof action.mask);
        unblocked |= 1UL << (signal - 1);
    }
    syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &unblocked, nullptr, sizeof unblocked);
}

void register_restartable_sequences() {
#ifdef RSEQ_SIG
    if (__rseq_size != 0)
        syscall(SYS_rseq, static_cast<char*>(__builtin_thread_pointer()) + __rseq_offset, std::max(__rseq_size, 32U), 0,
                RSEQ_SIG);
#endif
}

void run(Piece& piece) {
    try {
        (*piece.work)();
    } catch (...) {
        piece.exception = std::current_exception();
    }
    piece.has_returned = true;
}

int task(void* argument) {
    auto& piece = *static_cast<Piece*>(argument);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != piece.process)
        end_task(1);
    register_restartable_sequences();
    set_handlers(piece.stack);
    run(piece);
    end_task(0);
}

// False when no task could be made, or when it got a copy of our memory instead of sharing it.
bool run_in_task(Piece& piece) {
    // The task's stack begins below this function's frame, with room for what the kernel and the C library do on this thread meanwhile.
    constexpr size_t room = 64 << 10;
    char* const top = static_cast<char*>(__builtin_frame_address(0)) - room;
    void* const aligned = top - reinterpret_cast<uintptr_t>(top) % 64;
    constexpr int shared = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SYSVSEM;
    const pid_t made = clone(task, aligned, shared, &piece);
    if (made < 0)
        return false;
    int status = 0;
    while (syscall(SYS_wait4, made, &status, __WALL, nullptr) < 0 && errno == EINTR) {
    }
    return piece.has_returned || !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

void* thread(void* argument) {
    auto& piece = *static_cast<Piece*>(argument);
    current = &piece;
    if (!has_tasks || is_under_valgrind() || !run_in_task(piece))
        run(piece);
    return nullptr;
}

// Runs `piece` on a thread with its stack, all signals blocked. False when there can be none.
bool run_on_thread(Piece& piece) {
    pthread_attr_t attributes;
    if (!piece.stack || pthread_attr_init(&attributes) != 0)
        return false;
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_t made{};
    bool is_made = pthread_attr_setstack(&attributes, piece.stack.stack(), piece.stack.stack_bytes()) == 0;
    if (is_made) {
        pthread_sigmask(SIG_SETMASK, &all, &before);
        is_made = pthread_create(&made, &attributes, thread, &piece) == 0;
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
    }
    pthread_attr_destroy(&attributes);
    return is_made && pthread_join(made, nullptr) == 0;
}

std::string message_of(const Piece& piece) {
    if (piece.is_stack_full)
        return "the program is nested too deeply: the compiler's stack of " +
               std::to_string(piece.stack.stack_bytes() >> 20) + " MiB is full";
    std::string text = "internal compiler error";
    if (piece.fatal_message[0] != 0)
        text += std::string{": "} + piece.fatal_message.data();
    else if (piece.signal != 0)
        text += ": signal " + std::to_string(piece.signal);
    return text;
}

}  // namespace

std::optional<std::string> run_guarded(const std::function<void()>& work) {
    install_error_handlers();
    if (current != nullptr) {
        work();
        return std::nullopt;
    }
    Piece piece;
    piece.work = &work;
    piece.process = getpid();
    if (!piece.stack)
        return "out of memory: no address space for the compiler's stack";
    if (!run_on_thread(piece)) {
        POLDER_LOG(compiler, "no thread can be started: the compiler runs unprotected on the %s", "calling thread");
        run(piece);
    }
    if (piece.exception)
        std::rethrow_exception(piece.exception);
    return piece.has_returned ? std::nullopt : std::optional{message_of(piece)};
}

}  // namespace polder::compiler
