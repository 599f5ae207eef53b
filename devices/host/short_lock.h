// ShortLock: locks a Mutex whose critical sections are shorter than a system call. A thread that finds it locked tries again for about a
// microsecond before it sleeps: two threads that begin and end parallel tasks together meet at the pool's mutex at every launch.
#pragma once

#include <base/mutex.h>

#include <cstdint>
#include <host/parker.h>

namespace polder::devices {

class POLDER_THREAD_ANNOTATION(scoped_lockable) ShortLock {
public:
    explicit ShortLock(Mutex& mutex)
        POLDER_THREAD_ANNOTATION(acquire_capability(mutex)) POLDER_NO_THREAD_SAFETY_ANALYSIS : mutex_(mutex) {
        constexpr uint32_t tries = 10, pauses = 4;
        for (uint32_t i = 0; i < tries * pauses; ++i) {
            if (i % pauses == 0 && mutex_.try_lock())
                return;
            spin_pause();
        }
        mutex_.lock();
    }
    ~ShortLock() POLDER_THREAD_ANNOTATION(release_capability()) { mutex_.unlock(); }
    ShortLock(const ShortLock&) = delete;
    ShortLock& operator=(const ShortLock&) = delete;

private:
    Mutex& mutex_;
};

}  // namespace polder::devices
