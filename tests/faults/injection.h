// Faults by number: the n-th operator new of this thread, or the n-th mmap or pthread_create of the process, fails.
//
// The functions replace those of the C and C++ libraries for the whole program, the loaded OpenCL implementation
// included. One injection at a time.
#pragma once

#include <atomic>
#include <cstdint>

namespace polder::test {

enum class Fault : uint8_t { host_memory, pages, thread };
inline const char* name_of(Fault fault) {
    return fault == Fault::host_memory ? "operator new" : fault == Fault::pages ? "mmap" : "pthread_create";
}

// From construction on, the call number `n` (from 0) fails; calls before and after it do not.
class Injection {
public:
    Injection(Fault fault, int64_t n);
    ~Injection();
    Injection(const Injection&) = delete;
    Injection& operator=(const Injection&) = delete;
    // Whether the call has been made, and so has failed.
    [[nodiscard]] static bool has_struck();
};

// Blocks of operator new that are not deleted yet.
[[nodiscard]] int64_t outstanding_blocks();
// Bytes that this thread has ever had from operator new.
[[nodiscard]] uint64_t allocated_bytes();

} // namespace polder::test
