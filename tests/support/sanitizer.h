// Which sanitizer the tests are built with, for what a sanitizer cannot do. GCC and Clang define the same macros.
#pragma once

namespace polder::test {

#ifdef __SANITIZE_ADDRESS__
inline constexpr bool has_address_sanitizer = true;
#else
inline constexpr bool has_address_sanitizer = false;
#endif

#ifdef __SANITIZE_THREAD__
inline constexpr bool has_thread_sanitizer = true;
#else
inline constexpr bool has_thread_sanitizer = false;
#endif

} // namespace polder::test
