// Each wait for another driver's queue blocks one thread (a Sleeper), which calls Queue::wait and then notifies the waiter. Idle
// sleepers are kept and used again.
#include <base/fork.h>
#include <base/mutex.h>
#include <base/service_thread.h>

#include <host/foreign_waits.h>
#include <host/parker.h>
#include <pthread.h>

namespace polder::devices {
namespace {

// A thread that waits for one timepoint and is kept for a later one. Each wait has its own thread, because one wait
// may end only after the waiter of another was notified.
struct Sleeper {
    driver::Timepoint timepoint;
    driver::FenceWaiter* waiter = nullptr;
    Parker parker;
    Sleeper* next_idle = nullptr;
};

class Sleepers final : private ForkParticipant {
public:
    // An idle sleeper, or null: then the caller starts a new one. Both count as working until put_idle.
    Sleeper* take_idle() {
        Lock lock(mutex_);
        ++working_;
        Sleeper* const sleeper = idle_;
        if (sleeper)
            idle_ = sleeper->next_idle;
        return sleeper;
    }
    void put_idle(Sleeper& sleeper) {
        Lock lock(mutex_);
        sleeper.next_idle = idle_;
        idle_ = &sleeper;
        --working_;
    }
    // Called when the new sleeper could not be started.
    void give_up() {
        Lock lock(mutex_);
        --working_;
    }

private:
    void lock_for_fork() override POLDER_NO_THREAD_SAFETY_ANALYSIS { mutex_.lock(); }
    void unlock_after_fork() override POLDER_NO_THREAD_SAFETY_ANALYSIS { mutex_.unlock(); }
    [[nodiscard]] bool is_quiet() const override POLDER_NO_THREAD_SAFETY_ANALYSIS { return working_ == 0; }
    void forget_threads() override POLDER_NO_THREAD_SAFETY_ANALYSIS {
        idle_ = nullptr;
        working_ = 0;
    }

    Mutex mutex_;
    Sleeper* idle_ POLDER_GUARDED_BY(mutex_) = nullptr;
    uint32_t working_ POLDER_GUARDED_BY(mutex_) = 0;
    ForkMembership fork_membership_{*this};
};

Sleepers& sleepers() {
    // Never destroyed, because its threads run until the process ends.
    static auto* const all = new Sleepers;
    return *all;
}

void* sleeper_main(void* argument) {
    auto& me = *static_cast<Sleeper*>(argument);
    for (;;) {
        me.timepoint.queue->wait(me.timepoint.value);
        driver::FenceWaiter* const waiter = me.waiter;
        waiter->reached(*waiter);
        sleepers().put_idle(me);
        me.parker.park();
    }
    return nullptr;
}

bool start_thread(Sleeper& sleeper) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    const SignalsBlocked blocked;
    pthread_t thread;
    const int error = pthread_create(&thread, &attributes, sleeper_main, &sleeper);
    pthread_attr_destroy(&attributes);
    return error == 0;
}

}  // namespace

bool wait_elsewhere(driver::Timepoint timepoint, driver::FenceWaiter& waiter) {
    if (timepoint.is_complete())
        return false;
    if (Sleeper* const idle = sleepers().take_idle()) {
        idle->timepoint = timepoint;
        idle->waiter = &waiter;
        idle->parker.wake();
        return true;
    }
    auto sleeper = std::make_unique<Sleeper>();
    sleeper->timepoint = timepoint;
    sleeper->waiter = &waiter;
    if (!start_thread(*sleeper)) {
        sleepers().give_up();
        timepoint.queue->wait(timepoint.value);
        return false;
    }
    // The thread owns the sleeper until the process ends.
    [[maybe_unused]] Sleeper* const owned_by_thread = sleeper.release();
    return true;
}

}  // namespace polder::devices
