// Program objects: creation and queries. OpenCL 3.0, sections 5.8.1 to 5.8.3 and 5.8.7.
#include "device_list.h"

#include <runtime/program.h>

#include <cstring>

using namespace polder;
using namespace polder::api;
using runtime::BuiltModule;
using runtime::Context;
using runtime::Device;
using runtime::DeviceBuild;
using runtime::Program;

namespace {

Result<std::string> joined_source(cl_uint count, const char** strings, const size_t* lengths) {
    // CL_INVALID_VALUE: count is 0, or strings or an entry of it is null.
    if (count == 0 || !strings)
        return fail(Status::invalid_value);
    std::string source;
    for (cl_uint i = 0; i < count; ++i) {
        if (!strings[i])  // CL_INVALID_VALUE, as above
            return fail(Status::invalid_value);
        // A length of 0 means a null-terminated string. A length may include bytes after the text, which ends at the first null.
        const size_t length = lengths ? lengths[i] : 0;
        source.append(strings[i], length != 0 ? strnlen(strings[i], length) : std::strlen(strings[i]));
    }
    return source;
}

struct BinaryList {
    const size_t* lengths;
    const unsigned char** binaries;
    cl_int* status;  // may be null
};

// The binaries that were read for a program. Devices with the same target and the same bytes share one.
class ReadBinaries {
public:
    Result<std::shared_ptr<const BuiltModule>> get(Device& device, std::span<const std::byte> bytes) {
        for (const Entry& entry : entries_)
            if (entry.target == &device.target() && std::ranges::equal(entry.bytes, bytes))
                return entry.built;
        POLDER_ASSIGN(built, runtime::from_binary(bytes, device));
        entries_.push_back({&device.target(), bytes, std::make_shared<const BuiltModule>(std::move(built))});
        return entries_.back().built;
    }

private:
    struct Entry {
        const compiler::Target* target;
        std::span<const std::byte> bytes;
        std::shared_ptr<const BuiltModule> built;
    };
    std::vector<Entry> entries_;
};

// Loads one binary for each device. Writes all entries of binary_status, also after a binary that is refused.
Result<void> load_binaries(Program& program, cl_uint count, const cl_device_id* list, const BinaryList& given) {
    Result<void> outcome;
    ReadBinaries binaries;
    for (cl_uint i = 0; i < count; ++i) {
        Error error{Status::success};
        if (given.lengths[i] == 0 || !given.binaries[i]) {
            error = Error{Status::invalid_value};
        } else {
            POLDER_ASSIGN(device, from_handle<Device>(list[i]));
            auto built = binaries.get(*device, std::as_bytes(std::span{given.binaries[i], given.lengths[i]}));
            if (built)
                program.set_binary(*device, std::move(*built));
            else
                error = Error{Status::invalid_binary, std::string(built.error().detail())};
        }
        if (given.status)
            given.status[i] = static_cast<cl_int>(error.status());
        if (error.status() != Status::success)
            outcome = fail(error);
    }
    return outcome;
}

std::vector<std::vector<std::byte>> binaries_of(const Program& program) {
    std::vector<std::vector<std::byte>> binaries;
    for (const Ref<Device>& device : program.devices()) {
        const DeviceBuild build = program.device_build(*device);
        binaries.push_back(build.built ? runtime::to_binary(build, *device) : std::vector<std::byte>{});
    }
    return binaries;
}

Result<void> answer_binary_sizes(const Program& program, const Info& info) {
    std::vector<size_t> sizes;
    for (const std::vector<std::byte>& binary : binaries_of(program))
        sizes.push_back(binary.size());
    return info.array(sizes);
}

// param_value is an array of pointers; each binary is copied to where its pointer points. Null pointers are skipped.
Result<void> answer_binaries(const Program& program, const Info& info) {
    const std::vector<std::vector<std::byte>> binaries = binaries_of(program);
    const size_t size = binaries.size() * sizeof(unsigned char*);
    // CL_INVALID_VALUE: param_value_size is less than the size of the result.
    if (info.place() && info.capacity() < size)
        return fail(Status::invalid_value);
    if (auto* const places = static_cast<unsigned char**>(info.place()))
        for (size_t i = 0; i < binaries.size(); ++i)
            if (places[i] && !binaries[i].empty())
                std::memcpy(places[i], binaries[i].data(), binaries[i].size());
    if (info.size_ret())
        *info.size_ret() = size;
    return {};
}

Result<void> answer_devices(const Program& program, const Info& info) {
    std::vector<cl_device_id> devices;
    for (const Ref<Device>& device : program.devices())
        devices.push_back(handle_of<cl_device_id>(device.get()));
    return info.array(devices);
}

// The queries that need an executable for at least one device.
Result<void> answer_executable(const Program& program, cl_program_info name, const Info& info) {
    const std::shared_ptr<const runtime::BuiltModule> built = program.any_executable();
    // CL_INVALID_PROGRAM_EXECUTABLE: the program has no executable for any device.
    if (!built)
        return fail(Status::invalid_program_executable);
    std::string names;
    switch (name) {
    case CL_PROGRAM_NUM_KERNELS: return info.value<size_t>(built->module->kernels().size());
    case CL_PROGRAM_KERNEL_NAMES:
        for (const compiler::KernelInfo& kernel : built->module->kernels())
            names.append(names.empty() ? "" : ";").append(kernel.name);
        return info.string(names);
    // OpenCL C has no constructors and destructors.
    default: return info.value<cl_bool>(CL_FALSE);
    }
}

Result<void> answer_program(const Program& program, cl_program_info name, const Info& info) {
    switch (name) {
    case CL_PROGRAM_REFERENCE_COUNT: return info.value<cl_uint>(program.api_references());
    case CL_PROGRAM_CONTEXT: return info.value(handle_of<cl_context>(&program.context()));
    case CL_PROGRAM_NUM_DEVICES: return info.value(static_cast<cl_uint>(program.devices().size()));
    case CL_PROGRAM_DEVICES: return answer_devices(program, info);
    case CL_PROGRAM_SOURCE: return info.string(program.source());
    // Empty when the program was not created from an intermediate language.
    case CL_PROGRAM_IL: return info.bytes(program.il().data(), program.il().size());
    case CL_PROGRAM_BINARY_SIZES: return answer_binary_sizes(program, info);
    case CL_PROGRAM_BINARIES: return answer_binaries(program, info);
    case CL_PROGRAM_NUM_KERNELS:
    case CL_PROGRAM_KERNEL_NAMES:
    case CL_PROGRAM_SCOPE_GLOBAL_CTORS_PRESENT:
    case CL_PROGRAM_SCOPE_GLOBAL_DTORS_PRESENT: return answer_executable(program, name, info);
    // CL_INVALID_VALUE: param_name is unknown.
    default: return fail(Status::invalid_value);
    }
}

cl_program_binary_type binary_type(const DeviceBuild& build) {
    if (!build.built)
        return CL_PROGRAM_BINARY_TYPE_NONE;
    switch (build.built->module->kind()) {
    case compiler::ModuleKind::compiled_object: return CL_PROGRAM_BINARY_TYPE_COMPILED_OBJECT;
    case compiler::ModuleKind::library: return CL_PROGRAM_BINARY_TYPE_LIBRARY;
    default: return CL_PROGRAM_BINARY_TYPE_EXECUTABLE;
    }
}

Result<void> answer_build(const DeviceBuild& build, cl_program_build_info name, const Info& info) {
    switch (name) {
    case CL_PROGRAM_BUILD_STATUS: return info.value<cl_build_status>(build.status);
    case CL_PROGRAM_BUILD_OPTIONS: return info.string(build.options);
    case CL_PROGRAM_BUILD_LOG: return info.string(build.log);
    case CL_PROGRAM_BINARY_TYPE: return info.value<cl_program_binary_type>(binary_type(build));
    case CL_PROGRAM_BUILD_GLOBAL_VARIABLE_TOTAL_SIZE:
        return info.value<size_t>(build.built ? build.built->module->program_variables().image.size() : 0);
    // CL_INVALID_VALUE: param_name is unknown.
    default: return fail(Status::invalid_value);
    }
}

Result<Ref<Program>> program_with_devices(Context& context, cl_uint num_devices, const cl_device_id* list) {
    POLDER_ASSIGN(devices, device_list(context.devices(), num_devices, list, AbsentList::invalid));
    return make_ref<Program>(Ref<Context>::share(&context), std::move(devices), Program::Origin::binary, "");
}

}  // namespace

CL_API_ENTRY cl_program CL_API_CALL clCreateProgramWithSource(cl_context context, cl_uint count, const char** strings,
                                                              const size_t* lengths, cl_int* errcode_ret) {
    return create<cl_program>(errcode_ret, [&]() -> Result<cl_program> {
        POLDER_ASSIGN(owner, from_handle<Context>(context));
        POLDER_ASSIGN(source, joined_source(count, strings, lengths));
        const std::span<const Ref<Device>> devices = owner->devices();
        return expose<cl_program>(make_ref<Program>(Ref<Context>::share(owner),
                                                    std::vector<Ref<Device>>(devices.begin(), devices.end()),
                                                    Program::Origin::source, std::move(source)));
    });
}

CL_API_ENTRY cl_program CL_API_CALL clCreateProgramWithBinary(cl_context context, cl_uint num_devices,
                                                              const cl_device_id* list, const size_t* lengths,
                                                              const unsigned char** binaries, cl_int* binary_status,
                                                              cl_int* errcode_ret) {
    return create<cl_program>(errcode_ret, [&]() -> Result<cl_program> {
        POLDER_ASSIGN(owner, from_handle<Context>(context));
        POLDER_ASSIGN(program, program_with_devices(*owner, num_devices, list));
        // CL_INVALID_VALUE: lengths or binaries is null.
        if (!lengths || !binaries)
            return fail(Status::invalid_value);
        POLDER_TRY(load_binaries(*program, num_devices, list, {lengths, binaries, binary_status}));
        return expose<cl_program>(program);
    });
}

CL_API_ENTRY cl_program CL_API_CALL clCreateProgramWithBuiltInKernels(cl_context context, cl_uint num_devices,
                                                                      const cl_device_id* list,
                                                                      const char* kernel_names, cl_int* errcode_ret) {
    return create<cl_program>(errcode_ret, [&]() -> Result<cl_program> {
        POLDER_ASSIGN(owner, from_handle<Context>(context));
        POLDER_TRY(program_with_devices(*owner, num_devices, list));
        // CL_INVALID_VALUE: kernel_names is null or names kernels that no device has: there are no built-in kernels.
        static_cast<void>(kernel_names);
        return fail(Status::invalid_value);
    });
}

CL_API_ENTRY cl_program CL_API_CALL clCreateProgramWithIL(cl_context context, const void* il, size_t length,
                                                          cl_int* errcode_ret) {
    return create<cl_program>(errcode_ret, [&]() -> Result<cl_program> {
        POLDER_ASSIGN(owner, from_handle<Context>(context));
        // CL_INVALID_VALUE: il is null or length is 0 (this check), or the bytes are not a module (inspect_spirv).
        if (!il || length == 0)
            return fail(Status::invalid_value);
        POLDER_ASSIGN(constants, compiler::inspect_spirv({static_cast<const std::byte*>(il), length}));
        const std::span<const Ref<Device>> devices = owner->devices();
        auto program =
            make_ref<Program>(Ref<Context>::share(owner), std::vector<Ref<Device>>(devices.begin(), devices.end()),
                              Program::Origin::il, std::string(static_cast<const char*>(il), length));
        program->set_constants(std::move(constants));
        return expose<cl_program>(std::move(program));
    });
}

CL_API_ENTRY cl_program CL_API_CALL clCreateProgramWithILKHR(cl_context context, const void* il, size_t length,
                                                             cl_int* errcode_ret) {
    return clCreateProgramWithIL(context, il, length, errcode_ret);
}

CL_API_ENTRY cl_int CL_API_CALL clRetainProgram(cl_program program) {
    return entry([&] { return retain<Program>(program); });
}

CL_API_ENTRY cl_int CL_API_CALL clReleaseProgram(cl_program program) {
    return entry([&] { return release<Program>(program); });
}

CL_API_ENTRY cl_int CL_API_CALL clSetProgramReleaseCallback(cl_program program,
                                                            void(CL_CALLBACK* pfn_notify)(cl_program, void*), void*) {
    return entry([&]() -> Result<void> {
        POLDER_TRY(from_handle<Program>(program));
        // CL_INVALID_VALUE: pfn_notify is null.
        if (!pfn_notify)
            return fail(Status::invalid_value);
        // CL_INVALID_OPERATION: no device supports destructors of program-scope variables.
        return fail(Status::invalid_operation);
    });
}

CL_API_ENTRY cl_int CL_API_CALL clSetProgramSpecializationConstant(cl_program program, cl_uint spec_id,
                                                                   size_t spec_size, const void* spec_value) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(object, from_handle<Program>(program));
        // CL_INVALID_PROGRAM: the program was not created from an intermediate language.
        if (object->origin() != Program::Origin::il)
            return fail(Status::invalid_program);
        // CL_INVALID_VALUE: spec_value is null (this check), or spec_size is not the size of the constant (specialize).
        if (!spec_value)
            return fail(Status::invalid_value);
        return object->specialize(spec_id, {static_cast<const std::byte*>(spec_value), spec_size});
    });
}

CL_API_ENTRY cl_int CL_API_CALL clGetProgramInfo(cl_program program, cl_program_info param_name,
                                                 size_t param_value_size, void* param_value,
                                                 size_t* param_value_size_ret) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(object, from_handle<Program>(program));
        return answer_program(*object, param_name, Info{param_value_size, param_value, param_value_size_ret});
    });
}

CL_API_ENTRY cl_int CL_API_CALL clGetProgramBuildInfo(cl_program program, cl_device_id device,
                                                      cl_program_build_info param_name, size_t param_value_size,
                                                      void* param_value, size_t* param_value_size_ret) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(object, from_handle<Program>(program));
        POLDER_ASSIGN(on, from_handle<Device>(device));
        // CL_INVALID_DEVICE: device is not one of the program.
        if (!object->has(*on))
            return fail(Status::invalid_device);
        return answer_build(object->device_build(*on), param_name,
                            Info{param_value_size, param_value, param_value_size_ret});
    });
}
