#include <algorithm>
#include <cstring>
#include <host/stream_copy.h>
#include <unistd.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace polder::devices {

bool exceeds_caches(uint64_t bytes) {
    static const uint64_t limit_bytes = [] {
        const long last_level = sysconf(_SC_LEVEL3_CACHE_SIZE);
        return last_level > 0 ? static_cast<uint64_t>(last_level) / 4 * 3 : uint64_t{16} << 20;
    }();
    return bytes > limit_bytes;
}

#if defined(__SSE2__)

void stream_copy(std::byte* to, const std::byte* from, uint64_t size) {
    constexpr uint64_t line = 64;
    const uint64_t head = std::min<uint64_t>(size, -reinterpret_cast<uintptr_t>(to) % line);
    std::memcpy(to, from, head);
    to += head;
    from += head;
    size -= head;
    for (; size >= line; size -= line, to += line, from += line) {
        const auto* const source = reinterpret_cast<const __m128i*>(from);
        auto* const target = reinterpret_cast<__m128i*>(to);
        const __m128i a = _mm_loadu_si128(source);
        const __m128i b = _mm_loadu_si128(source + 1);
        const __m128i c = _mm_loadu_si128(source + 2);
        const __m128i d = _mm_loadu_si128(source + 3);
        _mm_stream_si128(target, a);
        _mm_stream_si128(target + 1, b);
        _mm_stream_si128(target + 2, c);
        _mm_stream_si128(target + 3, d);
    }
    std::memcpy(to, from, size);
    // Ordered before the completion that is published next.
    _mm_sfence();
}

#else

void stream_copy(std::byte* to, const std::byte* from, uint64_t size) { std::memcpy(to, from, size); }

#endif

} // namespace polder::devices
