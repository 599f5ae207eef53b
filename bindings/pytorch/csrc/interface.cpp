// The functions that the Python module calls. They are operators of the namespace `opencl`, so that this library needs no Python.
#include "generator.h"
#include "memory.h"
#include "ops/fallback.h"
#include "ops/kernels.h"
#include "program.h"

#include <ATen/core/CachingHostAllocator.h>
#include <torch/library.h>

namespace torch_opencl {
namespace {

int64_t device_count() { return static_cast<int64_t>(Platform::get().devices().size()); }

std::string device_name(int64_t index) { return Platform::get().device(static_cast<int>(index)).name; }

// Bytes of memory, compute units, largest work-group, largest allocation, 1 if it has double precision, 1 if it is a GPU.
std::vector<int64_t> device_properties(int64_t index) {
    const Device& device = Platform::get().device(static_cast<int>(index));
    return {static_cast<int64_t>(device.memory_bytes),
            device.compute_units,
            static_cast<int64_t>(device.group_size_max),
            static_cast<int64_t>(device.allocation_bytes_max),
            device.has_double ? 1 : 0,
            device.is_gpu ? 1 : 0};
}

// For each live allocation, its address and its size.
std::vector<int64_t> memory_blocks(int64_t index) {
    std::vector<int64_t> numbers;
    for (const LiveBlock& block : live_blocks(static_cast<int>(index))) {
        numbers.push_back(static_cast<int64_t>(block.address));
        numbers.push_back(static_cast<int64_t>(block.bytes));
    }
    return numbers;
}

// Of the allocations of pinned memory, then of their bytes: now, peak, added, removed.
std::vector<int64_t> pinned_stats() {
    const at::HostStats stats = at::getHostAllocator(at::kPrivateUse1)->get_stats();
    std::vector<int64_t> numbers;
    for (const auto& stat : {stats.active_requests, stats.active_bytes})
        numbers.insert(numbers.end(), {stat.current, stat.peak, stat.allocated, stat.freed});
    return numbers;
}

// The names of operators that ran on the CPU, and their counts.
std::tuple<std::vector<std::string>, std::vector<int64_t>> fallbacks() {
    std::tuple<std::vector<std::string>, std::vector<int64_t>> all;
    for (const auto& [name, count] : fallback_counts()) {
        std::get<0>(all).push_back(name);
        std::get<1>(all).push_back(count);
    }
    return all;
}

}  // namespace

TORCH_LIBRARY(opencl, m) {
    m.def("device_count", [] { return device_count(); });
    m.def("device_name", [](int64_t index) { return device_name(index); });
    m.def("device_properties", [](int64_t index) { return device_properties(index); });
    m.def("current_device", [] { return static_cast<int64_t>(current_device()); });
    m.def("set_device", [](int64_t index) { set_device(static_cast<int>(index)); });
    m.def("exchange_device",
          [](int64_t index) { return static_cast<int64_t>(exchange_device(static_cast<int>(index))); });
    m.def("is_in_bad_fork", [] { return is_in_bad_fork(); });
    m.def("why_none", [] { return Platform::get().why_none(); });
    m.def("default_generator", [](int64_t index) { return default_generator(static_cast<int>(index)); });
    m.def("memory_blocks", [](int64_t index) { return memory_blocks(index); });
    m.def("pinned_stats", [] { return pinned_stats(); });
    m.def("reset_accumulated_pinned_stats", [] { at::getHostAllocator(at::kPrivateUse1)->reset_accumulated_stats(); });
    m.def("reset_peak_pinned_stats", [] { at::getHostAllocator(at::kPrivateUse1)->reset_peak_stats(); });
    m.def("set_memory_fraction",
          [](int64_t index, double fraction) { set_memory_fraction(static_cast<int>(index), fraction); });
    m.def("fallbacks", [] { return fallbacks(); });
    m.def("reset_fallbacks", [] { reset_fallback_counts(); });
    m.def("helper_functions", [](std::string expression) { return helper_functions(expression); });
    m.def("host_copies", [] { return static_cast<int64_t>(host_copies()); });
    m.def("launches", [] { return static_cast<int64_t>(launches()); });
}

}  // namespace torch_opencl
