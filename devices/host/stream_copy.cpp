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
namespace {

constexpr uint64_t line = 64;

// Copies whole cache lines. `to` must be aligned to a line.
template <class Store>
void copy_lines(std::byte*& to, const std::byte*& from, uint64_t& size, Store store) {
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
        store(target, a);
        store(target + 1, b);
        store(target + 2, c);
        store(target + 3, d);
    }
}

}  // namespace

void cached_copy(std::byte* to, const std::byte* from, uint64_t size) {
    constexpr uint64_t string_instruction_bytes = 2048;  // glibc's smallest threshold
    if (size >= string_instruction_bytes)
        copy_lines(to, from, size, [](__m128i* target, __m128i value) { _mm_store_si128(target, value); });
    std::memcpy(to, from, size);
}

void stream_copy(std::byte* to, const std::byte* from, uint64_t size) {
    copy_lines(to, from, size, [](__m128i* target, __m128i value) { _mm_stream_si128(target, value); });
    std::memcpy(to, from, size);
    // Orders the stores before the completion, which the caller publishes next.
    _mm_sfence();
}

#else

void cached_copy(std::byte* to, const std::byte* from, uint64_t size) { std::memcpy(to, from, size); }
void stream_copy(std::byte* to, const std::byte* from, uint64_t size) { std::memcpy(to, from, size); }

#endif

}  // namespace polder::devices
