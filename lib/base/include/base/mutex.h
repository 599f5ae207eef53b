// A mutex annotated for Clang's thread-safety analysis (-Wthread-safety), and its guard.
// For other compilers they behave as std::mutex and std::lock_guard.
#pragma once

#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define POLDER_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define POLDER_THREAD_ANNOTATION(x)
#endif
#define POLDER_GUARDED_BY(x) POLDER_THREAD_ANNOTATION(guarded_by(x))
#define POLDER_REQUIRES(...) POLDER_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define POLDER_EXCLUDES(...) POLDER_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))
#define POLDER_NO_THREAD_SAFETY_ANALYSIS POLDER_THREAD_ANNOTATION(no_thread_safety_analysis)

namespace polder {

class POLDER_THREAD_ANNOTATION(capability("mutex")) Mutex {
public:
    void lock() POLDER_THREAD_ANNOTATION(acquire_capability()) { mutex_.lock(); }
    void unlock() POLDER_THREAD_ANNOTATION(release_capability()) { mutex_.unlock(); }
    bool try_lock() POLDER_THREAD_ANNOTATION(try_acquire_capability(true)) { return mutex_.try_lock(); }

private:
    std::mutex mutex_;
};

class POLDER_THREAD_ANNOTATION(scoped_lockable) Lock {
public:
    explicit Lock(Mutex& mutex) POLDER_THREAD_ANNOTATION(acquire_capability(mutex)) : mutex_(mutex) { mutex_.lock(); }
    ~Lock() POLDER_THREAD_ANNOTATION(release_capability()) { mutex_.unlock(); }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

private:
    Mutex& mutex_;
};

// Works with Mutex; wait for a condition in a loop while holding the Lock.
using ConditionVariable = std::condition_variable_any;

} // namespace polder
