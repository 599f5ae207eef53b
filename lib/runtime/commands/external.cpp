#include <base/completion.h>
#include <runtime/external_commands.h>

#include <memory>

namespace polder::runtime {
namespace {

using Direction = HandOverCommand::Direction;

// One call of the host for all objects. The driver skips the call when a timepoint that it waits for fails, so this object is freed when the
// call's timepoint is complete, not by the call.
struct AccessCall {
    std::vector<Ref<ExternalMemory>> memories;
    Direction direction;

    static void run(void* data) {
        const auto* const self = static_cast<const AccessCall*>(data);
        for (const Ref<ExternalMemory>& memory : self->memories)
            self->direction == Direction::acquire ? memory->begin_access() : memory->end_access();
    }
    static void finish(void* data) { delete static_cast<AccessCall*>(data); }
};

std::vector<Ref<ExternalMemory>> that_need_calls(const std::vector<Ref<MemObject>>& objects) {
    std::vector<Ref<ExternalMemory>> memories;
    for (const Ref<MemObject>& object : objects)
        if (object->external()->needs_access_calls())
            memories.push_back(Ref<ExternalMemory>::share(object->external()));
    return memories;
}

}  // namespace

HandOverCommand::HandOverCommand(std::vector<Ref<MemObject>> objects, Direction direction)
    : called_(that_need_calls(objects)),
      migration_(std::move(objects), host_space,
                 direction == Direction::acquire ? memory::Domain::Content::undefined : memory::Domain::Content::kept),
      direction_(direction) {}

Result<void> HandOverCommand::reserve(const Queue& queue) const {
    if (!called_.empty())
        POLDER_TRY(start_callback_thread());  // AccessCall::finish runs there
    return migration_.reserve(queue);
}

driver::Timepoint HandOverCommand::call(const memory::Execution& execution, driver::Waits waits) const {
    auto call = std::make_unique<AccessCall>(AccessCall{called_, direction_});
    const driver::Timepoint done = execution.queue.call({AccessCall::run, call.get()}, {waits, execution.times});
    run_when_complete({&done, 1}, {AccessCall::finish, call.release()});
    return done;
}

Result<driver::Timepoint> HandOverCommand::submit(Queue& queue, const memory::Execution& execution) const {
    if (called_.empty())
        return migration_.submit(queue, execution);
    if (direction_ == Direction::release) {
        POLDER_ASSIGN(moved, migration_.submit(queue, execution));
        return call(execution, {&moved, 1});
    }
    const driver::Timepoint begun = call(execution, execution.waits);
    return migration_.submit(queue, {execution.queue, execution.space, {&begun, 1}, execution.times});
}

}  // namespace polder::runtime
