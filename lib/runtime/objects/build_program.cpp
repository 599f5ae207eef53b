// Building, compiling and linking of programs: devices are grouped by the module that they can share, each group's module is compiled or linked
// once, and each distinct target gets one Executable. With a callback, this runs on a thread of its own (build_threads.h).
#include <base/options.h>
#include <compiler/machine_code.h>
#include <compiler/options.h>
#include <compiler/zeroed_memory.h>
#include <runtime/build_threads.h>
#include <runtime/program.h>

#include <CL/cl_ext.h>
#include <algorithm>
#include <exception>
#include <map>

namespace polder::runtime {
namespace {

using compiler::ModuleKind;
using WorkGroups = BuiltModule::WorkGroups;

WorkGroups work_groups_of(const std::string& application_options) {
    const std::string options = application_options + ' ' + options::extra_build_flags();
    const auto has = [&](std::string_view word) { return options.find(word) != options.npos; };
    const bool is_2_or_later = has("-cl-std=CL2") || has("-cl-std=CL3") || has("-cl-std=CLC++") || has("-cl-std=clc++");
    return is_2_or_later && !has("-cl-uniform-work-group-size") ? WorkGroups::any : WorkGroups::uniform;
}

Status failure_of(BuildRequest::Step step) {
    switch (step) {
    case BuildRequest::Step::compile: return Status::compile_program_failure;
    case BuildRequest::Step::link: return Status::link_program_failure;
    default: return Status::build_program_failure;
    }
}

// Appends the reason of a failure to the build log, unless the compiler has written it there.
void append_detail(std::string& log, const Error& error) {
    if (error.detail().empty() || log.find(error.detail()) != log.npos)
        return;
    if (!log.empty() && log.back() != '\n')
        log += '\n';
    log.append(error.detail()).append("\n");
}

Result<void> check_variables(const compiler::Module& module, BuildRequest::Step step) {
    const uint64_t bytes = module.program_variables().image.size();
    if (bytes <= program_variables_bytes_max)
        return {};
    return fail(Error{failure_of(step), "error: the program-scope variables take " + std::to_string(bytes) +
                                            " bytes, more than CL_DEVICE_MAX_GLOBAL_VARIABLE_SIZE, " +
                                            std::to_string(program_variables_bytes_max)});
}

using Devices = std::vector<Ref<Device>>;

// Groups the devices that share a module. Modules are target-neutral: from source, all devices with the same language
// features get the same module. Binaries and the inputs of a link belong to devices: `parts_of` returns those of one device.
template <class PartsOf>
std::vector<Devices> groups_of(const Devices& devices, bool is_source, const PartsOf& parts_of) {
    std::vector<Devices> groups;
    for (const Ref<Device>& device : devices) {
        const auto shares = [&](const Devices& group) {
            const compiler::Target& target = device->target();
            const compiler::Target& other = group.front()->target();
            // For a driver that compiles the program itself, the module must contain the source.
            const auto needs_source = [](const compiler::Target& of) {
                return of.code.format == driver::CodeFormat::opencl_c;
            };
            if (!is_source)
                return &target == &other && parts_of(*device) == parts_of(*group.front());
            return &target == &other || (needs_source(target) == needs_source(other) &&
                                         target.extensions == other.extensions && target.features == other.features);
        };
        const auto group = std::ranges::find_if(groups, shares);
        if (group == groups.end())
            groups.push_back({device});
        else
            group->push_back(device);
    }
    return groups;
}

// The memory that kernels initialize with zeros, from CL_CONTEXT_MEMORY_INITIALIZE_KHR: bit 0 is local memory, bit 1 private memory.
compiler::ZeroedMemory zeroed_memory(const Context& context) {
    const std::vector<cl_context_properties>& properties = context.properties();
    for (size_t i = 0; i + 1 < properties.size(); i += 2)
        if (properties[i] == CL_CONTEXT_MEMORY_INITIALIZE_KHR)
            return {.local = (properties[i + 1] & 1) != 0, .private_variables = (properties[i + 1] & 2) != 0};
    return {};
}

// The code of one module for several devices: one Executable for each distinct target.
class Executables {
public:
    Executables(const BuiltModule& built, const Context& context)
        : module_(built.module), machine_code_(built.machine_code), zeroed_(zeroed_memory(context)) {}

    Result<Ref<DeviceCode>> code(Device& device) {
        std::shared_ptr<compiler::Executable>& executable = executables_[&device.target()];
        if (!executable) {
            const bool is_zeroed = zeroed_ != compiler::ZeroedMemory{};
            POLDER_ASSIGN(opened, is_zeroed ? compiler::open_zeroed(module_, device.target(), zeroed_)
                                            : compiler::open_with(machine_code_, module_, device.target()));
            executable = std::move(opened);
        }
        Ref<DeviceCode> code = make_ref<DeviceCode>(device, executable, module_);
        // When the driver compiles the program, compile now, so that the compiler's messages get into the build log.
        if (device.target().code.format == driver::CodeFormat::opencl_c)
            for (const compiler::KernelInfo& kernel : module_->kernels())
                POLDER_TRY(code->kernel(kernel));
        return code;
    }

private:
    const std::shared_ptr<const compiler::Module> module_;
    const std::string machine_code_;
    const compiler::ZeroedMemory zeroed_;
    std::map<const compiler::Target*, std::shared_ptr<compiler::Executable>> executables_;
};

compiler::OptionStage stage_of(BuildRequest::Step step) {
    switch (step) {
    case BuildRequest::Step::compile: return compiler::OptionStage::compile;
    case BuildRequest::Step::link: return compiler::OptionStage::link;
    default: return compiler::OptionStage::build;
    }
}

}  // namespace

bool Program::has_valid_options(const BuildRequest& request) const {
    const bool are_used =
        request.step != BuildRequest::Step::build || origin_ == Origin::source || origin_ == Origin::il;
    return !are_used || compiler::check_options(request.options, stage_of(request.step)).has_value();
}

Result<void> Program::build(BuildRequest request) {
    // When the options are invalid, no build begins, and the callback is not called.
    const bool is_notified = request.notify && has_valid_options(request);
    POLDER_TRY(begin(request));
    if (!is_notified)
        return run_or_fail(request);
    // The result of the build is not this call's: the call succeeds when the build has begun, and the callback is called at its end.
    const auto build = [program = Ref<Program>::share(this), request = std::move(request)] {
        static_cast<void>(program->run_or_fail(request));
        request.notify(static_cast<cl_program>(program->handle()), request.user);
    };
    try {
        BuildThreads::get().start(BuildThreads::Work::build, build);
    } catch (const std::exception&) {
        build();  // on this thread, because no thread could be started
    }
    return {};
}

Result<void> Program::begin(const BuildRequest& request) {
    const Lock lock(mutex_);
    // CL_INVALID_OPERATION: there are kernel objects of the program. They use the code that a build would replace.
    if (kernels_.load(std::memory_order_acquire) != 0)
        return fail(Status::invalid_operation);
    for (const Ref<Device>& device : request.devices)
        if (builds_[place_of(*device)].status == CL_BUILD_IN_PROGRESS)
            return fail(Status::invalid_operation);
    for (const Ref<Device>& device : request.devices) {
        DeviceBuild& build = builds_[place_of(*device)];
        build.status = CL_BUILD_IN_PROGRESS;
        build.log.clear();
        build.options = request.options_are == BuildRequest::Options::as_before && build.built ? build.built->options
                                                                                               : request.options;
    }
    return {};
}

Result<void> Program::run_or_fail(const BuildRequest& request) {
    try {
        return run(request);
    } catch (const std::bad_alloc&) {
        for (const Ref<Device>& device : request.devices)
            finish(*device, {.status = CL_BUILD_ERROR});
        return fail(Status::out_of_host_memory);
    }
}

Result<void> Program::run(const BuildRequest& request) {
    Result<void> outcome;
    const bool is_source = request.step != BuildRequest::Step::link && origin_ == Origin::source;
    const auto parts_of = [&](const Device& device) { return binary_parts(request, device); };
    for (const Devices& devices : groups_of(request.devices, is_source, parts_of)) {
        DeviceBuild build{.status = CL_BUILD_ERROR, .options = device_build(*devices.front()).options};
        Result<BuiltModule> built = make_module(request, *devices.front(), build.log);
        std::optional<Executables> executables;
        if (built) {
            build.status = CL_BUILD_SUCCESS;
            build.built = std::make_shared<const BuiltModule>(std::move(*built));
            if (build.built->module->kind() == ModuleKind::executable)
                executables.emplace(*build.built, context());
        } else {
            append_detail(build.log, built.error());
            outcome = fail(built.error());
        }
        for (const Ref<Device>& device : devices) {
            DeviceBuild of_device = build;
            if (executables) {
                Result<Ref<DeviceCode>> code = executables->code(*device);
                if (code) {
                    of_device.code = std::move(*code);
                } else {
                    of_device = {.status = CL_BUILD_ERROR, .options = build.options, .log = build.log};
                    append_detail(of_device.log, code.error());
                    outcome = fail(Error{failure_of(request.step), std::string(code.error().detail())});
                }
            }
            finish(*device, std::move(of_device));
        }
    }
    return outcome;
}

std::vector<std::shared_ptr<const BuiltModule>> Program::binary_parts(const BuildRequest& request,
                                                                      const Device& device) const {
    if (request.step != BuildRequest::Step::link)
        return {device_build(device).built};
    std::vector<std::shared_ptr<const BuiltModule>> parts;
    for (const Ref<Program>& program : request.inputs)
        parts.push_back(program->device_build(device).built);
    return parts;
}

void Program::finish(const Device& device, DeviceBuild build) {
    const Lock lock(mutex_);
    DeviceBuild& place = builds_[place_of(device)];
    // After a failed build, a program from binaries keeps its binary, so that it can be built again with other options.
    if (!build.built && origin_ == Origin::binary)
        build.built = place.built;
    std::swap(place, build);
}

Result<BuiltModule> Program::make_module(const BuildRequest& request, const Device& device, std::string& log) {
    Result<BuiltModule> made = fail(Status::invalid_program);
    if (request.step == BuildRequest::Step::link)
        made = link_inputs(request, device, log);
    else if (origin_ != Origin::source && origin_ != Origin::il)
        made = reuse_binary(request, device);
    else
        made = compile_source(request, device, log);
    if (made)
        POLDER_TRY(check_variables(*made->module, request.step));
    return made;
}

compiler::CompileInput Program::compile_input(const BuildRequest& request, const Device& device) const {
    compiler::CompileInput input{.source = source_,
                                 .headers = request.headers,
                                 .options = request.options,
                                 .target = device.target(),
                                 .is_build = request.step == BuildRequest::Step::build};
    if (origin_ == Origin::il) {
        input.language = compiler::CompileInput::Language::spirv;
        const Lock lock(mutex_);
        for (const auto& [id, bytes] : specialization_)
            input.specialization.push_back({id, bytes});
    }
    return input;
}

Result<BuiltModule> Program::compile_source(const BuildRequest& request, const Device& device, std::string& log) {
    const bool is_build = request.step == BuildRequest::Step::build;
    POLDER_ASSIGN(compiled, compiler::compile(compile_input(request, device), log));
    const WorkGroups work_groups = work_groups_of(request.options);
    if (!is_build)
        return BuiltModule{std::move(compiled), request.options, work_groups};
    POLDER_ASSIGN(linked, compiler::link({{std::move(compiled)}, request.options, device.target(), is_build}, log));
    return BuiltModule{std::move(linked), request.options, work_groups};
}

Result<BuiltModule> Program::link_inputs(const BuildRequest& request, const Device& device, std::string& log) {
    compiler::LinkInput input{{}, request.options, device.target(), false};
    WorkGroups work_groups = WorkGroups::any;
    for (const Ref<Program>& program : request.inputs) {
        const DeviceBuild build = program->device_build(device);
        input.modules.push_back(build.built->module);
        if (build.built->work_groups == WorkGroups::uniform)
            work_groups = WorkGroups::uniform;
    }
    POLDER_ASSIGN(linked, compiler::link(input, log));
    return BuiltModule{std::move(linked), request.options, work_groups};
}

Result<BuiltModule> Program::reuse_binary(const BuildRequest& request, const Device& device) {
    const DeviceBuild build = device_build(device);
    // CL_INVALID_BINARY: the program has no binary for the device, or the binary is not that of an executable.
    if (!build.built || build.built->module->kind() != ModuleKind::executable)
        return fail(Status::invalid_binary);
    BuiltModule again = *build.built;
    if (request.options_are == BuildRequest::Options::given)
        again.options = request.options;
    return again;
}

}  // namespace polder::runtime
