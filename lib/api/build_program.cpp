// Building, compiling and linking. OpenCL 3.0, sections 5.8.4 to 5.8.6.
#include "device_list.h"

#include <runtime/program.h>

using namespace polder;
using namespace polder::api;
using runtime::BuildRequest;
using runtime::Context;
using runtime::Device;
using runtime::DeviceBuild;
using runtime::Program;
using Step = BuildRequest::Step;

namespace {

struct Notification {
    BuildRequest::Notify function;
    void* user;
};

// False when there are user data but no function to pass them to.
bool is_valid(const Notification& notification) { return notification.function || !notification.user; }

struct HeaderList {
    cl_uint count;
    const cl_program* programs;
    const char** names;
};

Result<std::vector<compiler::NamedSource>> headers_of(const Program& program, const HeaderList& given) {
    // CL_INVALID_VALUE: num_input_headers is 0 and input_headers or header_include_names is not null, or the other way round.
    if ((given.count == 0) != (given.programs == nullptr) || (given.count == 0) != (given.names == nullptr))
        return fail(Status::invalid_value);
    std::vector<compiler::NamedSource> headers;
    for (cl_uint i = 0; i < given.count; ++i) {
        POLDER_ASSIGN(header, from_handle<Program>(given.programs[i]));
        // CL_INVALID_VALUE: the name of a header is null.
        if (!given.names[i])
            return fail(Status::invalid_value);
        // CL_INVALID_CONTEXT: a header is of another context.
        if (&header->context() != &program.context())
            return fail(Status::invalid_context);
        headers.push_back({given.names[i], std::string{header->source()}});
    }
    return headers;
}

Result<std::vector<Ref<Program>>> linked_programs(const Context& context, cl_uint count, const cl_program* list) {
    // CL_INVALID_VALUE: num_input_programs is 0 or input_programs is null.
    if (count == 0 || !list)
        return fail(Status::invalid_value);
    std::vector<Ref<Program>> programs;
    for (cl_uint i = 0; i < count; ++i) {
        POLDER_ASSIGN(program, from_handle<Program>(list[i]));
        // CL_INVALID_CONTEXT: an input program is of another context.
        if (&program->context() != &context)
            return fail(Status::invalid_context);
        programs.push_back(Ref<Program>::share(program));
    }
    return programs;
}

bool is_linkable(const Program& program, const Device& device) {
    if (!program.has(device))
        return false;
    const DeviceBuild build = program.device_build(device);
    return build.status != CL_BUILD_IN_PROGRESS && build.built &&
           build.built->module->kind() != compiler::ModuleKind::executable;
}

// The devices for which the programs are linked: those for which all programs have been compiled. A device for which none has been
// compiled is left out.
Result<std::vector<Ref<Device>>> linkable_devices(const std::vector<Ref<Program>>& programs,
                                                  const std::vector<Ref<Device>>& devices) {
    std::vector<Ref<Device>> linkable;
    for (const Ref<Device>& device : devices) {
        const auto count = std::ranges::count_if(
            programs, [&](const Ref<Program>& program) { return is_linkable(*program, *device); });
        if (static_cast<size_t>(count) == programs.size())
            linkable.push_back(device);
        else if (count !=
                 0)  // CL_INVALID_OPERATION: a device has compiled objects of some of the programs, but not of all.
            return fail(Status::invalid_operation);
    }
    // CL_INVALID_OPERATION: there is no device for which all programs have been compiled.
    if (linkable.empty())
        return fail(Status::invalid_operation);
    return linkable;
}

bool has_binaries(const Program& program, const std::vector<Ref<Device>>& devices) {
    return std::ranges::all_of(devices, [&](const Ref<Device>& device) {
        const DeviceBuild build = program.device_build(*device);
        return build.built && build.built->module->kind() == compiler::ModuleKind::executable;
    });
}

bool is_within(const Device& device, const Device& whole) {
    for (const Device* at = &device; at; at = at->parent())
        if (at == &whole)
            return true;
    return false;
}

// Adds those sub-devices of the listed devices that belong to the program: a build for a device is also one for its sub-devices.
std::vector<Ref<Device>> with_parts(std::span<const Ref<Device>> of_program, const std::vector<Ref<Device>>& listed) {
    std::vector<Ref<Device>> devices;
    for (const Ref<Device>& device : of_program)
        if (std::ranges::any_of(listed, [&](const Ref<Device>& whole) { return is_within(*device, *whole); }))
            devices.push_back(device);
    return devices;
}

}  // namespace

CL_API_ENTRY cl_int CL_API_CALL clBuildProgram(cl_program program, cl_uint num_devices, const cl_device_id* list,
                                               const char* options, void(CL_CALLBACK* pfn_notify)(cl_program, void*),
                                               void* user_data) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(object, from_handle<Program>(program));
        POLDER_ASSIGN(listed, device_list(object->devices(), num_devices, list, AbsentList::all));
        std::vector<Ref<Device>> devices = with_parts(object->devices(), listed);
        // CL_INVALID_VALUE: pfn_notify is null and user_data is not.
        if (!is_valid({pfn_notify, user_data}))
            return fail(Status::invalid_value);
        // CL_INVALID_OPERATION: the program has neither source nor a loaded binary, because clLinkProgram created it.
        if (object->origin() == Program::Origin::linked)
            return fail(Status::invalid_operation);
        // CL_INVALID_BINARY: no executable binary was loaded for a listed device.
        if (object->origin() == Program::Origin::binary && !has_binaries(*object, devices))
            return fail(Status::invalid_binary);
        return object->build({.step = Step::build,
                              .devices = std::move(devices),
                              .options = options ? options : "",
                              .options_are = options ? BuildRequest::Options::given : BuildRequest::Options::as_before,
                              .notify = pfn_notify,
                              .user = user_data});
    });
}

CL_API_ENTRY cl_int CL_API_CALL clCompileProgram(cl_program program, cl_uint num_devices, const cl_device_id* list,
                                                 const char* options, cl_uint num_input_headers,
                                                 const cl_program* input_headers, const char** header_include_names,
                                                 void(CL_CALLBACK* pfn_notify)(cl_program, void*), void* user_data) {
    return entry([&]() -> Result<void> {
        POLDER_ASSIGN(object, from_handle<Program>(program));
        POLDER_ASSIGN(listed, device_list(object->devices(), num_devices, list, AbsentList::all));
        POLDER_ASSIGN(headers, headers_of(*object, {num_input_headers, input_headers, header_include_names}));
        // CL_INVALID_VALUE: pfn_notify is null and user_data is not.
        if (!is_valid({pfn_notify, user_data}))
            return fail(Status::invalid_value);
        // CL_INVALID_OPERATION: the program has neither source nor a module in an intermediate language.
        if (object->origin() != Program::Origin::source && object->origin() != Program::Origin::il)
            return fail(Status::invalid_operation);
        return object->build({.step = Step::compile,
                              .devices = with_parts(object->devices(), listed),
                              .options = options ? options : "",
                              .headers = std::move(headers),
                              .notify = pfn_notify,
                              .user = user_data});
    });
}

CL_API_ENTRY cl_program CL_API_CALL clLinkProgram(cl_context context, cl_uint num_devices, const cl_device_id* list,
                                                  const char* options, cl_uint num_input_programs,
                                                  const cl_program* input_programs,
                                                  void(CL_CALLBACK* pfn_notify)(cl_program, void*), void* user_data,
                                                  cl_int* errcode_ret) {
    cl_program linked = nullptr;
    const cl_int code = entry([&]() -> Result<void> {
        POLDER_ASSIGN(owner, from_handle<Context>(context));
        POLDER_ASSIGN(listed, device_list(owner->devices(), num_devices, list, AbsentList::all));
        POLDER_ASSIGN(programs, linked_programs(*owner, num_input_programs, input_programs));
        // CL_INVALID_VALUE: pfn_notify is null and user_data is not.
        if (!is_valid({pfn_notify, user_data}))
            return fail(Status::invalid_value);
        POLDER_ASSIGN(devices, linkable_devices(programs, listed));
        const Ref<Program> program =
            make_ref<Program>(Ref<Context>::share(owner), std::move(listed), Program::Origin::linked, "");
        POLDER_ASSIGN(handle, expose<cl_program>(program));
        linked = handle;
        const Result<void> outcome = program->build({.step = Step::link,
                                                     .devices = std::move(devices),
                                                     .options = options ? options : "",
                                                     .inputs = std::move(programs),
                                                     .notify = pfn_notify,
                                                     .user = user_data});
        // A program whose link has failed is returned, too, because its log has the reason. A program whose link could not begin is not.
        if (!outcome && outcome.error().status() != Status::link_program_failure) {
            linked = nullptr;
            static_cast<void>(program->release_api());
        }
        return outcome;
    });
    if (errcode_ret)
        *errcode_ret = code;
    return linked;
}
