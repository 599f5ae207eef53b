// Entry points for pipes, which are optional in OpenCL 3.0 and which Polder does not have. They check the other handles first.
#include "entry.h"

using namespace polder;
using namespace polder::api;
using runtime::Context;

namespace {

// CL_INVALID_OPERATION: no device of the context supports it.
template <class Handle>
Handle unsupported(cl_context context, cl_int* errcode_ret, const char* function = __builtin_FUNCTION()) {
    return create<Handle>(
        errcode_ret,
        [&]() -> Result<Handle> {
            POLDER_TRY(from_handle<Context>(context));
            return fail(Status::invalid_operation);
        },
        function);
}

}  // namespace

CL_API_ENTRY cl_mem CL_API_CALL clCreatePipe(cl_context context, cl_mem_flags, cl_uint, cl_uint,
                                             const cl_pipe_properties*, cl_int* errcode_ret) {
    return unsupported<cl_mem>(context, errcode_ret);
}
CL_API_ENTRY cl_int CL_API_CALL clGetPipeInfo(cl_mem, cl_pipe_info, size_t, void*, size_t*) {
    // CL_INVALID_MEM_OBJECT: no memory object is a pipe.
    return CL_INVALID_MEM_OBJECT;
}
