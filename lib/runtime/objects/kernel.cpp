// Creation checks that all devices' kernels take the same arguments. Setting an argument copies the argument set when a launch still
// uses it. Choosing a work-group size follows the rules of runtime/local_size.h.
#include <runtime/early_code.h>
#include <runtime/group_memory.h>
#include <runtime/kernel.h>

#include <algorithm>
#include <cstring>
#include <limits>

namespace polder::runtime {
namespace {

using compiler::ArgumentKind;
using compiler::KernelArgument;
using compiler::KernelInfo;

bool holds_mem_object(const KernelArgument& argument) {
    return argument.kind == ArgumentKind::global_pointer || argument.kind == ArgumentKind::constant_pointer ||
           argument.kind == ArgumentKind::image || argument.kind == ArgumentKind::pipe;
}

// Whether two devices' kernels take the same arguments.
bool same_definition(const KernelInfo& a, const KernelInfo& b) {
    return std::ranges::equal(a.arguments, b.arguments, [](const KernelArgument& x, const KernelArgument& y) {
        return x.kind == y.kind && x.size == y.size && x.offset == y.offset && x.address_space == y.address_space &&
               x.type_name == y.type_name;
    });
}

uint64_t parameter_bytes(const KernelInfo& info) {
    uint64_t bytes = 0;
    for (const KernelArgument& argument : info.arguments)
        bytes += argument.size;
    return bytes;
}

Ref<KernelArguments> unset_arguments(const KernelInfo& info) {
    Ref<KernelArguments> arguments = make_ref<KernelArguments>();
    arguments->packed.resize(info.arguments_size);
    arguments->is_set.resize(info.arguments.size());
    arguments->unset_count = static_cast<uint32_t>(info.arguments.size());
    for (uint32_t i = 0; i < info.arguments.size(); ++i) {
        const KernelArgument& argument = info.arguments[i];
        if (holds_mem_object(argument))
            arguments->pointers.push_back({i, argument.offset});
        else if (argument.kind == ArgumentKind::local_pointer)
            arguments->locals.push_back({i, argument.offset});
    }
    return arguments;
}

// The multiple that code for usual launches of so many dimensions probably wants.
constexpr uint64_t likely_row_multiple(const Size3& global) {
    return compiler::usual_row_multiple(global[1] * global[2] > 1);
}

// The size of work-groups that is probably chosen for a launch, before there is code.
Size3 likely_local_size(const Size3& global, uint32_t compute_units) {
    return choose_local_size(global, {.group_max = usual_group_items,
                                      .item_max = {usual_group_items, usual_group_items, usual_group_items},
                                      .preferred_multiple = compiler::usual_row_multiple(true),
                                      .row_multiple = likely_row_multiple(global),
                                      .compute_units = compute_units});
}

LocalSizeRules rules_for(LocalSizeRules::Shape shape, const KernelInfo& kernel, const Device& device,
                         const LoadedCode& code) {
    const driver::DeviceInfo& info = device.info();
    return {.group_max = std::min(code.group_size_max(info.max_work_group_size),
                                  group_items_target(kernel, info, code.limits().preferred_multiple)),
            .item_max = std::to_array(info.max_work_item_sizes),
            .preferred_multiple = code.limits().preferred_multiple,
            .row_multiple = code.row_multiple,
            .lane_dimension = code.dimensions.used,
            .compute_units = info.compute_units,
            .shape = shape};
}

// Requests early code once for all devices that share code.
void request_early_code(const Kernel& kernel, const std::vector<KernelOnDevice>& on_devices) noexcept {
    for (auto on = on_devices.begin(); on != on_devices.end(); ++on)
        if (std::none_of(on_devices.begin(), on,
                         [&](const KernelOnDevice& other) { return other.code->shares_code_with(*on->code); }))
            early_code::request(&kernel, on->code, *on->info);
}

// In smaller groups, the time for calling the group is noticeable compared with that of its work-items.
constexpr uint64_t items_worth_a_group = 64;

uint64_t items_of(const Size3& size) { return size[0] * size[1] * size[2]; }

}  // namespace

Kernel::Kernel(Ref<Program> program, std::vector<KernelOnDevice> on_devices, Ref<KernelArguments> arguments)
    : program_(std::move(program)), on_devices_(std::move(on_devices)), arguments_(std::move(arguments)),
      general_codes_(on_devices_.size()), last_codes_(on_devices_.size()) {
    program_->attach_kernel();
}

Kernel::~Kernel() {
    early_code::cancel(this);
    program_->detach_kernel();
}

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
        on_devices.emplace_back(device, std::move(code), info, program->work_groups(*device));
    }
    if (!has_executable)
        return fail(Status::invalid_program_executable);
    if (on_devices.empty())
        return fail(Status::invalid_kernel_name);
    if (const uint64_t bytes = parameter_bytes(*on_devices.front().info); bytes > parameter_bytes_max) {
        const std::string text = "kernel " + std::string(name) + " takes " + std::to_string(bytes) +
                                 " bytes of arguments, more than CL_DEVICE_MAX_PARAMETER_SIZE, " +
                                 std::to_string(parameter_bytes_max);
        program->context().notify(text);
        return fail(Status::out_of_resources, text);
    }
    Ref<KernelArguments> arguments = unset_arguments(*on_devices.front().info);
    Ref<Kernel> kernel =
        Ref<Kernel>::adopt(new Kernel(std::move(program), std::move(on_devices), std::move(arguments)));
    request_early_code(*kernel, kernel->on_devices_);
    return kernel;
}

Ref<Kernel> Kernel::clone() const {
    std::vector<KernelOnDevice> on_devices;
    on_devices.reserve(on_devices_.size());
    for (const KernelOnDevice& on : on_devices_)
        on_devices.emplace_back(on.device, on.code, on.info, on.work_groups);
    return Ref<Kernel>::adopt(new Kernel(program_, std::move(on_devices), arguments_));
}

const KernelOnDevice* Kernel::on(const Device& device) const {
    for (const Device* d = &device; d; d = d->parent())
        for (const KernelOnDevice& candidate : on_devices_)
            if (candidate.device.get() == d)
                return &candidate;
    return nullptr;
}

Size3 Kernel::choose(LocalSizeRules::Shape shape, const KernelOnDevice& on, const Device& device,
                     const LoadedCode& code, const Size3& global) const {
    const Lock lock(mutex_);
    Choice& last = shape == LocalSizeRules::Shape::unseen ? last_unseen_ : last_seen_;
    if (last.device != &device || last.global != global)
        last = {&device, global, choose_local_size(global, rules_for(shape, *on.info, device, code))};
    return last.local;
}

Kernel::LastCode& Kernel::last_code(const KernelOnDevice& on) const {
    return last_codes_[static_cast<size_t>(&on - on_devices_.data())];
}

std::atomic<const LoadedCode*>& Kernel::general_code(const KernelOnDevice& on) const {
    return general_codes_[static_cast<size_t>(&on - on_devices_.data())];
}

Result<const LoadedCode*> Kernel::code(const KernelOnDevice& on) const {
    if (const LoadedCode* const known = general_code(on).load(std::memory_order_acquire))
        return known;
    POLDER_ASSIGN(loaded, on.code->usual_kernel(*on.info, nullptr));  // may compile
    general_code(on).store(loaded, std::memory_order_release);
    return loaded;
}

namespace {

// The format of an image argument; std::nullopt when the handle is no image any more.
std::optional<compiler::KnownArgument> known_image(uint32_t index, cl_mem handle) {
    const Result<MemObject*> object = from_handle<MemObject>(handle);
    const ImageShape* const shape = object ? (*object)->image() : nullptr;
    if (!shape)
        return std::nullopt;
    const ImageDescriptor descriptor = shape->descriptor();
    return compiler::KnownArgument{.index = index,
                                   .channel_order = descriptor.channel_order,
                                   .channel_type = descriptor.channel_type,
                                   .element_bytes = descriptor.element_bytes,
                                   .kind = descriptor.kind};
}

}  // namespace

std::vector<compiler::KnownArgument> Kernel::known_arguments(const KernelOnDevice& on) const {
    if (!on.code->specialises_for_images(*on.info))
        return {};
    std::vector<compiler::KnownArgument> known;
    for (const KernelArguments::Pointer& pointer : arguments_->pointers) {
        const KernelArgument& argument = on.info->arguments[pointer.index];
        if (argument.kind != compiler::ArgumentKind::image || argument.access == Access::none)
            continue;
        const auto image = known_image(pointer.index, pointer.buffer);
        if (!image)
            return {};  // the launch reports the invalid argument
        known.push_back(*image);
    }
    for (uint32_t index = 0; index < on.info->arguments.size(); ++index) {
        const KernelArgument& argument = on.info->arguments[index];
        if (argument.kind != compiler::ArgumentKind::sampler)
            continue;
        uint64_t bits = 0;
        std::memcpy(&bits, arguments_->packed.data() + argument.offset, sizeof bits);
        known.push_back({.index = index, .sampler = static_cast<uint32_t>(bits)});
    }
    return known;
}

namespace {

// How many instructions a launch executes at most.
uint64_t quick_work(const KernelInfo& kernel, const KernelArguments& arguments, uint64_t items) {
    uint64_t work = 0;
    bool is_too_large = __builtin_mul_overflow(kernel.quick_work, items, &work);
    for (const uint32_t index : kernel.quick_factors) {
        uint64_t rounds = 0;
        std::memcpy(&rounds, arguments.packed.data() + kernel.arguments[index].offset,
                    std::min<size_t>(kernel.arguments[index].size, sizeof rounds));
        is_too_large |= __builtin_add_overflow(rounds, 1, &rounds) || __builtin_mul_overflow(work, rounds, &work);
    }
    return is_too_large ? std::numeric_limits<uint64_t>::max() : work;
}

}  // namespace

Result<const LoadedCode*> Kernel::quick_code(const KernelOnDevice& on, const Launched& launched,
                                             DeviceCode::Count count) const {
    if (on.info->quick_work == 0 || launched.times == Launched::Times::many)
        return nullptr;
    POLDER_ASSIGN(quick,
                  on.code->quick_kernel(*on.info, quick_work(*on.info, *arguments_, items_of(launched.global)), count));
    if (quick.is_to_be_replaced)
        early_code::request(this, on.code, *on.info);
    return quick.code;
}

// Code for any launch replaces code for usual ones, also for later launches. Code for these groups alone does not: later launches compare their groups with
// the lanes of the code for usual ones.
Result<const LoadedCode*> Kernel::code(const KernelOnDevice& on, const compiler::WorkGroups& groups,
                                       const LaunchSizes& sizes) const {
    POLDER_ASSIGN(loaded, on.code->first_kernel(*on.info, groups, sizes));
    const LoadedCode* general = loaded;
    if (loaded->is_special() && loaded->version.groups) {
        POLDER_ASSIGN(usual, on.code->usual_kernel(*on.info, nullptr));
        general = usual;
    }
    general_code(on).store(general, std::memory_order_release);
    return loaded;
}

Result<const LoadedCode*> Kernel::code(const KernelOnDevice& on, const Launched& launched, const Size3& local) const {
    const Size3& global = launched.global;
    using Ends = compiler::WorkGroups::Ends;
    const LoadedCode* const general = general_code(on).load(std::memory_order_acquire);
    if (!general) {
        POLDER_ASSIGN(quick, quick_code(on, launched, DeviceCode::Count::counted));
        if (quick)
            return quick;
    }
    const bool suits_groups =
        on.info->reqd_work_group_size || on.code->is_worth_specialising(*on.info, {local, Ends::whole}, general);
    compiler::CodeVersion version{{}, known_arguments(on)};
    const LaunchSizes sizes{global, launched.offset, local};
    // Most launches return here.
    if (!suits_groups && version.known.empty() && general && general->suits(sizes))
        return general;
    const bool is_whole = global[0] % local[0] == 0 && global[1] % local[1] == 0 && global[2] % local[2] == 0;
    const compiler::WorkGroups groups{local, is_whole ? Ends::whole : Ends::ragged};
    if (!suits_groups && version.known.empty())
        return code(on, groups, sizes);
    if (suits_groups)
        version.groups = groups;
    {
        const Lock lock(mutex_);
        if (const LastCode& last = last_code(on); last.special && last.version == version && last.special->suits(sizes))
            return last.special;
    }
    POLDER_ASSIGN(loaded, on.code->kernel(*on.info, version, &sizes));
    // Code that is not final is not remembered, because DeviceCode must count the launches that have no version of their own.
    if (loaded->is_final_for(version)) {
        const Lock lock(mutex_);
        last_code(on).version = std::move(version);
        last_code(on).special = loaded;
    }
    return loaded;
}

Result<const LoadedCode*> Kernel::code_before_groups(const KernelOnDevice& on, const Launched& launched) const {
    if (const LoadedCode* const general = general_code(on).load(std::memory_order_acquire))
        return general;
    POLDER_ASSIGN(quick, quick_code(on, launched, DeviceCode::Count::asked));
    if (quick)
        return quick;
    const Size3 local = likely_local_size(launched.global, on.device->info().compute_units);
    const LaunchSizes likely{launched.global, launched.offset, local};
    // The size that will be chosen may be another, for lanes of another dimension, so the code is not yet compared with it.
    const bool is_usual = LoadedCode::is_usual(likely, 0, likely_row_multiple(launched.global));
    if (compiler::CodeVersion version{{}, known_arguments(on)}; !version.known.empty()) {
        version.launches = is_usual ? compiler::Launches::usual : compiler::Launches::any;
        return on.code->kernel(*on.info, version, nullptr);
    }
    POLDER_ASSIGN(loaded, on.code->usual_kernel(*on.info, is_usual ? nullptr : &likely));
    general_code(on).store(loaded, std::memory_order_release);
    return loaded;
}

bool Kernel::is_final(const KernelOnDevice& on, const LoadedCode& code, const Size3& local) const {
    // The next launch may have other images.
    if (on.code->specialises_for_images(*on.info) || code.is_quick())
        return false;
    if (code.is_special() && code.version.launches == compiler::Launches::any)
        return true;
    return !on.info->reqd_work_group_size &&
           !on.code->is_worth_specialising(*on.info, {local, compiler::WorkGroups::Ends::whole}, &code);
}

Result<Size3> Kernel::suggest_local_size(const KernelOnDevice& on, const Device& device,
                                         const Launched& launched) const {
    if (on.info->reqd_work_group_size)
        return *on.info->reqd_work_group_size;
    POLDER_ASSIGN(loaded, code_before_groups(on, launched));
    const bool may_differ = on.work_groups == BuiltModule::WorkGroups::any;
    return choose(may_differ ? LocalSizeRules::Shape::any : LocalSizeRules::Shape::uniform, on, device, *loaded,
                  launched.global);
}

Result<Size3> Kernel::best_local_size(const KernelOnDevice& on, const Device& device, const Launched& launched,
                                      const Size3& local) const {
    const Size3& global = launched.global;
    const bool is_one_group = local == global;
    // Only in host code are global ids that a kernel computes from its group id replaced by true global ids (global_ids.h). In other code
    // the kernel would notice a smaller last group.
    if (device.info().code.format != driver::CodeFormat::host_function || on.info->sees_work_groups ||
        on.info->reqd_work_group_size || is_one_group)
        return local;
    POLDER_ASSIGN(loaded, code_before_groups(on, launched));
    // The size that was chosen before it was known that the kernel cannot notice it may become larger.
    const bool is_own_choice =
        items_of(local) == usual_group_items &&
        local == choose(on.work_groups == BuiltModule::WorkGroups::any ? LocalSizeRules::Shape::any
                                                                       : LocalSizeRules::Shape::uniform,
                        on, device, *loaded, global);
    if (!is_own_choice && local[loaded->dimensions.used] >= loaded->limits().preferred_multiple &&
        items_of(local) >= items_worth_a_group)
        return local;
    const Size3 better = choose(LocalSizeRules::Shape::unseen, on, device, *loaded, global);
    // With fewer groups than compute units, the launch would be slower when each work-item takes long.
    return items_of(global) / items_of(better) >= device.info().compute_units ? better : local;
}

KernelArguments& Kernel::change() {
    // A launch that waits refers to the set with which it was enqueued, so the kernel gets a copy.
    if (!arguments_->is_unique())
        arguments_ = make_ref<KernelArguments>(*arguments_);
    return *arguments_;
}

KernelArguments& Kernel::change(uint32_t index) {
    static_cast<void>(change());
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

KernelArguments::Pointer& Kernel::change_pointer(uint32_t index, const void* value) {
    KernelArguments& arguments = change(index);
    KernelArguments::Pointer& pointer =
        *std::ranges::lower_bound(arguments.pointers, index, {}, &KernelArguments::Pointer::index);
    pointer.buffer = nullptr;
    pointer.origin = KernelArguments::Pointer::Origin::null;
    pointer.address = {};
    const uint64_t address = DeviceAddress::of(value).value;
    std::memcpy(arguments.packed.data() + pointer.offset, &address, sizeof address);
    return pointer;
}

void Kernel::set_buffer(uint32_t index, cl_mem buffer) { change_pointer(index, nullptr).buffer = buffer; }

void Kernel::set_sampler(uint32_t index, uint64_t bits) {
    std::memcpy(change(index).packed.data() + info().arguments[index].offset, &bits, sizeof bits);
}

void Kernel::set_pointer(uint32_t index, KernelArguments::Pointer::Origin origin, KnownAddress address) {
    KernelArguments::Pointer& pointer = change_pointer(index, address.pointer);
    pointer.origin = address.pointer ? origin : KernelArguments::Pointer::Origin::null;
    pointer.address = std::move(address);
}

void Kernel::set_svm_pointer(uint32_t index, KnownAddress address) {
    set_pointer(index, KernelArguments::Pointer::Origin::svm, std::move(address));
}

void Kernel::set_address(uint32_t index, KnownAddress address) {
    set_pointer(index, KernelArguments::Pointer::Origin::address, std::move(address));
}

Ref<IndirectUses> Kernel::copy_of_indirect() const {
    return arguments_->indirect ? make_ref<IndirectUses>(*arguments_->indirect) : make_ref<IndirectUses>();
}  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks): it does not see that a Ref is moved

void Kernel::set_indirect(std::vector<KnownAddress> IndirectUses::* list, std::vector<KnownAddress> addresses) {
    const Ref<IndirectUses> uses = copy_of_indirect();
    (*uses).*list = std::move(addresses);
    change().indirect = uses;
}

void Kernel::set_indirect_kind(Allocation::Kind of, MayUse may_use) {
    const Ref<IndirectUses> uses = copy_of_indirect();
    const uint32_t bit = 1u << static_cast<uint32_t>(of);
    uses->kinds = may_use == MayUse::yes ? uses->kinds | bit : uses->kinds & ~bit;
    change().indirect = uses;
}

void Kernel::set_local(uint32_t index, uint64_t bytes) {
    KernelArguments& arguments = change(index);
    std::ranges::lower_bound(arguments.locals, index, {}, &KernelArguments::Local::index)->bytes = bytes;
}

}  // namespace polder::runtime
