#include "executable.h"

#include "module/kernel_parameters.h"
#include "module/module.h"

#include <base/mutex.h>

#include <algorithm>
#include <atomic>
#include <map>

namespace polder::compiler {
namespace {

uint64_t next_id() {
    static std::atomic<uint64_t> last{0};
    return ++last;
}

class SourceExecutable final : public Executable {
public:
    SourceExecutable(std::shared_ptr<const Module> module, const Target& target, std::string machine_code)
        : has_images_(target.has_feature("__opencl_c_images")), machine_code_(std::move(machine_code)),
          module_(std::move(module)), program_(static_cast<const CompiledModule&>(*module_).source()) {
        program_.id = next_id();
    }

    // The driver's compiler makes the same code for work-groups of any size.
    Result<const driver::KernelCode*> code(std::string_view name, const CodeVersion&) override {
        const auto kernels = module_->kernels();
        const auto info = std::ranges::find(kernels, name, &KernelInfo::name);
        if (info == kernels.end())
            return fail(Status::invalid_kernel_name, "the program has no kernel " + std::string{name});
        if (program_.units.empty() && machine_code_.empty())
            return fail(Status::out_of_resources, "the program was not compiled for this device");
        if (std::ranges::any_of(info->arguments,
                                [this](const KernelArgument& argument) { return is_unknown(argument); }))
            return fail(Status::out_of_resources,
                        "error: kernel " + info->name +
                            " takes an image, a sampler or a pipe, which the device does not have");
        const Lock lock(mutex_);
        std::unique_ptr<Entry>& entry = entries_[info->name];
        if (entry == nullptr) {
            entry = std::make_unique<Entry>();
            entry->parameters = parameters_of(*info);
            entry->code = driver::TargetCode{.format = driver::CodeFormat::opencl_c,
                                             .code = machine_code_,
                                             .program = &program_,
                                             .entry = info->name,
                                             .parameters = entry->parameters,
                                             .arguments_size = info->arguments_size};
        }
        return &entry->code;
    }

    [[nodiscard]] Specialising specialising(const WorkGroups&, const LaneDimensions&) const override {
        return Specialising::never;
    }

private:
    struct Entry {
        std::vector<driver::KernelParameter> parameters;
        driver::KernelCode code;
    };

    // An object that the device does not have.
    [[nodiscard]] bool is_unknown(const KernelArgument& argument) const {
        const bool is_of_images = argument.kind == ArgumentKind::image || argument.kind == ArgumentKind::sampler;
        return argument.kind == ArgumentKind::pipe || (is_of_images && !has_images_);
    }

    const bool has_images_;
    const std::string machine_code_;
    const std::shared_ptr<const Module> module_;
    driver::SourceProgram program_;
    Mutex mutex_;
    // Entries stay where they are: callers hold pointers into them.
    std::map<std::string, std::unique_ptr<Entry>> entries_ POLDER_GUARDED_BY(mutex_);
};

} // namespace

std::shared_ptr<Executable> make_source_executable(std::shared_ptr<const Module> module, const Target& target,
                                                   std::string machine_code) {
    return std::make_shared<SourceExecutable>(std::move(module), target, std::move(machine_code));
}

} // namespace polder::compiler
