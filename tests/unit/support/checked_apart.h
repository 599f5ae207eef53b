// Runs a check in a child process, so that code which crashes or never ends fails the check and not the test program.
#pragma once

#include <cstdlib>
#include <functional>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace polder::test {

// Seconds of processor time.
inline constexpr rlim_t check_seconds_max = 120;

// What `check` returns (empty: right), or how its process ended. Only for processes of one thread.
inline std::string checked_apart(const std::function<std::string()>& check) {
    int ends[2];
    if (pipe(ends) != 0)
        return "no pipe";
    const pid_t child = fork();
    if (child == 0) {
        const rlimit limit{check_seconds_max, check_seconds_max};
        setrlimit(RLIMIT_CPU, &limit);
        const rlimit no_core{0, 0};
        setrlimit(RLIMIT_CORE, &no_core);
        const std::string result = check();
        const bool is_written = write(ends[1], result.data(), result.size()) == static_cast<ssize_t>(result.size());
        _exit(is_written ? 0 : 1);
    }
    close(ends[1]);
    std::string result;
    char part[4096];
    for (ssize_t bytes = 0; child > 0 && (bytes = read(ends[0], part, sizeof part)) > 0;)
        result.append(part, static_cast<size_t>(bytes));
    close(ends[0]);
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child)
        return "no process";
    if (WIFSIGNALED(status))
        return "ends with signal " + std::to_string(WTERMSIG(status));
    return WEXITSTATUS(status) == 0 ? result : "ends with status " + std::to_string(WEXITSTATUS(status));
}

}  // namespace polder::test
