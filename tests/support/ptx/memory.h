// The memory that a launch may use, and how addresses become pointers.
#pragma once

#include "code.h"

#include <span>

namespace polder::ptx {

// What ends a launch. The numbers are those of CUDA's errors.
enum class Fault : int {
    none = 0,
    illegal_address = 700,
    illegal_instruction = 715,
    misaligned_address = 716,
    invalid_address_space = 717,
    invalid_pc = 718,
    launch_failed = 719,
};

// Bytes of the host that kernels may use as global memory.
struct Range {
    uint64_t begin = 0;
    uint64_t end = 0;
    bool is_writable = true;
};

enum class Access : uint8_t { read, write };

// In the order of addresses, without overlaps; neighbours with the same access are one range.
[[nodiscard]] std::vector<Range> merged(std::vector<Range> ranges);

// The range of `ranges` that holds all bytes; null when there is none.
[[nodiscard]] const Range* find(std::span<const Range> ranges, uint64_t address, uint64_t bytes);

}  // namespace polder::ptx
