// Signal handlers for SIGSEGV, SIGBUS, SIGFPE and SIGILL, installed only under POCL_DEBUG. When a worker thread is executing a kernel,
// the handler writes one line; then it calls the handler that was there before, or the default action ends the process. The
// handlers use only functions that are safe in signal handlers.
#include <base/log.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <host/fault_report.h>
#include <host/host_kernel.h>
#include <mutex>
#include <sys/mman.h>
#include <unistd.h>

namespace polder::devices {

[[gnu::tls_model("initial-exec")]] constinit thread_local RunningGroups running_groups;

namespace {

struct Fault {
    int signal;
    const char* name;
};
constexpr std::array faults{Fault{SIGSEGV, "SIGSEGV"}, Fault{SIGBUS, "SIGBUS"}, Fault{SIGFPE, "SIGFPE"},
                            Fault{SIGILL, "SIGILL"}};
struct sigaction actions_before[faults.size()];

size_t index_of(int signal) {
    size_t i = 0;
    while (faults[i].signal != signal)
        ++i;
    return i;
}

// A line of text made without allocation.
class SignalSafeLine {
public:
    void add(const char* text) {
        while (*text && size_ < sizeof text_)
            text_[size_++] = *text++;
    }
    void add(uint64_t number, uint64_t base) {
        char digits[24];
        size_t count = 0;
        do
            digits[count++] = "0123456789abcdef"[number % base];
        while ((number /= base) != 0);
        while (count != 0 && size_ < sizeof text_)
            text_[size_++] = digits[--count];
    }
    void write() {
        if (size_ == sizeof text_)
            --size_;
        text_[size_++] = '\n';
        // Nothing useful can be done when stderr is closed.
        [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text_, size_);
    }

private:
    char text_[512];
    size_t size_ = 0;
};

void report(const RunningGroups& running, const char* signal_name, const void* address) {
    SignalSafeLine line;
    line.add("polder: error: ");
    line.add(signal_name);
    line.add(" at address 0x");
    line.add(reinterpret_cast<uintptr_t>(address), 16);
    line.add(" in kernel \"");
    line.add(running.kernel->code.name.c_str());
    line.add("\", work-group (");
    for (int d = 0; d < 3; ++d) {
        line.add(d == 0 ? "" : ", ");
        line.add(running.group_id[d], 10);
    }
    line.add(")");
    line.write();
}

// Calls the handler that was installed before Polder's. If that was the default action, installs it again: the instruction then faults
// once more and ends the process as without Polder, with a core dump.
void pass_on(int signal, siginfo_t* info, void* context) {
    const struct sigaction& before = actions_before[index_of(signal)];
    if (before.sa_flags & SA_SIGINFO) {
        before.sa_sigaction(signal, info, context);
    } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
        before.sa_handler(signal);
    } else {
        ::sigaction(signal, &before, nullptr);
        // A signal that was sent, not caused by an instruction, must be raised again.
        if (info->si_code <= 0)
            ::raise(signal);
    }
}

void on_fault(int signal, siginfo_t* info, void* context) {
    const int error = errno;
    const RunningGroups running = running_groups;
    if (running.kernel && info->si_code > 0) {
        running_groups.kernel = nullptr;  // one line, even if the application's handler returns
        report(running, faults[index_of(signal)].name, info->si_addr);
    }
    errno = error;
    pass_on(signal, info, context);
}

bool is_debugging() {
    using log::Category;
    for (uint32_t i = static_cast<uint32_t>(Category::api); i <= static_cast<uint32_t>(Category::timing); ++i)
        if (log::is_enabled(static_cast<Category>(i)))
            return true;
    return false;
}

void install() {
    if (!is_debugging())
        return;
    for (size_t i = 0; i < faults.size(); ++i) {
        struct sigaction& before = actions_before[i];
        ::sigaction(faults[i].signal, nullptr, &before);
        struct sigaction ours{};
        ours.sa_sigaction = on_fault;
        // Uses the mask and the flags of the application's handler, so that it runs as it expects.
        ours.sa_mask = before.sa_mask;
        ours.sa_flags = (before.sa_flags & (SA_NODEFER | SA_RESTART)) | SA_SIGINFO | SA_ONSTACK;
        ::sigaction(faults[i].signal, &ours, nullptr);
    }
    fault_report::is_installed = true;
}

// The signal stack of a thread that had none, for the thread's life.
class SignalStack {
public:
    SignalStack() {
        stack_t now;
        if (::sigaltstack(nullptr, &now) != 0 || (now.ss_flags & SS_DISABLE) == 0)
            return;
        void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED)
            return;
        memory_ = memory;
        stack_t ours{};
        ours.ss_sp = memory;
        ours.ss_size = bytes;
        ::sigaltstack(&ours, nullptr);
    }
    SignalStack(const SignalStack&) = delete;
    SignalStack& operator=(const SignalStack&) = delete;
    ~SignalStack() {
        stack_t now;
        if (!memory_ || ::sigaltstack(nullptr, &now) != 0)
            return;
        if (now.ss_sp == memory_) {
            stack_t none{};
            none.ss_flags = SS_DISABLE;
            ::sigaltstack(&none, nullptr);
        }
        ::munmap(memory_, bytes);
    }

private:
    // AVX-512 state alone takes 2.7 KiB of a signal frame; sanitizers' handlers want more.
    static constexpr size_t bytes = size_t{64} * 1024;
    void* memory_ = nullptr;
};

}  // namespace

constinit bool fault_report::is_installed = false;

void fault_report::install_when_debugging() {
    static std::once_flag once;
    std::call_once(once, install);
}

void fault_report::prepare_thread_slowly() { static thread_local const SignalStack stack; }

}  // namespace polder::devices
