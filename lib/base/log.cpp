#include <base/log.h>
#include <base/options.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <iterator>
#include <unistd.h>

namespace polder::log {
namespace {

constexpr const char* category_names[] = {"error",  "warning", "api",   "memory", "compiler",
                                          "driver", "event",   "cache", "timing"};

uint32_t bit(Category category) { return 1u << static_cast<uint32_t>(category); }

// PoCL's names of the categories. Its other categories have no messages here and are ignored.
constexpr struct {
    std::string_view word;
    uint32_t mask;
} peer_words[] = {{"llvm", 1u << static_cast<uint32_t>(Category::compiler)},
                  {"events", 1u << static_cast<uint32_t>(Category::event)},
                  {"general", 1u << static_cast<uint32_t>(Category::api)},
                  {"1", 1u << static_cast<uint32_t>(Category::api)},
                  {"all", ~0u},
                  {"0", 0},
                  {"locking", 0},
                  {"refcounts", 0}};

uint32_t mask_of(std::string_view word) {
    for (size_t i = 0; i < std::size(category_names); ++i)
        if (word == category_names[i])
            return 1u << i;
    for (const auto& known : peer_words)
        if (word == known.word)
            return known.mask;
    line(Category::warning,
         "POCL_DEBUG: unknown category \"%.*s\" (known: error, warning, api, memory, "
         "compiler, driver, event, cache, timing, all)",
         static_cast<int>(word.size()), word.data());
    return 0;
}

uint32_t parse_categories(std::string_view text) {
    constexpr std::string_view separators = ", :";
    uint32_t mask = 0;
    while (true) {
        text.remove_prefix(std::min(text.find_first_not_of(separators), text.size()));
        if (text.empty())
            return mask;
        const std::string_view word = text.substr(0, text.find_first_of(separators));
        mask |= mask_of(word);
        text.remove_prefix(word.size());
    }
}

uint32_t enabled_mask() {
    static const uint32_t mask = parse_categories(options::debug()) | bit(Category::error) | bit(Category::warning);
    return mask;
}

} // namespace

constinit std::atomic<uint32_t> possible_categories{~0u};

bool is_enabled(Category category) {
    // Does not read the options: this function may be called while they are being read, because malformed values are reported as warnings.
    if (category <= Category::warning)
        return true;
    const uint32_t mask = enabled_mask();
    possible_categories.store(mask, std::memory_order_relaxed);
    return (mask & bit(category)) != 0;
}

void line(Category category, const char* format, ...) {
    char text[2048];
    int length = std::snprintf(text, sizeof text, "polder: %s: ", category_names[static_cast<size_t>(category)]);
    va_list arguments;
    va_start(arguments, format);
    const int body = std::vsnprintf(text + length, sizeof text - static_cast<size_t>(length) - 1, format, arguments);
    va_end(arguments);
    length = std::min<int>(length + std::max(body, 0), sizeof text - 2);
    text[length++] = '\n';
    // Nothing useful can be done when stderr is closed.
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text, static_cast<size_t>(length));
}

}  // namespace polder::log
