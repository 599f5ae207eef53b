#include <base/fork.h>
#include <base/mutex.h>

#include <ctime>
#include <pthread.h>

namespace polder {

std::atomic<bool> fork_state::cut_off{false};

// Statics alone: the handlers stay registered until the process ends.
struct ForkHandlers {
    static Mutex& mutex() {
        static auto* const instance = new Mutex;  // leaked: forks may come during the exit
        return *instance;
    }
    static inline ForkMembership* first = nullptr;
    static inline bool was_quiet = false;

    static bool lock_all() {
        bool quiet = true;
        for (ForkMembership* m = first; m; m = m->next_) {
            m->participant_.lock_for_fork();
            quiet = quiet && m->participant_.is_quiet();
        }
        return quiet;
    }
    static void unlock_all() {
        for (ForkMembership* m = first; m; m = m->next_)
            m->participant_.unlock_after_fork();
    }

    // The mutexes stay locked from `prepare` to `in_parent` or `in_child`, across functions.
    static void prepare() POLDER_NO_THREAD_SAFETY_ANALYSIS {
        mutex().lock();
        was_quiet = lock_all();
        for (uint32_t waited_ms = 0; !was_quiet && waited_ms < fork_state::quiet_wait_ms; ++waited_ms) {
            unlock_all();
            const timespec pause{0, 1'000'000};
            nanosleep(&pause, nullptr);
            was_quiet = lock_all();
        }
    }
    static void in_parent() POLDER_NO_THREAD_SAFETY_ANALYSIS {
        unlock_all();
        mutex().unlock();
    }
    static void in_child() POLDER_NO_THREAD_SAFETY_ANALYSIS {
        if (!was_quiet)
            fork_state::cut_off.store(true, std::memory_order_relaxed);
        for (ForkMembership* m = first; m; m = m->next_)
            m->participant_.forget_threads();
        unlock_all();
        mutex().unlock();
    }

    static void add(ForkMembership& member) {
        static const int registered = pthread_atfork(prepare, in_parent, in_child);
        static_cast<void>(registered);  // without memory for it, children are as with most libraries
        const Lock lock(mutex());
        member.next_ = first;
        first = &member;
    }
    static void remove(ForkMembership& member) {
        const Lock lock(mutex());
        ForkMembership** link = &first;
        while (*link != &member)
            link = &(*link)->next_;
        *link = member.next_;
    }
};

ForkMembership::ForkMembership(ForkParticipant& participant) : participant_(participant) { ForkHandlers::add(*this); }
ForkMembership::~ForkMembership() { ForkHandlers::remove(*this); }

} // namespace polder
