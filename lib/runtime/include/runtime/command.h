// Command: an immutable description of one enqueued operation. The queue submits it, and chooses the driver queue, the timepoints to
// wait for, and the event (memory::Execution, PendingCommand). A description may be submitted any number of times,
// unless its class says that it runs once (maps, unmaps, calls of the host).
//
// A description borrows its buffers, arguments and code: the application keeps them while the enqueue call
// runs. A command that can be submitted at once stays on the enqueuing thread's stack. One that has to wait is moved
// to the heap and takes references (`keep`). During execution, the memory layer and the queue keep the memory and the code alive.
#pragma once

#include <base/ref.h>
#include <memory/domain.h>
#include <runtime/recorded_operation.h>

#include <polder/driver.h>
#include <polder/result.h>
#include <vector>

namespace polder::runtime {

class Queue;

class Command {
public:
    virtual ~Command() = default;
    // Called by the enqueue call, without locks: reserves memory for everything that the command uses, in the memory of
    // `queue`'s device. mem_object_allocation_failure when there is no room.
    [[nodiscard]] virtual Result<void> reserve(const Queue& queue) const {
        static_cast<void>(queue);
        return {};
    }
    // Submits the command once, with the queue's lock held, when every dependency has a timepoint. Returns the timepoint
    // of its completion.
    [[nodiscard]] virtual Result<driver::Timepoint> submit(Queue& queue, const memory::Execution& execution) const = 0;
    // Announces the command's uses to the memory layer, when it has to wait before it can be submitted.
    [[nodiscard]] virtual memory::Announcement announce(const Queue& queue) const {
        static_cast<void>(queue);
        return {};
    }
    // Appends the storages that the command uses; one may be appended several times. Used until the command is submitted (pending_uses.h).
    virtual void add_storages(std::vector<const memory::Storage*>& storages) const { static_cast<void>(storages); }
    // The operation for a command buffer; null when the command executes nothing, or cannot be recorded.
    [[nodiscard]] virtual Ref<const RecordedOperation> record() const { return nullptr; }
    // Called once when the command outlives the enqueue call: takes references to everything that it has borrowed.
    virtual void keep() {}
    // Called once when a command that had to wait fails, before it is submitted or when submitting it fails: undoes what the
    // enqueue call did. When the enqueue call itself fails, that call undoes it.
    virtual void abandon() const {}
};

}  // namespace polder::runtime
