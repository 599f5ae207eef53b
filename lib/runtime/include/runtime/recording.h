// Recording: operations that one queue executes as if they were one kernel. An enqueue of a command buffer submits one or
// several (schedule.h).
//
// It has the operations in the order in which they were recorded, and the list of all byte ranges that they use. An enqueue
// (ReplayCommand) plans memory for that list at once, and submits the operations to one driver queue. They execute in order,
// which satisfies every sync point among them: a command can only wait for commands that were recorded before it.
//
// Immutable. Any thread may call any function.
#pragma once

#include <runtime/command.h>
#include <runtime/queue.h>
#include <runtime/recorded_operation.h>

#include <utility>
#include <vector>

namespace polder::runtime {

class Recording final : public RefCounted {
public:
    explicit Recording(std::vector<Ref<const RecordedOperation>> operations);

    // Memory for everything, or else for each operation by itself: then the replay is planned operation by operation.
    [[nodiscard]] Result<void> reserve(const Queue& queue) const;
    [[nodiscard]] Result<driver::Timepoint> replay(Queue& queue, const memory::Execution& execution) const;
    // See Command.
    void add_storages(std::vector<const memory::Storage*>& storages) const {
        for (const memory::Use& use : uses_)
            storages.push_back(use.storage);
    }

private:
    // The addresses of one operation's uses are those of uses_[places_[first_place + i]].
    struct Step {
        Ref<const RecordedOperation> operation;
        uint32_t first_place;
        uint32_t place_count;
    };
    [[nodiscard]] driver::Timepoint submit_all(const memory::Execution& execution, driver::Waits waits,
                                               std::span<const DeviceAddress> addresses) const;
    [[nodiscard]] Result<driver::Timepoint> replay_one_by_one(Queue& queue, const memory::Execution& execution) const;
    [[nodiscard]] std::vector<memory::Use> uses_of(const Step& step) const;

    std::vector<Step> steps_;
    std::vector<memory::Use> uses_;  // each byte range of a storage once, with what all operations do to it
    std::vector<uint32_t> places_;
};

class ReplayCommand final : public Command {
public:
    explicit ReplayCommand(Ref<const Recording> recording) : recording_(std::move(recording)) {}
    Result<void> reserve(const Queue& queue) const override { return recording_->reserve(queue); }
    Result<driver::Timepoint> submit(Queue& queue, const memory::Execution& execution) const override;
    void add_storages(std::vector<const memory::Storage*>& storages) const override {
        recording_->add_storages(storages);
    }

private:
    Ref<const Recording> recording_;
};

}  // namespace polder::runtime
