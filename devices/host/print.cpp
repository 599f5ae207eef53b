#include <atomic>
#include <cstdio>
#include <host/print.h>

namespace polder::devices {

void print_text(void* user, const char* text, size_t size) {
    // fwrite locks the stream, so that texts do not mix.
    std::fwrite(text, 1, size, stdout);
    static_cast<std::atomic<bool>*>(user)->store(true, std::memory_order_relaxed);
}

void flush_printed() { std::fflush(stdout); }

} // namespace polder::devices
