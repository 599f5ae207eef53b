#include "compiler_stack.h"

#include <sys/mman.h>

namespace polder::compiler {
namespace {

// 256 MiB are enough for about 400,000 nested expressions. The smallest size is a thread's default.
constexpr size_t stack_sizes[] = {size_t{256} << 20, size_t{64} << 20, size_t{8} << 20};

} // namespace

CompilerStack::CompilerStack() {
    for (const size_t size : stack_sizes) {
        const size_t whole = 2 * guard_bytes + signal_stack_bytes + size;
        void* place = mmap(nullptr, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
        if (place == MAP_FAILED)
            continue;
        mapping_ = static_cast<char*>(place);
        stack_bytes_ = size;
        if (mprotect(stack(), size, PROT_READ | PROT_WRITE) == 0 &&
            mprotect(signal_stack(), signal_stack_bytes, PROT_READ | PROT_WRITE) == 0) {
            // Most compilations use a few KiB of the stack. A large page would be zeroed as a whole for them.
            madvise(stack(), size, MADV_NOHUGEPAGE);
            return;
        }
        munmap(place, whole);
        mapping_ = nullptr;
    }
}

CompilerStack::~CompilerStack() {
    if (mapping_ != nullptr)
        munmap(mapping_, 2 * guard_bytes + signal_stack_bytes + stack_bytes_);
}

bool CompilerStack::is_in_guard(const void* address) const {
    const char* const end = static_cast<char*>(stack());
    const auto* const at = static_cast<const char*>(address);
    return at >= end - guard_bytes && at < end;
}

}  // namespace polder::compiler
