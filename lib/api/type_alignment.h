// The alignment that an application asks for an allocation: shared virtual memory's and unified shared memory's.
#pragma once

#include <bit>
#include <cstddef>

namespace polder::api {

// Whether it is 0 (the implementation chooses) or a power of two up to that of the largest OpenCL types, long16 and double16.
[[nodiscard]] constexpr bool is_type_alignment(size_t bytes) {
    constexpr size_t largest = 128;
    return bytes == 0 || (std::has_single_bit(bytes) && bytes <= largest);
}

}  // namespace polder::api
