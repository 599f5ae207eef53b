#include <base/options.h>

#include <common/clock.h>
#include <common/host_kernel.h>
#include <common/host_queue.h>
#include <cpu/cpu_device.h>
#include <cpu/topology.h>
#include <unistd.h>

namespace polder::cpu {
namespace {

devices::EngineOptions engine_options(const std::vector<int>& processors, const std::vector<uint32_t>& nodes,
                                      bool is_whole) {
    devices::EngineOptions options;
    options.thread_name = "polder-cpu";
    for (size_t i = 0; i < processors.size(); ++i)
        options.places.push_back({processors[i], nodes.empty() ? 0 : nodes[i]});
    if (options::affinity())
        options.binding = devices::EngineOptions::Binding::to_place;
    else if (!is_whole)
        options.binding = devices::EngineOptions::Binding::to_all_places;
    return options;
}

} // namespace

CpuDevice::CpuDevice(driver::DeviceInfo info, std::vector<int> processors, std::vector<uint32_t> nodes)
    : info_(std::move(info)), processors_(std::move(processors)), nodes_(std::move(nodes)),
      engine_(engine_options(processors_, nodes_, info_.max_sub_devices != 0)) {}

std::span<const driver::AffinityDomain> CpuDevice::affinity_domains() {
    Lock lock(mutex_);
    if (!domains_)
        domains_ = cpu::affinity_domains(processors_);
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
    return std::make_unique<devices::HostQueue>(engine_, devices::HostQueue::Options{});
}

Result<std::unique_ptr<driver::LoadedKernel>> CpuDevice::load(const driver::KernelImage& image) {
    return devices::HostKernel::load(image);
}

Result<std::unique_ptr<driver::Device>> CpuDevice::create_sub_device(std::span<const uint32_t> compute_units) {
    driver::DeviceInfo info = info_;
    info.compute_units = static_cast<uint32_t>(compute_units.size());
    info.max_sub_devices = info.compute_units > 1 ? info.compute_units : 0;
    std::vector<int> processors;
    std::vector<uint32_t> nodes;
    for (const uint32_t unit : compute_units) {
        processors.push_back(processors_[unit]);
        if (!nodes_.empty())
            nodes.push_back(nodes_[unit]);
    }
    return std::make_unique<CpuDevice>(std::move(info), std::move(processors), std::move(nodes));
}

uint64_t CpuDevice::now_ns() const { return devices::now_ns(); }

} // namespace polder::cpu
