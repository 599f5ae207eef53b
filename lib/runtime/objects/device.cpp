#include <compiler/compiler.h>
#include <runtime/context.h>
#include <runtime/device.h>
#include <runtime/extensions.h>

#include <algorithm>

namespace polder::runtime {
namespace {

compiler::Target describe_target(const driver::DeviceInfo& info) {
    compiler::Target target;
    target.code = info.code;
    for (const Extension& extension : extensions())
        if (offers(info, extension))
            target.extensions.emplace_back(extension.name);
    for (const Feature& feature : features())
        if (offers(info, feature))
            target.features.emplace_back(feature.name);
    return target;
}

// The one Target of all devices that are alike. Never destroyed, as devices are not.
const compiler::Target* shared_target(compiler::Target target) {
    struct Targets {
        Mutex mutex;
        std::vector<std::unique_ptr<const compiler::Target>> list POLDER_GUARDED_BY(mutex);
    };
    static Targets& targets = *new Targets;

    const Lock lock(targets.mutex);
    for (const auto& known : targets.list)
        if (known->code == target.code && known->extensions == target.extensions && known->features == target.features)
            return known.get();
    targets.list.push_back(std::make_unique<const compiler::Target>(std::move(target)));
    return targets.list.back().get();
}

} // namespace

Device::Device(DriverSlot& slot, memory::Space& space, std::string driver_name)
    : slot_(&slot), space_(&space), driver_name_(std::move(driver_name)),
      target_(shared_target(describe_target(slot.device.info()))) {}

Device::Device(Ref<Device> parent, DriverSlot& slot, PartitionList partition)
    : parent_(std::move(parent)), slot_(&slot), space_(&parent_->space()), driver_name_(parent_->driver_name()),
      partition_(std::move(partition)), target_(&parent_->target()) {}

Device::~Device() = default;

Result<driver::Queue*> Device::take_queue() {
    {
        const Lock lock(slot_->mutex);
        if (!slot_->idle_queues.empty()) {
            driver::Queue* const queue = slot_->idle_queues.back();
            slot_->idle_queues.pop_back();
            return queue;
        }
    }
    POLDER_ASSIGN(queue, slot_->device.create_queue(driver::QueueRole::compute));
    const Lock lock(slot_->mutex);
    slot_->idle_queues.reserve(slot_->queue_count + 1);
    ++slot_->queue_count;
    return queue.release();
}

void Device::give_queue(driver::Queue* queue) noexcept {
    const Lock lock(slot_->mutex);
    slot_->idle_queues.push_back(queue);
}

uint64_t max_allocation_bytes(const Device& device) {
    // One buffer may have all there is, unless the driver cannot give that much at once.
    const driver::DeviceInfo& info = device.info();
    return info.allocation_bytes_max != 0 ? std::min(info.allocation_bytes_max, info.memory_bytes) : info.memory_bytes;
}

uint64_t max_constant_bytes(const Device& device) {
    // Constant memory is global memory here, and a larger buffer works too. Applications take the figure for what can
    // be read fast from everywhere, so it is about what a core's second cache holds; 64 KiB must be there.
    constexpr uint64_t cached_bytes = 1u << 20;
    if (device.info().language)
        return device.info().language->constant_bytes_max;
    return std::min(max_allocation_bytes(device), cached_bytes);
}

}  // namespace polder::runtime
