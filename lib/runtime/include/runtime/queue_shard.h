// QueueShard: what the threads of one number submit a queue's commands through. An in-order queue has one shard with one
// driver queue. An out-of-order queue has up to 32, each made when its first thread enqueues, with four driver queues each: so
// threads that share such a queue share neither a lock nor a cache line while they enqueue and wait.
//
// Everything is guarded by the shard's mutex. Used by Queue alone, which leaves it to itself in the end: a shard is destroyed
// when the commands that it keeps something alive for are complete.
#pragma once

#include <base/biased_mutex.h>
#include <base/completion.h>
#include <base/ref.h>
#include <base/wait_list.h>

#include <algorithm>
#include <cstdint>
#include <polder/driver.h>
#include <span>
#include <vector>

namespace polder::runtime {

struct alignas(128) QueueShard final : Retried {
    // A driver queue that commands of this shard execute on.
    struct Stream {
        driver::Queue* queue;
        driver::Timepoint last;
        uint64_t before = 0;  // the newest operation of those who had the driver queue before

        [[nodiscard]] driver::Timepoint newest() const { return {queue, std::max(last.value, before)}; }
    };
    // What must live until submitted commands are complete.
    struct Kept {
        driver::Timepoint until;
        Ref<const RefCounted> object;
    };

    BiasedMutex mutex;
    std::vector<Stream> streams POLDER_GUARDED_BY(mutex);  // their number never changes
    uint32_t current_stream POLDER_GUARDED_BY(mutex) = 0;
    WaitList waits POLDER_GUARDED_BY(mutex);  // of the command that is being submitted

    // What this shard knows of the queue's barriers: Queue::is_behind_pending_barrier brings it up to date.
    driver::Timepoint barrier POLDER_GUARDED_BY(mutex);
    uint32_t barriers_seen POLDER_GUARDED_BY(mutex) = 0;
    bool is_behind_pending_barrier POLDER_GUARDED_BY(mutex) = false;

    std::vector<Kept> kept POLDER_GUARDED_BY(mutex);
    size_t sweep_at POLDER_GUARDED_BY(mutex) = 16;

    // The stream of a command that waits for `waits`: the one that executes its last dependency, else one that has nothing
    // to do, else the next.
    [[nodiscard]] Stream& choose_stream(std::span<const driver::Timepoint> waits) POLDER_REQUIRES(mutex);
    // Makes room for what one submission keeps alive, so that nothing can fail once the driver has it. Amortised: complete
    // entries are dropped each time the list has doubled since the last time.
    void reserve_kept(std::vector<Kept>& dropped) POLDER_REQUIRES(mutex);
    // Moves what is kept for complete commands to `dropped`, which the caller destroys unlocked: it may be the last reference to a buffer,
    // whose destructor callback may use the queue.
    void drop_complete(std::vector<Kept>& dropped) POLDER_REQUIRES(mutex);
    // For the end: destroys the shard when nothing has to be kept.
    [[nodiscard]] bool try_again() noexcept override;
};

}  // namespace polder::runtime
