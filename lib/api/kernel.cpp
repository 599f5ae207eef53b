// Kernel objects and their arguments. OpenCL 3.0, sections 5.9.1 to 5.9.3.
#include "kernel_arguments.h"
#include "mem_flags.h"
#include "unified_memory.h"

#include <runtime/device_queue.h>
#include <runtime/kernel.h>
#include <runtime/sampler.h>
#include <runtime/svm.h>

#include <algorithm>

using namespace polder;
using namespace polder::api;
using compiler::ArgumentKind;
using compiler::KernelArgument;
using runtime::Kernel;
using runtime::MemObject;
using runtime::Program;

namespace {

bool any_svm(const runtime::Context& context) {
    return std::ranges::any_of(context.devices(), [](const auto& device) { return device->has_svm(); });
}

bool any_addresses(const runtime::Context& context) {
    return std::ranges::any_of(context.devices(), [](const auto& device) { return device->has_addresses(); });
}

// Sets an argument that is a pointer to global or constant memory: a buffer, or null, which the kernel gets as a null pointer.
Result<void> set_buffer(Kernel& kernel, cl_uint index, size_t size, const void* value) {
    cl_mem buffer = nullptr;
    if (value) {
        // CL_INVALID_ARG_SIZE: arg_size is not sizeof(cl_mem).
        if (size != sizeof buffer)
            return fail(Status::invalid_arg_size);
        std::memcpy(&buffer, value, sizeof buffer);
    }
    if (buffer) {
        POLDER_ASSIGN(object, from_handle<MemObject>(buffer));
        // CL_INVALID_MEM_OBJECT: the argument is a pointer, and the object is an image or a pipe.
        if (!object->is_buffer())
            return fail(Status::invalid_mem_object);
        // CL_INVALID_CONTEXT: the buffer and the kernel have different contexts.
        if (&object->context() != &kernel.context())
            return fail(Status::invalid_context);
        // CL_INVALID_ARG_VALUE: the kernel writes to an object created with CL_MEM_IMMUTABLE_EXT.
        if ((object->flags() & immutable) && writes(kernel.info().arguments[index].access))
            return fail(Status::invalid_arg_value);
        // CL_MAX_SIZE_RESTRICTION_EXCEEDED: the buffer is larger than SPIR-V's MaxByteOffset permits.
        if (object->size() > kernel.info().arguments[index].bytes_max)
            return fail(Status::max_size_restriction_exceeded);
    }
    kernel.set_buffer(index, buffer);
    return {};
}

// Whether an image is of the type that the kernel's source names: "image2d_array_t" and so on.
bool has_type(const runtime::ImageShape& image, std::string_view type_name) {
    const bool is_depth = image.format.image_channel_order == CL_DEPTH;
    switch (image.type) {
    case CL_MEM_OBJECT_IMAGE1D: return type_name == "image1d_t";
    case CL_MEM_OBJECT_IMAGE1D_ARRAY: return type_name == "image1d_array_t";
    case CL_MEM_OBJECT_IMAGE1D_BUFFER: return type_name == "image1d_buffer_t";
    case CL_MEM_OBJECT_IMAGE2D: return type_name == (is_depth ? "image2d_depth_t" : "image2d_t");
    case CL_MEM_OBJECT_IMAGE2D_ARRAY: return type_name == (is_depth ? "image2d_array_depth_t" : "image2d_array_t");
    default: return type_name == "image3d_t";
    }
}

Result<void> set_image(Kernel& kernel, cl_uint index, size_t size, const void* value) {
    const KernelArgument& argument = kernel.info().arguments[index];
    // CL_INVALID_ARG_SIZE: arg_size is not sizeof(cl_mem).
    if (size != sizeof(cl_mem))
        return fail(Status::invalid_arg_size);
    // CL_INVALID_MEM_OBJECT: arg_value is null.
    if (!value)
        return fail(Status::invalid_mem_object);
    cl_mem image = nullptr;
    std::memcpy(&image, value, sizeof image);
    POLDER_ASSIGN(object, from_handle<MemObject>(image));
    // CL_INVALID_MEM_OBJECT: the object is not an image, or an image of another type than the argument.
    if (!object->image() || !has_type(*object->image(), argument.image_type))
        return fail(Status::invalid_mem_object);
    // CL_INVALID_CONTEXT: the image is of another context.
    if (&object->context() != &kernel.context())
        return fail(Status::invalid_context);
    // CL_INVALID_ARG_VALUE: the kernel would read an image created with CL_MEM_WRITE_ONLY, or write one created with
    // CL_MEM_READ_ONLY.
    using Access = KernelArgument::ImageAccess;
    if ((argument.image_access != Access::write_only && (object->flags() & CL_MEM_WRITE_ONLY)) ||
        (argument.image_access != Access::read_only && (object->flags() & CL_MEM_READ_ONLY)))
        return fail(Status::invalid_arg_value);
    kernel.set_buffer(index, image);
    return {};
}

Result<void> set_pipe(Kernel& kernel, cl_uint index, size_t size, const void* value) {
    // CL_INVALID_ARG_SIZE: arg_size is not sizeof(cl_mem).
    if (size != sizeof(cl_mem))
        return fail(Status::invalid_arg_size);
    // CL_INVALID_MEM_OBJECT: arg_value is null.
    if (!value)
        return fail(Status::invalid_mem_object);
    cl_mem pipe = nullptr;
    std::memcpy(&pipe, value, sizeof pipe);
    POLDER_ASSIGN(object, from_handle<MemObject>(pipe));
    // CL_INVALID_MEM_OBJECT: the object is not a pipe.
    if (!object->pipe())
        return fail(Status::invalid_mem_object);
    // CL_INVALID_CONTEXT: the pipe is of another context.
    if (&object->context() != &kernel.context())
        return fail(Status::invalid_context);
    kernel.set_buffer(index, pipe);
    return {};
}

Result<void> set_sampler(Kernel& kernel, cl_uint index, size_t size, const void* value) {
    // CL_INVALID_ARG_SIZE: arg_size is not sizeof(cl_sampler).
    if (size != sizeof(cl_sampler))
        return fail(Status::invalid_arg_size);
    // CL_INVALID_SAMPLER: arg_value is null.
    if (!value)
        return fail(Status::invalid_sampler);
    cl_sampler handle = nullptr;
    std::memcpy(&handle, value, sizeof handle);
    POLDER_ASSIGN(sampler, from_handle<runtime::Sampler>(handle));
    // CL_INVALID_CONTEXT: the sampler is of another context.
    if (&sampler->context() != &kernel.context())
        return fail(Status::invalid_context);
    kernel.set_sampler(index, sampler->bits());
    return {};
}

Result<void> set_queue(Kernel& kernel, cl_uint index, size_t size, const void* value) {
    // CL_INVALID_ARG_SIZE: arg_size is not sizeof(cl_command_queue).
    if (size != sizeof(cl_command_queue))
        return fail(Status::invalid_arg_size);
    // CL_INVALID_ARG_VALUE: arg_value is null.
    if (!value)
        return fail(Status::invalid_arg_value);
    cl_command_queue handle = nullptr;
    std::memcpy(&handle, value, sizeof handle);
    const auto queue = from_handle<runtime::DeviceQueue>(handle);
    // CL_INVALID_DEVICE_QUEUE: the object is not a queue on a device.
    if (!queue)
        return fail(Status::invalid_device_queue);
    // CL_INVALID_CONTEXT: the queue is of another context.
    if (&(*queue)->context() != &kernel.context())
        return fail(Status::invalid_context);
    const uint64_t number = (*queue)->number();
    kernel.set_value(index, &number);
    return {};
}

Result<void> set_local(Kernel& kernel, cl_uint index, size_t size, const void* value) {
    // Since OpenCL 3.1 a size of 0 is no error: the kernel uses no local memory by this argument.
    // CL_INVALID_ARG_VALUE: arg_value of a __local argument is not null.
    if (value)
        return fail(Status::invalid_arg_value);
    // CL_MAX_SIZE_RESTRICTION_EXCEEDED: arg_size is larger than SPIR-V's MaxByteOffset permits.
    if (size > kernel.info().arguments[index].bytes_max)
        return fail(Status::max_size_restriction_exceeded);
    kernel.set_local(index, size);
    return {};
}

// Whether a value of `size` bytes is the handle of an object that a kernel may take.
bool is_handle(size_t size, const void* value) {
    if (size != sizeof(void*))
        return false;
    void* handle = nullptr;
    std::memcpy(&handle, value, sizeof handle);
    return from_handle<MemObject>(handle) || from_handle<runtime::Sampler>(handle);
}

Result<void> set_value(Kernel& kernel, cl_uint index, size_t size, const void* value) {
    // CL_INVALID_ARG_SIZE: arg_size is not the size of the argument's type.
    if (size != kernel.info().arguments[index].size)
        return fail(Status::invalid_arg_size);
    // CL_INVALID_ARG_VALUE: arg_value is null; or an object is passed to a kernel in machine code, where an image or a sampler may look
    // like a value (decision 207).
    if (!value || (kernel.info().arguments[index].type_name.empty() && is_handle(size, value)))
        return fail(Status::invalid_arg_value);
    kernel.set_value(index, value);
    return {};
}

// Creates all kernels of the program. When one cannot be created, releases those that were created and returns its error.
Result<void> create_all(Program& program, cl_kernel* kernels) {
    const std::shared_ptr<const runtime::BuiltModule> built = program.any_executable();
    std::vector<cl_kernel> made;
    for (const compiler::KernelInfo& info : built->module->kernels()) {
        Result<cl_kernel> handle = fail(Status::out_of_host_memory);
        if (Result<Ref<Kernel>> kernel = Kernel::create(Ref<Program>::share(&program), info.name); !kernel)
            handle = fail(kernel.error());
        else
            handle = expose<cl_kernel>(*kernel);
        if (!handle) {
            for (const cl_kernel one : made)
                static_cast<void>(release<Kernel>(one));
            return fail(handle.error());
        }
        made.push_back(*handle);
    }
    std::ranges::copy(made, kernels);
    return {};
}

Result<void> set_device_pointer(Kernel& kernel, cl_uint index, cl_mem_device_address_ext value) {
    // CL_INVALID_OPERATION: no device of the context has device addresses.
    if (!any_addresses(kernel.context()))
        return fail(Status::invalid_operation);
    // CL_INVALID_ARG_INDEX: the kernel has no argument arg_index, or the argument is not a pointer to global memory.
    if (index >= kernel.info().arguments.size() || kernel.info().arguments[index].kind != ArgumentKind::global_pointer)
        return fail(Status::invalid_arg_index);
    const auto* const pointer = reinterpret_cast<const void*>(static_cast<uintptr_t>(value));
    kernel.set_address(index, runtime::known_address(kernel.context(), pointer));
    return {};
}

// param_value is a list of pointers or of device addresses, which have the same size.
static_assert(sizeof(void*) == sizeof(cl_mem_device_address_ext));
Result<void> set_indirect(Kernel& kernel, std::vector<runtime::KnownAddress> runtime::IndirectUses::* list, size_t size,
                          const void* value) {
    // CL_INVALID_VALUE: param_value_size is not a multiple of the size of a pointer.
    if (size % sizeof(void*) != 0)
        return fail(Status::invalid_value);
    const auto* const pointers = static_cast<const void* const*>(value);
    std::vector<runtime::KnownAddress> known;
    known.reserve(size / sizeof *pointers);
    for (size_t i = 0; i < size / sizeof *pointers; ++i)
        known.push_back(runtime::known_address(kernel.context(), pointers[i]));
    kernel.set_indirect(list, std::move(known));
    return {};
}

Result<void> set_indirect_kind(Kernel& kernel, runtime::Allocation::Kind kind, size_t size, const void* value) {
    // CL_INVALID_OPERATION: no device of the context has unified shared memory. A kind that no device has is accepted, as DPC++'s runtime names
    // all three kinds for each kernel, whatever its devices have.
    if (!any_addresses(kernel.context()))
        return fail(Status::invalid_operation);
    // CL_INVALID_VALUE: param_value_size is not sizeof(cl_bool).
    if (size != sizeof(cl_bool))
        return fail(Status::invalid_value);
    cl_bool may_use = CL_FALSE;
    std::memcpy(&may_use, value, sizeof may_use);
    kernel.set_indirect_kind(kind, may_use ? Kernel::MayUse::yes : Kernel::MayUse::no);
    return {};
}

}  // namespace

namespace polder::api {

Result<void> set_argument(Kernel& kernel, cl_uint index, size_t size, const void* value) {
    // CL_INVALID_ARG_INDEX: the kernel has no argument arg_index.
    if (index >= kernel.info().arguments.size())
        return fail(Status::invalid_arg_index);
    switch (kernel.info().arguments[index].kind) {
    case ArgumentKind::global_pointer:
    case ArgumentKind::constant_pointer: return set_buffer(kernel, index, size, value);
    case ArgumentKind::local_pointer: return set_local(kernel, index, size, value);
    case ArgumentKind::value: return set_value(kernel, index, size, value);
    case ArgumentKind::image: return set_image(kernel, index, size, value);
    case ArgumentKind::sampler: return set_sampler(kernel, index, size, value);
    case ArgumentKind::pipe: return set_pipe(kernel, index, size, value);
    case ArgumentKind::queue: break;
    }
    return set_queue(kernel, index, size, value);
}

Result<void> set_svm_pointer(Kernel& kernel, cl_uint index, const void* value) {
    // CL_INVALID_OPERATION: no device of the context has SVM.
    if (!any_svm(kernel.context()))
        return fail(Status::invalid_operation);
    // CL_INVALID_ARG_INDEX: the kernel has no argument arg_index.
    if (index >= kernel.info().arguments.size())
        return fail(Status::invalid_arg_index);
    const ArgumentKind kind = kernel.info().arguments[index].kind;
    // CL_INVALID_ARG_VALUE: the argument is not a pointer to global or constant memory. Any address is valid (system sharing).
    if (kind != ArgumentKind::global_pointer && kind != ArgumentKind::constant_pointer)
        return fail(Status::invalid_arg_value);
    kernel.set_svm_pointer(index, runtime::known_address(kernel.context(), value));
    return {};
}

Result<void> set_exec_info(Kernel& kernel, cl_kernel_exec_info name, size_t size, const void* value) {
    // CL_INVALID_VALUE: param_value is null.
    if (!value && size > 0)
        return fail(Status::invalid_value);
    switch (name) {
    case CL_KERNEL_EXEC_INFO_SVM_PTRS:
        // CL_INVALID_OPERATION: no device of the context has SVM.
        if (!any_svm(kernel.context()))
            return fail(Status::invalid_operation);
        return set_indirect(kernel, &runtime::IndirectUses::svm, size, value);
    case CL_KERNEL_EXEC_INFO_USM_PTRS_INTEL:
    case CL_KERNEL_EXEC_INFO_DEVICE_PTRS_EXT:
        // CL_INVALID_OPERATION: no device of the context has device allocations or device addresses.
        if (!any_addresses(kernel.context()))
            return fail(Status::invalid_operation);
        return set_indirect(kernel,
                            name == CL_KERNEL_EXEC_INFO_USM_PTRS_INTEL ? &runtime::IndirectUses::unified
                                                                       : &runtime::IndirectUses::buffers,
                            size, value);
    case CL_KERNEL_EXEC_INFO_INDIRECT_HOST_ACCESS_INTEL:
        return set_indirect_kind(kernel, runtime::Allocation::Kind::host, size, value);
    case CL_KERNEL_EXEC_INFO_INDIRECT_DEVICE_ACCESS_INTEL:
        return set_indirect_kind(kernel, runtime::Allocation::Kind::device, size, value);
    case CL_KERNEL_EXEC_INFO_INDIRECT_SHARED_ACCESS_INTEL:
        return set_indirect_kind(kernel, runtime::Allocation::Kind::shared, size, value);
    // Devices that have SVM compute in host memory and can access all of it, so the value is not stored.
    case CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM: {
        // CL_INVALID_VALUE: param_value_size is not sizeof(cl_bool).
        if (size != sizeof(cl_bool))
            return fail(Status::invalid_value);
        cl_bool may_use = CL_FALSE;
        std::memcpy(&may_use, value, sizeof may_use);
        // CL_INVALID_OPERATION: the value is CL_TRUE, and no device of the context has SVM.
        return may_use && !any_svm(kernel.context()) ? fail(Status::invalid_operation) : Result<void>{};
    }
    // CL_INVALID_VALUE: param_name is unknown.
    default: return fail(Status::invalid_value);
    }
}

}  // namespace polder::api

CL_API_ENTRY cl_kernel CL_API_CALL clCreateKernel(cl_program program, const char* kernel_name, cl_int* errcode_ret) {
    return create<cl_kernel>(errcode_ret, [&]() -> Result<cl_kernel> {
        POLDER_ASSIGN(object, from_handle<Program>(program));
        // CL_INVALID_VALUE: kernel_name is null.
        if (!kernel_name)
            return fail(Status::invalid_value);
        POLDER_ASSIGN(kernel, Kernel::create(Ref<Program>::share(object), kernel_name));
        return expose<cl_kernel>(kernel);
    });
}

CL_API_ENTRY cl_int CL_API_CALL clCreateKernelsInProgram(cl_program program, cl_uint num_kernels, cl_kernel* kernels,
                                                         cl_uint* num_kernels_ret) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(object, from_handle<Program>(program));
        const std::shared_ptr<const runtime::BuiltModule> built = object->any_executable();
        // CL_INVALID_PROGRAM_EXECUTABLE: the program has no executable for any device.
        if (!built)
            return fail(Status::invalid_program_executable);
        const size_t count = built->module->kernels().size();
        // CL_INVALID_VALUE: num_kernels is less than the number of kernels in the program.
        if (kernels && num_kernels < count)
            return fail(Status::invalid_value);
        if (kernels)
            POLDER_TRY(create_all(*object, kernels));
        if (num_kernels_ret)
            *num_kernels_ret = static_cast<cl_uint>(count);
        return {};
    });
}

CL_API_ENTRY cl_kernel CL_API_CALL clCloneKernel(cl_kernel source_kernel, cl_int* errcode_ret) {
    return create<cl_kernel>(errcode_ret, [&]() -> Result<cl_kernel> {
        POLDER_ASSIGN(source, from_handle<Kernel>(source_kernel));
        return expose<cl_kernel>(source->clone());
    });
}

CL_API_ENTRY cl_int CL_API_CALL clRetainKernel(cl_kernel kernel) {
    return entry([&] { return retain<Kernel>(kernel); });
}

CL_API_ENTRY cl_int CL_API_CALL clReleaseKernel(cl_kernel kernel) {
    return entry([&] { return release<Kernel>(kernel); });
}

CL_API_ENTRY cl_int CL_API_CALL clSetKernelArg(cl_kernel kernel, cl_uint arg_index, size_t arg_size,
                                               const void* arg_value) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(object, from_handle<Kernel>(kernel));
        return set_argument(*object, arg_index, arg_size, arg_value);
    });
}

CL_API_ENTRY cl_int CL_API_CALL clSetKernelArgSVMPointer(cl_kernel kernel, cl_uint arg_index, const void* arg_value) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(object, from_handle<Kernel>(kernel));
        return set_svm_pointer(*object, arg_index, arg_value);
    });
}

CL_API_ENTRY cl_int CL_API_CALL clSetKernelArgDevicePointerEXT(cl_kernel kernel, cl_uint arg_index,
                                                               cl_mem_device_address_ext arg_value) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(object, from_handle<Kernel>(kernel));
        return set_device_pointer(*object, arg_index, arg_value);
    });
}

CL_API_ENTRY cl_int CL_API_CALL clSetKernelExecInfo(cl_kernel kernel, cl_kernel_exec_info param_name,
                                                    size_t param_value_size, const void* param_value) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(object, from_handle<Kernel>(kernel));
        return set_exec_info(*object, param_name, param_value_size, param_value);
    });
}
