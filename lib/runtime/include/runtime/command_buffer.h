// CommandBuffer: commands that are recorded once and enqueued any number of times (cl_khr_command_buffer).
//
// Finalizing makes a Recording: the operations in the order in which they were recorded, and the list of all byte ranges that
// they use. An enqueue (ReplayCommand) plans memory for that list at once, as if the whole buffer were one kernel, and submits the
// operations to one driver queue. They execute in order, which satisfies every sync point: a command can only wait for
// commands that were recorded before it.
//
// A recording is immutable. An update makes a new one, so enqueues that have to wait still execute what was recorded when
// they were enqueued. Any thread may call any function; several threads must not record into one
// buffer at the same time.
#pragma once

#include <base/mutex.h>
#include <runtime/command.h>
#include <runtime/command_buffer_status.h>
#include <runtime/kernel.h>
#include <runtime/queue.h>
#include <runtime/recorded_operation.h>

#include <optional>
#include <vector>

namespace polder::runtime {

class Recording final : public RefCounted {
public:
    explicit Recording(std::vector<Ref<const RecordedOperation>> operations);

    // Memory for everything, or else for each operation by itself: then the replay is planned operation by operation.
    [[nodiscard]] Result<void> reserve(const Queue& queue) const;
    [[nodiscard]] Result<driver::Timepoint> replay(Queue& queue, const memory::Execution& execution) const;

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

private:
    Ref<const Recording> recording_;
};

class CommandBuffer;

// What a kernel command of a command buffer was recorded with, or was updated to.
struct DispatchState {
    Ref<Kernel> kernel;  // a clone, with the command's own arguments
    cl_uint work_dim = 1;
    Size3 offset{0, 0, 0};
    Size3 global{1, 1, 1};
    std::optional<Size3> local;
};

// A kernel command that clUpdateMutableCommandsKHR can change (cl_khr_command_buffer_mutable_dispatch). Lives as long as
// its command buffer.
class MutableCommand final : public Object {
public:
    static constexpr Kind kind = Kind::mutable_command;
    static constexpr Status invalid = invalid_mutable_command;

    MutableCommand(CommandBuffer& buffer, uint32_t index, Ref<Kernel> recorded, cl_bitfield updatable_fields,
                   std::vector<cl_properties> properties, DispatchState state)
        : buffer_(buffer), index_(index), recorded_(std::move(recorded)), updatable_fields_(updatable_fields),
          properties_(std::move(properties)), state_(std::move(state)) {}

    [[nodiscard]] CommandBuffer& buffer() const { return buffer_; }
    // Of its operation in the buffer.
    [[nodiscard]] uint32_t index() const { return index_; }
    // The application's kernel.
    [[nodiscard]] Kernel& recorded_kernel() const { return *recorded_; }
    [[nodiscard]] cl_bitfield updatable_fields() const { return updatable_fields_; }
    [[nodiscard]] const std::vector<cl_properties>& properties() const { return properties_; }
    // Only CommandBuffer::update changes it. Threads must not update and query one command at the same time.
    [[nodiscard]] const DispatchState& state() const { return state_; }

private:
    friend class CommandBuffer;
    CommandBuffer& buffer_;
    const uint32_t index_;
    const Ref<Kernel> recorded_;
    const cl_bitfield updatable_fields_;
    const std::vector<cl_properties> properties_;
    DispatchState state_;
};

class CommandBuffer final : public Object {
public:
    static constexpr Kind kind = Kind::command_buffer;
    static constexpr Status invalid = invalid_command_buffer;

    enum class State : uint8_t { recording, finalized, executable };  // finalized: some command lacks arguments
    enum class Mutability : uint8_t { fixed, updatable };

    CommandBuffer(Ref<Queue> queue, Mutability mutability, std::vector<cl_properties> properties)
        : queue_(std::move(queue)), mutability_(mutability), properties_(std::move(properties)) {}
    ~CommandBuffer() override;

    [[nodiscard]] Queue& queue() const { return *queue_; }
    [[nodiscard]] Context& context() const { return queue_->context(); }
    [[nodiscard]] Mutability mutability() const { return mutability_; }
    [[nodiscard]] const std::vector<cl_properties>& properties() const { return properties_; }
    [[nodiscard]] State state() const POLDER_EXCLUDES(mutex_);

    // How many commands were recorded; command i is sync point i.
    [[nodiscard]] uint32_t size() const POLDER_EXCLUDES(mutex_);
    // Records the next command. Null: it executes nothing (a barrier, or a launch without work-items).
    // out_of_resources after 2^32 - 1 commands; invalid_operation when the buffer is finalized.
    [[nodiscard]] Result<void> append(Ref<const RecordedOperation> operation) POLDER_EXCLUDES(mutex_);
    // Records a kernel command whose arguments are not all set; an update has to set them.
    [[nodiscard]] Result<void> append_incomplete() POLDER_EXCLUDES(mutex_);
    // Makes the command recorded last updatable. The buffer keeps the command, whose handle has one reference.
    [[nodiscard]] Result<void*> expose_last(Ref<Kernel> recorded, cl_bitfield updatable_fields,
                                            std::vector<cl_properties> properties, DispatchState state)
        POLDER_EXCLUDES(mutex_);

    // invalid_operation when it is finalized already.
    [[nodiscard]] Result<void> finalize() POLDER_EXCLUDES(mutex_);

    struct Update {
        MutableCommand* command;
        DispatchState state;
        bool is_complete;  // all arguments are set
        Ref<const RecordedOperation> operation;  // null: executes nothing
    };
    // All of them, or none when there is no memory (std::bad_alloc). The buffer is finalized.
    void update(std::vector<Update> updates) POLDER_EXCLUDES(mutex_);

    // What an enqueue executes. invalid_operation unless the buffer is executable.
    [[nodiscard]] Result<Ref<const Recording>> recording() const POLDER_EXCLUDES(mutex_);

private:
    struct Slot {
        Ref<const RecordedOperation> operation;
        bool is_complete = true;
    };
    [[nodiscard]] Result<void> append_slot(Slot slot) POLDER_EXCLUDES(mutex_);
    [[nodiscard]] static Ref<const Recording> make_recording(const std::vector<Slot>& slots);

    const Ref<Queue> queue_;
    const Mutability mutability_;
    const std::vector<cl_properties> properties_;
    mutable Mutex mutex_;
    bool is_finalized_ POLDER_GUARDED_BY(mutex_) = false;
    std::vector<Slot> slots_ POLDER_GUARDED_BY(mutex_);
    std::vector<Ref<MutableCommand>> mutable_commands_ POLDER_GUARDED_BY(mutex_);
    Ref<const Recording> recording_ POLDER_GUARDED_BY(mutex_);  // null while commands lack arguments
};

}  // namespace polder::runtime
