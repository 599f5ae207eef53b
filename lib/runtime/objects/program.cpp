#include <runtime/program.h>

#include <algorithm>
#include <cassert>

namespace polder::runtime {

Program::Program(Ref<Context> context, std::vector<Ref<Device>> devices, Origin origin, std::string source)
    : context_(std::move(context)), devices_(std::move(devices)), origin_(origin), source_(std::move(source)),
      builds_(devices_.size()) {}

Program::~Program() = default;

std::optional<size_t> Program::index_of(const Device& device) const {
    const auto found = std::ranges::find(devices_, &device, &Ref<Device>::get);
    if (found == devices_.end())
        return {};
    return static_cast<size_t>(found - devices_.begin());
}

size_t Program::place_of(const Device& device) const {
    const std::optional<size_t> index = index_of(device);
    assert(index);
    return *index;
}

void Program::set_binary(const Device& device, std::shared_ptr<const BuiltModule> built) {
    const Lock lock(mutex_);
    builds_[place_of(device)].built = std::move(built);
}

Result<void> Program::specialize(uint32_t id, std::span<const std::byte> value) {
    const auto found = std::ranges::find(constants_, id, &compiler::SpecializationConstant::id);
    if (found == constants_.end())
        return fail(Status::invalid_spec_id);
    if (found->bytes != value.size())
        return fail(Status::invalid_value);
    const Lock lock(mutex_);
    specialization_[id].assign(value.begin(), value.end());
    return {};
}

DeviceBuild Program::device_build(const Device& device) const {
    const Lock lock(mutex_);
    return builds_[place_of(device)];
}

const DeviceBuild* Program::find_executable(const Device& device) const {
    for (const Device* d = &device; d; d = d->parent())
        if (const std::optional<size_t> index = index_of(*d); index && builds_[*index].code)
            return &builds_[*index];
    return nullptr;
}

Ref<DeviceCode> Program::code(const Device& device) const {
    const Lock lock(mutex_);
    const DeviceBuild* build = find_executable(device);
    return build ? build->code : nullptr;
}

BuiltModule::WorkGroups Program::work_groups(const Device& device) const {
    const Lock lock(mutex_);
    const DeviceBuild* build = find_executable(device);
    const std::optional<driver::LanguageLimits>& language = device.info().language;
    if (!build || (language && language->work_groups == driver::LanguageLimits::WorkGroups::uniform))
        return BuiltModule::WorkGroups::uniform;
    return build->built->work_groups;
}

std::shared_ptr<const BuiltModule> Program::any_executable() const {
    const Lock lock(mutex_);
    for (const DeviceBuild& build : builds_)
        if (build.code)
            return build.built;
    return nullptr;
}

} // namespace polder::runtime
