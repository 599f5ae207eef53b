#include <runtime/kernel.h>

#include <algorithm>
#include <cstring>

namespace polder::runtime {
namespace {

using compiler::ArgumentKind;
using compiler::KernelArgument;
using compiler::KernelInfo;

bool is_memory_pointer(const KernelArgument& argument) {
    return argument.kind == ArgumentKind::global_pointer || argument.kind == ArgumentKind::constant_pointer;
}

// Whether two devices' kernels take the same arguments.
bool same_definition(const KernelInfo& a, const KernelInfo& b) {
    return std::ranges::equal(a.arguments, b.arguments, [](const KernelArgument& x, const KernelArgument& y) {
        return x.kind == y.kind && x.size == y.size && x.offset == y.offset && x.address_space == y.address_space &&
               x.type_name == y.type_name;
    });
}

Ref<KernelArguments> unset_arguments(const KernelInfo& info) {
    Ref<KernelArguments> arguments = make_ref<KernelArguments>();
    arguments->packed.resize(info.arguments_size);
    arguments->is_set.resize(info.arguments.size());
    arguments->unset_count = static_cast<uint32_t>(info.arguments.size());
    for (uint32_t i = 0; i < info.arguments.size(); ++i) {
        const KernelArgument& argument = info.arguments[i];
        if (is_memory_pointer(argument))
            arguments->pointers.push_back({i, argument.offset});
        else if (argument.kind == ArgumentKind::local_pointer)
            arguments->locals.push_back({i, argument.offset});
    }
    return arguments;
}

LocalSizeRules rules_for(const KernelOnDevice& on, const Device& device, const LoadedCode& code) {
    const driver::DeviceInfo& info = device.info();
    return {.group_max = info.max_work_group_size,
            .item_max = std::to_array(info.max_work_item_sizes),
            .preferred_multiple = std::max<uint64_t>(code.compiled->preferred_multiple, 1),
            .compute_units = info.compute_units,
            .shape = on.work_groups == BuiltModule::WorkGroups::any ? LocalSizeRules::Shape::any
                                                                    : LocalSizeRules::Shape::uniform};
}

} // namespace

Kernel::Kernel(Ref<Program> program, std::vector<KernelOnDevice> on_devices, Ref<KernelArguments> arguments)
    : program_(std::move(program)), on_devices_(std::move(on_devices)), arguments_(std::move(arguments)) {
    program_->attach_kernel();
}

Kernel::~Kernel() { program_->detach_kernel(); }

Result<Ref<Kernel>> Kernel::create(Ref<Program> program, std::string_view name) {
    std::vector<KernelOnDevice> on_devices;
    bool has_executable = false;
    for (const Ref<Device>& device : program->devices()) {
        Ref<DeviceCode> code = program->code(*device);
        if (!code)
            continue;
        has_executable = true;
        const KernelInfo* const info = code->info(name);
        if (!info)
            continue;
        if (!on_devices.empty() && !same_definition(*info, *on_devices.front().info))
            return fail(Status::invalid_kernel_definition);
        on_devices.push_back({device, std::move(code), info, program->work_groups(*device)});
    }
    if (!has_executable)
        return fail(Status::invalid_program_executable);
    if (on_devices.empty())
        return fail(Status::invalid_kernel_name);
    Ref<KernelArguments> arguments = unset_arguments(*on_devices.front().info);
    return Ref<Kernel>::adopt(new Kernel(std::move(program), std::move(on_devices), std::move(arguments)));
}

Ref<Kernel> Kernel::clone() const { return Ref<Kernel>::adopt(new Kernel(program_, on_devices_, arguments_)); }

const KernelOnDevice* Kernel::on(const Device& device) const {
    for (const Device* d = &device; d; d = d->parent())
        for (const KernelOnDevice& candidate : on_devices_)
            if (candidate.device.get() == d)
                return &candidate;
    return nullptr;
}

Result<Size3> Kernel::suggest_local_size(const KernelOnDevice& on, const Device& device, const Size3& global) const {
    if (on.info->reqd_work_group_size)
        return *on.info->reqd_work_group_size;
    {
        const Lock lock(mutex_);
        if (last_suggestion_.device == &device && last_suggestion_.global == global)
            return last_suggestion_.local;
    }
    POLDER_ASSIGN(loaded, code(on));
    const Size3 local = choose_local_size(global, rules_for(on, device, *loaded));
    const Lock lock(mutex_);
    last_suggestion_ = {&device, global, local};
    return local;
}

KernelArguments& Kernel::change(uint32_t index) {
    // A launch that has not been submitted yet keeps the set it was enqueued with.
    if (!arguments_->is_unique())
        arguments_ = make_ref<KernelArguments>(*arguments_);
    if (!arguments_->is_set[index]) {
        arguments_->is_set[index] = true;
        --arguments_->unset_count;
    }
    return *arguments_;
}

void Kernel::set_value(uint32_t index, const void* value) {
    const KernelArgument& argument = info().arguments[index];
    std::memcpy(change(index).packed.data() + argument.offset, value, argument.size);
}

void Kernel::set_pointer(uint32_t index, cl_mem buffer, const void* svm) {
    KernelArguments& arguments = change(index);
    KernelArguments::Pointer& pointer =
        *std::ranges::lower_bound(arguments.pointers, index, {}, &KernelArguments::Pointer::index);
    pointer.buffer = buffer;
    pointer.svm = svm;
    const uint64_t address = DeviceAddress::of(svm).value;
    std::memcpy(arguments.packed.data() + pointer.offset, &address, sizeof address);
}

void Kernel::set_buffer(uint32_t index, cl_mem buffer) { set_pointer(index, buffer, nullptr); }

void Kernel::set_svm_pointer(uint32_t index, const void* pointer) { set_pointer(index, nullptr, pointer); }

void Kernel::set_local(uint32_t index, uint64_t bytes) {
    KernelArguments& arguments = change(index);
    std::ranges::lower_bound(arguments.locals, index, {}, &KernelArguments::Local::index)->bytes = bytes;
}

} // namespace polder::runtime
