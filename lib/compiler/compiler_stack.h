// The memory that one compilation's stack is: large enough for deeply nested source, with a guard area below, and a small
// second stack for the handler that runs when the large one is full.
//
// Only pages that are touched cost memory. Owned by the thread that maps it; one thread. Units: bytes.
#pragma once

#include <cstddef>

namespace polder::compiler {

class CompilerStack {
public:
    // Tries smaller sizes when address space is short. Null: there is none.
    CompilerStack();
    ~CompilerStack();
    CompilerStack(const CompilerStack&) = delete;
    CompilerStack& operator=(const CompilerStack&) = delete;

    [[nodiscard]] explicit operator bool() const { return mapping_ != nullptr; }
    [[nodiscard]] void* stack() const { return mapping_ + guard_bytes + signal_stack_bytes + guard_bytes; }
    [[nodiscard]] size_t stack_bytes() const { return stack_bytes_; }
    [[nodiscard]] void* signal_stack() const { return mapping_ + guard_bytes; }

    // Whether `address` lies where a stack that grew too far ends up.
    [[nodiscard]] bool is_in_guard(const void* address) const;

    static constexpr size_t signal_stack_bytes = 64 << 10;

private:
    // From the lowest address: guard, signal stack, guard, stack. A frame larger than a guard could step over it.
    static constexpr size_t guard_bytes = 1 << 20;

    char* mapping_ = nullptr;
    size_t stack_bytes_ = 0;
};

}  // namespace polder::compiler
