// Command: what was enqueued, frozen, until its dependencies are submitted.
//
// A command that can be submitted at once never leaves the enqueuing thread's stack; one that has to wait is
// moved to the heap as part of a PendingCommand (see queue.h). What it needs until it is submitted, the application
// keeps while the enqueuing call runs; a command that has to wait longer is told to `keep` it. The memory layer and the
// queue keep alive what executes.
#pragma once

#include <memory/domain.h>

#include <polder/driver.h>
#include <polder/result.h>

namespace polder::runtime {

class Queue;

class Command {
public:
    virtual ~Command() = default;
    // Called once, with the queue's lock held, when every dependency has a timepoint.
    [[nodiscard]] virtual Result<driver::Timepoint> submit(Queue& queue, const memory::Execution& execution) = 0;
    // Called once when the command outlives the enqueuing call: takes references to what it has borrowed.
    virtual void keep() {}
    // Called once when a command that had to wait fails, instead of submit or after it failed: gives back what the enqueue
    // call took. When the enqueue call itself fails, that call gives it back.
    virtual void abandon() {}
};

}  // namespace polder::runtime
