// Devices as the runtime sees them: their targets, and the driver queues, which are used by one command queue after the other.
#include <compiler/compiler.h>
#include <runtime/context.h>
#include <runtime/device.h>
#include <runtime/extensions.h>

#include <algorithm>
#include <iterator>
#include <optional>

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

// Returns one object for all equal targets. Never destroyed, because devices are not.
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

}  // namespace

Device::Device(DriverSlot& slot, memory::Space& space, std::string driver_name)
    : slot_(&slot), space_(&space), driver_name_(std::move(driver_name)),
      target_(shared_target(describe_target(slot.device.info()))) {}

Device::Device(Ref<Device> parent, DriverSlot& slot, PartitionList partition)
    : parent_(std::move(parent)), slot_(&slot), space_(&parent_->space()), driver_name_(parent_->driver_name()),
      partition_(std::move(partition)), target_(&parent_->target()) {}

Device::~Device() = default;

namespace {

// Takes a free queue without work, of those that were given back last. Otherwise takes the oldest queue if busy_queues_max have work, or none.
std::optional<driver::Timepoint> take_free_queue(std::vector<driver::Timepoint>& free) {
    const size_t looked_at = std::min(free.size(), Device::busy_queues_max);
    auto found = std::find_if(free.rbegin(), free.rbegin() + static_cast<ptrdiff_t>(looked_at),
                              [](driver::Timepoint newest) { return newest.is_complete(); });
    if (found == free.rbegin() + static_cast<ptrdiff_t>(looked_at)) {
        if (free.size() < Device::busy_queues_max)
            return std::nullopt;
        found = std::prev(free.rend());
    }
    const driver::Timepoint taken = *found;
    free.erase(std::prev(found.base()));
    return taken;
}

}  // namespace

Result<driver::Timepoint> Device::take_queue() {
    {
        const Lock lock(slot_->mutex);
        if (const auto taken = take_free_queue(slot_->free_queues))
            return *taken;
    }
    POLDER_ASSIGN(queue, slot_->device.create_queue(driver::QueueRole::compute));
    const Lock lock(slot_->mutex);
    slot_->free_queues.reserve(slot_->queue_count + 1);
    ++slot_->queue_count;
    return driver::Timepoint{queue.release(), 0};
}

void Device::give_queue(driver::Timepoint newest) noexcept {
    const Lock lock(slot_->mutex);
    slot_->free_queues.push_back(newest);
}

uint64_t max_allocation_bytes(const Device& device) {
    // One buffer may have all of the memory, unless the driver cannot reserve that much at once.
    const driver::DeviceInfo& info = device.info();
    return info.allocation_bytes_max != 0 ? std::min(info.allocation_bytes_max, info.memory_bytes) : info.memory_bytes;
}

uint64_t max_constant_bytes(const Device& device) {
    // Constant memory is global memory here, so larger buffers work, too. Applications assume that all work-items can read this many
    // bytes fast, so it is about the size of a core's second-level cache. The specification requires 64 KiB.
    constexpr uint64_t cached_bytes = 1u << 20;
    if (device.info().language)
        return device.info().language->constant_bytes_max;
    return std::min(max_allocation_bytes(device), cached_bytes);
}

}  // namespace polder::runtime
