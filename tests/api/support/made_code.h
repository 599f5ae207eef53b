// Counts the code that is made for kernels: POCL_DEBUG=compiler reports each in a line on stderr, if the cache is off.
#pragma once

#include <cstdio>
#include <string>
#include <unistd.h>

namespace polder::test {

// Standard error is a file while this lives.
class MadeCode {
public:
    MadeCode() : file_(std::tmpfile()), before_(dup(STDERR_FILENO)) { dup2(fileno(file_), STDERR_FILENO); }
    MadeCode(const MadeCode&) = delete;
    MadeCode& operator=(const MadeCode&) = delete;
    ~MadeCode() {
        std::fflush(stderr);
        dup2(before_, STDERR_FILENO);
        close(before_);
        std::fclose(file_);
    }
    // How often code of kernels whose names begin so was made.
    [[nodiscard]] size_t made(const std::string& name) const { return lines(name, "bytes of object code"); }
    // In how many lines about kernels whose names begin so `part` stands.
    [[nodiscard]] size_t lines(const std::string& name, const std::string& part) const {
        const std::string all = text(), line = "kernel " + name;
        size_t count = 0;
        for (size_t at = all.find(line); at != all.npos; at = all.find(line, at + 1))
            count += all.substr(at, all.find('\n', at) - at).find(part) != all.npos;
        return count;
    }

private:
    [[nodiscard]] std::string text() const {
        std::string all;
        char part[4096];
        for (ssize_t got = 0; (got = pread(fileno(file_), part, sizeof part, static_cast<off_t>(all.size()))) > 0;)
            all.append(part, static_cast<size_t>(got));
        return all;
    }

    std::FILE* file_;
    int before_;
};

}  // namespace polder::test
