#include <runtime/device_code.h>

#include <algorithm>
#include <cstring>
#include <polder/kernel_addresses.h>

namespace polder::runtime {
namespace {

bool holds_address(const compiler::KernelArgument& argument) {
    return argument.kind == compiler::ArgumentKind::global_pointer ||
           argument.kind == compiler::ArgumentKind::constant_pointer;
}

// The initial contents with the addresses that depend on where the variables are.
std::vector<std::byte> relocated(const compiler::ProgramVariables& variables, const driver::Device& device,
                                 DeviceAddress base) {
    if (const auto* kernels_see = dynamic_cast<const driver::KernelAddresses*>(&device))
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

} // namespace

DeviceCode::DeviceCode(Device& device, std::shared_ptr<compiler::Executable> executable,
                       std::shared_ptr<const compiler::Module> module)
    : device_(device.driver()), space_(device.space()), executable_(std::move(executable)), module_(std::move(module)) {
}

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
    const Lock lock(mutex_);
    for (const Entry& entry : entries_)
        if (entry.info == &info)
            return entry.code.get();
    POLDER_ASSIGN(code, load(info));
    entries_.push_back({&info, std::move(code)});
    return entries_.back().code.get();
}

Result<std::unique_ptr<LoadedCode>> DeviceCode::load(const compiler::KernelInfo& info) {
    POLDER_ASSIGN(compiled, executable_->function(info.name, info.reqd_work_group_size));
    POLDER_ASSIGN(loaded, device_.load({compiled->function, compiled->local_bytes,
                                        compiled->scratch_bytes_per_work_item, compiled->stack_bytes}));
    auto code = std::make_unique<LoadedCode>();
    code->compiled = compiled;
    code->loaded = std::move(loaded);
    for (const compiler::KernelArgument& argument : info.arguments)
        if (holds_address(argument))
            code->pointer_offsets.push_back(argument.offset);
    return code;
}

Result<DeviceAddress> DeviceCode::program_variables() {
    const compiler::ProgramVariables& variables = module_->program_variables();
    if (variables.image.empty())
        return DeviceAddress{};
    const Lock lock(mutex_);
    if (!variables_) {
        const Alignment alignment{std::max<uint64_t>(variables.alignment, 128)};
        POLDER_ASSIGN(block, space_.pool().allocate(ByteCount{variables.image.size()}, alignment));
        if (const Result<void> filled = fill_variables(block); !filled) {
            space_.pool().free(block, {});
            return fail(filled.error());
        }
        variables_ = block;
    }
    return variables_->address;
}

Result<void> DeviceCode::fill_variables(const memory::Block& block) {
    const std::vector<std::byte> image = relocated(module_->program_variables(), device_, block.address);
    if (space_.id().is_host()) {
        std::ranges::copy(image, block.address.host());
        return {};
    }
    POLDER_ASSIGN(queue, device_.create_queue(driver::QueueRole::transfer_in));
    using Place = driver::CopyOperation::Place;
    const driver::Timepoint done = queue->copy(
        {{Place::host, DeviceAddress::of(image.data()), {}}, {Place::device, block.address, {}}, {image.size(), 1, 1}},
        {});
    queue->wait(done.value);
    const Status status = queue->status(done.value);
    if (status != Status::success)
        return fail(status);
    return {};
}

} // namespace polder::runtime
