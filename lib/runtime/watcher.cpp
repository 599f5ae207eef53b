#include <base/mutex.h>
#include <memory/collect.h>
#include <runtime/event.h>
#include <runtime/watcher.h>

#include <memory>
#include <polder/driver.h>
#include <queue>
#include <thread>
#include <unordered_map>
#include <vector>

namespace polder::runtime {
namespace {

class Watcher {
public:
    explicit Watcher(driver::Queue& queue) : queue_(queue) {
        std::thread([this] { run(); }).detach();
    }

    void add(Ref<Event> event) {
        {
            Lock lock(mutex_);
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
            const Entry entry = take();
            queue_.wait(entry.value);
            entry.event->run_completion_callbacks();
        }
    }

    driver::Queue& queue_;
    Mutex mutex_;
    ConditionVariable changed_;
    std::priority_queue<Entry> entries_ POLDER_GUARDED_BY(mutex_);
};

struct Watchers {
    Mutex mutex;
    std::unordered_map<driver::Queue*, std::unique_ptr<Watcher>> by_queue POLDER_GUARDED_BY(mutex);
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
    if (memory::next_destruction().is_complete())
        return;
    std::thread([] {
        for (driver::Timepoint next = memory::next_destruction(); !next.is_complete();
             next = memory::next_destruction()) {
            next.queue->wait(next.value);
            memory::collect();
        }
    }).detach();
}

} // namespace polder::runtime
