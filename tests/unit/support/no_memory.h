// A thread whose allocations fail, for tests of code that must work without memory. Link no_memory.cpp.
#pragma once

#include <cstdint>
#include <utility>

namespace polder::test {

// While set, `operator new` throws std::bad_alloc on this thread.
extern thread_local bool no_memory;
// From 0 on, so many calls of `operator new` of this thread succeed; the next one throws std::bad_alloc, and later ones succeed again.
// Below 0 none throws.
inline thread_local int64_t calls_before_failure = -1;

// For allocations that the test itself makes meanwhile: they succeed.
class [[nodiscard]] NoFailures {
public:
    NoFailures() : calls_(std::exchange(calls_before_failure, -1)) {}
    ~NoFailures() { calls_before_failure = calls_; }
    NoFailures(const NoFailures&) = delete;
    NoFailures& operator=(const NoFailures&) = delete;

private:
    const int64_t calls_;
};

}  // namespace polder::test
