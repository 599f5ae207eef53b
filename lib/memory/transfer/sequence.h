// Sequence: the operations of one command that consists of several.
//
// The first operation on the command's own queue waits for the command's dependencies; later ones follow in the
// queue's order. Operations on hidden queues run between two markers on the command's queue, so that
// they run after the commands before and before the commands after it. All operations on the command's own queue share its times,
// which therefore describe the whole command.
//
// Lives for one call. When the command fails after a part of it was submitted, the destructor waits for that part: it may
// read or write the application's memory, and the command's times, which the application owns again after the failure. So a
// Sequence is declared before the locks.
#pragma once

#include <base/wait_list.h>
#include <memory/domain.h>

namespace polder::memory {

class Sequence {
public:
    explicit Sequence(const Execution& execution)
        : execution_(execution), first_(&execution.queue), last_(&execution.queue) {
        first_.require(execution.waits);
    }
    Sequence(const Sequence&) = delete;
    Sequence& operator=(const Sequence&) = delete;
    ~Sequence() {
        if (!finished_) [[unlikely]]
            wait_for_parts();
    }

    // The timepoints that the whole command waits for in addition to its events. To be filled before the first operation.
    [[nodiscard]] WaitList& before() { return first_; }

    // The next operation also waits for `points`.
    void wait_for(driver::Waits points) {
        if (!begun()) {
            first_.add(points);
            return;
        }
        WaitList all{&execution_.queue};
        all.require({&newest_, 1});
        const uint32_t before = static_cast<uint32_t>(all.view().size());
        all.add(points);
        if (all.view().size() > before)
            newest_ = execution_.queue.marker({all.view(), execution_.times});
    }
    // The Submission for the next operation on the command's queue; pass its timepoint to `submitted`. Each operation waits for the one
    // before it and fails when that one has failed, so that the last operation reports the first failure.
    [[nodiscard]] driver::Submission next() const {
        return {begun() ? driver::Waits{&newest_, 1} : first_.view(), execution_.times};
    }
    void submitted(driver::Timepoint point) noexcept { newest_ = point; }
    // The newest operation on the command's queue, for which operations on hidden queues have to wait. Submits a marker if there is none.
    [[nodiscard]] driver::Timepoint begin() {
        if (!begun())
            newest_ = execution_.queue.marker({first_.view(), execution_.times});
        return newest_;
    }
    // Makes room for one more `await`.
    void prepare_to_await() { last_.make_room(2); }
    // The command is not complete before `point` is, and fails when `point` fails.
    void await(driver::Timepoint point) noexcept { last_.add_part(point); }
    // Ends the command and returns its timepoint.
    [[nodiscard]] driver::Timepoint finish() {
        if (!begun())
            last_.require(first_.view());
        if (begun() && !last_.empty())
            last_.add_part(newest_);
        if (!begun() || !last_.empty())
            newest_ = execution_.queue.marker({last_.view(), execution_.times});
        finished_ = true;
        return newest_;
    }

private:
    [[nodiscard]] bool begun() const { return newest_.queue != nullptr; }
    void wait_for_parts() const {
        if (!begun())
            return;
        newest_.queue->wait(newest_.value);
        for (const driver::Timepoint& point : last_.view())
            point.queue->wait(point.value);
    }

    const Execution& execution_;
    WaitList first_;
    WaitList last_;
    driver::Timepoint newest_;
    bool finished_ = false;
};

}  // namespace polder::memory
