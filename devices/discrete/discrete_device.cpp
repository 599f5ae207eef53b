#include <discrete/discrete_device.h>
#include <host/host_queue.h>

namespace polder::discrete {
namespace {

devices::WorkerPoolOptions pool_options(const std::vector<int>& processors, Arena& arena) {
    devices::WorkerPoolOptions options;
    options.thread_name = "polder-discrete";
    for (const int processor : processors)
        options.places.push_back({processor, 0});
    options.helping = devices::Helping::workers_only;
    options.local_memory = &arena;
    return options;
}

} // namespace

void Peers::add(SpaceId space, std::weak_ptr<Arena> arena, devices::LinkSpeed speed) {
    Lock lock(mutex_);
    peers_[space] = {std::move(arena), speed};
}

std::shared_ptr<Arena> Peers::find(SpaceId space) const {
    Lock lock(mutex_);
    const auto found = peers_.find(space);
    return found == peers_.end() ? nullptr : found->second.arena.lock();
}

std::optional<driver::PeerLink> Peers::link(SpaceId reader, SpaceId other) const {
    Lock lock(mutex_);
    const auto here = peers_.find(reader);
    const auto there = peers_.find(other);
    if (reader == other || here == peers_.end() || there == peers_.end() || there->second.arena.expired())
        return std::nullopt;
    // 0 means no limit, so it counts as the fastest.
    const uint64_t one = here->second.speed.bytes_per_second;
    const uint64_t two = there->second.speed.bytes_per_second;
    return driver::PeerLink{1, one == 0 || two == 0 ? std::max(one, two) : std::min(one, two)};
}

DiscreteDevice::DiscreteDevice(driver::DeviceInfo info, SharedMemory shared, std::vector<int> processors)
    : HostDevice(std::move(info), std::move(processors)), shared_(std::move(shared)),
      pool_(pool_options(this->processors(), *shared_.arena)) {}

Result<void> DiscreteDevice::start() {
    // Without a worker, no thread could execute this device's operations.
    if (!pool_.start())
        return fail(Status::out_of_resources, "no thread for a discrete device");
    return {};
}

Result<driver::Memory> DiscreteDevice::reserve_memory(ByteCount size) { return shared_.arena->reserve(size); }

void DiscreteDevice::release_memory(driver::Memory memory) { shared_.arena->release(memory); }

ByteCount DiscreteDevice::available_memory() const { return shared_.arena->available(); }

Result<std::unique_ptr<driver::Queue>> DiscreteDevice::create_queue(driver::QueueRole) {
    return std::make_unique<devices::HostQueue>(
        pool_, devices::HostQueue::Options{shared_.arena->window(), shared_.link.get()});
}

Result<std::unique_ptr<driver::Device>> DiscreteDevice::create_sub_device(std::span<const uint32_t> compute_units) {
    auto device = std::make_unique<DiscreteDevice>(info_of(compute_units), shared_, pick(processors(), compute_units));
    POLDER_TRY(device->start());
    return device;
}

DeviceAddress DiscreteDevice::kernel_address(DeviceAddress address) const {
    return DeviceAddress{shared_.arena->window().resolve(address.value)};
}

std::optional<driver::PeerLink> DiscreteDevice::link(SpaceId space) const {
    return shared_.peers ? shared_.peers->link(info().space, space) : std::nullopt;
}

driver::Timepoint DiscreteDevice::copy(driver::Queue& queue, SpaceId from_space, const driver::CopyOperation& operation,
                                       const driver::Submission& submission) {
    const std::shared_ptr<Arena> peer = shared_.peers->find(from_space);
    assert(peer);
    return static_cast<devices::HostQueue&>(queue).copy_resolved(peer->window().resolve(operation.from.address),
                                                                 shared_.arena->window().resolve(operation.to.address),
                                                                 operation, devices::LinkDirection::peer, submission);
}

// The simulated device uses host memory, so a change of the owner needs no work except the order of operations.
driver::Timepoint DiscreteDevice::map(driver::Queue& queue, driver::Memory, const driver::Submission& submission) {
    return queue.marker(submission);
}

driver::Timepoint DiscreteDevice::unmap(driver::Queue& queue, driver::Memory, const driver::Submission& submission) {
    return queue.marker(submission);
}

}  // namespace polder::discrete
