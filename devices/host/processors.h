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

// As many of them as may run at once: limited by the control groups' quota and POCL_MAX_COMPUTE_UNITS.
[[nodiscard]] std::vector<int> usable_processors();

// The width of the widest vector registers.
[[nodiscard]] uint32_t vector_register_bytes();

// The folders that describe control groups; tests put files of their own there.
struct ControlGroupFiles {
    std::string mount = "/sys/fs/cgroup";
    std::string of_process = "/proc/self/cgroup";
};

// Processor time per time that the control groups (v1 or v2) of this process allow, rounded up.
[[nodiscard]] std::optional<uint32_t> quota_processors(const ControlGroupFiles& files = {});
// Bytes of memory that they allow.
[[nodiscard]] std::optional<uint64_t> quota_memory_bytes(const ControlGroupFiles& files = {});

// The first line of a file under /proc or /sys; nothing when it cannot be read.
[[nodiscard]] std::optional<std::string> first_line(const std::string& path);

} // namespace polder::devices
