// Executing kernels and native kernels. OpenCL 3.0, section 5.10. A launch checks its sizes, chooses the code, finds the argument buffers by
// their handles, and enqueues a LaunchCommand. A launch with the sizes of the kernel's last launch skips the checks of sizes.
#include "enqueue_commands.h"
#include "mem_checks.h"

#include <runtime/buffer_commands.h>
#include <runtime/group_memory.h>
#include <runtime/launch.h>
#include <runtime/svm.h>

#include <limits>
#include <string>

using namespace polder;
using namespace polder::api;
using runtime::BufferList;
using runtime::Device;
using runtime::Kernel;
using runtime::KernelArguments;
using runtime::KernelOnDevice;
using runtime::MemObject;
using runtime::NdRange;
using runtime::Queue;
using runtime::Size3;

namespace {

// True when the range has no work-items. Such a command only waits.
bool is_empty(const SizeArrays& sizes) {
    return !sizes.global ||
           std::any_of(sizes.global, sizes.global + sizes.work_dim, [](size_t size) { return size == 0; });
}

// Fills in `range` in place, because copying it from one Result to the next would cost too much for every launch. Every launch calls
// this function; set_range and choose_code are skipped when the kernel's last launch had the same sizes.
Result<void> set_global_range(const SizeArrays& sizes, NdRange& range) {
    range.work_dim = sizes.work_dim;
    for (cl_uint d = 0; d < sizes.work_dim; ++d) {
        range.global[d] = sizes.global[d];
        range.offset[d] = sizes.offset ? sizes.offset[d] : 0;
        // CL_INVALID_GLOBAL_OFFSET: offset + size exceeds size_t.
        if (range.global[d] > SIZE_MAX - range.offset[d])
            return fail(Status::invalid_global_offset);
    }
    return {};
}

Result<void> check_total(const NdRange& range) {
    uint64_t items = range.global[0];
    // CL_INVALID_GLOBAL_WORK_SIZE: the number of all work-items exceeds 64 bits.
    for (size_t d = 1; d < 3; ++d)
        if (__builtin_mul_overflow(items, range.global[d], &items))
            return fail(Status::invalid_global_work_size);
    return {};
}

Result<void> check_required_size(const KernelOnDevice& on, const NdRange& range) {
    // CL_INVALID_WORK_GROUP_SIZE: local_work_size is not that of reqd_work_group_size.
    if (on.info->reqd_work_group_size && *on.info->reqd_work_group_size != range.local)
        return fail(Status::invalid_work_group_size);
    return {};
}

Result<void> check_local_size(const KernelOnDevice& on, const driver::DeviceInfo& device, const NdRange& range) {
    uint64_t items = 1;
    for (cl_uint d = 0; d < range.work_dim; ++d) {
        // CL_INVALID_WORK_GROUP_SIZE: a local_work_size is 0.
        if (range.local[d] == 0)
            return fail(Status::invalid_work_group_size);
        // CL_INVALID_WORK_ITEM_SIZE: a local_work_size exceeds CL_DEVICE_MAX_WORK_ITEM_SIZES.
        if (range.local[d] > device.max_work_item_sizes[d])
            return fail(Status::invalid_work_item_size);
        items *= range.local[d];
        // CL_INVALID_WORK_GROUP_SIZE: the work-group exceeds CL_DEVICE_MAX_WORK_GROUP_SIZE.
        if (items > device.max_work_group_size)
            return fail(Status::invalid_work_group_size);
        // CL_INVALID_WORK_GROUP_SIZE: global_work_size is not a multiple of local_work_size, and the program requires uniform
        // work-groups.
        if (on.work_groups == runtime::BuiltModule::WorkGroups::uniform && range.global[d] % range.local[d] != 0)
            return fail(Status::invalid_work_group_size);
    }
    return {};
}

// Sets and checks the local size for a launch of the kernel with `sizes`, which has work-items. Called after set_global_range.
Result<void> set_range(const Kernel& kernel, const KernelOnDevice& on, const Device& device, const SizeArrays& sizes,
                       Kernel::Launched::Times times, NdRange& range) {
    POLDER_TRY(check_total(range));
    if (sizes.local) {
        std::copy_n(sizes.local, sizes.work_dim, range.local.begin());
        POLDER_TRY(check_required_size(on, range));
    } else {
        POLDER_ASSIGN(local, kernel.suggest_local_size(on, device, {range.global, times, range.offset}));
        range.local = local;
    }
    return check_local_size(on, device.info(), range);
}

Result<void> check_private_memory(const KernelOnDevice& on, const driver::DeviceInfo& device, const Size3& local) {
    const uint64_t items = local[0] * local[1] * local[2];
    const uint64_t most = runtime::group_items_max(*on.info, device);
    if (items <= most)
        return {};
    const std::string text = "kernel " + on.info->name + " has " +
                             std::to_string(on.info->private_bytes_over_barriers) +
                             " bytes of private variables that live across barriers: a work-group has at most " +
                             std::to_string(most) + " work-items, not " + std::to_string(items);
    // CL_OUT_OF_RESOURCES: a work-group of the required size needs more private memory than a work-group may have.
    // CL_INVALID_WORK_GROUP_SIZE: the work-group has more work-items than CL_KERNEL_WORK_GROUP_SIZE.
    return fail(on.info->reqd_work_group_size ? Status::out_of_resources : Status::invalid_work_group_size, text);
}

// CL_INVALID_GLOBAL_WORK_SIZE: the device cannot count the work-groups. PTX counts the work-groups of a dimension with 32 bits
// (PtxHiddenArguments::num_groups).
Result<void> check_group_counts(const Device& device, const runtime::Size3& global, const runtime::Size3& local) {
    if (device.info().code.format != driver::CodeFormat::ptx)
        return {};
    constexpr uint64_t most = std::numeric_limits<uint32_t>::max();
    for (size_t d = 0; d < global.size(); ++d)
        if (global[d] / local[d] + (global[d] % local[d] != 0) > most)
            return fail(Status::invalid_global_work_size,
                        "the device has at most 2^32 - 1 work-groups in a dimension, and a work-group has " +
                            std::to_string(local[d]) + " work-items there");
    return {};
}

// Whether arguments that were released after they were set are errors. The suggested work-group size depends on no object.
enum class ReleasedArguments : uint8_t { are_errors, are_left_out };

// The buffer or image that was set as an argument. A kernel has no references to its arguments
// (doc/decisions/0011-released-arguments.md): the handle may have been released since, or may be that of another object now.
// CL_INVALID_KERNEL_ARGS: the object was released after it was set, and the kernel uses it.
Result<MemObject*> named_buffer(const Queue& queue, const KernelOnDevice& on, const KernelArguments::Pointer& pointer,
                                ReleasedArguments released) {
    const Result<MemObject*> buffer = from_handle<MemObject>(pointer.buffer);
    const compiler::ArgumentKind kind = on.info->arguments[pointer.index].kind;
    const bool is_image = kind == compiler::ArgumentKind::image, is_pipe = kind == compiler::ArgumentKind::pipe;
    if (buffer && &(*buffer)->context() == &queue.context() && ((*buffer)->image() != nullptr) == is_image &&
        ((*buffer)->pipe() != nullptr) == is_pipe)
        return *buffer;
    // A kernel that never accesses the argument can be launched without the object.
    if (on.info->arguments[pointer.index].access == Access::none || released == ReleasedArguments::are_left_out)
        return nullptr;
    const std::string text = "kernel " + on.info->name +
                             (is_image  ? ": the image of argument "
                              : is_pipe ? ": the pipe of argument "
                                        : ": the buffer of argument ") +
                             std::to_string(pointer.index) + " was released between clSetKernelArg and the launch";
    queue.context().notify(text);
    return fail(Status::invalid_kernel_args, text);
}

// The allocations whose addresses are arguments of the kernel, as buffers.
using Views = std::vector<Ref<MemObject>>;

MemObject* add_view(const Queue& queue, const runtime::KnownAddress& address, Views& views) {
    if (Ref<MemObject> view = runtime::allocation_at(queue.context(), address, queue.space()))
        return views.emplace_back(std::move(view)).get();
    return nullptr;
}

// The allocations that the kernel may access through pointers in memory (clSetKernelExecInfo), as buffers.
Views find_indirect(const Queue& queue, const KernelOnDevice& on, const KernelArguments& arguments) {
    Views views;
    if (!arguments.indirect || !on.info->uses_indirect_pointers) [[likely]]
        return views;
    const runtime::IndirectUses& uses = *arguments.indirect;
    for (const auto* list : {&uses.svm, &uses.unified, &uses.buffers})
        for (const runtime::KnownAddress& address : *list)
            add_view(queue, address, views);
    if (uses.kinds != 0)
        queue.context().addresses().for_each([&](const runtime::Allocation& allocation) {
            if ((runtime::kind_bit(allocation.kind()) & uses.kinds) && allocation.is_for_kernels_in(queue.space()))
                if (Ref<MemObject> view = allocation.view(queue.context()))
                    views.push_back(std::move(view));
        });
    return views;
}

driver::ImageUse use_of(compiler::KernelArgument::ImageAccess access) {
    using ImageAccess = compiler::KernelArgument::ImageAccess;
    switch (access) {
    case ImageAccess::read_only: return driver::ImageUse::read;
    case ImageAccess::write_only: return driver::ImageUse::write;
    default: return driver::ImageUse::read_write;
    }
}

// Finds the argument buffers by their handles, as they are now.
Result<void> find_buffers(const Queue& queue, const KernelOnDevice& on, const KernelArguments& arguments,
                          ReleasedArguments released, BufferList& buffers, Views& views) {
    const driver::DeviceInfo& device = queue.device().info();
    for (size_t i = 0; i < arguments.pointers.size(); ++i) {
        const KernelArguments::Pointer& pointer = arguments.pointers[i];
        if (!pointer.buffer) {
            if (pointer.address.pointer)
                buffers[i] = add_view(queue, pointer.address, views);
            continue;
        }
        POLDER_ASSIGN(buffer, named_buffer(queue, on, pointer, released));
        if (!buffer)
            continue;
        // CL_MISALIGNED_SUB_BUFFER_OFFSET: the origin of a sub-buffer is not aligned for the device of the queue.
        if (buffer->offset_in_parent() % device.base_address_alignment != 0)
            return fail(Status::misaligned_sub_buffer_offset);
        if (buffer->image()) [[unlikely]]
            POLDER_TRY(check_support(queue.device(), *buffer->image(),
                                     {use_of(on.info->arguments[pointer.index].image_access)}));
        buffers[i] = buffer;
    }
    return {};
}

Result<void> check_addresses(const Device& device, const KernelArguments& arguments) {
    using Origin = KernelArguments::Pointer::Origin;
    for (const KernelArguments::Pointer& pointer : arguments.pointers) {
        // CL_INVALID_OPERATION: an argument is an SVM pointer, and the device has no SVM.
        if (pointer.origin == Origin::svm && !device.has_svm())
            return fail(Status::invalid_operation);
        // CL_INVALID_OPERATION: an argument is an address, and the device has no addresses.
        if (pointer.origin == Origin::address && !device.has_addresses())
            return fail(Status::invalid_operation);
    }
    return {};
}

driver::LaunchBlocks blocks_of(const KernelOnDevice& on, const runtime::LoadedCode& code, const Queue& queue) {
    if (!on.info->enqueues_blocks) [[likely]]
        return {};
    const driver::DeviceInfo& device = queue.device().info();
    return {.kernels = code.blocks,
            .default_queue = queue.context().default_queue_number(queue.device()),
            .group_size_max = device.max_work_group_size,
            .local_memory_bytes = device.code.local_memory_bytes,
            .sub_group_size = compiler::default_sub_group_size()};
}

Result<const KernelOnDevice*> executable_on(const Kernel& kernel, const Queue& queue) {
    const KernelOnDevice* const on = kernel.on(queue.device());
    // CL_INVALID_PROGRAM_EXECUTABLE: the program has no executable for the device of the queue.
    if (!on)
        return fail(Status::invalid_program_executable);
    return on;
}

// The last launch is known by its sizes. Code for usual launches is for some offsets only.
bool suits_offset(const runtime::LoadedCode& code, const SizeArrays& sizes) {
    return !sizes.offset || code.suits_offsets({sizes.offset, sizes.work_dim});
}

// Chooses the code and the work-group size for a launch whose sizes differ from those of the kernel's last launch.
Result<void> choose_code(const Kernel& kernel, const Device& device, const SizeArrays& sizes,
                         Kernel::Launched::Times times, NdRange& range, runtime::LastLaunch::Choice& choice) {
    const KernelOnDevice& on = *choice.on;
    POLDER_TRY(set_range(kernel, on, device, sizes, times, range));
    POLDER_TRY(check_private_memory(on, device.info(), range.local));
    POLDER_TRY(check_addresses(device, *kernel.arguments()));
    POLDER_ASSIGN(local, kernel.best_local_size(on, device, {range.global, times, range.offset}, range.local));
    POLDER_TRY(check_group_counts(device, range.global, local));
    POLDER_ASSIGN(code, kernel.code(on, {range.global, times, range.offset}, local));
    // CL_INVALID_WORK_GROUP_SIZE: the work-group has more work-items than CL_KERNEL_WORK_GROUP_SIZE, which registers may limit.
    if (local[0] * local[1] * local[2] > code->group_size_max(device.info().max_work_group_size))
        return fail(Status::invalid_work_group_size);
    choice.local = local;
    choice.code = code;
    if (kernel.is_final(on, *code, local))
        kernel.last_launch().set({&device, sizes.work_dim, sizes.global, sizes.local}, choice);
    return {};
}

struct NativeArguments {
    const void* block;
    size_t size;
    cl_uint count;
    const cl_mem* buffers;
    const void** places;
};

Result<void> check_native(const NativeArguments& given) {
    // CL_INVALID_VALUE: args is null and cb_args is not 0, or the other way round; or args is null and num_mem_objects is not 0.
    if ((given.block == nullptr) != (given.size == 0) || (!given.block && given.count > 0))
        return fail(Status::invalid_value);
    // CL_INVALID_VALUE: num_mem_objects is 0 and mem_list or args_mem_loc is not null, or the other way round.
    if ((given.count == 0) != (given.buffers == nullptr) || (given.count == 0) != (given.places == nullptr))
        return fail(Status::invalid_value);
    return {};
}

// The offsets in the argument block where the addresses of the buffers are written.
Result<std::vector<size_t>> native_offsets(const NativeArguments& given) {
    std::vector<size_t> offsets;
    for (cl_uint i = 0; i < given.count; ++i) {
        const uintptr_t begin = reinterpret_cast<uintptr_t>(given.block);
        const uintptr_t place = reinterpret_cast<uintptr_t>(given.places[i]);
        // CL_INVALID_VALUE: an entry of args_mem_loc does not point into args.
        if (place < begin || given.size < sizeof(void*) || place - begin > given.size - sizeof(void*))
            return fail(Status::invalid_value);
        offsets.push_back(place - begin);
    }
    return offsets;
}

Result<BufferList> native_buffers(const Queue& queue, const NativeArguments& given) {
    BufferList buffers(given.count);
    for (cl_uint i = 0; i < given.count; ++i) {
        POLDER_ASSIGN(buffer, from_handle<MemObject>(given.buffers[i]));
        // CL_INVALID_CONTEXT: a buffer and the queue are of different contexts.
        if (&buffer->context() != &queue.context())
            return fail(Status::invalid_context);
        // CL_INVALID_MEM_OBJECT: the object is an image or a pipe.
        if (!buffer->is_buffer())
            return fail(Status::invalid_mem_object);
        buffers[i] = buffer;
    }
    return buffers;
}

}  // namespace

Result<void> polder::api::enqueue_launch(const EnqueueCall& call, const Kernel& kernel, cl_command_type type,
                                         const SizeArrays& sizes) {
    Queue& queue = call.queue();
    const Device& device = queue.device();
    runtime::LastLaunch::Choice choice;
    const bool is_repeated = sizes.global && sizes.work_dim <= 3 &&
                             kernel.last_launch().find({&device, sizes.work_dim, sizes.global, sizes.local}, choice) &&
                             suits_offset(*choice.code, sizes);
    if (!is_repeated) {
        POLDER_ASSIGN(on, executable_on(kernel, queue));
        choice.on = on;
    }
    const KernelOnDevice& on = *choice.on;
    // CL_INVALID_CONTEXT: kernel and queue are of different contexts.
    if (&kernel.context() != &queue.context())
        return fail(Status::invalid_context);
    const KernelArguments& arguments = *kernel.arguments();
    // CL_INVALID_KERNEL_ARGS: an argument has not been set.
    if (arguments.unset_count)
        return fail(Status::invalid_kernel_args);
    // CL_INVALID_WORK_DIMENSION: work_dim is not 1, 2 or 3.
    if (sizes.work_dim < 1 || sizes.work_dim > 3)
        return fail(Status::invalid_work_dimension);
    if (!is_repeated && is_empty(sizes))
        return call.enqueue(type, runtime::MarkerCommand{});
    NdRange range;
    POLDER_TRY(set_global_range(sizes, range));
    if (is_repeated) [[likely]]
        POLDER_TRY(check_addresses(device, arguments));
    else
        POLDER_TRY(choose_code(kernel, device, sizes,
                               call.is_recorded() ? Kernel::Launched::Times::many : Kernel::Launched::Times::once,
                               range, choice));
    range.local = choice.local;
    // CL_OUT_OF_RESOURCES: a work-group needs more local memory than the device has.
    if (!(is_repeated && arguments.locals.empty()) &&
        runtime::local_bytes_used(*choice.code, arguments) > device.info().code.local_memory_bytes)
        return fail(Status::out_of_resources, "the kernel's local memory exceeds that of the device");
    Views views = find_indirect(queue, on, arguments);
    BufferList buffers(arguments.pointers.size() + views.size());
    for (size_t i = 0; i < views.size(); ++i)
        buffers[arguments.pointers.size() + i] = views[i].get();
    POLDER_TRY(find_buffers(queue, on, arguments, ReleasedArguments::are_errors, buffers, views));
    POLDER_ASSIGN(variables, on.code->program_variables());
    return call.enqueue(type, runtime::LaunchCommand{{on.keeper.get(), choice.code, on.info, variables,
                                                      blocks_of(on, *choice.code, queue)},
                                                     range,
                                                     arguments,
                                                     std::move(buffers)});
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueNDRangeKernel(cl_command_queue command_queue, cl_kernel kernel,
                                                       cl_uint work_dim, const size_t* global_work_offset,
                                                       const size_t* global_work_size, const size_t* local_work_size,
                                                       cl_uint num_events_in_wait_list, const cl_event* event_wait_list,
                                                       cl_event* event) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(call, EnqueueCall::check(command_queue, num_events_in_wait_list, event_wait_list, event));
        POLDER_ASSIGN(object, from_handle<Kernel>(kernel));
        return enqueue_launch(call, *object, CL_COMMAND_NDRANGE_KERNEL,
                              {work_dim, global_work_offset, global_work_size, local_work_size});
    });
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueTask(cl_command_queue command_queue, cl_kernel kernel,
                                              cl_uint num_events_in_wait_list, const cl_event* event_wait_list,
                                              cl_event* event) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(call, EnqueueCall::check(command_queue, num_events_in_wait_list, event_wait_list, event));
        POLDER_ASSIGN(object, from_handle<Kernel>(kernel));
        const size_t one = 1;
        return enqueue_launch(call, *object, CL_COMMAND_TASK, {1, nullptr, &one, &one});
    });
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueNativeKernel(cl_command_queue command_queue,
                                                      void(CL_CALLBACK* user_func)(void*), void* args, size_t cb_args,
                                                      cl_uint num_mem_objects, const cl_mem* mem_list,
                                                      const void** args_mem_loc, cl_uint num_events_in_wait_list,
                                                      const cl_event* event_wait_list, cl_event* event) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(call, EnqueueCall::check(command_queue, num_events_in_wait_list, event_wait_list, event));
        // CL_INVALID_VALUE: user_func is null.
        if (!user_func)
            return fail(Status::invalid_value);
        const NativeArguments given{args, cb_args, num_mem_objects, mem_list, args_mem_loc};
        POLDER_TRY(check_native(given));
        // CL_INVALID_OPERATION: the device cannot execute native kernels.
        if (!call.queue().device().info().native_kernels)
            return fail(Status::invalid_operation);
        POLDER_ASSIGN(offsets, native_offsets(given));
        POLDER_ASSIGN(buffers, native_buffers(call.queue(), given));
        const auto* const block = static_cast<const std::byte*>(args);
        return call.enqueue(CL_COMMAND_NATIVE_KERNEL,
                            runtime::NativeCommand{user_func, std::vector<std::byte>(block, block + cb_args),
                                                   std::move(buffers), std::move(offsets)});
    });
}

CL_API_ENTRY cl_int CL_API_CALL clGetKernelSuggestedLocalWorkSize(cl_command_queue command_queue, cl_kernel kernel,
                                                                  cl_uint work_dim, const size_t* global_work_offset,
                                                                  const size_t* global_work_size,
                                                                  size_t* suggested_local_work_size) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(queue, from_handle<Queue>(command_queue));
        POLDER_ASSIGN(object, from_handle<Kernel>(kernel));
        POLDER_ASSIGN(on, executable_on(*object, *queue));
        // CL_INVALID_CONTEXT: kernel and queue are of different contexts.
        if (&object->context() != &queue->context())
            return fail(Status::invalid_context);
        // CL_INVALID_KERNEL_ARGS: an argument has not been set.
        if (object->arguments()->unset_count)
            return fail(Status::invalid_kernel_args);
        // CL_INVALID_WORK_DIMENSION: work_dim is not 1, 2 or 3.
        if (work_dim < 1 || work_dim > 3)
            return fail(Status::invalid_work_dimension);
        const SizeArrays sizes{work_dim, global_work_offset, global_work_size, nullptr};
        // CL_INVALID_GLOBAL_WORK_SIZE: a global size is 0, so that there is no size to suggest.
        if (is_empty(sizes))
            return fail(Status::invalid_global_work_size);
        // CL_INVALID_VALUE: suggested_local_work_size is null.
        if (!suggested_local_work_size)
            return fail(Status::invalid_value);
        const KernelArguments& arguments = *object->arguments();
        POLDER_TRY(check_addresses(queue->device(), arguments));
        NdRange range;
        POLDER_TRY(set_global_range(sizes, range));
        POLDER_TRY(set_range(*object, *on, queue->device(), sizes, Kernel::Launched::Times::once, range));
        // The errors that a launch with these arguments would have.
        BufferList buffers(arguments.pointers.size());
        Views views;
        POLDER_TRY(find_buffers(*queue, *on, arguments, ReleasedArguments::are_left_out, buffers, views));
        std::copy_n(range.local.begin(), work_dim, suggested_local_work_size);
        return {};
    });
}

// The name of this function before OpenCL 3.1.
CL_API_ENTRY cl_int CL_API_CALL clGetKernelSuggestedLocalWorkSizeKHR(cl_command_queue command_queue, cl_kernel kernel,
                                                                     cl_uint work_dim, const size_t* global_work_offset,
                                                                     const size_t* global_work_size,
                                                                     size_t* suggested_local_work_size) {
    return clGetKernelSuggestedLocalWorkSize(command_queue, kernel, work_dim, global_work_offset, global_work_size,
                                             suggested_local_work_size);
}
