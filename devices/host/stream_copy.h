// Copies that go around the caches, for blocks of transfers that are larger than the last-level cache: the target's
// lines are not read before they are overwritten, which saves a third of the traffic. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace polder::devices {

// Whether a transfer of `bytes` in all is better copied with stream_copy.
[[nodiscard]] bool exceeds_caches(uint64_t bytes);

// As memcpy.
void stream_copy(std::byte* to, const std::byte* from, uint64_t size);

} // namespace polder::devices
