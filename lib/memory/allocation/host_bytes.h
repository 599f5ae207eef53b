// The bytes of memory that the host addresses.
#pragma once

#include <cstddef>
#include <polder/driver.h>
#include <span>

namespace polder::memory {

[[nodiscard]] inline std::span<std::byte> bytes_of(driver::Memory memory) {
    return {static_cast<std::byte*>(memory.address.host()), memory.size};
}

}  // namespace polder::memory
