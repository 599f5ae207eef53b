// Messages to the user on stderr, one line each: "polder: warning: ..." or, for a category that POCL_DEBUG enables,
// "polder: memory: ...".
//
// Any thread. A line is written with one system call, so lines of several threads do not mix.
#pragma once

#include <atomic>
#include <cstdint>

namespace polder::log {

// Categories of POCL_DEBUG; "all" switches on every one.
enum class Category : uint8_t { error, warning, api, memory, compiler, driver, event, cache, timing };

// One bit for each category that may be enabled. All bits are set until the options have been read.
extern constinit std::atomic<uint32_t> possible_categories;
[[nodiscard]] bool is_enabled(Category category);

[[nodiscard]] inline bool enabled(Category category) {
    const uint32_t possible = possible_categories.load(std::memory_order_relaxed);
    return ((possible >> static_cast<uint32_t>(category)) & 1) != 0 && is_enabled(category);
}

// printf-style. `error` and `warning` are always written; the others only when enabled.
[[gnu::format(printf, 2, 3)]] void line(Category category, const char* format, ...);

} // namespace polder::log

namespace polder {

// Converts a number for %llu of printf.
inline unsigned long long llu(uint64_t number) { return number; }

} // namespace polder

// Writes a line if the category is enabled; otherwise the arguments are not evaluated.
#define POLDER_LOG(category, ...)                                                                                      \
    do {                                                                                                               \
        if (::polder::log::enabled(::polder::log::Category::category)) [[unlikely]]                                    \
            ::polder::log::line(::polder::log::Category::category, __VA_ARGS__);                                       \
    } while (false)
