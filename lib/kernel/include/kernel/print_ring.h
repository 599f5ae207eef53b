// Formats what kernels on devices with a printf ring have printed (include/polder/ptx_abi.h).
//
// The records come from a device and are checked: nothing outside of `records` is read. Reading ends at the first record that is
// not finished or malformed. Any thread.
#pragma once

#include <polder/code.h>
#include <span>

namespace polder::kernel {

void print_ring(std::span<const std::byte> records, driver::PrintText print, void* user);

} // namespace polder::kernel
