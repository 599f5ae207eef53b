// Properties of the host processor: its name and speed from the kernel's tables, its NUMA and cache domains
// from hwloc.
//
// hwloc loads its plug-ins when it is initialised, which takes several times longer than all other functions
// here, so it is used only when the domains are needed. Any thread.
#pragma once

#include <cstdint>
#include <polder/driver.h>
#include <string>
#include <vector>

namespace polder::cpu {

struct ProcessorFacts {
    std::string name;
    std::string vendor;
    uint32_t vendor_id = 0;  // of the PCI register of vendors, 0 when unknown
};
[[nodiscard]] ProcessorFacts processor_facts();

// True when the machine has more than one NUMA domain with processors.
[[nodiscard]] bool has_several_numa_domains();

// Lists of indices into `processors` that share a NUMA domain or a cache, level by level from the outermost;
// levels that do not divide the processors are left out.
[[nodiscard]] std::vector<driver::AffinityDomain> affinity_domains(const std::vector<int>& processors);

} // namespace polder::cpu
