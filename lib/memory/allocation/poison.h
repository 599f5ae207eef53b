// Marks host memory that no code may touch for the address sanitizer; does nothing in other builds.
#pragma once

#include <polder/types.h>

#if defined(__SANITIZE_ADDRESS__)
#define POLDER_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define POLDER_ADDRESS_SANITIZER 1
#endif
#endif

#if defined(POLDER_ADDRESS_SANITIZER)
#include <sanitizer/asan_interface.h>
#endif

namespace polder::memory {

#if defined(POLDER_ADDRESS_SANITIZER)
inline constexpr bool poisoning = true;
inline void poison(DeviceAddress address, ByteCount size) { __asan_poison_memory_region(address.host(), size.value); }
inline void unpoison(DeviceAddress address, ByteCount size) {
    __asan_unpoison_memory_region(address.host(), size.value);
}
#else
inline constexpr bool poisoning = false;
inline void poison(DeviceAddress, ByteCount) {}
inline void unpoison(DeviceAddress, ByteCount) {}
#endif

} // namespace polder::memory
