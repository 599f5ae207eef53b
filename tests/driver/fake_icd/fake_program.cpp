// Programs and kernels. A program is its text; a text with the word "refused" does not build.
#include "fake_functions.h"

#include <algorithm>
#include <cstring>

using namespace polder::fake_icd;

namespace {

cl_int build(cl_program program, const char* call) {
    if (const cl_int code = enter(call))
        return code;
    if (program->source.find("refused") == std::string::npos)
        return CL_SUCCESS;
    program->log = "fake: this text is refused";
    return CL_BUILD_PROGRAM_FAILURE;
}

cl_program CL_API_CALL create_program(cl_context context, cl_uint count, const char** texts, const size_t* sizes,
                                      cl_int* code) {
    *code = enter("clCreateProgramWithSource");
    if (*code)
        return nullptr;
    auto program = std::make_unique<_cl_program>(context);
    for (cl_uint i = 0; i < count; ++i)
        program->source.append(texts[i], sizes[i]);
    return program.release();
}
cl_int CL_API_CALL release_program(cl_program program) {
    release(program);
    return CL_SUCCESS;
}
cl_int CL_API_CALL build_program(cl_program program, cl_uint, const cl_device_id*, const char*,
                                 void(CL_CALLBACK*)(cl_program, void*), void*) {
    return build(program, "clBuildProgram");
}
cl_int CL_API_CALL compile_program(cl_program program, cl_uint, const cl_device_id*, const char*, cl_uint,
                                   const cl_program*, const char**, void(CL_CALLBACK*)(cl_program, void*), void*) {
    return build(program, "clCompileProgram");
}
cl_program CL_API_CALL link_program(cl_context context, cl_uint, const cl_device_id*, const char*, cl_uint count,
                                    const cl_program* inputs, void(CL_CALLBACK*)(cl_program, void*), void*,
                                    cl_int* code) {
    *code = enter("clLinkProgram");
    if (*code)
        return nullptr;
    auto program = std::make_unique<_cl_program>(context);
    for (cl_uint i = 0; i < count; ++i)
        program->source += inputs[i]->source;
    return program.release();
}
cl_int CL_API_CALL program_build_info(cl_program program, cl_device_id, cl_program_build_info, size_t capacity,
                                      void* to, size_t* size) {
    const size_t bytes = program->log.size() + 1;
    if (size)
        *size = bytes;
    if (to)
        std::memcpy(to, program->log.c_str(), std::min(bytes, capacity));
    return CL_SUCCESS;
}

cl_kernel CL_API_CALL create_kernel(cl_program program, const char* name, cl_int* code) {
    *code = enter("clCreateKernel");
    const size_t at = program->source.find(std::string(name) + "(");
    if (*code == CL_SUCCESS && at == std::string::npos)
        *code = CL_INVALID_KERNEL_NAME;
    if (*code)
        return nullptr;
    auto kernel = std::make_unique<_cl_kernel>();
    kernel->code = find_kernel(name);
    kernel->argument_count = static_cast<cl_uint>(kernel->code.parameters.size());
    if (!kernel->code.function) {
        const size_t begin = program->source.find('(', at) + 1;
        const std::string list = program->source.substr(begin, program->source.find(')', begin) - begin);
        if (list.find_first_not_of(' ') != std::string::npos)
            kernel->argument_count = static_cast<cl_uint>(std::ranges::count(list, ',') + 1);
    }
    kernel->arguments.resize(kernel->argument_count);
    return kernel.release();
}
cl_int CL_API_CALL release_kernel(cl_kernel kernel) {
    release(kernel);
    return CL_SUCCESS;
}
cl_int CL_API_CALL set_argument(cl_kernel kernel, cl_uint index, size_t size, const void* value) {
    if (const cl_int code = enter("clSetKernelArg"))
        return code;
    if (index >= kernel->argument_count)
        return CL_INVALID_ARG_INDEX;
    _cl_kernel::Argument& argument = kernel->arguments[index];
    const auto* const bytes = static_cast<const std::byte*>(value);
    argument.value.assign(bytes, bytes ? bytes + size : bytes);
    argument.local_bytes = bytes ? 0 : size;
    return CL_SUCCESS;
}
cl_int CL_API_CALL kernel_info(cl_kernel kernel, cl_kernel_info, size_t, void* to, size_t*) {
    std::memcpy(to, &kernel->argument_count, sizeof kernel->argument_count);
    return CL_SUCCESS;
}
cl_int CL_API_CALL kernel_work_group_info(cl_kernel kernel, cl_device_id, cl_kernel_work_group_info name, size_t size,
                                          void* to, size_t*) {
    const uint64_t value = name == CL_KERNEL_WORK_GROUP_SIZE    ? 512
                           : name == CL_KERNEL_LOCAL_MEM_SIZE   ? kernel->code.local_bytes
                           : name == CL_KERNEL_PRIVATE_MEM_SIZE ? 16
                                                                : 4;
    std::memcpy(to, &value, size);
    return CL_SUCCESS;
}

} // namespace

void add_program_functions(cl_icd_dispatch& table) {
    table.clCreateProgramWithSource = guarded<create_program>;
    table.clReleaseProgram = guarded<release_program>;
    table.clBuildProgram = guarded<build_program>;
    table.clCompileProgram = guarded<compile_program>;
    table.clLinkProgram = guarded<link_program>;
    table.clGetProgramBuildInfo = guarded<program_build_info>;
    table.clCreateKernel = guarded<create_kernel>;
    table.clReleaseKernel = guarded<release_kernel>;
    table.clSetKernelArg = guarded<set_argument>;
    table.clGetKernelInfo = guarded<kernel_info>;
    table.clGetKernelWorkGroupInfo = guarded<kernel_work_group_info>;
}
