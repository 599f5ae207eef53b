// A command buffer's slots, one for each command, and the Schedule that is made of them when it is finalized and at each update. What is
// replaced, and what a released buffer leaves, is destroyed without its lock: it may be the last reference to an object of the application.
#include <runtime/command_buffer.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace polder::runtime {

CommandBuffer::~CommandBuffer() {
    for (const Ref<MutableCommand>& command : mutable_commands_)
        static_cast<void>(command->release_api());
    // The queues keep what was enqueued. What is complete is not to keep the application's buffers until they look at it again.
    std::vector<Slot> slots;
    Ref<const Schedule> schedule;
    {
        const Lock lock(mutex_);
        slots.swap(slots_);
        std::swap(schedule, schedule_);
    }
    slots.clear();
    schedule = nullptr;
    for (const Ref<Queue>& queue : queues_)
        queue->drop_complete();
}

CommandBuffer::State CommandBuffer::state() const {
    Lock lock(mutex_);
    if (!is_finalized_)
        return State::recording;
    return schedule_ ? State::executable : State::finalized;
}

uint32_t CommandBuffer::size() const {
    Lock lock(mutex_);
    return static_cast<uint32_t>(slots_.size());
}

std::vector<CommandBuffer::Slot> CommandBuffer::slots() const {
    Lock lock(mutex_);
    return slots_;
}

Result<void> CommandBuffer::append(Slot slot) {
    Lock lock(mutex_);
    if (is_finalized_)
        return fail(Status::invalid_operation);
    if (slots_.size() == std::numeric_limits<uint32_t>::max())
        return fail(Status::out_of_resources, "a command buffer holds at most 2^32 - 1 commands");
    slots_.push_back(std::move(slot));
    return {};
}

Result<void*> CommandBuffer::expose_command(uint32_t index, MutableCommand::Description description) {
    Lock lock(mutex_);
    const Slot& slot = slots_[index];
    auto command =
        make_ref<MutableCommand>(*this, *queues_[slot.command.queue], index, std::move(description), slot.dispatch);
    mutable_commands_.push_back(command);
    void* const handle = command->expose(MutableCommand::kind);
    if (!handle) {
        mutable_commands_.pop_back();
        return fail(Status::out_of_host_memory);
    }
    static_cast<void>(command.detach());  // the handle's
    return handle;
}

Ref<const Schedule> CommandBuffer::make_schedule(const std::vector<Slot>& slots) const {
    if (std::ranges::any_of(slots, [](const Slot& slot) { return !slot.is_complete; }))
        return nullptr;
    std::vector<RecordedCommand> commands;
    commands.reserve(slots.size());
    for (const Slot& slot : slots)
        commands.push_back(slot.command);
    return make_ref<Schedule>(commands, queues_.size());
}

Result<void> CommandBuffer::finalize() {
    Lock lock(mutex_);
    if (is_finalized_)
        return fail(Status::invalid_operation);
    schedule_ = make_schedule(slots_);
    is_finalized_ = true;
    return {};
}

void CommandBuffer::update(std::vector<Update> updates) {
    // What is replaced is destroyed unlocked: it may be the last reference to a buffer, whose destructor callback may use the command buffer.
    std::vector<Slot> slots;
    Ref<const Schedule> schedule;
    const Lock lock(mutex_);
    slots = slots_;
    for (Update& update : updates) {
        Slot& slot = slots[update.command->index()];
        slot.command.operation = update.operation;
        slot.is_complete = update.is_complete;
        slot.dispatch = make_ref<Dispatch>(std::move(update.state));
    }
    schedule = make_schedule(slots);
    // Nothing fails from here on.
    slots_.swap(slots);
    std::swap(schedule_, schedule);
    for (const Update& update : updates)
        update.command->dispatch_ = slots_[update.command->index()].dispatch;
}

Result<Ref<const Schedule>> CommandBuffer::schedule() const {
    Lock lock(mutex_);
    if (!schedule_)
        return fail(Status::invalid_operation);
    return schedule_;
}

}  // namespace polder::runtime
