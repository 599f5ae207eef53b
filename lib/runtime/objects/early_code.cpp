// A thread is started for requests and ends when there are none. It waits a moment before each request: many programs launch a kernel
// right after they have created it, and then their own thread makes the code, without a thread switch. Nobody waits for other forms of code, which are
// also made where there is only one processor.
#include <base/mutex.h>
#include <base/options.h>
#include <compiler/optional_work.h>
#include <runtime/build_threads.h>
#include <runtime/early_code.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <list>
#include <new>
#include <sched.h>
#include <system_error>
#include <thread>

namespace polder::runtime::early_code {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::microseconds head_start{500};
constexpr size_t waiting_max = 256;
constexpr unsigned threads_max = 4;

struct Request {
    const void* kernel;  // null: no kernel object
    Ref<DeviceCode> code;
    std::function<void()> make;
    Clock::time_point due;
};
using RequestList = std::list<Request>;

// One thread for each four processors, at least one.
unsigned threads_allowed() {
    static const unsigned allowed = std::clamp(std::thread::hardware_concurrency() / 4, 1U, threads_max);
    return allowed;
}

// Not when there is only one processor, because the program would wait for the thread.
bool makes_early_code() {
    static const bool makes = options::early_code() && std::thread::hardware_concurrency() > 1;
    return makes;
}

class Requests final : ForkParticipant {
public:
    // Never destroyed: kernels may be released by static destructors.
    static Requests& get() {
        static auto* const instance = new Requests;
        return *instance;
    }

    void add(Request request) {
        RequestList one;
        one.push_back(std::move(request));
        // Before taking the lock, because the first get() takes the lock of the list of fork participants, which a fork locks first.
        BuildThreads& threads = BuildThreads::get();
        {
            const Lock lock(mutex_);
            if (waiting_.size() >= waiting_max || threads.should_end())
                return;
            waiting_.splice(waiting_.end(), one);
            if (threads_ == threads_allowed())
                return;
            ++threads_;
        }
        try {
            threads.start(BuildThreads::Work::early_code, [this] { work(); });
        } catch (const std::exception&) {
            static_cast<void>(end_thread());
        }
    }

    void cancel(const void* kernel) {
        RequestList cancelled;
        const Lock lock(mutex_);
        for (auto at = waiting_.begin(); at != waiting_.end();) {
            const auto next = std::next(at);
            if (at->kernel == kernel)
                cancelled.splice(cancelled.end(), waiting_, at);
            at = next;
        }
    }

private:
    void work() {
        // A batch thread never preempts threads that wake up, such as workers of a kernel. The priority stays, because a launch may have to
        // wait for this thread and could not raise the priority again.
        const sched_param none{};
        static_cast<void>(sched_setscheduler(0, SCHED_BATCH, &none));
        while (take_and_make())
            ;
    }

    // Drops all requests when no other thread is left.
    [[nodiscard]] RequestList end_thread() {
        RequestList dropped;
        const Lock lock(mutex_);
        if (--threads_ == 0)
            dropped.swap(waiting_);
        return dropped;
    }

    // Takes a request and makes its code. False when the thread shall end.
    bool take_and_make() {
        RequestList taken;
        Clock::time_point due;
        {
            const Lock lock(mutex_);
            if (BuildThreads::get().should_end())
                taken.swap(waiting_);
            if (waiting_.empty()) {
                --threads_;
                return false;
            }
            due = waiting_.front().due;
            if (due <= Clock::now())
                taken.splice(taken.end(), waiting_, waiting_.begin());
        }
        if (taken.empty()) {
            std::this_thread::sleep_until(due);
            return true;
        }
        try {
            const DeviceCode* const code = taken.front().code.get();
            const compiler::OptionalWork optional(
                [code] { return code->is_unique() || BuildThreads::get().is_process_ending(); });
            taken.front().make();
        } catch (const std::bad_alloc&) {  // the launch reports it
        }
        return true;
    }

    void lock_for_fork() override POLDER_NO_THREAD_SAFETY_ANALYSIS { mutex_.lock(); }
    void unlock_after_fork() override POLDER_NO_THREAD_SAFETY_ANALYSIS { mutex_.unlock(); }
    [[nodiscard]] bool is_quiet() const override { return true; }  // the threads are BuildThreads'
    void forget_threads() override POLDER_NO_THREAD_SAFETY_ANALYSIS {
        threads_ = 0;
        new (&waiting_) RequestList;  // leaked: locks that a destructor takes may be held
    }

    Mutex mutex_;
    RequestList waiting_ POLDER_GUARDED_BY(mutex_);
    unsigned threads_ POLDER_GUARDED_BY(mutex_) = 0;  // the running threads; when 0, waiting_ is empty
    ForkMembership fork_membership_{*this};
};

}  // namespace

void request(const void* kernel, const Ref<DeviceCode>& code, const compiler::KernelInfo& info) noexcept {
    if (!makes_early_code() || !code->begins_early(info))
        return;
    try {
        DeviceCode* const of = code.get();
        Requests::get().add({kernel, code, [of, &info] { of->make_early(info); }, Clock::now() + head_start});
    } catch (const std::bad_alloc&) {  // the first launch makes the code
    }
}

void request_form(const Ref<DeviceCode>& code, std::function<void()> make) noexcept {
    try {
        Requests::get().add({nullptr, code, std::move(make), Clock::now()});
    } catch (const std::bad_alloc&) {  // the launches keep the form that they have
    }
}

void cancel(const void* kernel) noexcept {
    if (makes_early_code())
        Requests::get().cancel(kernel);
}

}  // namespace polder::runtime::early_code
