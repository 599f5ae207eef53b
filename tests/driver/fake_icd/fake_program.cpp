// Programs and kernels. A program is its text; a text with the word "refused" does not build. Its binary is the text behind a line. Kernels that
// are not registered get their parameters from the text.
#include "fake_functions.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

using namespace polder::fake_icd;

namespace {

using Kind = polder::driver::KernelParameter::Kind;

constexpr std::string_view binary_line = "fake binary\n";

// "read_only image2d_t" and so on. As NVIDIA's implementation has them in binaries: "any image".
std::optional<_cl_kernel::Parameter> image_parameter_of(std::string_view text) {
    const auto has = [&](std::string_view word) { return text.find(word) != text.npos; };
    if (has("any image"))
        return _cl_kernel::Parameter{Kind::image, 8};
    const cl_mem_flags refused = has("read_only ")    ? CL_MEM_WRITE_ONLY
                                 : has("write_only ") ? CL_MEM_READ_ONLY
                                                      : CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY;
    for (const auto& [name, type] : {std::pair{"image2d_t", CL_MEM_OBJECT_IMAGE2D},
                                     {"image3d_t", CL_MEM_OBJECT_IMAGE3D},
                                     {"image2d_array_t", CL_MEM_OBJECT_IMAGE2D_ARRAY},
                                     {"image1d_t", CL_MEM_OBJECT_IMAGE1D},
                                     {"image1d_array_t", CL_MEM_OBJECT_IMAGE1D_ARRAY},
                                     {"image1d_buffer_t", CL_MEM_OBJECT_IMAGE1D_BUFFER}})
        if (has(name))
            return _cl_kernel::Parameter{Kind::image, 8, static_cast<cl_mem_object_type>(type), refused};
    return std::nullopt;
}

// "global int* a" and so on. Nothing for a type that is not known here.
std::optional<_cl_kernel::Parameter> parameter_of(std::string_view text) {
    const auto has = [&](std::string_view word) { return text.find(word) != text.npos; };
    if (has("local "))
        return _cl_kernel::Parameter{Kind::local_pointer, 0};
    if (has("*"))
        return _cl_kernel::Parameter{Kind::global_pointer, 8};
    if (has("image"))
        return image_parameter_of(text);
    if (has("sampler_t"))
        return _cl_kernel::Parameter{Kind::sampler, 8};
    for (const auto& [name, size] :
         {std::pair{"char ", 1u}, {"int ", 4u}, {"long ", 8u}, {"float4 ", 16u}, {"struct12 ", 12u}})
        if (has(name))
            return _cl_kernel::Parameter{Kind::value, size};
    // Without a size, as other implementations have it for structures in binaries.
    if (has("struct "))
        return _cl_kernel::Parameter{Kind::value, 0};
    return std::nullopt;
}

void read_parameters(std::string_view list, _cl_kernel& kernel) {
    if (list.find_first_not_of(' ') == list.npos)
        return;
    for (size_t begin = 0; begin <= list.size();) {
        const size_t end = std::min(list.find(',', begin), list.size());
        kernel.parameters.push_back(parameter_of(list.substr(begin, end - begin)));
        begin = end + 1;
    }
}

std::string names_of(const std::string& source) {
    constexpr std::string_view before = "kernel void ";
    std::string names;
    for (size_t at = source.find(before); at != source.npos; at = source.find(before, at + 1)) {
        const size_t begin = at + before.size();
        names += (names.empty() ? "" : ";") + source.substr(begin, source.find('(', begin) - begin);
    }
    return names;
}

cl_int build(cl_program program, const char* call) {
    if (const cl_int code = enter(call))
        return code;
    if (program->source.find("refused") == std::string::npos) {
        program->is_built = true;
        return CL_SUCCESS;
    }
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
cl_program CL_API_CALL create_with_binary(cl_context context, cl_uint, const cl_device_id*, const size_t* sizes,
                                          const unsigned char** binaries, cl_int* status, cl_int* code) {
    *code = enter("clCreateProgramWithBinary");
    const std::string_view bytes(reinterpret_cast<const char*>(binaries[0]), sizes[0]);
    if (*code == CL_SUCCESS && !bytes.starts_with(binary_line))
        *code = CL_INVALID_BINARY;
    if (status)
        *status = *code;
    if (*code)
        return nullptr;
    auto program = std::make_unique<_cl_program>(context);
    program->source = bytes.substr(binary_line.size());
    return program.release();
}
cl_int CL_API_CALL program_info(cl_program program, cl_program_info name, size_t capacity, void* to, size_t* size) {
    if (const cl_int code = enter("clGetProgramInfo"))
        return code;
    const std::string binary = std::string(binary_line) + program->source;
    const std::string names = names_of(program->source);
    size_t bytes = sizeof(size_t);
    if (name == CL_PROGRAM_KERNEL_NAMES) {
        // Intel's implementation crashes when the program was not built.
        if (!program->is_built)
            std::abort();
        bytes = names.size() + 1;
        if (to)
            std::memcpy(to, names.c_str(), std::min(bytes, capacity));
    } else if (name == CL_PROGRAM_BINARIES) {
        std::memcpy(*static_cast<unsigned char**>(to), binary.data(), binary.size());
    } else {
        *static_cast<size_t*>(to) = binary.size();
    }
    if (size)
        *size = bytes;
    return CL_SUCCESS;
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
        read_parameters(std::string_view(program->source).substr(begin, program->source.find(')', begin) - begin),
                        *kernel);
        kernel->argument_count = static_cast<cl_uint>(kernel->parameters.size());
    }
    for (const polder::driver::KernelParameter& parameter : kernel->code.parameters)
        kernel->parameters.push_back(_cl_kernel::Parameter{parameter.kind, parameter.size});
    kernel->arguments.resize(kernel->argument_count);
    return kernel.release();
}
cl_int CL_API_CALL release_kernel(cl_kernel kernel) {
    release(kernel);
    return CL_SUCCESS;
}
cl_int check_image(const _cl_kernel::Parameter& parameter, cl_mem image) {
    if (!image || (parameter.image && image->type != parameter.image))
        return CL_INVALID_MEM_OBJECT;
    return image->image_flags & parameter.refused ? CL_INVALID_ARG_VALUE : CL_SUCCESS;
}
cl_int check_argument(const _cl_kernel::Parameter& parameter, size_t size, const void* value) {
    uint64_t handle = 0;
    if (value && size == sizeof handle)
        std::memcpy(&handle, value, sizeof handle);
    switch (parameter.kind) {
    case Kind::local_pointer: return value ? CL_INVALID_ARG_VALUE : CL_SUCCESS;
    case Kind::global_pointer:
    case Kind::constant_pointer: return size == sizeof handle ? CL_SUCCESS : CL_INVALID_ARG_SIZE;
    case Kind::image: return check_image(parameter, reinterpret_cast<cl_mem>(handle));
    case Kind::sampler: return handle ? CL_SUCCESS : CL_INVALID_SAMPLER;
    default: break;
    }
    if (!value)
        return CL_INVALID_ARG_VALUE;
    return parameter.size == 0 || size == parameter.size ? CL_SUCCESS : CL_INVALID_ARG_SIZE;
}

cl_int CL_API_CALL set_argument(cl_kernel kernel, cl_uint index, size_t size, const void* value) {
    if (const cl_int code = enter("clSetKernelArg"))
        return code;
    if (index >= kernel->argument_count)
        return CL_INVALID_ARG_INDEX;
    if (kernel->parameters[index])
        if (const cl_int code = check_argument(*kernel->parameters[index], size, value))
            return code;
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
    if (name == CL_KERNEL_COMPILE_WORK_GROUP_SIZE) {
        const size_t required[3] = {};
        std::memcpy(to, required, sizeof required);
        return CL_SUCCESS;
    }
    const uint64_t value = name == CL_KERNEL_WORK_GROUP_SIZE    ? 512
                           : name == CL_KERNEL_LOCAL_MEM_SIZE   ? kernel->code.local_bytes
                           : name == CL_KERNEL_PRIVATE_MEM_SIZE ? 16
                                                                : 4;
    std::memcpy(to, &value, size);
    return CL_SUCCESS;
}

}  // namespace

void add_program_functions(cl_icd_dispatch& table) {
    table.clCreateProgramWithSource = guarded<create_program>;
    table.clCreateProgramWithBinary = guarded<create_with_binary>;
    table.clGetProgramInfo = guarded<program_info>;
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
