#include "system_memory.h"

#include <atomic>
#include <charconv>
#include <cstdio>
#include <fcntl.h>
#include <span>
#include <unistd.h>

namespace polder::memory {
namespace {

constinit std::atomic<const char*> files_in{"/proc"};

// Reads the number of KiB after `label` and returns it in bytes; 0 when `label` is not in the text.
ByteCount bytes_behind(std::string_view text, std::string_view label) {
    size_t at = text.find(label);
    if (at == std::string_view::npos)
        return {};
    at = text.find_first_of("0123456789", at + label.size());
    if (at == std::string_view::npos)
        return {};
    uint64_t kibibytes = 0;
    std::from_chars(text.data() + at, text.data() + text.size(), kibibytes);
    return ByteCount{kibibytes * 1024};
}

// Reads the beginning of a file of /proc into `buffer`. Allocates nothing.
std::string_view read_file(const char* name, std::span<char> buffer) {
    char path[256];
    std::snprintf(path, sizeof path, "%s/%s", files_in.load(std::memory_order_relaxed), name);
    const int file = ::open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return {};
    size_t size = 0;
    for (ssize_t got = 1; got > 0 && size < buffer.size(); size += static_cast<size_t>(got > 0 ? got : 0))
        got = ::read(file, buffer.data() + size, buffer.size() - size);
    ::close(file);
    return {buffer.data(), size};
}

}  // namespace

SystemMemory SystemMemory::parse(std::string_view meminfo, std::string_view overcommit) {
    SystemMemory memory;
    memory.available = bytes_behind(meminfo, "MemAvailable:");
    const uint64_t limit = bytes_behind(meminfo, "CommitLimit:").value;
    const uint64_t committed = bytes_behind(meminfo, "Committed_AS:").value;
    memory.committable = ByteCount{limit > committed ? limit - committed : 0};
    memory.counts_promises = overcommit.starts_with('2');
    return memory;
}

SystemMemory SystemMemory::now() {
    char meminfo[4096];
    char overcommit[16];
    return parse(read_file("meminfo", meminfo), read_file("sys/vm/overcommit_memory", overcommit));
}

void SystemMemory::read_from(const char* directory) { files_in.store(directory, std::memory_order_relaxed); }

bool SystemMemory::promises_count() {
    static const bool counts = now().counts_promises;
    return counts;
}

}  // namespace polder::memory
