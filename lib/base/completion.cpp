// Callbacks that wait are listed by the queue of their first incomplete timepoint, in a heap ordered by the timepoint's value. The
// callback thread reads the counter of each listed queue, takes out the entries that are due, and calls their functions
// without a lock. An entry with further timepoints is listed again at the next queue.
#include <base/completion.h>
#include <base/fork.h>
#include <base/mutex.h>
#include <base/service_thread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <new>
#include <queue>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

namespace polder {
namespace {

using std::chrono::microseconds;
constexpr microseconds shortest_pause{10};
constexpr microseconds longest_pause{1000};

bool is_complete(driver::Waits after) {
    return std::ranges::all_of(after, [](driver::Timepoint point) { return point.is_complete(); });
}

struct Entry {
    std::vector<driver::Timepoint> after;  // its front is the timepoint that the entry is listed under
    CompletionCallback callback;
    uint64_t number = 0;  // counts the entries, in order of registration
    Entry* next = nullptr;  // of those that are due

    // Removes the timepoints that are complete. True when none is left.
    [[nodiscard]] bool is_due() {
        std::erase_if(after, [](driver::Timepoint point) { return point.is_complete(); });
        return after.empty();
    }
    void run() const {
        for (const driver::Timepoint& point : after)  // left when there was no memory to list it again
            point.queue->wait(point.value);
        callback.function(callback.data);
    }
};

// Orders a heap so that its top is the entry with the earliest timepoint.
struct IsLater {
    bool operator()(const Entry* a, const Entry* b) const {
        const uint64_t a_value = a->after.front().value, b_value = b->after.front().value;
        return a_value != b_value ? a_value > b_value : a->number > b->number;
    }
};
using EntryHeap = std::priority_queue<Entry*, std::vector<Entry*>, IsLater>;

// A list of entries in the order in which they were appended. Owns its entries.
class EntryList {
public:
    EntryList() = default;
    EntryList(EntryList&& other) noexcept : first_(std::exchange(other.first_, nullptr)) {
        last_ = first_ ? other.last_ : &first_;
    }
    EntryList& operator=(EntryList&&) = delete;
    ~EntryList() {
        while (take_first())
            ;
    }
    void append(Entry* entry) {
        *last_ = entry;
        last_ = &entry->next;
    }
    [[nodiscard]] bool empty() const { return !first_; }
    [[nodiscard]] std::unique_ptr<Entry> take_first() {
        std::unique_ptr<Entry> entry(first_);
        if (entry)
            first_ = entry->next;
        return entry;
    }

private:
    Entry* first_ = nullptr;
    Entry** last_ = &first_;
};

class CallbackThread final : public ForkParticipant {
public:
    // Never destroyed, because callbacks may be due until the process ends.
    static CallbackThread& get() {
        static auto* const instance = new CallbackThread;
        return *instance;
    }

    [[nodiscard]] Result<void> start() {
        const Lock lock(mutex_);
        if (is_started_)
            return {};
        try {
            const SignalsBlocked blocked;
            std::thread([this] { run(); }).detach();
        } catch (const std::system_error& error) {
            return fail(Status::out_of_resources, std::string("no callback thread: ") + error.what());
        }
        is_started_ = true;
        return {};
    }

    void add(std::unique_ptr<Entry> entry) {
        {
            const Lock lock(mutex_);
            entry->number = ++last_number_;
            list_locked(entry.get());
            static_cast<void>(entry.release());
            ++unfinished_;
        }
        changed_.notify_one();
    }

    void add(Retried& job) noexcept {
        {
            const Lock lock(mutex_);
            job.next_retried = std::exchange(retried_, &job);
            has_retried_.store(true, std::memory_order_relaxed);
        }
        try {
            static_cast<void>(start());
        } catch (const std::bad_alloc&) {  // without the thread, calls of retry_now try the job
        }
        changed_.notify_one();
    }

    [[nodiscard]] static bool has_retried() { return has_retried_.load(std::memory_order_relaxed); }

    // Tries all jobs once. Any thread may call it.
    void retry() noexcept {
        Retried* jobs = nullptr;
        {
            const Lock lock(mutex_);
            jobs = std::exchange(retried_, nullptr);
            ++unfinished_;
        }
        Retried* left = nullptr;
        while (jobs) {
            Retried* const job = std::exchange(jobs, jobs->next_retried);
            if (!job->try_again())
                job->next_retried = std::exchange(left, job);
        }
        const Lock lock(mutex_);
        --unfinished_;
        while (left) {
            Retried* const job = std::exchange(left, left->next_retried);
            job->next_retried = std::exchange(retried_, job);
        }
        has_retried_.store(retried_ != nullptr, std::memory_order_relaxed);
    }

    void lock_for_fork() override POLDER_NO_THREAD_SAFETY_ANALYSIS { mutex_.lock(); }
    void unlock_after_fork() override POLDER_NO_THREAD_SAFETY_ANALYSIS { mutex_.unlock(); }
    [[nodiscard]] bool is_quiet() const override POLDER_NO_THREAD_SAFETY_ANALYSIS { return unfinished_ == 0; }
    void forget_threads() override POLDER_NO_THREAD_SAFETY_ANALYSIS {
        is_started_ = false;
        new (&changed_) ConditionVariable;  // the old one may count a waiting thread, which does not exist in the child
        by_queue_.clear();
        unfinished_ = 0;
    }

private:
    // When this throws std::bad_alloc, it has listed nothing and left no empty heap: the callback thread expects an entry in each heap.
    void list_locked(Entry* entry) POLDER_REQUIRES(mutex_) {
        const auto listed = by_queue_.try_emplace(entry->after.front().queue).first;
        try {
            listed->second.push(entry);
        } catch (const std::bad_alloc&) {
            if (listed->second.empty())
                by_queue_.erase(listed);
            throw;
        }
    }

    // Removes the entries whose timepoints are all complete from the heaps, and returns them.
    [[nodiscard]] EntryList take_due_locked() POLDER_REQUIRES(mutex_) {
        EntryList due, elsewhere;  // elsewhere: complete on one queue, but not yet on another
        for (auto at = by_queue_.begin(); at != by_queue_.end();) {
            auto& [queue, entries] = *at;
            const uint64_t completed = queue->completed();
            while (!entries.empty() && entries.top()->after.front().value <= completed) {
                Entry* const entry = entries.top();
                entries.pop();
                (entry->is_due() ? due : elsewhere).append(entry);
            }
            at = entries.empty() ? by_queue_.erase(at) : std::next(at);
        }
        while (std::unique_ptr<Entry> entry = elsewhere.take_first()) {
            entry->next = nullptr;
            try {
                list_locked(entry.get());
                static_cast<void>(entry.release());
            } catch (const std::bad_alloc&) {
                due.append(entry.release());  // Entry::run waits for the rest
            }
        }
        return due;
    }

    // Blocks until an entry is due, or jobs are to be tried again (retry).
    [[nodiscard]] EntryList wait_for_due() {
        const Lock lock(mutex_);
        microseconds pause = shortest_pause;
        bool has_paused = false;
        for (uint64_t known = last_number_;;) {
            EntryList due = take_due_locked();
            if (!due.empty() || (retried_ && has_paused))
                return due;
            if (retried_) {
                changed_.wait_for(mutex_, longest_pause);
                has_paused = true;
            } else if (by_queue_.empty()) {
                changed_.wait(mutex_);
            } else {
                changed_.wait_for(mutex_, pause);
            }
            pause = std::min(2 * pause, longest_pause);
            if (std::exchange(known, last_number_) != last_number_)
                pause = shortest_pause;
        }
    }

    void run() {
        for (;;) {
            EntryList due = wait_for_due();
            while (const std::unique_ptr<Entry> entry = due.take_first()) {
                entry->run();
                const Lock lock(mutex_);
                --unfinished_;
            }
            if (has_retried())
                retry();
        }
    }

    Mutex mutex_;
    ConditionVariable changed_;
    bool is_started_ POLDER_GUARDED_BY(mutex_) = false;
    uint64_t last_number_ POLDER_GUARDED_BY(mutex_) = 0;
    size_t unfinished_ POLDER_GUARDED_BY(mutex_) = 0;  // entries whose function has not returned, and calls of retry
    Retried* retried_ POLDER_GUARDED_BY(mutex_) = nullptr;
    static constinit std::atomic<bool> has_retried_;
    std::unordered_map<driver::Queue*, EntryHeap> by_queue_ POLDER_GUARDED_BY(mutex_);
    ForkMembership fork_membership_{*this};
};

constinit std::atomic<bool> CallbackThread::has_retried_{false};

}  // namespace

Result<void> start_callback_thread() { return CallbackThread::get().start(); }

bool try_run_when_complete(driver::Waits after, CompletionCallback callback) noexcept {
    if (!is_complete(after)) {
        try {
            auto entry = std::make_unique<Entry>(Entry{{after.begin(), after.end()}, callback});
            if (!entry->is_due()) {
                if (!start_callback_thread())
                    return false;
                for (const driver::Timepoint& point : entry->after)
                    point.queue->flush();
                CallbackThread::get().add(std::move(entry));
                return true;
            }
        } catch (const std::bad_alloc&) {
            return false;
        }
    }
    callback.function(callback.data);
    return true;
}

void run_when_complete(driver::Waits after, CompletionCallback callback) noexcept {
    if (try_run_when_complete(after, callback))
        return;
    for (const driver::Timepoint& point : after)
        if (point.queue)
            point.queue->wait(point.value);
    callback.function(callback.data);
}

void retry_until_done(Retried& job) noexcept { CallbackThread::get().add(job); }

void retry_now() noexcept {
    if (CallbackThread::has_retried()) [[unlikely]]
        CallbackThread::get().retry();
}

}  // namespace polder
