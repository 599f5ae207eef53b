// How many seeds random tests take: fewer in sanitized builds, which run several times slower.
#pragma once

#include <algorithm>
#include <cstdint>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define POLDER_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define POLDER_SANITIZED 1
#endif
#endif

namespace polder::test {

#if defined(POLDER_SANITIZED)
constexpr uint64_t seeds(uint64_t usual) { return std::max<uint64_t>(usual / 8, 1); }
#else
constexpr uint64_t seeds(uint64_t usual) { return usual; }
#endif

} // namespace polder::test
