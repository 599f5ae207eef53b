// Messages to the user on stderr, one line each: "polder: warning: ..." or, for a category of
// POLDER's POCL_DEBUG, "polder: memory: ...".
//
// Any thread. A line is written with one system call, so lines of several threads do not mix.
#pragma once

#include <cstdint>
#include <string_view>

namespace polder::log {

// Categories of POCL_DEBUG; "all" switches on every one.
enum class Category : uint8_t { error, warning, api, memory, compiler, driver, event, cache, timing };

[[nodiscard]] bool enabled(Category category);

// printf-style. `error` and `warning` are always written; the others only when enabled.
[[gnu::format(printf, 2, 3)]] void line(Category category, const char* format, ...);

} // namespace polder::log

// Evaluates the arguments only when the category is on.
#define POLDER_LOG(category, ...)                                                                                      \
    do {                                                                                                               \
        if (::polder::log::enabled(::polder::log::Category::category)) [[unlikely]]                                    \
            ::polder::log::line(::polder::log::Category::category, __VA_ARGS__);                                       \
    } while (false)
