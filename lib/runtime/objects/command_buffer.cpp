#include <runtime/command_buffer.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace polder::runtime {

CommandBuffer::~CommandBuffer() {
    for (const Ref<MutableCommand>& command : mutable_commands_)
        static_cast<void>(command->release_api());
}

CommandBuffer::State CommandBuffer::state() const {
    Lock lock(mutex_);
    if (!is_finalized_)
        return State::recording;
    return recording_ ? State::executable : State::finalized;
}

uint32_t CommandBuffer::size() const {
    Lock lock(mutex_);
    return static_cast<uint32_t>(slots_.size());
}

Result<void> CommandBuffer::append_slot(Slot slot) {
    Lock lock(mutex_);
    if (is_finalized_)
        return fail(Status::invalid_operation);
    if (slots_.size() == std::numeric_limits<uint32_t>::max())
        return fail(Status::out_of_resources, "a command buffer holds at most 2^32 - 1 commands");
    slots_.push_back(std::move(slot));
    return {};
}

Result<void> CommandBuffer::append(Ref<const RecordedOperation> operation) {
    return append_slot({std::move(operation), true});
}

Result<void> CommandBuffer::append_incomplete() { return append_slot({nullptr, false}); }

Result<void*> CommandBuffer::expose_last(Ref<Kernel> recorded, cl_bitfield updatable_fields,
                                         std::vector<cl_properties> properties, DispatchState state) {
    Lock lock(mutex_);
    auto command = make_ref<MutableCommand>(*this, static_cast<uint32_t>(slots_.size() - 1), std::move(recorded),
                                            updatable_fields, std::move(properties), std::move(state));
    mutable_commands_.push_back(command);
    void* const handle = command->expose(MutableCommand::kind);
    if (!handle) {
        mutable_commands_.pop_back();
        return fail(Status::out_of_host_memory);
    }
    static_cast<void>(command.detach());  // the handle's
    return handle;
}

Ref<const Recording> CommandBuffer::make_recording(const std::vector<Slot>& slots) {
    if (std::ranges::any_of(slots, [](const Slot& slot) { return !slot.is_complete; }))
        return nullptr;
    std::vector<Ref<const RecordedOperation>> operations;
    operations.reserve(slots.size());
    for (const Slot& slot : slots)
        operations.push_back(slot.operation);
    return make_ref<Recording>(std::move(operations));
}

Result<void> CommandBuffer::finalize() {
    Lock lock(mutex_);
    if (is_finalized_)
        return fail(Status::invalid_operation);
    recording_ = make_recording(slots_);
    is_finalized_ = true;
    return {};
}

void CommandBuffer::update(std::vector<Update> updates) {
    Lock lock(mutex_);
    std::vector<Slot> slots = slots_;
    for (const Update& update : updates)
        slots[update.command->index()] = {update.operation, update.is_complete};
    Ref<const Recording> recording = make_recording(slots);
    // Nothing fails from here on.
    slots_.swap(slots);
    std::swap(recording_, recording);
    for (Update& update : updates)
        update.command->state_ = std::move(update.state);
}

Result<Ref<const Recording>> CommandBuffer::recording() const {
    Lock lock(mutex_);
    if (!recording_)
        return fail(Status::invalid_operation);
    return recording_;
}

}  // namespace polder::runtime
