// CommandBuffer: commands that are recorded once and enqueued any number of times (cl_khr_command_buffer), on one queue or several
// (cl_khr_command_buffer_multi_device).
//
// Finalizing makes a Schedule (schedule.h), which an enqueue executes. A schedule is immutable. An update drops it, and the next enqueue
// makes a new one. So the cost of an update is proportional to its changes, and enqueues that wait still execute the commands as of their
// enqueue. Any thread may call any function; several threads must not record into one buffer at the same time.
// Decision 161.
#pragma once

#include <base/mutex.h>
#include <runtime/command_buffer_status.h>
#include <runtime/kernel.h>
#include <runtime/queue.h>
#include <runtime/schedule.h>

#include <optional>
#include <vector>

namespace polder::runtime {

class CommandBuffer;

// The kernel, sizes and arguments of a kernel command in a command buffer, as recorded or updated.
struct DispatchState {
    Ref<Kernel> kernel;  // a clone, with the command's own arguments
    cl_uint work_dim = 1;
    Size3 offset{0, 0, 0};
    Size3 global{1, 1, 1};
    std::optional<Size3> local;
};

// A DispatchState that the buffer, its mutable command and its remapped copies share. Immutable.
class Dispatch final : public RefCounted {
public:
    explicit Dispatch(DispatchState state) : state_(std::move(state)) {}
    [[nodiscard]] const DispatchState& state() const { return state_; }

private:
    const DispatchState state_;
};

// A kernel command that clUpdateMutableCommandsKHR can change (cl_khr_command_buffer_mutable_dispatch). Lives as long as
// its command buffer.
class MutableCommand final : public Object {
public:
    static constexpr Kind kind = Kind::mutable_command;
    static constexpr Status invalid = invalid_mutable_command;

    // The part that does not change when the command is remapped to another queue.
    struct Description {
        Ref<Kernel> recorded;  // the application's kernel
        cl_bitfield updatable_fields = 0;
        std::vector<cl_properties> properties;
    };
    MutableCommand(CommandBuffer& buffer, Queue& queue, uint32_t index, Description description)
        : buffer_(buffer), queue_(queue), index_(index), description_(std::move(description)) {}

    [[nodiscard]] CommandBuffer& buffer() const { return buffer_; }
    // The queue that it was recorded to.
    [[nodiscard]] Queue& queue() const { return queue_; }
    // The index of its operation in the buffer.
    [[nodiscard]] uint32_t index() const { return index_; }
    [[nodiscard]] const Description& description() const { return description_; }
    // The dispatch after the newest update.
    [[nodiscard]] Ref<const Dispatch> dispatch() const;

private:
    CommandBuffer& buffer_;
    Queue& queue_;  // the buffer keeps it alive
    const uint32_t index_;
    const Description description_;
};

class CommandBuffer final : public Object {
public:
    static constexpr Kind kind = Kind::command_buffer;
    static constexpr Status invalid = invalid_command_buffer;

    enum class State : uint8_t { recording, finalized, executable };  // finalized: some command lacks arguments
    enum class Mutability : uint8_t { fixed, updatable };

    // `queues`: at least one, all of one context.
    CommandBuffer(std::vector<Ref<Queue>> queues, Mutability mutability, std::vector<cl_properties> properties)
        : queues_(std::move(queues)), mutability_(mutability), properties_(std::move(properties)) {}
    ~CommandBuffer() override;

    [[nodiscard]] const std::vector<Ref<Queue>>& queues() const { return queues_; }
    [[nodiscard]] Context& context() const { return queues_.front()->context(); }
    [[nodiscard]] Mutability mutability() const { return mutability_; }
    [[nodiscard]] const std::vector<cl_properties>& properties() const { return properties_; }
    [[nodiscard]] State state() const POLDER_EXCLUDES(mutex_);

    struct Slot {
        RecordedCommand command;
        bool is_complete = true;  // false: an update has to set arguments first
        Ref<const Dispatch> dispatch;  // null unless the command is a kernel
    };
    // How many commands were recorded; command i is sync point i.
    [[nodiscard]] uint32_t size() const POLDER_EXCLUDES(mutex_);
    [[nodiscard]] std::vector<Slot> slots() const POLDER_EXCLUDES(mutex_);
    [[nodiscard]] Ref<const Dispatch> dispatch(uint32_t index) const POLDER_EXCLUDES(mutex_);
    // Records the next command. out_of_resources after 2^32 - 1 commands; invalid_operation when the buffer is finalized.
    [[nodiscard]] Result<void> append(Slot slot) POLDER_EXCLUDES(mutex_);
    // Makes a recorded kernel updatable. The buffer keeps the command, whose handle has one reference.
    [[nodiscard]] Result<void*> expose_command(uint32_t index, MutableCommand::Description description)
        POLDER_EXCLUDES(mutex_);

    // Ends recording. invalid_operation when the buffer is finalized already.
    [[nodiscard]] Result<void> finalize() POLDER_EXCLUDES(mutex_);

    struct Update {
        MutableCommand* command;
        DispatchState state;
        bool is_complete;  // all arguments are set
        Ref<const RecordedOperation> operation;  // null: executes nothing
    };
    // Makes all updates, or none when there is no memory (std::bad_alloc). The buffer must be finalized. O(updates).
    void update(std::vector<Update> updates) POLDER_EXCLUDES(mutex_);

    // The schedule that an enqueue executes. invalid_operation unless the buffer is executable. The first call after an update takes time and
    // memory in proportion to all commands. std::bad_alloc changes nothing, so that a later call can succeed.
    [[nodiscard]] Result<Ref<const Schedule>> schedule() const POLDER_EXCLUDES(mutex_);

private:
    [[nodiscard]] bool is_executable() const POLDER_REQUIRES(mutex_) { return is_finalized_ && incomplete_count_ == 0; }
    [[nodiscard]] Ref<const Schedule> make_schedule() const POLDER_REQUIRES(mutex_);

    const std::vector<Ref<Queue>> queues_;
    const Mutability mutability_;
    const std::vector<cl_properties> properties_;
    mutable Mutex mutex_;
    bool is_finalized_ POLDER_GUARDED_BY(mutex_) = false;
    std::vector<Slot> slots_ POLDER_GUARDED_BY(mutex_);
    std::vector<Ref<MutableCommand>> mutable_commands_ POLDER_GUARDED_BY(mutex_);
    uint32_t incomplete_count_ POLDER_GUARDED_BY(mutex_) = 0;  // slots that lack arguments
    mutable Ref<const Schedule> schedule_ POLDER_GUARDED_BY(mutex_);  // null until an enqueue needs it
};

}  // namespace polder::runtime
