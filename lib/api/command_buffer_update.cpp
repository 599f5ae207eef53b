// Command buffers: changing kernel commands between enqueues (cl_khr_command_buffer_mutable_dispatch).
#include "command_buffer.h"
#include "enqueue_commands.h"
#include "kernel_arguments.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

using namespace polder;
using namespace polder::api;
using runtime::CommandBuffer;
using runtime::DispatchState;
using runtime::MutableCommand;

namespace polder::api::command_buffer {
namespace {

// Whether each list is null if and only if its count is 0.
bool lists_agree(const DispatchConfig& config) {
    return (config.num_args == 0) == (config.arg_list == nullptr) &&
           (config.num_svm_args == 0) == (config.arg_svm_list == nullptr) &&
           (config.num_exec_infos == 0) == (config.exec_info_list == nullptr);
}

Result<void> check_fields(const MutableCommand& command, const DispatchConfig& config) {
    // CL_INVALID_VALUE: a list is null and its count is not 0, or the other way round.
    if (!lists_agree(config))
        return fail(Status::invalid_value);
    cl_bitfield changed = 0;
    changed |= config.global_work_offset ? CL_MUTABLE_DISPATCH_GLOBAL_OFFSET_KHR : 0;
    changed |= config.global_work_size ? CL_MUTABLE_DISPATCH_GLOBAL_SIZE_KHR : 0;
    changed |= config.local_work_size ? CL_MUTABLE_DISPATCH_LOCAL_SIZE_KHR : 0;
    changed |= config.num_args || config.num_svm_args ? CL_MUTABLE_DISPATCH_ARGUMENTS_KHR : 0;
    changed |= config.num_exec_infos ? CL_MUTABLE_DISPATCH_EXEC_INFO_KHR : 0;
    // CL_INVALID_OPERATION: a field was not made updatable when the command was recorded.
    if (changed & ~command.description().updatable_fields)
        return fail(Status::invalid_operation);
    // CL_INVALID_OPERATION: work_dim is not 0, and not that of the recorded command.
    if (config.work_dim != 0 && config.work_dim != command.dispatch()->state().work_dim)
        return fail(Status::invalid_operation);
    return {};
}

Result<void> change_arguments(runtime::Kernel& kernel, const DispatchConfig& config) {
    for (cl_uint i = 0; i < config.num_args; ++i) {
        const cl_mutable_dispatch_arg_khr& given = config.arg_list[i];
        POLDER_TRY(set_argument(kernel, given.arg_index, given.arg_size, given.arg_value));
    }
    for (cl_uint i = 0; i < config.num_svm_args; ++i) {
        const cl_mutable_dispatch_arg_khr& given = config.arg_svm_list[i];
        POLDER_TRY(set_svm_pointer(kernel, given.arg_index, given.arg_value));
    }
    for (cl_uint i = 0; i < config.num_exec_infos; ++i) {
        const cl_mutable_dispatch_exec_info_khr& given = config.exec_info_list[i];
        POLDER_TRY(set_exec_info(kernel, given.param_name, given.param_value_size, given.param_value));
    }
    return {};
}

bool is_uniform(const DispatchState& state) {
    for (cl_uint d = 0; d < state.work_dim; ++d)
        if (state.local && (*state.local)[d] != 0 && state.global[d] % (*state.local)[d] != 0)
            return false;
    return true;
}

void change_sizes(DispatchState& state, const DispatchConfig& config) {
    if (config.global_work_offset)
        std::copy_n(config.global_work_offset, state.work_dim, state.offset.begin());
    if (config.global_work_size)
        std::copy_n(config.global_work_size, state.work_dim, state.global.begin());
    if (config.local_work_size) {
        if (!state.local)
            state.local.emplace(runtime::Size3{1, 1, 1});
        std::copy_n(config.local_work_size, state.work_dim, state.local->begin());
    }
}

// The updates of one call of clUpdateMutableCommandsKHR.
class Updates {
public:
    // The state of `command` as changed by the call so far, because one command may be in several configs.
    CommandBuffer::Update& of(MutableCommand& command) {
        const auto [place, is_new] = numbers_.try_emplace(command.index(), list.size());
        if (!is_new)
            return list[place->second];
        DispatchState state = command.dispatch()->state();
        state.kernel = state.kernel->clone();
        return list.emplace_back(CommandBuffer::Update{&command, std::move(state), false, nullptr});
    }

    std::vector<CommandBuffer::Update> list;

private:
    std::unordered_map<uint32_t, size_t> numbers_;  // in `list`, by the command's index in the buffer
};

Result<void> apply(CommandBuffer& buffer, const DispatchConfig& config, Updates& updates) {
    POLDER_ASSIGN(command, from_handle<MutableCommand>(config.command));
    // CL_INVALID_MUTABLE_COMMAND_KHR: the command belongs to another command buffer.
    if (&command->buffer() != &buffer)
        return fail(runtime::invalid_mutable_command);
    POLDER_TRY(check_fields(*command, config));
    CommandBuffer::Update& update = updates.of(*command);
    POLDER_TRY(change_arguments(*update.state.kernel, config));
    const bool was_uniform = is_uniform(update.state);
    change_sizes(update.state, config);
    // CL_INVALID_OPERATION: the update would change whether the work-groups are uniform.
    if (is_uniform(update.state) != was_uniform)
        return fail(Status::invalid_operation);
    update.is_complete = update.state.kernel->arguments()->unset_count == 0;
    if (!update.is_complete)
        return {};
    const DispatchState& state = update.state;
    return enqueue_launch(
        EnqueueCall::recording(command->queue(), update.operation), *state.kernel, CL_COMMAND_NDRANGE_KERNEL,
        {state.work_dim, state.offset.data(), state.global.data(), state.local ? state.local->data() : nullptr});
}

Result<void> info_of(const MutableCommand& command, cl_mutable_command_info_khr name, const Info& info) {
    const Ref<const runtime::Dispatch> dispatch = command.dispatch();
    const DispatchState& state = dispatch->state();
    const auto dimensions = [&](const runtime::Size3& sizes) {
        std::vector<size_t> values(sizes.begin(), sizes.begin() + state.work_dim);
        return info.array(values);
    };
    switch (name) {
    case CL_MUTABLE_COMMAND_COMMAND_QUEUE_KHR: return info.value(handle_of<cl_command_queue>(&command.queue()));
    case CL_MUTABLE_COMMAND_COMMAND_BUFFER_KHR: return info.value(handle_of<cl_command_buffer_khr>(&command.buffer()));
    case CL_MUTABLE_COMMAND_COMMAND_TYPE_KHR: return info.value<cl_command_type>(CL_COMMAND_NDRANGE_KERNEL);
    case mutable_command_properties: return info.array(command.description().properties);
    case CL_MUTABLE_DISPATCH_KERNEL_KHR: return info.value(handle_of<cl_kernel>(command.description().recorded.get()));
    case CL_MUTABLE_DISPATCH_DIMENSIONS_KHR: return info.value<cl_uint>(state.work_dim);
    case CL_MUTABLE_DISPATCH_GLOBAL_WORK_OFFSET_KHR: return dimensions(state.offset);
    case CL_MUTABLE_DISPATCH_GLOBAL_WORK_SIZE_KHR: return dimensions(state.global);
    case CL_MUTABLE_DISPATCH_LOCAL_WORK_SIZE_KHR: return dimensions(state.local.value_or(runtime::Size3{0, 0, 0}));
    // CL_INVALID_VALUE: param_name is unknown.
    default: return fail(Status::invalid_value);
    }
}

}  // namespace

cl_int CL_API_CALL clUpdateMutableCommandsKHR(cl_command_buffer_khr command_buffer, cl_uint num_configs,
                                              const cl_uint* config_types, const void** configs) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(buffer, from_handle<CommandBuffer>(command_buffer));
        // CL_INVALID_OPERATION: the command buffer is not finalized, or was not created with CL_COMMAND_BUFFER_MUTABLE_KHR.
        if (buffer->state() == CommandBuffer::State::recording ||
            buffer->mutability() == CommandBuffer::Mutability::fixed)
            return fail(Status::invalid_operation);
        // CL_INVALID_VALUE: num_configs is 0 and config_types or configs is not null, or the other way round.
        if ((num_configs == 0) != (config_types == nullptr) || (num_configs == 0) != (configs == nullptr))
            return fail(Status::invalid_value);
        Updates updates;
        for (cl_uint i = 0; i < num_configs; ++i) {
            // CL_INVALID_VALUE: a type is unknown, or a config is null.
            if (config_types[i] != update_type_dispatch || !configs[i])
                return fail(Status::invalid_value);
            POLDER_TRY(apply(*buffer, *static_cast<const DispatchConfig*>(configs[i]), updates));
        }
        buffer->update(std::move(updates.list));
        return {};
    });
}

cl_int CL_API_CALL clGetMutableCommandInfoKHR(cl_mutable_command_khr command, cl_mutable_command_info_khr name,
                                              size_t value_size, void* value, size_t* value_size_ret) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(object, from_handle<MutableCommand>(command));
        return info_of(*object, name, {value_size, value, value_size_ret});
    });
}

}  // namespace polder::api::command_buffer
