#include "ahead_thread.h"

#include <base/log.h>

#include <new>

namespace polder::memory {

AheadThread::~AheadThread() {
    {
        const Lock lock(mutex_);
        is_stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
}

void AheadThread::request() noexcept {
    {
        const Lock lock(mutex_);
        if (is_stopping_ || !start_thread())
            return;
        is_requested_ = true;
    }
    changed_.notify_all();
}

bool AheadThread::start_thread() {
    const bool is_started = thread_.start(
        "polder-ahead",
        [](void* self) -> void* {
            static_cast<AheadThread*>(self)->work();
            return nullptr;
        },
        this);
    if (!is_started)
        POLDER_LOG(memory, "memory is not made ahead of need: no thread can be started");
    return is_started;
}

void AheadThread::cancel() noexcept {
    const Lock lock(mutex_);
    is_requested_ = false;
    while (is_working_)
        changed_.wait(mutex_);
}

void AheadThread::wait_until_idle() {
    const Lock lock(mutex_);
    while (is_requested_ || is_working_)
        changed_.wait(mutex_);
}

void AheadThread::work() {
    const Lock lock(mutex_);
    while (!is_stopping_) {
        if (!is_requested_) {
            changed_.wait(mutex_);
            continue;
        }
        is_requested_ = false;
        is_working_ = true;
        mutex_.unlock();
        function_(owner_);
        mutex_.lock();
        is_working_ = false;
        changed_.notify_all();
    }
}

// The thread does not exist, and others of the parent may have waited for it.
void AheadThread::forget_threads() {
    thread_.forget();
    new (&changed_) ConditionVariable;
    is_requested_ = is_working_ = false;
}

}  // namespace polder::memory
