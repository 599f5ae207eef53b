// Opens the processors as one device. What it reports comes from the kernel's tables and the control groups; its workers are spread over the NUMA domains.

#include <base/options.h>

#include <algorithm>
#include <bit>
#include <cpu/cpu_device.h>
#include <cpu/cpu_driver.h>
#include <cpu/topology.h>
#include <host/caches.h>
#include <host/processors.h>
#include <unistd.h>

namespace polder::cpu {
namespace {

// The processors that become compute units, one each.
std::vector<int> processors_to_use() {
    std::vector<int> processors = devices::usable_processors();
    if (const auto limit = options::cpu_max_compute_units(); limit && *limit > 0 && *limit < processors.size())
        processors.resize(*limit);
    return processors;
}

// The memory that is left for buffers. A control group's limit is for the whole process, including compiled code and the application's
// memory, and a process that exceeds it is killed.
uint64_t for_buffers(uint64_t quota_bytes) {
    constexpr uint64_t for_process_bytes = uint64_t{128} << 20;
    return quota_bytes - std::min(quota_bytes / 2, std::max(quota_bytes / 4, for_process_bytes));
}

uint64_t memory_bytes() {
    const auto pages = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES));
    uint64_t bytes = pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    if (const std::optional<uint64_t> quota = devices::quota_memory_bytes(); quota && *quota > 0 && *quota < bytes)
        bytes = for_buffers(*quota);
    if (const std::optional<uint64_t> limit = options::memory_limit_bytes(); limit && *limit > 0)
        bytes = std::min(bytes, *limit);
    return bytes;
}

// The local memory of a work-group, in bytes: so much that it fits into a core's cache.
uint64_t local_memory_bytes(const devices::Caches& caches) {
    constexpr uint64_t least = uint64_t{64} * 1024;
    if (const auto bytes = options::cpu_local_memory_bytes(); bytes && *bytes > 0)
        return *bytes;
    return std::bit_floor(std::max(least, caches.level2_bytes));
}

driver::DeviceInfo device_info(const ProcessorFacts& facts, uint32_t compute_units) {
    driver::DeviceInfo info;
    info.name = "cpu-" + facts.name;
    info.vendor = facts.vendor;
    info.vendor_id = options::cpu_vendor_id_override().value_or(facts.vendor_id);
    info.driver_version = POLDER_VERSION;
    info.type = driver::DeviceType::cpu;
    info.space = host_space;
    info.compute_units = compute_units;
    info.max_sub_devices = compute_units > 1 ? compute_units : 0;
    info.clock_mhz = devices::clock_mhz_of_host();
    if (const auto limit = options::max_work_group_size(); limit && *limit > 0)
        info.max_work_group_size = *limit;
    std::fill(std::begin(info.max_work_item_sizes), std::end(info.max_work_item_sizes), info.max_work_group_size);
    info.memory_bytes = memory_bytes();
    const devices::Caches caches = devices::caches_of_host();
    info.global_cache = caches.last_level;
    info.code.local_memory_bytes = local_memory_bytes(caches);
    info.preferred_vector_bytes = devices::vector_register_bytes();
    return info;
}

// The NUMA domain of each processor; empty when all share one.
std::vector<uint32_t> numa_domains_of(const std::vector<int>& processors) {
    std::vector<uint32_t> nodes;
    if (!has_several_numa_domains())
        return nodes;
    for (const driver::AffinityDomain& domain : affinity_domains(processors)) {
        if (domain.level != driver::AffinityDomain::Level::numa)
            continue;
        nodes.resize(processors.size(), 0);
        for (uint32_t node = 0; node < domain.groups.size(); ++node)
            for (const uint32_t unit : domain.groups[node])
                nodes[unit] = node;
    }
    return nodes;
}

class CpuDriver final : public driver::Driver {
    [[nodiscard]] std::string_view name() const override { return "cpu"; }
    [[nodiscard]] uint32_t count() const override { return 1; }
    [[nodiscard]] Result<std::unique_ptr<driver::Device>> open(uint32_t, SpaceId, std::string_view) override {
        std::vector<int> processors = processors_to_use();
        std::vector<uint32_t> nodes = numa_domains_of(processors);
        driver::DeviceInfo info = device_info(processor_facts(), static_cast<uint32_t>(processors.size()));
        return std::make_unique<CpuDevice>(std::move(info), std::move(processors), std::move(nodes));
    }
};

}  // namespace

std::unique_ptr<driver::Driver> make_driver() { return std::make_unique<CpuDriver>(); }

}  // namespace polder::cpu
