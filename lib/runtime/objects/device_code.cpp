// Code is compiled and loaded at the first launch of a kernel. A kernel's entry has code for any launch and a few versions, each for one
// size of work-groups, for images of certain formats, or both. Compiling takes tens of milliseconds, so a version is compiled only after enough
// work-items have run in launches that it suits. These are counted for each version separately, so that a version that is rarely used is not
// compiled because of other launches. Until then, a launch with images uses code for these images and any work-groups: compiling that takes a
// third of the time of code for any images. Decision 157.
#include <memory/trace.h>
#include <runtime/device_code.h>
#include <runtime/kernel_forms.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <set>

namespace polder::runtime {
namespace {

// The most versions of a kernel, in addition to the code for any launch.
constexpr size_t specials_max = 8;
// How many work-items a kernel executes without a suitable version before this version is compiled. At about 100 ns each, they take as
// long as the compilation.
constexpr uint64_t items_before_special = uint64_t{1} << 19;
// Added to the count for each launch, so that a version is compiled after eight launches, even when each has few work-items. For each existing
// version for the same images, 16 times as many launches are needed, because launches with few work-items gain little.
constexpr uint64_t items_per_launch = items_before_special / 8;
constexpr uint64_t launches_shift = 4;
// For how many versions that do not exist launches are counted.
constexpr size_t missing_max = 8;
// For how many combinations of images separate code is made. Further launches use code for any images.
constexpr size_t images_at_once_max = 3;
// The most versions of a program's kernels that are compiled before a launch needs them: a program may create all its kernel objects
// and launch only few.
constexpr uint32_t early_versions_max = 64;
// How many instructions a kernel's launches execute in quick code before other code is made: about half a millisecond of one thread, which is a small
// part of the time that quick code saves.
constexpr uint64_t quick_work_max = uint64_t{1} << 20;
// Added for each launch, because launches of code that is not final choose it each time: at most 256 launches.
constexpr uint64_t quick_work_per_launch = quick_work_max / 256;
// From this launch on, another thread makes the code that replaces quick code, so that a program that repeats a launch neither waits for it nor runs
// quick code for long.
constexpr uint32_t quick_launches_alone = 8;

using compiler::Launches;
constexpr std::array usual_kinds{Launches::usual, Launches::whole_vectors};

bool holds_address(const compiler::KernelArgument& argument) {
    return argument.kind == compiler::ArgumentKind::global_pointer ||
           argument.kind == compiler::ArgumentKind::constant_pointer || argument.kind == compiler::ArgumentKind::pipe ||
           argument.kind == compiler::ArgumentKind::image;  // the first member of its descriptor
}

// The initial contents of the program-scope variables, with their addresses in the device's memory filled in.
std::vector<std::byte> relocated(const compiler::ProgramVariables& variables, const driver::Device& device,
                                 DeviceAddress base) {
    if (const auto* kernels_see = device.kernel_addresses())
        base = kernels_see->kernel_address(base);
    std::vector<std::byte> image = variables.image;
    for (const uint64_t at : variables.relocations) {
        uint64_t offset = 0;
        std::memcpy(&offset, image.data() + at, sizeof offset);
        const uint64_t address = base.plus(offset).value;
        std::memcpy(image.data() + at, &address, sizeof address);
    }
    return image;
}

// The work-groups for which code for any launch is compiled.
std::optional<compiler::WorkGroups> any_groups_of(const compiler::KernelInfo& info) {
    if (!info.reqd_work_group_size)
        return std::nullopt;
    return compiler::WorkGroups{*info.reqd_work_group_size, compiler::WorkGroups::Ends::ragged};
}

}  // namespace

DeviceCode::DeviceCode(Device& device, std::shared_ptr<compiler::Executable> executable,
                       std::shared_ptr<const compiler::Module> module)
    : root_(device.root()), device_(device.driver()), space_(device.space()), executable_(std::move(executable)),
      module_(std::move(module)) {}

DeviceCode::~DeviceCode() {
    const Lock lock(mutex_);
    if (variables_)
        space_.pool().free(*variables_, {});
}

const compiler::KernelInfo* DeviceCode::info(std::string_view kernel) const {
    const std::span<const compiler::KernelInfo> kernels = module_->kernels();
    const auto found = std::ranges::find(kernels, kernel, &compiler::KernelInfo::name);
    return found == kernels.end() ? nullptr : &*found;
}

Result<const LoadedCode*> DeviceCode::kernel(const compiler::KernelInfo& info) {
    POLDER_ASSIGN(code, made(info, {any_groups_of(info), {}}));
    const Lock lock(mutex_);
    entry(info).code = code;
    return code;
}

compiler::CodeVersion DeviceCode::usual_version(std::vector<compiler::KnownArgument> known) {
    compiler::CodeVersion version{{}, std::move(known)};
    version.launches = compiler::Launches::usual;
    return version;
}

compiler::CodeVersion DeviceCode::version_for(compiler::Launches launches) {
    compiler::CodeVersion version;
    version.launches = launches;
    return version;
}

bool DeviceCode::has_begun_usual(const compiler::KernelInfo& info) const {
    return std::ranges::any_of(usual_kinds,
                               [&](Launches each) { return versions_.is_begun({&info, version_for(each)}); });
}

bool DeviceCode::may_be_usual(const compiler::KernelInfo& info) const {
    return device_.info().code.format == driver::CodeFormat::host_function && !info.reqd_work_group_size &&
           !info.uses_sub_groups;
}

bool DeviceCode::has_usual_code(const compiler::KernelInfo& info) const {
    return may_be_usual(info) && !specialises_for_images(info);
}

// Of the dimensions, the first is likely the lanes'. As promise_whole_rows chooses, if the kernel's ids have as many dimensions as its groups.
Launches DeviceCode::likely_launches(const LaunchSizes& sizes) {
    if (LoadedCode::is_usual(sizes, 0, compiler::usual_row_multiple(sizes.local[1] * sizes.local[2] > 1)))
        return Launches::usual;
    return LoadedCode::is_usual(sizes, 0, compiler::usual_row_multiple(true)) ? Launches::whole_vectors : Launches::any;
}

Launches DeviceCode::wanted_launches(const Entry& entry, const LaunchSizes* sizes) const {
    if (entry.code != nullptr || !has_usual_code(*entry.info) || versions_.is_begun({entry.info, {}}))
        return Launches::any;
    bool is_made = false;
    for (const Launches launches : usual_kinds) {
        const std::pair version{entry.info, version_for(launches)};
        const LoadedCode* const made = versions_.find(version);
        // What is being made is waited for: it may suit.
        if (made != nullptr ? sizes == nullptr || made->suits(*sizes) : versions_.is_begun(version))
            return launches;
        is_made |= made != nullptr;
    }
    if (is_made)
        return Launches::any;
    return sizes == nullptr ? Launches::usual : likely_launches(*sizes);
}

Result<const LoadedCode*> DeviceCode::usual_kernel(const compiler::KernelInfo& info, const LaunchSizes* sizes) {
    Launches launches = Launches::any;
    {
        const Lock lock(mutex_);
        const Entry& of = entry(info);
        if (of.code != nullptr)
            return of.code;
        launches = wanted_launches(of, sizes);
    }
    return launches == Launches::any ? kernel(info) : make_usual(info, launches);
}

Result<const LoadedCode*> DeviceCode::first_kernel(const compiler::KernelInfo& info, const compiler::WorkGroups& groups,
                                                   const LaunchSizes& sizes) {
    // What is being made is waited for: it shows the dimension of the lanes.
    POLDER_ASSIGN(code, usual_kernel(info, has_begun_usual(info) ? nullptr : &sizes));
    if (code->suits(sizes))
        return code;
    if (specialising(info, groups, code) != compiler::Specialising::at_once)
        return kernel(info);
    return special_kernel(info, {groups, {}});
}

Result<const LoadedCode*> DeviceCode::special_kernel(const compiler::KernelInfo& info, compiler::CodeVersion version) {
    POLDER_ASSIGN(code, made(info, version));
    const Lock lock(mutex_);
    Entry& of = entry(info);
    if (of.find(version) == nullptr)
        of.specials.push_back({std::move(version), code});
    return code;
}

Result<const LoadedCode*> DeviceCode::make_usual(const compiler::KernelInfo& info, Launches launches) {
    POLDER_ASSIGN(code, made(info, version_for(launches)));
    const Lock lock(mutex_);
    entry(info).usual = code;
    return code;
}

Result<const LoadedCode*> DeviceCode::kernel(const compiler::KernelInfo& info, const compiler::CodeVersion& version,
                                             const LaunchSizes* sizes) {
    Choice choice;
    {
        const Lock lock(mutex_);
        choice = choose(entry(info), version, sizes);
    }
    if (choice.code)
        return choice.code;
    if (choice.version.is_general())
        return kernel(info);
    const Launches launches = choice.version.launches;
    if (launches == Launches::any)
        return special_kernel(info, std::move(choice.version));
    const bool has_images = !choice.version.known.empty();
    POLDER_ASSIGN(usual, has_images ? special_kernel(info, choice.version) : make_usual(info, launches));
    if (sizes == nullptr || usual->suits(*sizes))
        return usual;
    return has_images ? special_kernel(info, {{}, std::move(choice.version.known)}) : kernel(info);
}

Result<DeviceCode::QuickCode> DeviceCode::quick_kernel(const compiler::KernelInfo& info, uint64_t work, Count count) {
    if (work > quick_work_max || !executable_->has_quick_code())
        return QuickCode{};
    const std::optional<uint32_t> launches = quick_launches(info, work, count);
    if (!launches)
        return QuickCode{};
    POLDER_ASSIGN(code, made(info, {any_groups_of(info), {}, compiler::Effort::quick}));
    return QuickCode{code, count == Count::counted && *launches == quick_launches_alone};
}

std::optional<uint32_t> DeviceCode::quick_launches(const compiler::KernelInfo& info, uint64_t work, Count count) {
    // A first launch would make quick code for nothing when a thread makes other code already. Later ones do not wait for that thread.
    const std::pair other{&info, likely_version(info)};
    const bool has_quick_code = versions_.find({&info, {any_groups_of(info), {}, compiler::Effort::quick}}) != nullptr;
    if (has_quick_code ? versions_.find(other) != nullptr : versions_.is_begun(other))
        return std::nullopt;
    const Lock lock(mutex_);
    Entry& of = entry(info);
    if (of.code != nullptr || of.usual != nullptr || !of.specials.empty() || of.quick_work + work > quick_work_max)
        return std::nullopt;
    if (count == Count::counted) {
        of.quick_work += work + quick_work_per_launch;
        ++of.quick_launches;
    }
    return of.quick_launches;
}

bool DeviceCode::quick_code_suffices(const compiler::KernelInfo& info) const {
    if (!versions_.is_begun({&info, {any_groups_of(info), {}, compiler::Effort::quick}}))
        return false;
    const Lock lock(mutex_);
    const auto found = std::ranges::find(entries_, &info, &Entry::info);
    return found == entries_.end() || found->quick_launches < quick_launches_alone;
}

DeviceCode::Choice DeviceCode::choose(Entry& entry, const compiler::CodeVersion& version, const LaunchSizes* sizes) {
    const uint64_t items = sizes ? sizes->global[0] * sizes->global[1] * sizes->global[2] : 0;
    if (const LoadedCode* const own = entry.find(version))
        return {own, {}};
    const compiler::CodeVersion any_groups{any_groups_of(*entry.info), version.known};
    const LoadedCode* const for_images = version.known.empty() ? nullptr : entry.find_for_images(any_groups, sizes);
    if (for_images != nullptr && !version.groups)
        return {for_images, {}};
    if (wants_special(entry, version, items))
        return {nullptr, with_usual_launches(entry, version, sizes)};
    if (for_images != nullptr)
        return {for_images, {}};
    if (entry.code)
        return {entry.code, {}};
    // When no launch follows, any existing code suffices.
    if (items == 0)
        return {entry.specials.empty() ? entry.usual : entry.specials.front().code, {}};
    if (const Launches launches = wanted_launches(entry, sizes); launches != Launches::any)
        return {versions_.find({entry.info, version_for(launches)}), version_for(launches)};
    if (wants_images(entry, version))
        return {nullptr, with_usual_launches(entry, any_groups, sizes)};
    return {};
}

compiler::CodeVersion DeviceCode::with_usual_launches(const Entry& entry, const compiler::CodeVersion& version,
                                                      const LaunchSizes* sizes) const {
    if (version.known.empty() || version.groups)
        return version;
    const Launches wanted = sizes == nullptr ? version.launches : likely_launches(*sizes);
    compiler::CodeVersion usual = usual_version(version.known);
    return wanted != Launches::usual || !may_be_usual(*entry.info) || entry.find(usual) != nullptr
               ? compiler::CodeVersion{{}, version.known}
               : usual;
}

bool DeviceCode::wants_special(Entry& entry, const compiler::CodeVersion& version, uint64_t items) {
    const bool is_required = entry.info->reqd_work_group_size.has_value();
    using enum compiler::Specialising;
    const compiler::Specialising for_groups =
        version.groups ? specialising(*entry.info, *version.groups, entry.code ? entry.code : entry.usual) : never;
    const bool suits_images = !version.known.empty();
    if (!entry.code && !entry.usual && entry.specials.empty())
        return for_groups == at_once || suits_images || is_required;
    // For a kernel with a required work-group size, the code for any launch is code for this size.
    if (items == 0 || !(suits_images || (for_groups != never && !is_required)))
        return false;
    if (entry.specials.size() >= specials_max)
        return false;
    return entry.count(version, items);
}

bool DeviceCode::wants_images(const Entry& entry, const compiler::CodeVersion& version) {
    if (version.known.empty() || entry.specials.size() >= specials_max)
        return false;
    std::set<std::vector<compiler::KnownArgument>> kinds{version.known};
    for (const Special& special : entry.specials)
        kinds.insert(special.version.known);
    return kinds.size() <= images_at_once_max;
}

const LoadedCode* DeviceCode::Entry::find(const compiler::CodeVersion& version) const {
    const auto found = std::ranges::find(specials, version, &Special::version);
    return found == specials.end() ? nullptr : found->code;
}

const LoadedCode* DeviceCode::Entry::find_for_images(const compiler::CodeVersion& any_groups,
                                                     const LaunchSizes* sizes) const {
    if (const LoadedCode* const any = find(any_groups))
        return any;
    const LoadedCode* const of_usual = any_groups.groups ? nullptr : find(usual_version(any_groups.known));
    return of_usual != nullptr && (sizes == nullptr || of_usual->suits(*sizes)) ? of_usual : nullptr;
}

uint64_t DeviceCode::Entry::versions_with(std::span<const compiler::KnownArgument> known) const {
    return static_cast<uint64_t>(std::ranges::count_if(
        specials, [&](const Special& special) { return std::ranges::equal(special.version.known, known); }));
}

// When the list is full, the version with the fewest work-items is replaced, and the new one inherits their number, so that every version
// with more than its share of all work-items is found (Metwally, Agrawal, El Abbadi: "Efficient computation of frequent and top-k elements in
// data streams"). The number of launches is not inherited, because a program may make small launches of many sizes that are rarely repeated.
bool DeviceCode::Entry::count(const compiler::CodeVersion& version, uint64_t items) {
    auto found = std::ranges::find(missing, version, &Missing::version);
    if (found == missing.end() && missing.size() < missing_max) {
        found = missing.insert(missing.end(), {version});
    } else if (found == missing.end()) {
        found = std::ranges::min_element(missing, {}, &Missing::sum);
        *found = {version, found->items};
    }
    found->items += items;
    found->for_launches += items_per_launch >> (launches_shift * versions_with(version.known));
    if (found->sum() < items_before_special)
        return false;
    missing.erase(found);
    return true;
}

DeviceCode::Groups DeviceCode::likely_groups(const compiler::KernelInfo& info) const {
    using compiler::WorkGroups;
    if (info.reqd_work_group_size)
        return WorkGroups{*info.reqd_work_group_size, WorkGroups::Ends::whole};
    if (info.work_group_size_hint) {
        const WorkGroups hinted{*info.work_group_size_hint, WorkGroups::Ends::whole};
        if (specialising(info, hinted, nullptr) == compiler::Specialising::at_once)
            return hinted;
    }
    return std::nullopt;
}

compiler::CodeVersion DeviceCode::likely_version(const compiler::KernelInfo& info) const {
    const Groups groups = likely_groups(info);
    return groups || !has_usual_code(info) ? compiler::CodeVersion{groups, {}} : usual_version();
}

bool DeviceCode::begins_early(const compiler::KernelInfo& kernel) const {
    const driver::CodeFormat format = device_.info().code.format;
    const bool is_ours = format == driver::CodeFormat::host_function || format == driver::CodeFormat::ptx;
    const Groups groups = likely_groups(kernel);
    // When the first launch needs code for one size (sub-groups) or for image formats, that code cannot be foreseen.
    const bool is_foreseen = (groups || !kernel.uses_sub_groups) && !specialises_for_images(kernel);
    return is_ours && is_foreseen && early_versions_.load(std::memory_order_relaxed) < early_versions_max &&
           !versions_.is_begun({&kernel, {groups, {}}}) && !has_begun_usual(kernel) && !quick_code_suffices(kernel);
}

void DeviceCode::make_early(const compiler::KernelInfo& kernel) {
    if (!begins_early(kernel))
        return;
    early_versions_.fetch_add(1, std::memory_order_relaxed);
    static_cast<void>(made(kernel, likely_version(kernel)));
}

DeviceCode::Entry& DeviceCode::entry(const compiler::KernelInfo& info) {
    const auto found = std::ranges::find(entries_, &info, &Entry::info);
    if (found != entries_.end())
        return *found;
    return entries_.emplace_back(Entry{.info = &info,
                                       .code = nullptr,
                                       .usual = nullptr,
                                       .specials = {},
                                       .missing = {},
                                       .quick_work = 0,
                                       .quick_launches = 0});
}

Result<const LoadedCode*> DeviceCode::made(const compiler::KernelInfo& info, const compiler::CodeVersion& version) {
    return versions_.get({&info, version}, [&] { return load(info, version); });
}

Result<LoadedCode> DeviceCode::load(const compiler::KernelInfo& info, const compiler::CodeVersion& version) {
    const auto began = std::chrono::steady_clock::now();
    POLDER_ASSIGN(compiled, executable_->code(info.name, version));
    const std::chrono::nanoseconds making = std::chrono::steady_clock::now() - began;
    POLDER_ASSIGN(loaded, device_.load(*compiled));
    LoadedCode code;
    code.loaded = std::move(loaded);
    code.version = version;
    if (std::unique_ptr<KernelForms> forms =
            KernelForms::of(*this, *executable_, info, version, static_cast<uint64_t>(making.count())))
        code.loaded->offer(std::move(forms));
    if (!version.groups) {
        code.dimensions = executable_->lane_dimensions(info.name, version);
        code.row_multiple = executable_->row_multiple(info.name, version);
    }
    for (const compiler::KernelArgument& argument : info.arguments)
        if (holds_address(argument))
            code.pointer_offsets.push_back(argument.offset);
    if (info.enqueues_blocks) {
        POLDER_ASSIGN(blocks, load_blocks());
        code.blocks = blocks;
    }
    return code;
}

Result<std::span<const driver::LoadedKernel* const>> DeviceCode::load_blocks() {
    const std::span<const compiler::KernelInfo> infos = module_->blocks();
    const Lock lock(blocks_mutex_);
    if (block_list_.size() != infos.size()) {
        std::vector<std::unique_ptr<driver::LoadedKernel>> blocks;
        std::vector<const driver::LoadedKernel*> list;
        for (const compiler::KernelInfo& info : infos) {
            POLDER_ASSIGN(compiled, executable_->code(info.name, std::nullopt));
            POLDER_ASSIGN(loaded, device_.load(*compiled));
            list.push_back(loaded.get());
            blocks.push_back(std::move(loaded));
        }
        blocks_ = std::move(blocks);
        block_list_ = std::move(list);
    }
    return std::span<const driver::LoadedKernel* const>{block_list_};
}

Result<DeviceAddress> DeviceCode::program_variables() {
    const compiler::ProgramVariables& variables = module_->program_variables();
    // A driver that compiles the source allocates the variables itself.
    if (variables.image.empty() || device_.info().code.format == driver::CodeFormat::opencl_c)
        return DeviceAddress{};
    const Lock lock(mutex_);
    if (!variables_) {
        const Alignment alignment{std::max<uint64_t>(variables.alignment, 128)};
        const ByteCount size{variables.image.size()};
        const Result<memory::Block> block = space_.pool().allocate(size, alignment);
        if (!block) {
            memory::trace::record_refusal({.space = space_.id(), .size = size, .alignment = alignment},
                                          block.error().detail());
            return fail(block.error());
        }
        if (const Result<void> filled = fill_variables(*block); !filled) {
            space_.pool().free(*block, {});
            return fail(filled.error());
        }
        variables_ = *block;
    }
    return variables_->address;
}

Result<void> DeviceCode::fill_variables(const memory::Block& block) {
    const std::vector<std::byte> image = relocated(module_->program_variables(), device_, block.address);
    if (space_.id().is_host()) {
        std::ranges::copy(image, block.address.host());
        return {};
    }
    // Driver queues are never destroyed, because timepoints refer to them.
    POLDER_ASSIGN(taken, root_.take_queue());
    driver::Queue* const queue = taken.queue;
    using Place = driver::CopyOperation::Place;
    const driver::Timepoint done = queue->copy(
        {{Place::host, DeviceAddress::of(image.data()), {}}, {Place::device, block.address, {}}, {image.size(), 1, 1}},
        {});
    queue->wait(done.value);
    const Status status = queue->status(done.value);
    root_.give_queue(done);
    if (status != Status::success)
        return fail(status);
    return {};
}

}  // namespace polder::runtime
