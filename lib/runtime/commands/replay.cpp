// Recording: the operations that one queue executes as one, and how an enqueue submits them.
#include <runtime/recording.h>

#include <map>
#include <utility>

namespace polder::runtime {
namespace {

// Combines the accesses of two successive operations to the same bytes. When the first one overwrites the bytes, they need not
// be transferred to the device.
Access combined(Access first, Access second) {
    return first == Access::overwrite || first == second ? first : Access::read_write;
}

}  // namespace

Recording::Recording(std::vector<Ref<const RecordedOperation>> operations) {
    // The operations mostly use the same few ranges; the map finds ranges that are listed already.
    std::map<std::pair<memory::Storage*, std::pair<uint64_t, uint64_t>>, uint32_t> listed;
    std::vector<memory::Use> own;
    steps_.reserve(operations.size());
    for (Ref<const RecordedOperation>& operation : operations) {
        if (!operation)
            continue;
        own.clear();
        operation->add_uses(own);
        Step step{std::move(operation), static_cast<uint32_t>(places_.size()), static_cast<uint32_t>(own.size())};
        for (const memory::Use& use : own) {
            const auto key = std::pair{use.storage, std::pair{use.range.begin, use.range.end}};
            const auto [at, is_new] = listed.try_emplace(key, static_cast<uint32_t>(uses_.size()));
            if (is_new)
                uses_.push_back(use);
            else
                uses_[at->second].access = combined(uses_[at->second].access, use.access);
            places_.push_back(at->second);
        }
        steps_.push_back(std::move(step));
    }
}

std::vector<memory::Use> Recording::uses_of(const Step& step) const {
    std::vector<memory::Use> uses;
    step.operation->add_uses(uses);
    return uses;
}

Result<void> Recording::reserve(const Queue& queue) const {
    memory::Domain& domain = queue.context().domain();
    if (uses_.empty() || domain.reserve(uses_, queue.space(), queue.only_driver_queue()))
        return {};
    for (const Step& step : steps_)
        POLDER_TRY(domain.reserve(uses_of(step), queue.space(), queue.only_driver_queue()));
    return {};
}

driver::Timepoint Recording::submit_all(const memory::Execution& execution, driver::Waits waits,
                                        std::span<const DeviceAddress> addresses) const {
    SmallVector<DeviceAddress, 16> own;
    driver::Timepoint done;
    for (const Step& step : steps_) {
        own.clear();
        for (uint32_t i = 0; i < step.place_count; ++i)
            own.push_back(addresses[places_[step.first_place + i]]);
        // Each operation waits for the one before it and fails when that has failed, so that the last operation reports the failure.
        done = step.operation->submit(execution, waits, own.view());
        waits = {&done, 1};
    }
    return done;
}

// Plans and submits one operation after the other, when the memory has no room for the ranges of all operations at once.
Result<driver::Timepoint> Recording::replay_one_by_one(Queue& queue, const memory::Execution& execution) const {
    driver::Timepoint done;
    memory::Execution each = execution;
    for (const Step& step : steps_) {
        const auto submit = [&](driver::Waits waits, std::span<const DeviceAddress> addresses) {
            return step.operation->submit(each, waits, addresses);
        };
        const std::vector<memory::Use> uses = uses_of(step);
        if (uses.empty()) {
            done = submit(each.waits, {});
        } else {
            POLDER_ASSIGN(launched, queue.context().domain().launch(each, uses, submit));
            done = launched;
        }
        each.waits = {&done, 1};
    }
    return done;
}

Result<driver::Timepoint> Recording::replay(Queue& queue, const memory::Execution& execution) const {
    if (steps_.empty())
        return execution.queue.marker({execution.waits, execution.times});
    const auto submit = [&](driver::Waits waits, std::span<const DeviceAddress> addresses) {
        return submit_all(execution, waits, addresses);
    };
    Result<driver::Timepoint> done;
    if (uses_.empty())
        done = submit(execution.waits, {});
    else
        done = queue.context().domain().launch(execution, uses_, submit);
    if (!done && done.error().status() == Status::mem_object_allocation_failure)
        done = replay_one_by_one(queue, execution);
    return done;
}

Result<driver::Timepoint> ReplayCommand::submit(Queue& queue, const memory::Execution& execution) const {
    POLDER_ASSIGN(done, recording_->replay(queue, execution));
    queue.keep_alive(*recording_, done);
    return done;
}

}  // namespace polder::runtime
