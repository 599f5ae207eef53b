// Which processors this process may use, and how many at once: scheduling affinity and control groups.
//
// Read from the system at each call. Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace polder::devices {

// The OS's numbers of the processors in the process's affinity mask, ascending; never empty.
[[nodiscard]] std::vector<int> allowed_processors();

// The first of these processors: as many as the control groups' quota and POCL_MAX_COMPUTE_UNITS allow.
[[nodiscard]] std::vector<int> usable_processors();

// The width of the processor's widest vector registers, in bytes.
[[nodiscard]] uint32_t vector_register_bytes();

// The highest clock rate of the first processor, or the rate of now where the kernel does not know it; 0 where it knows neither.
[[nodiscard]] uint32_t clock_mhz_of_host();

// The folders that describe control groups; tests put files of their own there.
struct ControlGroupFiles {
    std::string mount = "/sys/fs/cgroup";
    std::string of_process = "/proc/self/cgroup";
};

// How many processors the control groups (v1 or v2) let this process use at a time, rounded up; std::nullopt: no limit.
[[nodiscard]] std::optional<uint32_t> quota_processors(const ControlGroupFiles& files = {});
// The bytes of memory that the control groups allow; std::nullopt: no limit.
[[nodiscard]] std::optional<uint64_t> quota_memory_bytes(const ControlGroupFiles& files = {});

// The first line of a file under /proc or /sys; nothing when it cannot be read.
[[nodiscard]] std::optional<std::string> first_line(const std::string& path);

}  // namespace polder::devices
