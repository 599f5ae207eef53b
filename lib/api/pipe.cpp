// Pipes: creation and queries. Only kernels read and write them.
#include "entry.h"
#include "mem_flags.h"

#include <runtime/extensions.h>
#include <runtime/mem_object.h>

#include <algorithm>
#include <polder/pipe_abi.h>

using namespace polder;
using namespace polder::api;
using runtime::Context;
using runtime::MemObject;

namespace {

bool any_pipes(const Context& context) {
    return std::ranges::any_of(context.devices(), [](const auto& device) {
        return runtime::offers_feature(device->info(), "__opencl_c_pipes");
    });
}

// Checks the list of properties. A list without properties is one zero, which the query CL_PIPE_PROPERTIES returns.
Result<std::vector<cl_mem_properties>> check_properties(const cl_pipe_properties* properties) {
    // CL_INVALID_VALUE: properties is not empty; no properties of pipes are defined.
    if (properties && properties[0] != 0)
        return fail(Status::invalid_value);
    return properties ? std::vector<cl_mem_properties>{0} : std::vector<cl_mem_properties>{};
}

Result<Ref<MemObject>> create_pipe(cl_context handle, cl_mem_flags flags, cl_uint packet_bytes, cl_uint packets_max,
                                   const cl_pipe_properties* properties) {
    POLDER_ASSIGN(context, from_handle<Context>(handle));
    // CL_INVALID_OPERATION: no device of the context supports pipes.
    if (!any_pipes(*context))
        return fail(Status::invalid_operation);
    // CL_INVALID_VALUE: flags contain others than CL_MEM_READ_WRITE and CL_MEM_HOST_NO_ACCESS.
    if (flags & ~cl_mem_flags{CL_MEM_READ_WRITE | CL_MEM_HOST_NO_ACCESS})
        return fail(Status::invalid_value);
    POLDER_ASSIGN(kept, check_properties(properties));
    // CL_INVALID_PIPE_SIZE: pipe_max_packets is 0, or pipe_packet_size is 0 or exceeds CL_DEVICE_PIPE_MAX_PACKET_SIZE.
    if (packet_bytes == 0 || packets_max == 0 || packet_bytes > runtime::pipe_packet_bytes_max)
        return fail(Status::invalid_pipe_size);
    const uint64_t bytes = sizeof(PipeHeader) + uint64_t{packets_max} * (packet_bytes + sizeof(uint64_t));
    // CL_MEM_OBJECT_ALLOCATION_FAILURE: the packets do not fit into an allocation.
    if (bytes > context->max_allocation_bytes())
        return fail(Status::mem_object_allocation_failure);
    return context->reported(MemObject::create_pipe(Ref<Context>::share(context),
                                                    CL_MEM_READ_WRITE | CL_MEM_HOST_NO_ACCESS,
                                                    {packet_bytes, packets_max}, std::move(kept)));
}

Result<void> get_pipe_info(cl_mem handle, cl_pipe_info name, const Info& info) {
    POLDER_ASSIGN(object, from_handle<MemObject>(handle));
    // CL_INVALID_MEM_OBJECT: the object is not a pipe.
    if (!object->pipe())
        return fail(Status::invalid_mem_object);
    switch (name) {
    case CL_PIPE_PACKET_SIZE: return info.value<cl_uint>(object->pipe()->packet_bytes);
    case CL_PIPE_MAX_PACKETS: return info.value<cl_uint>(object->pipe()->packets_max);
    case CL_PIPE_PROPERTIES:
        return info.array(std::vector<cl_pipe_properties>(object->properties().begin(), object->properties().end()));
    // CL_INVALID_VALUE: param_name is unknown.
    default: return fail(Status::invalid_value);
    }
}

}  // namespace

CL_API_ENTRY cl_mem CL_API_CALL clCreatePipe(cl_context context, cl_mem_flags flags, cl_uint pipe_packet_size,
                                             cl_uint pipe_max_packets, const cl_pipe_properties* properties,
                                             cl_int* errcode_ret) {
    return create<cl_mem>(errcode_ret, [&]() -> Result<cl_mem> {
        POLDER_ASSIGN(pipe, create_pipe(context, flags, pipe_packet_size, pipe_max_packets, properties));
        return expose<cl_mem>(std::move(pipe));
    });
}

CL_API_ENTRY cl_int CL_API_CALL clGetPipeInfo(cl_mem pipe, cl_pipe_info param_name, size_t param_value_size,
                                              void* param_value, size_t* param_value_size_ret) {
    return entry(
        [&] { return get_pipe_info(pipe, param_name, Info{param_value_size, param_value, param_value_size_ret}); });
}
