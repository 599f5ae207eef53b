// The floating-point environment in which work-items run: rounding to nearest, subnormal numbers kept, no traps (OpenCL C,
// "Numerical Compliance"). An application may have changed that of its threads, and a new thread inherits that of its creator.
//
// StandardFloatEnvironment sets this environment on the calling thread for its scope, and restores the one before (two instructions if equal).
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#else
#include <cfenv>
#endif

namespace polder::devices {

#if defined(__x86_64__)

class StandardFloatEnvironment {
public:
    StandardFloatEnvironment() : before_(_mm_getcsr()), changes_((before_ & ~raised) != standard) {
        if (changes_) [[unlikely]]
            _mm_setcsr(standard);
    }
    StandardFloatEnvironment(const StandardFloatEnvironment&) = delete;
    StandardFloatEnvironment& operator=(const StandardFloatEnvironment&) = delete;
    ~StandardFloatEnvironment() {
        if (changes_) [[unlikely]]
            _mm_setcsr(before_);
    }

private:
    static constexpr uint32_t raised = 0x3f;  // which exceptions occurred
    static constexpr uint32_t standard = 0x1f80;  // all exceptions masked; nearest; neither FTZ nor DAZ
    const uint32_t before_;
    const bool changes_;
};

#else

class StandardFloatEnvironment {
public:
    StandardFloatEnvironment() {
        std::fegetenv(&before_);
        std::fesetenv(FE_DFL_ENV);
    }
    StandardFloatEnvironment(const StandardFloatEnvironment&) = delete;
    StandardFloatEnvironment& operator=(const StandardFloatEnvironment&) = delete;
    ~StandardFloatEnvironment() { std::fesetenv(&before_); }

private:
    std::fenv_t before_;
};

#endif

}  // namespace polder::devices
