// Recording: what a command buffer executes, and how an enqueue submits it.
#include <runtime/command_buffer.h>

#include <algorithm>
#include <map>
#include <utility>

namespace polder::runtime {
namespace {

// The access of two operations, one after the other, to the same bytes.
Access combined(Access first, Access second) {
    if (first == Access::overwrite || first == second)
        return first;
    if (second == Access::none)
        return first;
    if (first == Access::none)
        return second;
    return first == Access::read && second == Access::read ? Access::read : Access::read_write;
}

bool overlap(const memory::Use& a, const memory::Use& b) {
    return a.storage == b.storage && a.range.begin < b.range.end && b.range.begin < a.range.end;
}

}  // namespace

Recording::Recording(std::vector<Ref<const RecordedOperation>> operations) {
    // Many operations use few ranges; the map finds those that are listed already.
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
    demote_shared_overwrites();
}

// A range that is overwritten first needs no bytes from elsewhere, unless another range shares some of its bytes: that one may
// have been read before.
void Recording::demote_shared_overwrites() {
    std::vector<uint32_t> order(uses_.size());
    for (uint32_t i = 0; i < order.size(); ++i)
        order[i] = i;
    std::ranges::sort(order, [this](uint32_t a, uint32_t b) {
        const memory::Use& left = uses_[a];
        const memory::Use& right = uses_[b];
        return std::pair{left.storage, left.range.begin} < std::pair{right.storage, right.range.begin};
    });
    const auto demote = [](memory::Use& use) {
        if (use.access == Access::overwrite)
            use.access = Access::read_write;
    };
    // `reach` is the range before that ends last.
    for (size_t i = 1, reach = 0; i < order.size(); ++i) {
        memory::Use& before = uses_[order[reach]];
        memory::Use& use = uses_[order[i]];
        if (overlap(before, use)) {
            demote(before);
            demote(use);
        }
        if (before.storage != use.storage || use.range.end > before.range.end)
            reach = i;
    }
}

std::vector<memory::Use> Recording::uses_of(const Step& step) const {
    std::vector<memory::Use> uses;
    step.operation->add_uses(uses);
    return uses;
}

Result<void> Recording::reserve(const Queue& queue) const {
    memory::Domain& domain = queue.context().domain();
    if (uses_.empty() || domain.reserve(uses_, queue.space(), queue.only_lane()))
        return {};
    for (const Step& step : steps_)
        POLDER_TRY(domain.reserve(uses_of(step), queue.space(), queue.only_lane()));
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
        // The queue executes in order, so only the first one has to wait.
        done = step.operation->submit(execution, waits, own.view());
        waits = {};
    }
    return done;
}

// Planned operation by operation: where the memory does not hold everything at once.
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
        each.waits = {};
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
