// A command buffer has a slot for each command. A Schedule is made from the slots when it is finalized, and at the first enqueue after
// an update. Objects that are replaced or released are destroyed without the buffer's lock, because the last reference to an object
// of the application may be among them.
#include <runtime/command_buffer.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace polder::runtime {

Ref<const Dispatch> MutableCommand::dispatch() const { return buffer_.dispatch(index_); }

CommandBuffer::~CommandBuffer() {
    for (const Ref<MutableCommand>& command : mutable_commands_)
        static_cast<void>(command->release_api());
    // The queues keep what was enqueued. The commands that are complete are dropped now, so that they do not keep the application's buffers.
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
    return is_executable() ? State::executable : State::finalized;
}

uint32_t CommandBuffer::size() const {
    Lock lock(mutex_);
    return static_cast<uint32_t>(slots_.size());
}

std::vector<CommandBuffer::Slot> CommandBuffer::slots() const {
    Lock lock(mutex_);
    return slots_;
}

Ref<const Dispatch> CommandBuffer::dispatch(uint32_t index) const {
    Lock lock(mutex_);
    return slots_[index].dispatch;
}

Result<void> CommandBuffer::append(Slot slot) {
    Lock lock(mutex_);
    if (is_finalized_)
        return fail(Status::invalid_operation);
    if (slots_.size() == std::numeric_limits<uint32_t>::max())
        return fail(Status::out_of_resources, "a command buffer holds at most 2^32 - 1 commands");
    const bool is_complete = slot.is_complete;
    slots_.push_back(std::move(slot));
    incomplete_count_ += is_complete ? 0 : 1;
    return {};
}

Result<void*> CommandBuffer::expose_command(uint32_t index, MutableCommand::Description description) {
    Lock lock(mutex_);
    const Slot& slot = slots_[index];
    auto command = make_ref<MutableCommand>(*this, *queues_[slot.command.queue], index, std::move(description));
    mutable_commands_.push_back(command);
    void* const handle = command->expose(MutableCommand::kind);
    if (!handle) {
        mutable_commands_.pop_back();
        return fail(Status::out_of_host_memory);
    }
    static_cast<void>(command.detach());  // the handle owns the reference now
    return handle;
}

Ref<const Schedule> CommandBuffer::make_schedule() const {
    std::vector<RecordedCommand> commands;
    commands.reserve(slots_.size());
    for (const Slot& slot : slots_)
        commands.push_back(slot.command);
    return make_ref<Schedule>(commands, queues_.size());
}

Result<void> CommandBuffer::finalize() {
    Lock lock(mutex_);
    if (is_finalized_)
        return fail(Status::invalid_operation);
    if (incomplete_count_ == 0)
        schedule_ = make_schedule();
    is_finalized_ = true;
    return {};
}

void CommandBuffer::update(std::vector<Update> updates) {
    // Replaced dispatches are destroyed without the lock: one may have the last reference to a buffer, whose destructor callback may use the command buffer.
    std::vector<Ref<const Dispatch>> dispatches;
    dispatches.reserve(updates.size());
    for (Update& update : updates)
        dispatches.push_back(make_ref<Dispatch>(std::move(update.state)));
    Ref<const Schedule> schedule;
    // Nothing fails from here on.
    const Lock lock(mutex_);
    for (size_t i = 0; i < updates.size(); ++i) {
        Slot& slot = slots_[updates[i].command->index()];
        if (slot.is_complete != updates[i].is_complete)
            slot.is_complete ? ++incomplete_count_ : --incomplete_count_;
        slot.is_complete = updates[i].is_complete;
        std::swap(slot.command.operation, updates[i].operation);
        std::swap(slot.dispatch, dispatches[i]);
    }
    std::swap(schedule_, schedule);
}

Result<Ref<const Schedule>> CommandBuffer::schedule() const {
    Lock lock(mutex_);
    if (!is_executable())
        return fail(Status::invalid_operation);
    if (!schedule_)
        schedule_ = make_schedule();
    return schedule_;
}

}  // namespace polder::runtime
