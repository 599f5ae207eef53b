#include <chrono>
#include <cuda/stream_watch.h>
#include <new>
#include <utility>

namespace polder::cuda {
namespace {

constexpr std::chrono::milliseconds pause{4};

}  // namespace

StreamWatch::~StreamWatch() {
    {
        const Lock lock(mutex_);
        is_ending_ = true;
    }
    changed_.notify_all();
    thread_.join();
}

bool StreamWatch::add(Watched& queue) {
    const Lock lock(mutex_);
    if (!thread_.start("polder-watch", run, this))
        return false;
    queue.next_watched = std::exchange(listed_, &queue);
    if (!queue.next_watched)
        changed_.notify_all();
    return true;
}

void StreamWatch::remove(Watched& queue) {
    const Lock lock(mutex_);
    while (looking_at_ == &queue)
        changed_.wait(mutex_);
    erase(listed_, queue);
    erase(to_look_at_, queue);
}

void StreamWatch::erase(Watched*& list, const Watched& queue) {
    for (Watched** at = &list; *at; at = &(*at)->next_watched)
        if (*at == &queue) {
            *at = queue.next_watched;
            return;
        }
}

void* StreamWatch::run(void* watch) {
    static_cast<StreamWatch*>(watch)->work();
    return nullptr;
}

void StreamWatch::work() {
    const Lock lock(mutex_);
    while (!is_ending_) {
        if (!listed_) {
            changed_.wait(mutex_);
            continue;
        }
        changed_.wait_for(mutex_, pause);
        to_look_at_ = std::exchange(listed_, nullptr);
        while (to_look_at_) {
            Watched* const queue = std::exchange(to_look_at_, to_look_at_->next_watched);
            looking_at_ = queue;
            mutex_.unlock();
            const bool again = queue->look();
            mutex_.lock();
            looking_at_ = nullptr;
            if (again)
                queue->next_watched = std::exchange(listed_, queue);
            changed_.notify_all();
        }
    }
}

void StreamWatch::forget_threads() {
    thread_.forget();
    listed_ = to_look_at_ = looking_at_ = nullptr;
    new (&changed_) ConditionVariable;  // the thread waited on the old one
}

}  // namespace polder::cuda
