// A program that includes this header has a pthread_create of its own, which fails while `refuse_threads` is set, as when
// the process is out of threads. For one source of a program.
#pragma once

#include <atomic>
#include <cerrno>
#include <dlfcn.h>
#include <functional>
#include <pthread.h>

namespace polder::test {
inline std::atomic<bool> refuse_threads{false};
// Called for each thread that is refused, if it is set; the caller may hold locks.
inline std::function<void()> on_refusal;
}  // namespace polder::test

// The sanitizer's own function, which must see each thread: in this program it would replace the C library's.
extern "C" [[gnu::weak]] int __interceptor_pthread_create(pthread_t*, const pthread_attr_t*,
                                                          void* (*)(void*),  // NOLINT
                                                          void*);

// Replaces the C library's function in this program.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                              void* argument) {
    if (polder::test::refuse_threads.load()) {
        if (polder::test::on_refusal)
            polder::test::on_refusal();
        return EAGAIN;
    }
    using Function = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
    static const auto real = __interceptor_pthread_create
                                 ? &__interceptor_pthread_create
                                 : reinterpret_cast<Function>(dlsym(RTLD_NEXT, "pthread_create"));
    return real(thread, attributes, run, argument);
}
