#include <base/log.h>
#include <base/options.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <iterator>
#include <unistd.h>

namespace polder::log {
namespace {

constexpr const char* category_names[] = {"error",    "warning", "api",   "memory", "compiler",
                                          "driver",   "event",   "cache", "timing"};

uint32_t bit(Category category) { return 1u << static_cast<uint32_t>(category); }

uint32_t parse_categories(std::string_view text) {
    uint32_t mask = 0;
    while (!text.empty()) {
        const size_t comma = text.find_first_of(", :");
        const std::string_view word = text.substr(0, comma);
        text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
        if (word == "all" || word == "1")
            return ~0u;
        for (size_t i = 0; i < std::size(category_names); ++i)
            if (word == category_names[i])
                mask |= 1u << i;
    }
    return mask;
}

uint32_t enabled_mask() {
    static const uint32_t mask =
        parse_categories(options::debug()) | bit(Category::error) | bit(Category::warning);
    return mask;
}

} // namespace

bool enabled(Category category) {
    // Asked before the options are read: they report their own malformed values as warnings.
    if (category <= Category::warning)
        return true;
    return (enabled_mask() & bit(category)) != 0;
}

void line(Category category, const char* format, ...) {
    char text[2048];
    int length = std::snprintf(text, sizeof text, "polder: %s: ",
                               category_names[static_cast<size_t>(category)]);
    va_list arguments;
    va_start(arguments, format);
    const int body = std::vsnprintf(text + length, sizeof text - static_cast<size_t>(length) - 1,
                                    format, arguments);
    va_end(arguments);
    length = std::min<int>(length + std::max(body, 0), sizeof text - 2);
    text[length++] = '\n';
    // Nothing useful can be done when stderr is closed.
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text, static_cast<size_t>(length));
}

} // namespace polder::log
