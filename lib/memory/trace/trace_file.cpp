// Reads all chunks in the order of their numbers, leaves out those that are there twice, converts ticks to time, and sorts the events of all threads by time.
#include "trace_file.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <span>
#include <tuple>
#include <utility>

namespace polder::trace {
namespace {

struct Chunk {
    ChunkHeader header{};
    std::span<const std::byte> events;
};

// Nanoseconds of a counter's values, by the line through two moments.
class Clock {
public:
    Clock(const ChunkHeader& first, const ChunkHeader& last) : ticks_(first.ticks), ns_(first.ns) {
        const bool apart = last.ticks > first.ticks && last.ns > first.ns + 10'000'000;
        ns_per_tick_ = apart ? static_cast<double>(last.ns - first.ns) / static_cast<double>(last.ticks - first.ticks)
                             : first.ns_per_tick;
    }
    [[nodiscard]] uint64_t ns(uint64_t ticks) const {
        const double distance = static_cast<double>(static_cast<int64_t>(ticks - ticks_)) * ns_per_tick_;
        const double ns = static_cast<double>(ns_) + distance;
        return ns > 0 ? static_cast<uint64_t>(ns) : 0;
    }

private:
    uint64_t ticks_;
    uint64_t ns_;
    double ns_per_tick_;
};

template <class T>
T take(std::span<const std::byte> bytes) {
    T value{};
    if (!bytes.empty())  // memcpy takes no null pointer, not even for no bytes
        std::memcpy(&value, bytes.data(), std::min(sizeof value, bytes.size()));
    return value;
}

Result<void> check(const FileHeader& header, size_t bytes) {
    if (bytes < sizeof header || std::memcmp(header.magic, magic, sizeof magic) != 0)
        return fail(Status::invalid_value, "this is not a trace of Polder");
    if (header.version != version)
        return fail(Status::invalid_value, "the trace has version " + std::to_string(header.version) +
                                               ", this program reads version " + std::to_string(version));
    if (header.chunk_bytes < sizeof(ChunkHeader) + sizeof(Event))
        return fail(Status::invalid_value, "the trace is damaged: its chunks are too small");
    return {};
}

size_t count_events(const Chunk& chunk) {
    size_t count = 0;
    for (size_t at = 0; at + sizeof(Event) <= chunk.events.size(); at += sizeof(Event), ++count) {
        const auto event = take<Event>(chunk.events.subspan(at));
        if (event.kind == Kind::none)
            break;
        if (event.kind == Kind::text)
            at += std::min<uint64_t>((event.size + sizeof(Event) - 1) / sizeof(Event),
                                     chunk.events.size() / sizeof(Event)) *
                  sizeof(Event);
    }
    return count;
}

// A thread's chunks in their order, each once.
void sort_chunks(std::vector<Chunk>& chunks) {
    std::ranges::sort(chunks, [](const Chunk& a, const Chunk& b) {
        return std::tuple{a.header.thread, a.header.number, a.events.data()} <
               std::tuple{b.header.thread, b.header.number, b.events.data()};
    });
    std::vector<Chunk> once;
    for (const Chunk& chunk : chunks) {
        const bool is_copy = !once.empty() && chunk.header.number != 0 &&
                             once.back().header.thread == chunk.header.thread &&
                             once.back().header.number == chunk.header.number;
        if (!is_copy)
            once.push_back(chunk);
        else if (count_events(chunk) > count_events(once.back()))
            once.back() = chunk;
    }
    chunks = std::move(once);
}

void read_events(const Chunk& chunk, const Clock& clock, TraceFile& trace) {
    for (size_t at = 0; at + sizeof(Event) <= chunk.events.size(); at += sizeof(Event)) {
        const auto event = take<Event>(chunk.events.subspan(at));
        if (event.kind == Kind::none)
            return;
        if (event.kind != Kind::text) {
            const uint64_t ns = clock.ns(event.ticks);
            trace.events.push_back({event, ns - std::min(ns, trace.header.start_ns), chunk.header.thread,
                                    static_cast<uint32_t>(trace.events.size())});
            continue;
        }
        const size_t room = chunk.events.size() - at - sizeof(Event);
        const size_t length = std::min<uint64_t>(event.size, room);
        trace.texts[event.storage].assign(reinterpret_cast<const char*>(chunk.events.data()) + at + sizeof(Event),
                                          length);
        at += (length + sizeof(Event) - 1) / sizeof(Event) * sizeof(Event);
    }
}

}  // namespace

Result<TraceFile> read_trace(const std::string& path) {
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    if (!file)
        return fail(Status::invalid_value, path + " cannot be read");
    std::vector<std::byte> bytes(static_cast<size_t>(file.tellg()));
    file.seekg(0);
    file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    TraceFile trace;
    trace.header = take<FileHeader>(bytes);
    POLDER_TRY(check(trace.header, bytes.size()));
    std::vector<Chunk> chunks;
    for (size_t at = trace.header.chunk_bytes; at + sizeof(ChunkHeader) <= bytes.size();
         at += trace.header.chunk_bytes) {
        const size_t size = std::min<size_t>(trace.header.chunk_bytes, bytes.size() - at);
        const Chunk chunk{take<ChunkHeader>(std::span{bytes}.subspan(at, size)),
                          std::span{bytes}.subspan(at + sizeof(ChunkHeader), size - sizeof(ChunkHeader))};
        if (chunk.header.magic == chunk_magic)
            chunks.push_back(chunk);
    }
    sort_chunks(chunks);
    trace.chunks = chunks.size();
    if (chunks.empty())
        return trace;
    const auto by_ns = [](const Chunk& a, const Chunk& b) { return a.header.ns < b.header.ns; };
    const auto [first, last] = std::ranges::minmax_element(chunks, by_ns);
    const Clock clock{first->header, last->header};
    for (const Chunk& chunk : chunks)
        read_events(chunk, clock, trace);
    std::ranges::sort(trace.events, [](const TimedEvent& a, const TimedEvent& b) {
        return a.ns != b.ns ? a.ns < b.ns : a.order < b.order;
    });
    return trace;
}

}  // namespace polder::trace
