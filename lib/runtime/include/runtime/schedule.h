// Schedule: what an enqueue of a command buffer submits to which of its queues.
//
// The commands are divided into parts. A part is a Recording for one queue: it is planned and submitted as if it were one kernel. A
// buffer with one queue has one part. With several queues, a command joins the newest part of its queue, so that as much as
// possible is planned at once, with two exceptions that begin a new part: the command waits for other queues' commands that the
// part does not wait for, or a command of another queue waits for the command before it. So no command waits for more
// than its sync points, and the commands before it in its queue, ask for.
//
// Parts of one queue execute in order, whatever the queue's properties. Bytes that a part on one device writes and a part on
// another reads are moved by the memory layer, as between any two commands.
//
// Immutable. Any thread may call any function.
#pragma once

#include <runtime/recording.h>

#include <span>

namespace polder::runtime {

// One command of a command buffer.
struct RecordedCommand {
    Ref<const RecordedOperation> operation;  // null: it executes nothing (a barrier, or a launch without work-items)
    uint32_t queue = 0;  // its number among the buffer's queues
    // Numbers of earlier commands. Empty in a buffer with one queue, where every command waits for all before it.
    std::vector<uint32_t> waits_for = {};
    bool waits_for_all = false;  // a barrier without sync points
};

class Schedule final : public RefCounted {
public:
    Schedule(std::span<const RecordedCommand> commands, size_t queue_count);

    // Enqueues the parts to the queues, one for each of the buffer's; after the events of `request`. The event is that of the
    // whole: it is complete when all parts are. Where memory is missing, nothing is enqueued.
    [[nodiscard]] Result<Ref<Event>> enqueue(std::span<Queue* const> queues, const EnqueueRequest& request) const;

    struct Part {
        uint32_t queue = 0;
        std::vector<uint32_t> waits_for;  // earlier parts, of any queue
        uint32_t command_count = 0;
        Ref<const Recording> recording;
        bool is_waited_for = false;
    };
    [[nodiscard]] const std::vector<Part>& parts() const { return parts_; }

private:
    std::vector<Part> parts_;
};

}  // namespace polder::runtime
