#include <runtime/group_memory.h>

#include <algorithm>

namespace polder::runtime {
namespace {

constexpr uint64_t least_bytes_max = uint64_t{16} << 20;
constexpr uint64_t target_bytes = uint64_t{64} << 20;
constexpr uint64_t share_of_memory = 4;

}  // namespace

uint64_t group_private_bytes_max(const driver::DeviceInfo& device) {
    const uint64_t threads = std::max<uint64_t>(1, device.compute_units);
    return std::max(least_bytes_max, device.memory_bytes / (share_of_memory * threads));
}

uint64_t group_items_max(const compiler::KernelInfo& kernel, const driver::DeviceInfo& device) {
    const uint64_t item_bytes = kernel.private_bytes_over_barriers;
    if (device.code.format != driver::CodeFormat::host_function || item_bytes == 0)
        return device.max_work_group_size;
    return std::clamp<uint64_t>(group_private_bytes_max(device) / item_bytes, 1, device.max_work_group_size);
}

uint64_t group_items_target(const compiler::KernelInfo& kernel, const driver::DeviceInfo& device,
                            uint64_t preferred_multiple) {
    const uint64_t most = group_items_max(kernel, device);
    const uint64_t item_bytes = kernel.private_bytes_over_barriers;
    if (device.code.format != driver::CodeFormat::host_function || item_bytes == 0)
        return most;
    return std::min(most, std::max({target_bytes / item_bytes, preferred_multiple, uint64_t{1}}));
}

}  // namespace polder::runtime
