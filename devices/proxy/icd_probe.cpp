// The child writes one byte into a pipe after each step. So the parent knows how far the child came, also when the application
// handles or ignores SIGCHLD.
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <host/clock.h>
#include <poll.h>
#include <proxy/icd.h>
#include <proxy/icd_probe.h>
#include <sys/wait.h>
#include <unistd.h>

namespace polder::proxy {
namespace {

// What the child does next when it has written so many bytes.
constexpr const char* steps[] = {"when it was loaded", "in clIcdGetPlatformIDsKHR", "in clGetDeviceIDs"};
constexpr size_t step_count = sizeof steps / sizeof steps[0];

void take_step(int pipe) {
    const char byte = 1;
    if (write(pipe, &byte, 1) != 1)
        _exit(1);
}

[[noreturn]] void run_child(const std::string& library, int pipe) {
    for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP})
        signal(number, SIG_DFL);
    unsetenv("POCL_DEVICES");  // names Polder's devices
    const Result<IcdExports> icd = open_icd(library);
    take_step(pipe);
    // Nothing more to try: the parent finds the same error, with its text.
    if (!icd) {
        for (size_t step = 1; step < step_count; ++step)
            take_step(pipe);
        _exit(0);
    }
    cl_platform_id platforms[64];
    cl_uint count = 0;
    const cl_int code = icd->get_platform_ids(64, platforms, &count);
    take_step(pipe);
    if (code == CL_SUCCESS)
        for (cl_uint i = 0; i < count && i < 64; ++i) {
            cl_uint devices = 0;
            functions_of(platforms[i]).clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, 0, nullptr, &devices);
        }
    take_step(pipe);
    _exit(0);
}

struct Outcome {
    size_t steps = 0;
    bool ended = false;  // closed the pipe in time
};

Outcome read_steps(int pipe, uint32_t wait_ms) {
    Outcome outcome;
    const uint64_t until_ns = devices::now_ns() + uint64_t{wait_ms} * 1'000'000;
    while (outcome.steps < step_count) {
        const uint64_t now_ns = devices::now_ns();
        if (now_ns >= until_ns)
            return outcome;
        pollfd what{pipe, POLLIN, 0};
        const int ready = poll(&what, 1, static_cast<int>((until_ns - now_ns) / 1'000'000 + 1));
        if (ready < 0 && errno != EINTR)
            break;
        if (ready <= 0)
            continue;
        char bytes[step_count];
        const ssize_t got = read(pipe, bytes, sizeof bytes);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        outcome.steps += static_cast<size_t>(got);
    }
    outcome.ended = true;
    return outcome;
}

}  // namespace

Result<void> probe_icd(const std::string& library, uint32_t wait_ms) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return fail(Status::device_not_found, library + " cannot be tried: no pipe");
    const pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        run_child(library, ends[1]);
    }
    close(ends[1]);
    if (child < 0) {
        close(ends[0]);
        return fail(Status::device_not_found, library + " cannot be tried: no child process");
    }
    const Outcome outcome = read_steps(ends[0], wait_ms);
    close(ends[0]);
    kill(child, SIGKILL);
    int status = 0;
    pid_t waited = 0;
    do
        waited = waitpid(child, &status, 0);
    while (waited < 0 && errno == EINTR);
    if (outcome.steps == step_count)
        return {};
    const char* const step = steps[outcome.steps];
    if (!outcome.ended)
        return fail(Status::device_not_found, library + " does not answer: it hangs " + step);
    const std::string how = waited == child && WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL
                                ? " ends the process with signal " + std::to_string(WTERMSIG(status)) + " "
                                : " ends the process ";
    return fail(Status::device_not_found, library + how + step);
}

}  // namespace polder::proxy
