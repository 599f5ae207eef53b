// CodeCache: where a driver keeps code that it has compiled further, from one process to the next.
//
// Drivers do not know the compiler, whose cache on disk this is. The compiler installs it before it makes the first code for a driver;
// where there is none, nothing is kept. A cache never fails: what cannot be stored is not there later. Any thread.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace polder {

class CodeCache {
public:
    // All that the code depends on.
    using Parts = std::span<const std::string_view>;

    virtual ~CodeCache() = default;
    [[nodiscard]] virtual std::optional<std::string> load(Parts parts) = 0;
    // Replaces what was stored for the same parts.
    virtual void store(Parts parts, std::string_view bytes) = 0;

    // Null when none is installed.
    [[nodiscard]] static CodeCache* installed();
    // `cache` lives until the process ends, or until another one is installed. Null: none.
    static void install(CodeCache* cache);
};

}  // namespace polder
