#include "hidden_queue.h"

namespace polder::memory {

POLDER_THREAD_ANNOTATION(no_thread_safety_analysis)
Result<HiddenQueues::Lease> HiddenQueues::lease() {
    mutex_.lock();
    Result<uint32_t> index = choose();
    if (!index) {
        mutex_.unlock();
        return fail(std::move(index).error());
    }
    return Lease{*this, *index};
}

POLDER_THREAD_ANNOTATION(no_thread_safety_analysis)
void HiddenQueues::give_back(uint32_t index) {
    entries_[index].queue->flush();
    mutex_.unlock();
}

Result<uint32_t> HiddenQueues::choose() {
    for (uint32_t i = 0; i < count_; ++i)
        if (entries_[i].last.is_complete())
            return i;
    if (count_ == max_queues)
        return next_ = (next_ + 1) % max_queues;
    if (!device_)
        return fail(Status::out_of_resources, "no device can copy between these memories");
    Result<std::unique_ptr<driver::Queue>> queue = device_->create_queue(role_);
    if (queue)
        entries_[count_].queue = std::move(*queue);
    else if (count_ == 0)
        return fail(std::move(queue).error());
    else
        return 0;
    return count_++;
}

} // namespace polder::memory
