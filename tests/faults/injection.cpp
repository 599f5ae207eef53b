#include "injection.h"

#include <cerrno>
#include <cstdlib>
#include <dlfcn.h>
#include <new>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace polder::test {
namespace {

constinit std::atomic<int64_t> left[3] = {-1, -1, -1};
constinit std::atomic<bool> struck{false};
constinit std::atomic<int64_t> outstanding{0};
// Allocations of other threads succeed: they are not part of the call under test.
[[gnu::tls_model("initial-exec")]] constinit thread_local bool is_injecting = false;
[[gnu::tls_model("initial-exec")]] constinit thread_local uint64_t allocated_here = 0;

bool strikes(Fault fault) {
    std::atomic<int64_t>& count = left[static_cast<int>(fault)];
    if (count.load(std::memory_order_relaxed) < 0 || count.fetch_sub(1, std::memory_order_relaxed) != 0)
        return false;
    struck = true;
    return true;
}

void* allocate(size_t size, size_t alignment) {
    if (is_injecting && strikes(Fault::host_memory))
        return nullptr;
    void* const memory = alignment > 16 ? std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment)
                                        : std::malloc(size ? size : 1);
    if (memory) {
        outstanding.fetch_add(1, std::memory_order_relaxed);
        allocated_here += size;
    }
    return memory;
}

void* allocate_or_throw(size_t size, size_t alignment) {
    if (void* const memory = allocate(size, alignment))
        return memory;
    throw std::bad_alloc{};
}

void release(void* memory) {
    if (memory)
        outstanding.fetch_sub(1, std::memory_order_relaxed);
    std::free(memory);
}

} // namespace

Injection::Injection(Fault fault, int64_t n) {
    struck = false;
    is_injecting = true;
    left[static_cast<int>(fault)] = n;
}

Injection::~Injection() {
    for (auto& count : left)
        count = -1;
    is_injecting = false;
}

bool Injection::has_struck() { return struck; }
uint64_t allocated_bytes() { return allocated_here; }
int64_t outstanding_blocks() { return outstanding.load(std::memory_order_relaxed); }

} // namespace polder::test

using namespace polder::test;

void* operator new(size_t size) { return allocate_or_throw(size, 1); }
void* operator new[](size_t size) { return allocate_or_throw(size, 1); }
void* operator new(size_t size, const std::nothrow_t&) noexcept { return allocate(size, 1); }
void* operator new[](size_t size, const std::nothrow_t&) noexcept { return allocate(size, 1); }
void* operator new(size_t size, std::align_val_t alignment) {
    return allocate_or_throw(size, static_cast<size_t>(alignment));
}
void* operator new[](size_t size, std::align_val_t alignment) {
    return allocate_or_throw(size, static_cast<size_t>(alignment));
}
void operator delete(void* memory) noexcept { release(memory); }
void operator delete[](void* memory) noexcept { release(memory); }
void operator delete(void* memory, size_t) noexcept { release(memory); }
void operator delete[](void* memory, size_t) noexcept { release(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { release(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { release(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { release(memory); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { release(memory); }

extern "C" {

[[gnu::visibility("default")]] void* mmap(void* address, size_t size, int protection, int flags, int file,
                                          off_t offset) noexcept {
    if (strikes(Fault::pages)) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return reinterpret_cast<void*>(::syscall(SYS_mmap, address, size, protection, flags, file, offset));
}

[[gnu::visibility("default")]] int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                                                  void* (*function)(void*), void* argument) noexcept {
    if (strikes(Fault::thread))
        return EAGAIN;
    using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
    static const auto real = reinterpret_cast<Create>(::dlsym(RTLD_NEXT, "pthread_create"));
    return real(thread, attributes, function, argument);
}

} // extern "C"
