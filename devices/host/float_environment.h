// The floating-point environment in which work-items run: rounding to nearest, subnormal numbers kept, no traps (OpenCL C,
// "Numerical Compliance"). An application may have changed that of its threads, and a new thread inherits that of its creator.
// Programs that were built with -cl-denorms-are-zero compute with zeros in place of subnormal numbers on x86-64, where Intel's processors take some
// 150 cycles for an operation with one (decision 391).
//
// KernelFloatEnvironment sets this environment on the calling thread for its scope, and restores the one before (two instructions if equal).
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#else
#include <cfenv>
#endif

namespace polder::devices {

#if defined(__x86_64__)

class KernelFloatEnvironment {
public:
    explicit KernelFloatEnvironment(bool flushes_subnormals)
        : KernelFloatEnvironment(flushes_subnormals ? standard | flushing : standard) {}
    KernelFloatEnvironment(const KernelFloatEnvironment&) = delete;
    KernelFloatEnvironment& operator=(const KernelFloatEnvironment&) = delete;
    ~KernelFloatEnvironment() {
        if (changes_) [[unlikely]]
            _mm_setcsr(before_);
    }

private:
    explicit KernelFloatEnvironment(uint32_t wanted) : before_(_mm_getcsr()), changes_((before_ & ~raised) != wanted) {
        if (changes_) [[unlikely]]
            _mm_setcsr(wanted);
    }

    static constexpr uint32_t raised = 0x3f;  // which exceptions occurred
    static constexpr uint32_t standard = 0x1f80;  // all exceptions masked; nearest; neither FTZ nor DAZ
    static constexpr uint32_t flushing = 0x8040;  // FTZ and DAZ: results and operands
    const uint32_t before_;
    const bool changes_;
};

#else

class KernelFloatEnvironment {
public:
    explicit KernelFloatEnvironment(bool /*flushes_subnormals*/) {
        std::fegetenv(&before_);
        std::fesetenv(FE_DFL_ENV);
    }
    KernelFloatEnvironment(const KernelFloatEnvironment&) = delete;
    KernelFloatEnvironment& operator=(const KernelFloatEnvironment&) = delete;
    ~KernelFloatEnvironment() { std::fesetenv(&before_); }

private:
    std::fenv_t before_;
};

#endif

}  // namespace polder::devices
