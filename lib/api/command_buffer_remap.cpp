// Command buffers: copies for other queues (cl_khr_command_buffer_multi_device).
#include "command_buffer.h"
#include "enqueue_commands.h"

#include <algorithm>
#include <numeric>
#include <utility>

using namespace polder;
using namespace polder::api;
using runtime::CommandBuffer;
using runtime::DispatchState;
using runtime::MutableCommand;
using runtime::Queue;
using runtime::RecordedOperation;

namespace polder::api::command_buffer {
namespace {

using Slot = CommandBuffer::Slot;
using Queues = std::vector<Ref<Queue>>;

// Makes the operation of a recorded command for another queue. The errors are those of recording the command to that queue.
Result<Ref<const RecordedOperation>> remapped_operation(const Slot& slot, Queue& to) {
    const Ref<const RecordedOperation>& recorded = slot.command.operation;
    if (!slot.dispatch || !slot.is_complete) {
        // CL_INVALID_OPERATION: the command uses SVM pointers, and the queue's device has no SVM.
        if (recorded && recorded->needs_svm() && !to.device().has_svm())
            return fail(Status::invalid_operation);
        return recorded;
    }
    const DispatchState& state = slot.dispatch->state();
    Ref<const RecordedOperation> operation;
    POLDER_TRY(enqueue_launch(
        EnqueueCall::recording(to, operation), *state.kernel, CL_COMMAND_NDRANGE_KERNEL,
        {state.work_dim, state.offset.data(), state.global.data(), state.local ? state.local->data() : nullptr}));
    return operation;
}

// Replaces the operations of the commands that `slots` has for queue number `from` by operations for `to`.
Result<void> remap_queue(std::vector<Slot>& slots, uint32_t from, Queue& to) {
    std::vector<Ref<const RecordedOperation>> operations;
    for (const Slot& slot : slots)
        if (slot.command.queue == from) {
            POLDER_ASSIGN(operation, remapped_operation(slot, to));
            operations.push_back(std::move(operation));
        }
    auto next = operations.begin();
    for (Slot& slot : slots)
        if (slot.command.queue == from)
            slot.command.operation = std::move(*next++);
    return {};
}

// For each queue of the buffer, the number of the queue in `to` that executes its commands now: the queue itself if it is there, otherwise
// a queue of its device (no bytes need to move), otherwise the queues in turn. When a device cannot execute the commands, the
// next queue is tried; the error is that of the last one.
Result<std::vector<uint32_t>> remap_automatically(std::vector<Slot>& slots, const Queues& from, const Queues& to) {
    std::vector<uint32_t> numbers;
    for (uint32_t i = 0; i < from.size(); ++i) {
        const auto queue_count = static_cast<uint32_t>(to.size());
        std::vector<uint32_t> candidates(queue_count);
        std::iota(candidates.begin(), candidates.end(), 0u);
        std::ranges::sort(candidates, {}, [&](uint32_t k) {
            const int distance = to[k] == from[i] ? 0 : &to[k]->device() == &from[i]->device() ? 1 : 2;
            return std::pair{distance, (k + queue_count - i % queue_count) % queue_count};
        });
        Result<void> done;
        const auto found = std::ranges::find_if(candidates, [&](uint32_t k) {
            done = remap_queue(slots, i, *to[k]);
            return static_cast<bool>(done);
        });
        if (found == candidates.end())
            return fail(done.error());
        numbers.push_back(*found);
    }
    return numbers;
}

// Changes the queue numbers of the commands. With one queue left, sync points are removed, because its commands execute in order.
void renumber(std::vector<Slot>& slots, const std::vector<uint32_t>& numbers, size_t queue_count) {
    for (Slot& slot : slots) {
        slot.command.queue = numbers[slot.command.queue];
        if (queue_count == 1)
            slot.command.waits_for.clear();
    }
}

struct Handles {
    cl_uint count;
    const cl_mutable_command_khr* given;
    cl_mutable_command_khr* returned;
};

Result<std::vector<const MutableCommand*>> commands_of(const CommandBuffer& buffer, const Handles& handles) {
    // CL_INVALID_VALUE: num_handles is 0 and a list of handles is not null, or the other way round.
    if ((handles.count == 0) != (handles.given == nullptr) || (handles.count == 0) != (handles.returned == nullptr))
        return fail(Status::invalid_value);
    std::vector<const MutableCommand*> commands;
    for (cl_uint i = 0; i < handles.count; ++i) {
        const Result<MutableCommand*> command = from_handle<MutableCommand>(handles.given[i]);
        // CL_INVALID_VALUE: a handle is not that of a command of this buffer.
        if (!command || &(*command)->buffer() != &buffer)
            return fail(Status::invalid_value);
        commands.push_back(*command);
    }
    return commands;
}

Result<Ref<CommandBuffer>> remap(const CommandBuffer& buffer, bool is_automatic, Queues to) {
    const CommandBuffer::State state = buffer.state();
    std::vector<Slot> slots = buffer.slots();
    std::vector<uint32_t> numbers;
    for (uint32_t i = 0; !is_automatic && i < to.size(); ++i) {
        POLDER_TRY(remap_queue(slots, i, *to[i]));
        numbers.push_back(i);
    }
    if (is_automatic) {
        POLDER_ASSIGN(chosen, remap_automatically(slots, buffer.queues(), to));
        numbers = std::move(chosen);
    }
    renumber(slots, numbers, to.size());
    auto copy = make_ref<CommandBuffer>(std::move(to), buffer.mutability(), buffer.properties());
    for (Slot& slot : slots)
        POLDER_TRY(copy->append(std::move(slot)));
    if (state != CommandBuffer::State::recording)
        POLDER_TRY(copy->finalize());
    return copy;
}

}  // namespace

cl_command_buffer_khr CL_API_CALL clRemapCommandBufferKHR(cl_command_buffer_khr command_buffer, cl_bool automatic,
                                                          cl_uint num_queues, const cl_command_queue* queues,
                                                          cl_uint num_handles, const cl_mutable_command_khr* handles,
                                                          cl_mutable_command_khr* handles_ret, cl_int* errcode_ret) {
    return create<cl_command_buffer_khr>(errcode_ret, [&]() -> Result<cl_command_buffer_khr> {
        POLDER_ASSIGN(buffer, from_handle<CommandBuffer>(command_buffer));
        // CL_INVALID_VALUE: num_queues is 0, queues is null, or, unless automatic, num_queues is not the number at creation.
        if (num_queues == 0 || !queues || (!automatic && num_queues != buffer->queues().size()))
            return fail(Status::invalid_value);
        POLDER_ASSIGN(commands, commands_of(*buffer, {num_handles, handles, handles_ret}));
        POLDER_ASSIGN(to, queues_of(num_queues, queues));
        // CL_INVALID_CONTEXT: the queues are of another context than the buffer.
        if (&to.front()->context() != &buffer->context())
            return fail(Status::invalid_context);
        POLDER_ASSIGN(copy, remap(*buffer, automatic, std::move(to)));
        std::vector<cl_mutable_command_khr> exposed;
        for (const MutableCommand* command : commands) {
            POLDER_ASSIGN(handle, copy->expose_command(command->index(), command->description()));
            exposed.push_back(static_cast<cl_mutable_command_khr>(handle));
        }
        POLDER_ASSIGN(result, expose<cl_command_buffer_khr>(std::move(copy)));
        std::ranges::copy(exposed, handles_ret);
        return result;
    });
}

}  // namespace polder::api::command_buffer
