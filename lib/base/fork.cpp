// The handlers of pthread_atfork. `prepare` closes the gate, then locks all participants. When one of them is not quiet, it unlocks them and
// tries again, until all are quiet or `quiet_wait_ms` have passed. `in_parent` and `in_child` unlock and open the gate; before that, the
// child forgets its threads. When not all were quiet, the child stays cut off.
#include <base/fork.h>
#include <base/membarrier.h>
#include <base/mutex.h>

#include <chrono>
#include <pthread.h>
#include <thread>
#include <type_traits>
#include <unistd.h>

namespace polder {

using fork_state::Gate;
using fork_state::Thread;

constinit std::atomic<Gate> fork_state::gate{Gate::not_ready};
[[gnu::tls_model("initial-exec")]] constinit thread_local Thread fork_state::this_thread;

// Has only static members that are never destroyed, because the handlers stay registered until the process ends.
struct ForkHandlers {
    static_assert(std::is_trivially_destructible_v<Mutex>);
    static inline constinit Mutex front;  // a fork holds it while the gate is closed: threads that enter wait for it
    static inline constinit Mutex lists;  // guards the members below; a fork locks `front` first
    static inline ForkMembership* first_member = nullptr;
    static inline Thread* first_thread = nullptr;
    static inline pthread_key_t key = 0;  // removes a thread from the list, after C++'s destructors
    static inline bool has_key = false;
    static inline Gate when_not_forking = Gate::not_ready;
    static inline bool is_all_stopped = false;  // between the handlers of one fork

    // --- stopping and continuing ---

    // Locks everything. True when no thread is inside an entry point.
    static bool lock_all() POLDER_NO_THREAD_SAFETY_ANALYSIS {
        lists.lock();
        bool is_quiet = true;
        for (const Thread* thread = first_thread; thread; thread = thread->next)
            is_quiet = is_quiet && (thread == &fork_state::this_thread || thread->depth.load() == 0);
        for (ForkMembership* m = first_member; m; m = m->next_) {
            m->participant_.lock_for_fork();
            is_quiet = is_quiet && m->participant_.is_quiet();
        }
        return is_quiet;
    }
    static void unlock_all() POLDER_NO_THREAD_SAFETY_ANALYSIS {
        for (ForkMembership* m = first_member; m; m = m->next_)
            m->participant_.unlock_after_fork();
        lists.unlock();
    }
    // Locks everything, and waits until it is quiet. False when something was not quiet in time; everything is locked also then.
    static bool stop_all() {
        using namespace std::chrono;
        const auto end = steady_clock::now() + milliseconds(fork_state::quiet_wait_ms);
        while (!lock_all()) {
            if (steady_clock::now() >= end)
                return false;
            unlock_all();
            std::this_thread::sleep_for(microseconds(100));
        }
        return true;
    }

    // The mutexes stay locked from `prepare` to `in_parent` or `in_child`, across functions. Fork handlers of the application
    // may run in between and call entry points; the depth above 0 lets this thread pass the closed gate.
    static void prepare() POLDER_NO_THREAD_SAFETY_ANALYSIS {
        front.lock();
        ++fork_state::this_thread.depth;
        fork_state::gate.store(Gate::closed);
        // From here on, either this thread sees that another thread is inside, or the other thread sees the closed gate.
        const bool is_seen = when_not_forking != Gate::open || membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
        is_all_stopped = stop_all() && is_seen;
    }
    static void go_on(Gate gate) POLDER_NO_THREAD_SAFETY_ANALYSIS {
        fork_state::gate.store(gate);
        --fork_state::this_thread.depth;
        unlock_all();
        front.unlock();
    }
    static void in_parent() { go_on(when_not_forking); }
    static void in_child() {
        for (ForkMembership* m = first_member; m; m = m->next_)
            m->participant_.forget_threads();
        Thread& me = fork_state::this_thread;
        me.next = me.previous = nullptr;
        first_thread = me.is_listed ? &me : nullptr;
        const bool was_cut_off = when_not_forking == Gate::cut_off;
        prepare_gate();
        // Forks of a child that is cut off, which has only one thread, are quiet. It stays cut off, and so do its children.
        if (was_cut_off || !is_all_stopped)
            when_not_forking = Gate::cut_off;
        go_on(when_not_forking);
    }

    // --- the lists ---

    // Registers the process for membarrier. Where the system has none, the gate is never open (Gate::not_ready).
    static void prepare_gate() {
        when_not_forking = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) ? Gate::open : Gate::not_ready;
    }
    static void set_up() {
        has_key = pthread_key_create(&key, leave_list) == 0;
        prepare_gate();
        fork_state::gate.store(when_not_forking);
        // When there is no memory for the handlers, the child of a fork may deadlock, as with most libraries.
        static_cast<void>(pthread_atfork(prepare, in_parent, in_child));
    }
    static void add(ForkMembership& member) {
        const Lock lock(lists);
        member.next_ = first_member;
        first_member = &member;
    }
    static void remove(ForkMembership& member) {
        const Lock lock(lists);
        ForkMembership** link = &first_member;
        while (*link != &member)
            link = &(*link)->next_;
        *link = member.next_;
    }
    static void enter_list(Thread& me) {
        const Lock lock(lists);
        // A thread that could not be removed from the list when it ends is not added, and a fork does not wait for it.
        if (!has_key || pthread_setspecific(key, &me) != 0)
            return;
        me.previous = nullptr;
        me.next = first_thread;
        if (first_thread)
            first_thread->previous = &me;
        first_thread = &me;
        me.is_listed = true;
    }
    static void leave_list(void* thread) {
        const Lock lock(lists);
        Thread& me = *static_cast<Thread*>(thread);
        (me.previous ? me.previous->next : first_thread) = me.next;
        if (me.next)
            me.next->previous = me.previous;
        me.is_listed = false;
    }
};

namespace {

// Runs while the library is being loaded, before any thread can be inside.
const struct SetUp {
    SetUp() { ForkHandlers::set_up(); }
} set_up;

}  // namespace

// The caller has set the depth to 1 or more. All accesses are sequentially consistent, because on this path no membarrier orders them.
bool fork_state::Inside::enter_slowly(Thread& me) {
    if (!me.is_listed)
        ForkHandlers::enter_list(me);
    me.depth.exchange(me.depth.load());
    while (gate.load() == Gate::closed && me.depth.load() == 1) {
        me.depth.store(0);
        {
            const Lock wait(ForkHandlers::front);
        }
        me.depth.exchange(1);
    }
    return gate.load() == Gate::cut_off;
}

ForkMembership::ForkMembership(ForkParticipant& participant) : participant_(participant) { ForkHandlers::add(*this); }
ForkMembership::~ForkMembership() { ForkHandlers::remove(*this); }

}  // namespace polder
