#include <base/fork.h>
#include <base/mutex.h>
#include <memory/collect.h>
#include <runtime/event.h>
#include <runtime/watcher.h>

#include <atomic>
#include <memory>
#include <polder/driver.h>
#include <queue>
#include <thread>
#include <unordered_map>
#include <vector>

namespace polder::runtime {
namespace {

// What watching threads have still to tell.
std::atomic<uint32_t> untold{0};

class Watcher {
public:
    explicit Watcher(driver::Queue& queue) : queue_(queue) {
        std::thread([this] { run(); }).detach();
    }

    void add(Ref<Event> event) {
        {
            Lock lock(mutex_);
            untold.fetch_add(1, std::memory_order_relaxed);
            entries_.push({event->timepoint().value, std::move(event)});
        }
        changed_.notify_one();
    }

private:
    struct Entry {
        uint64_t value;
        Ref<Event> event;
        bool operator<(const Entry& other) const { return value > other.value; }  // smallest first
    };

    Entry take() {
        Lock lock(mutex_);
        while (entries_.empty())
            changed_.wait(mutex_);
        Entry entry = entries_.top();
        entries_.pop();
        return entry;
    }

    void run() {
        for (;;) {
            {
                const Entry entry = take();
                queue_.wait(entry.value);
                entry.event->run_completion_callbacks();
            }
            untold.fetch_sub(1, std::memory_order_release);
        }
    }

    driver::Queue& queue_;
    Mutex mutex_;
    ConditionVariable changed_;
    std::priority_queue<Entry> entries_ POLDER_GUARDED_BY(mutex_);
};

struct Watchers final : ForkParticipant {
    Mutex mutex;
    std::unordered_map<driver::Queue*, std::unique_ptr<Watcher>> by_queue POLDER_GUARDED_BY(mutex);

    void lock_for_fork() override POLDER_NO_THREAD_SAFETY_ANALYSIS { mutex.lock(); }
    void unlock_after_fork() override POLDER_NO_THREAD_SAFETY_ANALYSIS { mutex.unlock(); }
    [[nodiscard]] bool is_quiet() const override { return untold.load(std::memory_order_acquire) == 0; }
    void forget_threads() override POLDER_NO_THREAD_SAFETY_ANALYSIS {
        for (auto& [queue, watcher] : by_queue) [[maybe_unused]]
            Watcher* const leaked = watcher.release();
        by_queue.clear();
        untold = 0;
    }
    ForkMembership fork_membership{*this};
};

Watchers& watchers() {
    static Watchers* const instance = new Watchers;
    return *instance;
}

} // namespace

void watch(Ref<Event> event) {
    driver::Queue* queue = event->timepoint().queue;
    if (!queue || event->timepoint().is_complete()) {
        event->run_completion_callbacks();
        return;
    }
    Watcher* watcher = nullptr;
    {
        Watchers& all = watchers();
        Lock lock(all.mutex);
        std::unique_ptr<Watcher>& slot = all.by_queue[queue];
        if (!slot)
            slot = std::make_unique<Watcher>(*queue);
        watcher = slot.get();
    }
    watcher->add(std::move(event));
}

void watch_destructions() {
    memory::collect();
    if (!memory::next_destruction())
        return;
    static_cast<void>(watchers());  // a fork is told of this thread
    untold.fetch_add(1, std::memory_order_relaxed);
    std::thread([] {
        while (const std::optional<driver::Timepoint> next = memory::next_destruction()) {
            if (next->queue)
                next->queue->wait(next->value);
            memory::collect();
        }
        untold.fetch_sub(1, std::memory_order_release);
    }).detach();
}

} // namespace polder::runtime
