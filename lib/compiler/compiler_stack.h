// The stack of one compilation: large enough for deeply nested source, with a guard area below it. A small second stack is for
// the signal handler that runs when the large one overflows.
//
// Only pages that are touched cost memory. Owned by the thread that maps it; one thread. Units: bytes.
#pragma once

#include <cstddef>

namespace polder::compiler {

class CompilerStack {
public:
    // Tries smaller sizes when address space is short. The result is false when no size can be mapped.
    CompilerStack();
    ~CompilerStack();
    CompilerStack(const CompilerStack&) = delete;
    CompilerStack& operator=(const CompilerStack&) = delete;

    [[nodiscard]] explicit operator bool() const { return mapping_ != nullptr; }
    [[nodiscard]] void* stack() const { return mapping_ + guard_bytes + signal_stack_bytes + guard_bytes; }
    [[nodiscard]] size_t stack_bytes() const { return stack_bytes_; }
    [[nodiscard]] void* signal_stack() const { return mapping_ + guard_bytes; }

    // Whether `address` is in a guard area, so that an access to it means that a stack overflowed.
    [[nodiscard]] bool is_in_guard(const void* address) const;

    static constexpr size_t signal_stack_bytes = 64 << 10;

private:
    // From the lowest address: guard, signal stack, guard, stack. A frame larger than a guard could step over it.
    static constexpr size_t guard_bytes = 1 << 20;

    char* mapping_ = nullptr;
    size_t stack_bytes_ = 0;
};

}  // namespace polder::compiler
