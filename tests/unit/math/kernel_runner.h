// Runs OpenCL C kernels on this machine, through the compiler alone: no runtime, no driver. Work-groups run one
// after another on the calling thread; their size does not divide every count.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace polder::test {

struct Range {
    std::array<uint64_t, 3> global_size;
    std::array<uint64_t, 3> local_size;
};

class KernelRunner {
public:
    // Fails the running test, with the build log, when `source` does not compile.
    explicit KernelRunner(const std::string& source);
    ~KernelRunner();
    KernelRunner(const KernelRunner&) = delete;
    KernelRunner& operator=(const KernelRunner&) = delete;

    // Runs `kernel`, whose arguments are all global pointers, for `count` work-items, in work-groups of the size that
    // it requires, if it does.
    void run(const std::string& kernel, std::span<void* const> pointers, size_t count);
    // Runs a range as clEnqueueNDRangeKernel does: the last work-group of a dimension may be smaller.
    void run(const std::string& kernel, std::span<void* const> pointers, const Range& range);

    // What the kernels have printed.
    [[nodiscard]] const std::string& printed() const;

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace polder::test
