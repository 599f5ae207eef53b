// Sequence: the operations that one command of the user consists of, where one does not do.
//
// The first operation on the command's own queue waits for the command's dependencies, everything later follows in the
// queue's order. Operations on hidden queues are kept between a marker before and a marker after them, so that
// they too come after what precedes the command in its queue. All operations on the command's own queue share its times,
// so that these tell of the whole. Lives for one call under the domain's lock.
#pragma once

#include "residency/timeline.h"

#include <memory/domain.h>

namespace polder::memory {

class Sequence {
public:
    explicit Sequence(const Execution& execution)
        : execution_(execution), first_(&execution.queue), last_(&execution.queue) {
        first_.add(execution.waits);
    }

    // What the whole command has to wait for, besides its events. Before the first operation.
    [[nodiscard]] WaitList& before() { return first_; }

    // For the next operation on the command's queue; tell its timepoint to `submitted`.
    [[nodiscard]] driver::Submission next() const {
        return {begun() ? driver::Waits{} : first_.view(), execution_.times};
    }
    void submitted(driver::Timepoint point) { newest_ = point; }
    // The point that operations on hidden queues have to wait for.
    [[nodiscard]] driver::Timepoint begin() {
        if (!begun())
            newest_ = execution_.queue.marker({first_.view(), execution_.times});
        return newest_;
    }
    // The command is not complete before `point`.
    void await(driver::Timepoint point) { last_.add(point); }
    // The command's timepoint.
    [[nodiscard]] driver::Timepoint finish() {
        if (!begun())
            last_.add(first_.view());
        if (!begun() || !last_.empty())
            newest_ = execution_.queue.marker({last_.view(), execution_.times});
        return newest_;
    }

private:
    [[nodiscard]] bool begun() const { return newest_.queue != nullptr; }

    const Execution& execution_;
    WaitList first_;
    WaitList last_;
    driver::Timepoint newest_;
};

}  // namespace polder::memory
