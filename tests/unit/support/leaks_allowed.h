// While one lives, what its thread allocates is no leak to the leak sanitizer. For LLVM's fatal errors: they
// end the guarded piece without the destructors of what LLVM held.
#pragma once

// There only in sanitized programs.
extern "C" [[gnu::weak]] void __lsan_disable();  // NOLINT(bugprone-reserved-identifier)
extern "C" [[gnu::weak]] void __lsan_enable();  // NOLINT(bugprone-reserved-identifier)

namespace polder::test {

class LeaksAllowed {
public:
    LeaksAllowed() {
        if (__lsan_disable)
            __lsan_disable();
    }
    ~LeaksAllowed() {
        if (__lsan_enable)
            __lsan_enable();
    }
    LeaksAllowed(const LeaksAllowed&) = delete;
    LeaksAllowed& operator=(const LeaksAllowed&) = delete;
};

}  // namespace polder::test
