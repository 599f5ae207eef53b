// Runs OpenCL C kernels on this machine, through the compiler alone: no runtime, no driver. Work-groups run one
// after another on the calling thread; their size does not divide every count.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace polder::test {

class KernelRunner {
public:
    // Fails the running test, with the build log, when `source` does not compile.
    explicit KernelRunner(const std::string& source);
    ~KernelRunner();
    KernelRunner(const KernelRunner&) = delete;
    KernelRunner& operator=(const KernelRunner&) = delete;

    // Runs `kernel`, whose arguments are all global pointers, for `count` work-items.
    void run(const std::string& kernel, std::span<void* const> pointers, size_t count);

private:
    struct State;
    std::unique_ptr<State> state_;
};

} // namespace polder::test
