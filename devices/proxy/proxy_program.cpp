// A program of one source without headers is built by one call of clBuildProgram; others are compiled source by source and then linked.
// Sources are text or SPIR-V. Where there is machine code of the same implementation, it is tried first. Build logs of the implementation become part of the error.
#include <base/log.h>

#include <cstring>
#include <proxy/machine_code.h>
#include <proxy/proxy_program.h>
#include <vector>

namespace polder::proxy {
namespace {

using driver::SourceProgram;
using driver::SourceUnit;

// Programs that exist while another one is built.
class Programs {
public:
    explicit Programs(ForeignContext& context) : context_(context) {}
    Programs(const Programs&) = delete;
    Programs& operator=(const Programs&) = delete;
    ~Programs() {
        for (const cl_program program : list_)
            context_.cl.clReleaseProgram(program);
    }
    void add(cl_program program) {
        try {
            list_.push_back(program);
        } catch (...) {
            context_.cl.clReleaseProgram(program);
            throw;
        }
    }
    [[nodiscard]] const std::vector<cl_program>& list() const { return list_; }
    // The newest one, which stays.
    cl_program take_last() {
        const cl_program program = list_.back();
        list_.pop_back();
        return program;
    }

private:
    ForeignContext& context_;
    std::vector<cl_program> list_;
};

std::string log_of(ForeignContext& context, cl_program program) {
    size_t size = 0;
    if (!program || context.cl.clGetProgramBuildInfo(program, context.device, CL_PROGRAM_BUILD_LOG, 0, nullptr,
                                                     &size) != CL_SUCCESS)
        return {};
    std::string text(size, '\0');
    context.cl.clGetProgramBuildInfo(program, context.device, CL_PROGRAM_BUILD_LOG, size, text.data(), nullptr);
    text.resize(std::strlen(text.c_str()));
    return text;
}

tl::unexpected<Error> refused(ForeignContext& context, cl_program program, cl_int code, const char* what) {
    context.lose(what, code);
    const std::string log = log_of(context, program);
    return fail(Status::out_of_resources, "error: " + context.name + " refuses the program: " + what + ": " +
                                              name_of(code) + (log.empty() ? "" : "\n" + log));
}

Result<cl_program> from_source(ForeignContext& context, const std::string& text) {
    const char* begin = text.c_str();
    const size_t size = text.size();
    cl_int code = CL_SUCCESS;
    const cl_program program = context.cl.clCreateProgramWithSource(context.handle, 1, &begin, &size, &code);
    if (!program)
        return refused(context, nullptr, code, "clCreateProgramWithSource");
    return program;
}

Result<cl_program> from_spirv(ForeignContext& context, const SourceUnit& unit) {
    cl_int code = CL_SUCCESS;
    cl_program program = nullptr;
    if (context.version >= CL_MAKE_VERSION(2, 1, 0)) {
        program = context.cl.clCreateProgramWithIL(context.handle, unit.text.data(), unit.text.size(), &code);
    } else if (void* const create =
                   context.cl.clGetExtensionFunctionAddressForPlatform(context.platform, "clCreateProgramWithILKHR")) {
        program = reinterpret_cast<clCreateProgramWithILKHR_fn>(create)(context.handle, unit.text.data(),
                                                                        unit.text.size(), &code);
    } else {
        code = CL_INVALID_OPERATION;
    }
    if (!program)
        return refused(context, nullptr, code, "clCreateProgramWithIL");
    for (const SourceUnit::Constant& constant : unit.constants) {
        code = context.version >= CL_MAKE_VERSION(2, 2, 0)
                   ? context.cl.clSetProgramSpecializationConstant(program, constant.id, constant.value.size(),
                                                                   constant.value.data())
                   : CL_INVALID_OPERATION;
        if (code != CL_SUCCESS) {
            auto error = refused(context, nullptr, code, "clSetProgramSpecializationConstant");
            context.cl.clReleaseProgram(program);
            return error;
        }
    }
    return program;
}

Result<cl_program> create(ForeignContext& context, const SourceUnit& unit) {
    return unit.language == SourceUnit::Language::spirv ? from_spirv(context, unit) : from_source(context, unit.text);
}

Result<cl_program> build_whole(ForeignContext& context, const SourceUnit& unit) {
    Programs programs(context);
    POLDER_ASSIGN(program, create(context, unit));
    programs.add(program);
    const cl_int code = context.cl.clBuildProgram(program, 1, &context.device, unit.options.c_str(), nullptr, nullptr);
    if (code != CL_SUCCESS)
        return refused(context, program, code, "clBuildProgram");
    return programs.take_last();
}

Result<void> compile_unit(ForeignContext& context, const SourceUnit& unit, Programs& units) {
    Programs headers(context);
    std::vector<const char*> names;
    for (const auto& [name, text] : unit.headers) {
        POLDER_ASSIGN(header, from_source(context, text));
        headers.add(header);
        names.push_back(name.c_str());
    }
    POLDER_ASSIGN(program, create(context, unit));
    units.add(program);
    const cl_int code = context.cl.clCompileProgram(
        program, 1, &context.device, unit.options.c_str(), static_cast<cl_uint>(names.size()),
        names.empty() ? nullptr : headers.list().data(), names.empty() ? nullptr : names.data(), nullptr, nullptr);
    if (code != CL_SUCCESS)
        return refused(context, program, code, "clCompileProgram");
    return {};
}

Result<cl_program> compile_and_link(ForeignContext& context, const SourceProgram& source) {
    Programs units(context);
    for (const SourceUnit& unit : source.units)
        POLDER_TRY(compile_unit(context, unit, units));
    cl_int code = CL_SUCCESS;
    const cl_program linked = context.cl.clLinkProgram(context.handle, 1, &context.device, source.link_options.c_str(),
                                                       static_cast<cl_uint>(units.list().size()), units.list().data(),
                                                       nullptr, nullptr, &code);
    if (code == CL_SUCCESS && linked)
        return linked;
    auto error = refused(context, linked, code, "clLinkProgram");
    if (linked)
        context.cl.clReleaseProgram(linked);
    return error;
}

Result<cl_program> build_units(ForeignContext& context, const SourceProgram& source) {
    const bool is_whole = source.is_build && source.units.size() == 1 && source.units.front().headers.empty();
    return is_whole ? build_whole(context, source.units.front()) : compile_and_link(context, source);
}

// Machine code that is refused is no failure when there is source.
Result<cl_program> build_program(ForeignContext& context, const SourceProgram& source, std::string_view machine_code) {
    if (machine_code.empty())
        return build_units(context, source);
    const bool has_options = source.is_build && !source.units.empty();
    Result<cl_program> program =
        program_of(context, machine_code, has_options ? source.units.front().options : source.link_options);
    if (program || source.units.empty())
        return program;
    POLDER_LOG(driver, "a program is built from its source: %s", std::string(program.error().detail()).c_str());
    return build_units(context, source);
}

}  // namespace

Result<std::shared_ptr<ProxyProgram>> ProxyProgram::build(ForeignContext& context, const SourceProgram& source,
                                                          std::string_view machine_code) {
    if (context.is_lost())
        return fail(Status::out_of_resources, context.name + " is lost");
    POLDER_ASSIGN(program, build_program(context, source, machine_code));
    std::unique_ptr<ProxyProgram> built;
    try {
        built.reset(new ProxyProgram(context, program));
    } catch (...) {
        context.cl.clReleaseProgram(program);
        throw;
    }
    return std::shared_ptr<ProxyProgram>(std::move(built));
}

ProxyProgram::~ProxyProgram() {
    if (context_.may_release())
        context_.cl.clReleaseProgram(handle_);
}

std::string ProxyProgram::machine_code() const {
    const Lock lock(mutex_);
    if (!machine_code_)
        machine_code_ = context_.is_lost() ? std::string{} : machine_code_of(context_, handle_);
    return *machine_code_;
}

Result<std::shared_ptr<ProxyProgram>> ProgramCache::get(ForeignContext& context, const SourceProgram& source,
                                                        std::string_view machine_code) {
    // Held while the program is built, so that its kernels do not build it several times.
    const Lock lock(mutex_);
    std::erase_if(programs_, [](const auto& entry) { return entry.second.expired(); });
    if (const auto found = programs_.find(source.id); found != programs_.end())
        if (std::shared_ptr<ProxyProgram> program = found->second.lock())
            return program;
    POLDER_ASSIGN(program, ProxyProgram::build(context, source, machine_code));
    programs_[source.id] = program;
    return program;
}

}  // namespace polder::proxy
