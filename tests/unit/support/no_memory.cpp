#include "no_memory.h"

#include <cstdlib>
#include <new>

namespace polder::test {

thread_local bool no_memory = false;

} // namespace polder::test

void* operator new(size_t size) {
    void* const memory = polder::test::no_memory ? nullptr : std::malloc(size);
    if (!memory)
        throw std::bad_alloc{};
    return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
