#include <runtime/queue_shard.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace polder::runtime {
namespace {

// The most objects that one submission keeps alive: the code or the call, and the times of profiling.
constexpr size_t kept_by_a_submission = 2;

}  // namespace

QueueShard::Stream& QueueShard::choose_stream(std::span<const driver::Timepoint> waits_of_command) {
    if (streams.size() == 1)
        return streams.front();
    for (Stream& stream : streams)
        for (const driver::Timepoint& wait : waits_of_command)
            if (wait == stream.last)
                return stream;
    if (!streams[current_stream].last.is_complete())
        current_stream = (current_stream + 1) % static_cast<uint32_t>(streams.size());
    return streams[current_stream];
}

void QueueShard::reserve_kept(std::vector<Kept>& dropped) {
    if (kept.size() >= sweep_at) {
        drop_complete(dropped);
        sweep_at = std::max<size_t>(16, 2 * kept.size());
    }
    if (kept.capacity() - kept.size() < kept_by_a_submission) [[unlikely]]
        kept.reserve(std::max(2 * kept.size(), kept.size() + kept_by_a_submission));
}

void QueueShard::drop_complete(std::vector<Kept>& dropped) {
    const auto first =
        std::partition(kept.begin(), kept.end(), [](const Kept& entry) { return !entry.until.is_complete(); });
    dropped.reserve(dropped.size() + static_cast<size_t>(kept.end() - first));
    std::move(first, kept.end(), std::back_inserter(dropped));
    kept.erase(first, kept.end());
}

bool QueueShard::try_again() noexcept {
    // No other thread uses the shard. The lock is released before objects are destroyed, because that may call the application.
    std::vector<Kept> left;
    {
        const BiasedLock lock(mutex);
        left.swap(kept);
    }
    std::erase_if(left, [](const Kept& entry) { return entry.until.is_complete(); });
    if (!left.empty()) {
        const BiasedLock lock(mutex);
        kept.swap(left);
        return false;
    }
    delete this;
    return true;
}

}  // namespace polder::runtime
