// Name and speed are read from /proc/cpuinfo; the domains from hwloc, whose OpenCL plug-in is disabled, because
// it would call the OpenCL loader that is just loading Polder.
#include <base/log.h>

#include <algorithm>
#include <cpu/topology.h>
#include <fstream>
#include <host/processors.h>
#include <hwloc.h>
#include <optional>
#include <string_view>

namespace polder::cpu {
namespace {

using devices::first_line;

struct VendorEntry {
    std::string_view cpuid_name;
    uint32_t id;
};
// The vendors' PCI ids, which CL_DEVICE_VENDOR_ID must return.
constexpr VendorEntry vendors[] = {
    {"GenuineIntel", 0x8086},
    {"AuthenticAMD", 0x1022},
    {"HygonGenuine", 0x1d94},
    {"CentaurHauls", 0x1106},
};

std::string trimmed(std::string_view text) {
    const auto begin = text.find_first_not_of(" \t");
    const auto end = text.find_last_not_of(" \t");
    return begin == std::string_view::npos ? std::string{} : std::string(text.substr(begin, end - begin + 1));
}

void read_cpuinfo(ProcessorFacts& facts) {
    std::ifstream file("/proc/cpuinfo");
    std::string numbers;
    for (std::string line; std::getline(file, line) && !line.empty();) {
        const size_t colon = line.find(':');
        if (colon == std::string::npos)
            continue;
        const std::string key = trimmed(line.substr(0, colon));
        const std::string value = trimmed(line.substr(colon + 1));
        if (key == "model name")
            facts.name = value;
        else if (key == "cpu family" || key == "model" || key == "stepping")
            numbers += (numbers.empty() ? "" : ", ") + key.substr(key.rfind(' ') + 1) + " " + value;
        else if (key == "vendor_id")
            facts.vendor = value;
    }
    // Virtual machines report one name, such as "AMD EPYC", for different processors, so the numbers are added.
    if (!facts.name.empty() && !numbers.empty())
        facts.name += " (" + numbers + ")";
}

class Topology {
public:
    Topology() {
        if (hwloc_topology_init(&topology_) != 0)
            return;
        // hwloc's OpenCL component would call the ICD loader, which is loading Polder at this moment.
        hwloc_topology_set_components(topology_, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "opencl");
        hwloc_topology_set_io_types_filter(topology_, HWLOC_TYPE_FILTER_KEEP_NONE);
        loaded_ = hwloc_topology_load(topology_) == 0;
    }
    Topology(const Topology&) = delete;
    Topology& operator=(const Topology&) = delete;
    ~Topology() {
        if (topology_)
            hwloc_topology_destroy(topology_);
    }
    [[nodiscard]] bool is_loaded() const { return loaded_; }

    // The processors under each object of one type.
    [[nodiscard]] std::vector<std::vector<uint32_t>> groups(hwloc_obj_type_t type,
                                                            const std::vector<int>& processors) const {
        std::vector<std::vector<uint32_t>> groups;
        for (hwloc_obj_t object = nullptr; (object = hwloc_get_next_obj_by_type(topology_, type, object));) {
            std::vector<uint32_t> group;
            for (uint32_t i = 0; i < processors.size(); ++i)
                if (hwloc_bitmap_isset(object->cpuset, static_cast<unsigned>(processors[i])))
                    group.push_back(i);
            if (!group.empty())
                groups.push_back(std::move(group));
        }
        return groups;
    }

private:
    hwloc_topology_t topology_ = nullptr;
    bool loaded_ = false;
};

}  // namespace

ProcessorFacts processor_facts() {
    ProcessorFacts facts;
    read_cpuinfo(facts);
    for (const VendorEntry& vendor : vendors)
        if (vendor.cpuid_name == facts.vendor)
            facts.vendor_id = vendor.id;
    if (facts.name.empty())
        facts.name = "host processor";
    if (facts.vendor.empty())
        facts.vendor = "unknown";
    return facts;
}

bool has_several_numa_domains() {
    const auto domains = first_line("/sys/devices/system/node/has_cpu");
    return domains && domains->find_first_of(",-") != std::string::npos;
}

std::vector<driver::AffinityDomain> affinity_domains(const std::vector<int>& processors) {
    using Level = driver::AffinityDomain::Level;
    struct LevelEntry {
        Level level;
        hwloc_obj_type_t type;
    };
    constexpr LevelEntry levels[] = {{Level::numa, HWLOC_OBJ_NUMANODE},
                                     {Level::l4, HWLOC_OBJ_L4CACHE},
                                     {Level::l3, HWLOC_OBJ_L3CACHE},
                                     {Level::l2, HWLOC_OBJ_L2CACHE},
                                     {Level::l1, HWLOC_OBJ_L1CACHE}};
    const Topology topology;
    std::vector<driver::AffinityDomain> domains;
    if (!topology.is_loaded()) {
        log::line(log::Category::warning, "hwloc cannot determine the processor's topology");
        return domains;
    }
    for (const LevelEntry& entry : levels) {
        auto groups = topology.groups(entry.type, processors);
        if (groups.size() > 1)
            domains.push_back({entry.level, std::move(groups)});
    }
    return domains;
}

}  // namespace polder::cpu
