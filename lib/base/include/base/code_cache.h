// CodeCache: where a driver stores code that it has compiled further, so that later processes need not compile it again.
//
// The implementation is the compiler's cache on disk. Drivers cannot include the compiler, so the compiler installs the cache before it
// makes the first code for a driver. Without one, nothing is stored. Storing reports no error: the code is then not found later. Any thread.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace polder {

class CodeCache {
public:
    // The key: everything that the code depends on.
    using Parts = std::span<const std::string_view>;

    virtual ~CodeCache() = default;
    [[nodiscard]] virtual std::optional<std::string> load(Parts parts) = 0;
    // Replaces what was stored for the same parts.
    virtual void store(Parts parts, std::string_view bytes) = 0;

    // Null when no cache is installed.
    [[nodiscard]] static CodeCache* installed();
    // `cache` lives until the process ends or another cache is installed. Null: no cache.
    static void install(CodeCache* cache);
};

}  // namespace polder
