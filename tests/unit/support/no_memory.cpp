#include "no_memory.h"

#include <cstdlib>
#include <new>

namespace polder::test {

thread_local bool no_memory = false;

} // namespace polder::test

void* operator new(size_t size) {
    const bool fails = polder::test::no_memory ||
                       (polder::test::calls_before_failure >= 0 && polder::test::calls_before_failure-- == 0);
    void* const memory = fails ? nullptr : std::malloc(size);
    if (!memory)
        throw std::bad_alloc{};
    return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
