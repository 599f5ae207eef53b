// What the tests with random programs share: which seeds they run, and what shows that a seed names the same program for every compiler of the test.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace polder::compiler::workgroup::test {

struct Seeds {
    uint32_t first;
    uint32_t count;
};

// POLDER_RANDOM_SEEDS=first:count, or =first for one; else `result`.
inline Seeds seeds_or(Seeds result) {
    if (const char* text = std::getenv("POLDER_RANDOM_SEEDS")) {
        char* end = nullptr;
        result.first = static_cast<uint32_t>(std::strtoul(text, &end, 10));
        result.count = *end == ':' ? static_cast<uint32_t>(std::strtoul(end + 1, nullptr, 10)) : 1;
    }
    return result;
}

// The FNV-1a hash of the texts that `text_of` makes of the seeds from 1 to 200.
template <class TextOf>
uint64_t hash_of_programs(const TextOf& text_of) {
    uint64_t hash = 14695981039346656037U;
    for (uint32_t seed = 1; seed <= 200; ++seed) {
        const auto text = text_of(seed);
        for (const char letter : std::string_view(text))
            hash = (hash ^ static_cast<unsigned char>(letter)) * 1099511628211U;
    }
    return hash;
}

}  // namespace polder::compiler::workgroup::test
