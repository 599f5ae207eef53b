#include <base/options.h>

#include <cpu/cpu_device.h>
#include <cpu/topology.h>
#include <host/host_queue.h>
#include <unistd.h>

namespace polder::cpu {
namespace {

devices::WorkerPoolOptions pool_options(const std::vector<int>& processors, const std::vector<uint32_t>& nodes,
                                        bool is_whole) {
    devices::WorkerPoolOptions options;
    options.thread_name = "polder-cpu";
    for (size_t i = 0; i < processors.size(); ++i)
        options.places.push_back({processors[i], nodes.empty() ? 0 : nodes[i]});
    if (options::affinity())
        options.binding = devices::WorkerPoolOptions::Binding::to_place;
    else if (!is_whole)
        options.binding = devices::WorkerPoolOptions::Binding::to_all_places;
    return options;
}

} // namespace

CpuDevice::CpuDevice(driver::DeviceInfo info, std::vector<int> processors, std::vector<uint32_t> nodes)
    : HostDevice(std::move(info), std::move(processors)), nodes_(std::move(nodes)),
      pool_(pool_options(this->processors(), nodes_, this->info().max_sub_devices != 0)) {}

std::span<const driver::AffinityDomain> CpuDevice::affinity_domains() {
    Lock lock(mutex_);
    if (!domains_)
        domains_ = cpu::affinity_domains(processors());
    return *domains_;
}

Result<driver::Memory> CpuDevice::reserve_memory(ByteCount) {
    return fail(Status::mem_object_allocation_failure, "the CPU device has no memory of its own");
}

void CpuDevice::release_memory(driver::Memory) {}

ByteCount CpuDevice::available_memory() const {
    const auto pages = static_cast<uint64_t>(sysconf(_SC_AVPHYS_PAGES));
    return ByteCount{pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE))};
}

Result<std::unique_ptr<driver::Queue>> CpuDevice::create_queue(driver::QueueRole) {
    return std::make_unique<devices::HostQueue>(pool_, devices::HostQueue::Options{});
}

Result<std::unique_ptr<driver::Device>> CpuDevice::create_sub_device(std::span<const uint32_t> compute_units) {
    return std::make_unique<CpuDevice>(info_of(compute_units), pick(processors(), compute_units),
                                       nodes_.empty() ? nodes_ : pick(nodes_, compute_units));
}

} // namespace polder::cpu
