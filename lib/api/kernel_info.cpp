// Queries of kernel objects. OpenCL 3.0, section 5.9.4.
#include "entry.h"

#include <runtime/group_memory.h>
#include <runtime/kernel.h>
#include <runtime/launch.h>

#include <algorithm>

using namespace polder;
using namespace polder::api;
using compiler::KernelArgument;
using runtime::Device;
using runtime::Kernel;
using runtime::KernelOnDevice;
using runtime::LoadedCode;

namespace {

struct KernelAndDevice {
    const Kernel* kernel;
    const Device* device;
    const KernelOnDevice* on;
};

// Checks kernel and device. `handle` may be null when the kernel has only one device.
Result<KernelAndDevice> kernel_on_device(cl_kernel kernel_handle, cl_device_id handle) {
    POLDER_ASSIGN(kernel, from_handle<Kernel>(kernel_handle));
    const std::span<const Ref<Device>> devices = kernel->program().devices();
    const Device* device = devices.front().get();
    if (handle) {
        POLDER_ASSIGN(given, from_handle<Device>(handle));
        device = given;
    } else if (devices.size() > 1) {
        // CL_INVALID_DEVICE: device is null, and the kernel has more than one device.
        return fail(Status::invalid_device);
    }
    const KernelOnDevice* const on = kernel->on(*device);
    // CL_INVALID_DEVICE: device is not one of the kernel's program.
    if (!on)
        return fail(Status::invalid_device);
    return KernelAndDevice{kernel, device, on};
}

Result<void> answer_kernel(const Kernel& kernel, cl_kernel_info name, const Info& info) {
    switch (name) {
    case CL_KERNEL_FUNCTION_NAME: return info.string(kernel.info().name);
    case CL_KERNEL_NUM_ARGS: return info.value(static_cast<cl_uint>(kernel.info().arguments.size()));
    case CL_KERNEL_REFERENCE_COUNT: return info.value<cl_uint>(kernel.api_references());
    case CL_KERNEL_CONTEXT: return info.value(handle_of<cl_context>(&kernel.context()));
    case CL_KERNEL_PROGRAM: return info.value(handle_of<cl_program>(&kernel.program()));
    case CL_KERNEL_ATTRIBUTES: return info.string(kernel.info().attributes);
    // CL_INVALID_VALUE: param_name is unknown.
    default: return fail(Status::invalid_value);
    }
}

cl_kernel_arg_address_qualifier address_qualifier(const KernelArgument& argument) {
    switch (argument.address_space) {
    case compiler::AddressSpace::global: return CL_KERNEL_ARG_ADDRESS_GLOBAL;
    case compiler::AddressSpace::constant: return CL_KERNEL_ARG_ADDRESS_CONSTANT;
    case compiler::AddressSpace::local: return CL_KERNEL_ARG_ADDRESS_LOCAL;
    default: return CL_KERNEL_ARG_ADDRESS_PRIVATE;
    }
}

cl_kernel_arg_access_qualifier access_qualifier(const KernelArgument& argument) {
    switch (argument.image_access) {
    case KernelArgument::ImageAccess::read_only: return CL_KERNEL_ARG_ACCESS_READ_ONLY;
    case KernelArgument::ImageAccess::write_only: return CL_KERNEL_ARG_ACCESS_WRITE_ONLY;
    case KernelArgument::ImageAccess::read_write: return CL_KERNEL_ARG_ACCESS_READ_WRITE;
    default: return CL_KERNEL_ARG_ACCESS_NONE;
    }
}

cl_kernel_arg_type_qualifier type_qualifier(const KernelArgument& argument) {
    return (argument.is_const ? CL_KERNEL_ARG_TYPE_CONST : 0) |
           (argument.is_restrict ? CL_KERNEL_ARG_TYPE_RESTRICT : 0) |
           (argument.is_volatile ? CL_KERNEL_ARG_TYPE_VOLATILE : 0) | (argument.is_pipe ? CL_KERNEL_ARG_TYPE_PIPE : 0);
}

Result<void> answer_argument(const KernelArgument& argument, cl_kernel_arg_info name, const Info& info) {
    switch (name) {
    case CL_KERNEL_ARG_ADDRESS_QUALIFIER: return info.value(address_qualifier(argument));
    case CL_KERNEL_ARG_ACCESS_QUALIFIER: return info.value(access_qualifier(argument));
    case CL_KERNEL_ARG_TYPE_NAME: return info.string(argument.type_name);
    case CL_KERNEL_ARG_TYPE_QUALIFIER: return info.value<cl_kernel_arg_type_qualifier>(type_qualifier(argument));
    case CL_KERNEL_ARG_NAME: return info.string(argument.name);
    // CL_INVALID_VALUE: param_name is unknown.
    default: return fail(Status::invalid_value);
    }
}

Result<size_t> group_size_max(const KernelAndDevice& target) {
    if (const auto& required = target.on->info->reqd_work_group_size)
        return (*required)[0] * (*required)[1] * (*required)[2];
    const driver::DeviceInfo& device = target.device->info();
    // For host functions, private memory limits the size of a work-group. On other devices, registers may limit it.
    if (device.code.format == driver::CodeFormat::host_function)
        return runtime::group_items_max(*target.on->info, device);
    POLDER_ASSIGN(code, target.kernel->code(*target.on));
    return code->group_size_max(device.max_work_group_size);
}

Result<void> answer_work_group(const KernelAndDevice& target, cl_kernel_work_group_info name, const Info& info) {
    // The queries that need no machine code come first.
    switch (name) {
    case CL_KERNEL_WORK_GROUP_SIZE: {
        POLDER_ASSIGN(size, group_size_max(target));
        return info.value<size_t>(size);
    }
    case CL_KERNEL_COMPILE_WORK_GROUP_SIZE: {
        const runtime::Size3 size = target.on->info->reqd_work_group_size.value_or(runtime::Size3{0, 0, 0});
        return info.value(std::array<size_t, 3>{size[0], size[1], size[2]});
    }
    case CL_KERNEL_LOCAL_MEM_SIZE:
    case CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE:
    case CL_KERNEL_PRIVATE_MEM_SIZE: break;
    // 0, because generated code spills registers to the stack, whose size is not reported.
    case CL_KERNEL_SPILL_MEM_SIZE_INTEL: return info.value<cl_ulong>(0);
    // CL_KERNEL_GLOBAL_WORK_SIZE is for built-in kernels and custom devices only.
    // CL_INVALID_VALUE: param_name is unknown.
    default: return fail(Status::invalid_value);
    }
    POLDER_ASSIGN(code, target.kernel->code(*target.on));
    switch (name) {
    case CL_KERNEL_LOCAL_MEM_SIZE:
        return info.value<cl_ulong>(runtime::local_bytes_used(*code, *target.kernel->arguments()));
    case CL_KERNEL_PRIVATE_MEM_SIZE: return info.value<cl_ulong>(code->limits().private_bytes_per_work_item);
    default: return info.value<size_t>(code->limits().preferred_multiple);
    }
}

struct SubGroupInput {
    size_t size;
    const void* value;
};

// The number of work-items in the work-group size that a query for an ND-range gets as input.
Result<size_t> input_group_size(const SubGroupInput& input) {
    const size_t dimensions = input.size / sizeof(size_t);
    // CL_INVALID_VALUE: input_value is not a size of one to three dimensions.
    if (!input.value || input.size % sizeof(size_t) || dimensions < 1 || dimensions > 3)
        return fail(Status::invalid_value);
    size_t product = 1;
    for (size_t d = 0; d < dimensions; ++d)
        product *= static_cast<const size_t*>(input.value)[d];
    return product;
}

bool has_host_code(const KernelAndDevice& target) {
    return target.device->info().code.format == driver::CodeFormat::host_function;
}

size_t sub_group_size(const KernelAndDevice& target) {
    if (!has_host_code(target))
        return target.device->info().code.sub_group_size;
    return target.on->info->reqd_sub_group_size.value_or(compiler::default_sub_group_size());
}

size_t sub_group_count(const KernelAndDevice& target, size_t group_size) {
    const size_t size = sub_group_size(target);
    return size == 0 ? 0 : (group_size + size - 1) / size;
}

// A local size with `count` sub-groups and at most `dimensions` dimensions; zeros when there is none.
runtime::Size3 local_size_for(const KernelAndDevice& target, size_t count, size_t dimensions, size_t group_max) {
    if (const auto& required = target.on->info->reqd_work_group_size) {
        const runtime::Size3& size = *required;
        const bool has_room = (dimensions > 1 || size[1] == 1) && (dimensions > 2 || size[2] == 1);
        const bool is_count = sub_group_count(target, size[0] * size[1] * size[2]) == count;
        return has_room && is_count ? size : runtime::Size3{0, 0, 0};
    }
    const size_t size = sub_group_size(target);
    return size > 0 && count > 0 && count <= group_max / size ? runtime::Size3{count * size, 1, 1}
                                                              : runtime::Size3{0, 0, 0};
}

Result<void> answer_local_size(const KernelAndDevice& target, const SubGroupInput& input, const Info& info) {
    // CL_INVALID_VALUE: input_value is not a number of sub-groups.
    if (!input.value || input.size != sizeof(size_t))
        return fail(Status::invalid_value);
    // The size of param_value determines how many dimensions are returned.
    const size_t dimensions = info.place() ? std::min(info.capacity() / sizeof(size_t), size_t{3}) : size_t{3};
    // CL_INVALID_VALUE: param_value is too small for one dimension.
    if (dimensions < 1)
        return fail(Status::invalid_value);
    POLDER_ASSIGN(group_max, group_size_max(target));
    const runtime::Size3 size = local_size_for(target, *static_cast<const size_t*>(input.value), dimensions, group_max);
    const std::array<size_t, 3> local{size[0], size[1], size[2]};
    return info.array(std::span<const size_t>(local).first(dimensions));
}

Result<void> answer_sub_group(const KernelAndDevice& target, cl_kernel_sub_group_info name, const SubGroupInput& input,
                              const Info& info) {
    switch (name) {
    case CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE: {
        POLDER_ASSIGN(size, input_group_size(input));
        return info.value<size_t>(std::min(size, sub_group_size(target)));
    }
    case CL_KERNEL_SUB_GROUP_COUNT_FOR_NDRANGE: {
        POLDER_ASSIGN(size, input_group_size(input));
        return info.value<size_t>(sub_group_count(target, size));
    }
    case CL_KERNEL_LOCAL_SIZE_FOR_SUB_GROUP_COUNT: return answer_local_size(target, input, info);
    case CL_KERNEL_MAX_NUM_SUB_GROUPS: {
        POLDER_ASSIGN(size, group_size_max(target));
        return info.value<size_t>(sub_group_count(target, size));
    }
    // 0: OpenCL C has no attribute that requires a number of sub-groups.
    case CL_KERNEL_COMPILE_NUM_SUB_GROUPS: return info.value<size_t>(0);
    case CL_KERNEL_COMPILE_SUB_GROUP_SIZE_INTEL:
        return info.value<size_t>(target.on->info->reqd_sub_group_size.value_or(0));
    // CL_INVALID_VALUE: param_name is unknown.
    default: return fail(Status::invalid_value);
    }
}

}  // namespace

CL_API_ENTRY cl_int CL_API_CALL clGetKernelInfo(cl_kernel kernel, cl_kernel_info param_name, size_t param_value_size,
                                                void* param_value, size_t* param_value_size_ret) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(object, from_handle<Kernel>(kernel));
        return answer_kernel(*object, param_name, Info{param_value_size, param_value, param_value_size_ret});
    });
}

CL_API_ENTRY cl_int CL_API_CALL clGetKernelArgInfo(cl_kernel kernel, cl_uint arg_index, cl_kernel_arg_info param_name,
                                                   size_t param_value_size, void* param_value,
                                                   size_t* param_value_size_ret) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(object, from_handle<Kernel>(kernel));
        // CL_INVALID_ARG_INDEX: the kernel has no argument arg_index.
        if (arg_index >= object->info().arguments.size())
            return fail(Status::invalid_arg_index);
        // CL_KERNEL_ARG_INFO_NOT_AVAILABLE: the program was built without -cl-kernel-arg-info.
        if (!object->info().has_argument_info)
            return fail(Status::kernel_arg_info_not_available);
        return answer_argument(object->info().arguments[arg_index], param_name,
                               Info{param_value_size, param_value, param_value_size_ret});
    });
}

CL_API_ENTRY cl_int CL_API_CALL clGetKernelWorkGroupInfo(cl_kernel kernel, cl_device_id device,
                                                         cl_kernel_work_group_info param_name, size_t param_value_size,
                                                         void* param_value, size_t* param_value_size_ret) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(target, kernel_on_device(kernel, device));
        return answer_work_group(target, param_name, Info{param_value_size, param_value, param_value_size_ret});
    });
}

CL_API_ENTRY cl_int CL_API_CALL clGetKernelSubGroupInfo(cl_kernel kernel, cl_device_id device,
                                                        cl_kernel_sub_group_info param_name, size_t input_value_size,
                                                        const void* input_value, size_t param_value_size,
                                                        void* param_value, size_t* param_value_size_ret) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(target, kernel_on_device(kernel, device));
        return answer_sub_group(target, param_name, {input_value_size, input_value},
                                Info{param_value_size, param_value, param_value_size_ret});
    });
}

CL_API_ENTRY cl_int CL_API_CALL clGetKernelSubGroupInfoKHR(cl_kernel kernel, cl_device_id device,
                                                           cl_kernel_sub_group_info param_name, size_t input_value_size,
                                                           const void* input_value, size_t param_value_size,
                                                           void* param_value, size_t* param_value_size_ret) {
    return clGetKernelSubGroupInfo(kernel, device, param_name, input_value_size, input_value, param_value_size,
                                   param_value, param_value_size_ret);
}
