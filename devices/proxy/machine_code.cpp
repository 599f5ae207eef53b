// The form: who made it, a null, the implementation's bytes.
#include <cstring>
#include <proxy/machine_code.h>

namespace polder::proxy {
namespace {

std::string platform_text(const ForeignContext& context, cl_platform_info what) {
    char text[1024] = {};
    if (context.cl.clGetPlatformInfo(context.platform, what, sizeof text - 1, text, nullptr) != CL_SUCCESS)
        return {};
    return text;
}

// No text contains a null.
std::string maker_of(const ForeignContext& context) {
    std::string maker = platform_text(context, CL_PLATFORM_NAME) + "; " + platform_text(context, CL_PLATFORM_VERSION);
    for (const cl_device_info what : {CL_DEVICE_NAME, CL_DEVICE_VERSION, CL_DRIVER_VERSION})
        maker += "; " + ask_text(context.cl, context.device, what);
    return maker;
}

}  // namespace

std::string named_machine_code(const ForeignContext& context, std::string_view bytes) {
    return maker_of(context).append(1, '\0').append(bytes);
}

std::string machine_code_of(const ForeignContext& context, cl_program program) {
    const cl_icd_dispatch& cl = context.cl;
    size_t size = 0;
    // The program has one device.
    if (!cl.clGetProgramInfo || !cl.clCreateProgramWithBinary ||
        cl.clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof size, &size, nullptr) != CL_SUCCESS || size == 0)
        return {};
    std::string bytes(size, '\0');
    auto* place = reinterpret_cast<unsigned char*>(bytes.data());
    if (cl.clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof place, static_cast<void*>(&place), nullptr) !=
        CL_SUCCESS)
        return {};
    return named_machine_code(context, bytes);
}

Result<cl_program> program_of(const ForeignContext& context, std::string_view machine_code,
                              const std::string& options) {
    const cl_icd_dispatch& cl = context.cl;
    const size_t end = machine_code.find('\0');
    const std::string_view maker = machine_code.substr(0, end);
    if (end == machine_code.npos || maker != maker_of(context))
        return fail(Status::invalid_binary, "error: the program was built by another implementation or version: " +
                                                std::string(maker) + "; this one is " + maker_of(context));
    if (!cl.clCreateProgramWithBinary)
        return fail(Status::invalid_binary, "error: " + context.name + " takes no binaries");
    const std::string_view bytes = machine_code.substr(end + 1);
    const auto* const begin = reinterpret_cast<const unsigned char*>(bytes.data());
    const size_t size = bytes.size();
    cl_int status = CL_SUCCESS;
    cl_int code = CL_SUCCESS;
    const cl_program program = cl.clCreateProgramWithBinary(context.handle, 1, &context.device, &size,
                                                            const_cast<const unsigned char**>(&begin), &status, &code);
    if (!program)
        return fail(Status::invalid_binary, "error: " + context.name + " refuses the binary: " + name_of(code));
    code = cl.clBuildProgram(program, 1, &context.device, options.c_str(), nullptr, nullptr);
    if (code == CL_SUCCESS)
        return program;
    cl.clReleaseProgram(program);
    return fail(Status::invalid_binary, "error: " + context.name + " does not build the binary: " + name_of(code));
}

}  // namespace polder::proxy
