// Sub-devices: computes the compute units of each sub-device from a partition property list, and makes the drivers' sub-devices. The
// errors are those of clCreateSubDevices.
#include <runtime/device.h>

#include <algorithm>
#include <map>
#include <numeric>

namespace polder::runtime {
namespace {

using Groups = std::vector<std::vector<uint32_t>>;

struct DomainName {
    driver::AffinityDomain::Level level;
    cl_device_affinity_domain flag;
};
// From the outermost to the innermost: the order of CL_DEVICE_AFFINITY_DOMAIN_NEXT_PARTITIONABLE.
constexpr DomainName domain_names[] = {
    {driver::AffinityDomain::Level::numa, CL_DEVICE_AFFINITY_DOMAIN_NUMA},
    {driver::AffinityDomain::Level::l4, CL_DEVICE_AFFINITY_DOMAIN_L4_CACHE},
    {driver::AffinityDomain::Level::l3, CL_DEVICE_AFFINITY_DOMAIN_L3_CACHE},
    {driver::AffinityDomain::Level::l2, CL_DEVICE_AFFINITY_DOMAIN_L2_CACHE},
    {driver::AffinityDomain::Level::l1, CL_DEVICE_AFFINITY_DOMAIN_L1_CACHE},
};

const driver::AffinityDomain* find_domain(const Device& device, driver::AffinityDomain::Level level) {
    for (const driver::AffinityDomain& domain : device.driver().affinity_domains())
        if (domain.level == level && !domain.groups.empty())
            return &domain;
    return nullptr;
}

bool can_be_partitioned(const Device& device) {
    return device.info().max_sub_devices > 1 && device.info().compute_units > 1;
}

// `count` compute units from `first` on.
std::vector<uint32_t> consecutive(uint32_t first, uint64_t count) {
    std::vector<uint32_t> units(count);
    std::iota(units.begin(), units.end(), first);
    return units;
}

Result<SubDevicePlan> plan_equally(const Device& device, const cl_device_partition_property* properties) {
    const uint32_t available = device.info().compute_units;
    const auto each = static_cast<uint64_t>(properties[1]);
    // CL_INVALID_VALUE: the number of compute units for each sub-device is 0, or the list does not end after it.
    if (each == 0 || properties[2] != 0)
        return fail(Status::invalid_value);
    if (each > available)
        return fail(Status::invalid_device_partition_count);
    // CL_DEVICE_PARTITION_FAILED: a sub-device would be the whole device, or the device cannot be partitioned further.
    if (each == available || !can_be_partitioned(device))
        return fail(Status::device_partition_failed);
    Groups groups;
    for (uint32_t first = 0; first + each <= available; first += static_cast<uint32_t>(each))
        groups.push_back(consecutive(first, each));
    return SubDevicePlan{std::move(groups), PartitionList(properties, properties + 3)};
}

Result<SubDevicePlan> plan_by_counts(const Device& device, const cl_device_partition_property* properties) {
    const uint32_t available = device.info().compute_units;
    Groups groups;
    uint32_t used = 0;
    const cl_device_partition_property* count = properties + 1;
    for (; *count != CL_DEVICE_PARTITION_BY_COUNTS_LIST_END; ++count) {
        // CL_INVALID_DEVICE_PARTITION_COUNT: a count is negative, or the counts exceed the number of compute units.
        if (*count < 0 || static_cast<uint64_t>(*count) > available - used)
            return fail(Status::invalid_device_partition_count);
        groups.push_back(consecutive(used, static_cast<uint64_t>(*count)));
        used += static_cast<uint32_t>(*count);
    }
    // CL_INVALID_VALUE: the list of counts is empty. Nothing after the end of the counts is read: SYCL's OpenCL adapter writes no second zero
    // for the end of the properties, and what follows may not be memory of the application.
    if (groups.empty())
        return fail(Status::invalid_value);
    if (!can_be_partitioned(device))
        return fail(Status::device_partition_failed);
    // CL_INVALID_DEVICE_PARTITION_COUNT: more sub-devices than CL_DEVICE_PARTITION_MAX_SUB_DEVICES.
    if (groups.size() > device.info().max_sub_devices)
        return fail(Status::invalid_device_partition_count);
    PartitionList partition(properties, count + 1);
    partition.push_back(0);
    return SubDevicePlan{std::move(groups), std::move(partition)};
}

Result<SubDevicePlan> plan_by_affinity(const Device& device, const cl_device_partition_property* properties) {
    const auto wanted = static_cast<cl_device_affinity_domain>(properties[1]);
    const bool next = wanted == CL_DEVICE_AFFINITY_DOMAIN_NEXT_PARTITIONABLE;
    const bool known = next || std::ranges::count(domain_names, wanted, &DomainName::flag) > 0;
    // CL_INVALID_VALUE: the affinity domain is unknown, or the list does not end after it.
    if (!known || properties[2] != 0)
        return fail(Status::invalid_value);
    for (const DomainName& name : domain_names) {
        const driver::AffinityDomain* domain = find_domain(device, name.level);
        if (!domain || (!next && name.flag != wanted) || (next && domain->groups.size() < 2))
            continue;
        return SubDevicePlan{
            domain->groups,
            {CL_DEVICE_PARTITION_BY_AFFINITY_DOMAIN, static_cast<cl_device_partition_property>(name.flag), 0}};
    }
    // CL_DEVICE_PARTITION_FAILED: NEXT_PARTITIONABLE, and no domain divides the device further. CL_INVALID_VALUE: the device has no such domain.
    return fail(next && affinity_domains(device) != 0 ? Status::device_partition_failed : Status::invalid_value);
}

// The driver's device for these compute units of `parent`. It is made once for each set of compute units and never destroyed, because its
// queues must stay valid and applications make the same partition repeatedly.
Result<DriverSlot*> sub_device_slot(driver::Device& parent, const std::vector<uint32_t>& compute_units) {
    struct Parts {
        Mutex mutex;
        std::map<std::pair<driver::Device*, std::vector<uint32_t>>, DriverSlot*> slots POLDER_GUARDED_BY(mutex);
    };
    static Parts& parts = *new Parts;

    const Lock lock(parts.mutex);
    DriverSlot*& slot = parts.slots[{&parent, compute_units}];
    if (!slot) {
        POLDER_ASSIGN(device, parent.create_sub_device(compute_units));
        slot = new DriverSlot(*device.release());
    }
    return slot;
}

}  // namespace

Result<SubDevicePlan> plan_sub_devices(const Device& device, const cl_device_partition_property* properties) {
    if (!properties)
        return fail(Status::invalid_value);
    switch (properties[0]) {
    case CL_DEVICE_PARTITION_EQUALLY: return plan_equally(device, properties);
    case CL_DEVICE_PARTITION_BY_COUNTS: return plan_by_counts(device, properties);
    case CL_DEVICE_PARTITION_BY_AFFINITY_DOMAIN: return plan_by_affinity(device, properties);
    default: return fail(Status::invalid_value);
    }
}

Result<std::vector<Ref<Device>>> create_sub_devices(Device& device, const SubDevicePlan& plan) {
    std::vector<Ref<Device>> devices;
    for (const std::vector<uint32_t>& units : plan.compute_units) {
        POLDER_ASSIGN(slot, sub_device_slot(device.driver(), units));
        devices.push_back(make_ref<Device>(Ref<Device>::share(&device), *slot, plan.partition));
    }
    return devices;
}

PartitionList partition_kinds(const Device& device) {
    if (!can_be_partitioned(device))
        return {};
    PartitionList kinds{CL_DEVICE_PARTITION_EQUALLY, CL_DEVICE_PARTITION_BY_COUNTS};
    if (affinity_domains(device))
        kinds.push_back(CL_DEVICE_PARTITION_BY_AFFINITY_DOMAIN);
    return kinds;
}

cl_device_affinity_domain affinity_domains(const Device& device) {
    cl_device_affinity_domain domains = 0;
    bool divides = false;
    for (const DomainName& name : domain_names)
        if (const driver::AffinityDomain* domain = find_domain(device, name.level)) {
            domains |= name.flag;
            divides |= domain->groups.size() > 1;
        }
    return divides ? domains | CL_DEVICE_AFFINITY_DOMAIN_NEXT_PARTITIONABLE : domains;
}

}  // namespace polder::runtime
