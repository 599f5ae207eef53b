#include "statistics.h"

#include <CL/cl_ext_polder.h>
#include <cstdio>
#include <string>

namespace {

std::string bytes_text(cl_ulong bytes) {
    const char* const units[] = {"B", "KiB", "MiB", "GiB"};
    double value = static_cast<double>(bytes);
    size_t unit = 0;
    while (value >= 1024 && unit + 1 < std::size(units)) {
        value /= 1024;
        ++unit;
    }
    char text[32];
    std::snprintf(text, sizeof text, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
    return text;
}

std::string space_name(cl_uint space, const std::vector<DeviceReport>& devices) {
    if (space == 0)
        return "host memory";
    for (size_t i = 0; i < devices.size(); ++i) {
        cl_uint computes_in = 0;
        if (clGetDeviceInfo(devices[i].device(), CL_DEVICE_MEMORY_SPACE_POLDER, sizeof computes_in, &computes_in,
                            nullptr) == CL_SUCCESS &&
            computes_in == space)
            return "device " + std::to_string(i) + "'s memory";
    }
    return "the application's memory";
}

// Calls a listing function of the extension twice: for the number of entries, and for the entries.
template <class Entry, class Function>
std::vector<Entry> list(const cl::Context& context, const char* name) {
    const cl::Platform platform(context.getInfo<CL_CONTEXT_DEVICES>().front().getInfo<CL_DEVICE_PLATFORM>());
    const auto function = reinterpret_cast<Function>(clGetExtensionFunctionAddressForPlatform(platform(), name));
    cl_uint count = 0;
    if (!function || function(context(), 0, nullptr, &count) != CL_SUCCESS)
        return {};
    std::vector<Entry> entries(count);
    if (count && function(context(), count, entries.data(), nullptr) != CL_SUCCESS)
        entries.clear();
    return entries;
}

void print_devices(const std::vector<DeviceReport>& devices) {
    std::printf("\n%-3s %-58s %6s %12s\n", "", "device", "tiles", "kernels");
    for (size_t i = 0; i < devices.size(); ++i)
        std::printf("%-3zu %-58.58s %6u %9.1f ms\n", i, devices[i].device.getInfo<CL_DEVICE_NAME>().c_str(),
                    devices[i].tiles, devices[i].kernels_ms);
}

void print_spaces(const cl::Context& context, const std::vector<DeviceReport>& devices) {
    const auto spaces = list<cl_memory_space_polder, clGetMemorySpacesPOLDER_fn>(context, "clGetMemorySpacesPOLDER");
    if (spaces.empty())
        return;
    std::printf("\n%-30s %12s %8s %12s %12s\n", "allocated in", "bytes", "blocks", "at most", "of");
    for (const cl_memory_space_polder& space : spaces)
        std::printf("%-30s %12s %8u %12s %12s\n", space_name(space.space, devices).c_str(),
                    bytes_text(space.used_bytes).c_str(), space.live_blocks, bytes_text(space.peak_bytes).c_str(),
                    bytes_text(space.total_bytes).c_str());
}

void print_transfers(const cl::Context& context, const std::vector<DeviceReport>& devices) {
    const auto transfers =
        list<cl_memory_transfers_polder, clGetMemoryTransfersPOLDER_fn>(context, "clGetMemoryTransfersPOLDER");
    if (transfers.empty())
        return;
    std::printf("\n%-30s %-30s %8s %12s %12s\n", "moved from", "to", "times", "moved", "needed");
    for (const cl_memory_transfers_polder& entry : transfers)
        std::printf("%-30s %-30s %8llu %12s %12s\n", space_name(entry.from_space, devices).c_str(),
                    space_name(entry.to_space, devices).c_str(), static_cast<unsigned long long>(entry.transfers),
                    bytes_text(entry.moved_bytes).c_str(), bytes_text(entry.needed_bytes).c_str());
}

} // namespace

void print_report(const cl::Context& context, const std::vector<DeviceReport>& devices) {
    print_devices(devices);
    print_spaces(context, devices);
    print_transfers(context, devices);
}
