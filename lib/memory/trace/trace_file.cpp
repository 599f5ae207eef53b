// Reads all chunks in the order of their numbers, leaves out those that are there twice, converts ticks to time, and sorts the events of all threads by time.
#include "trace_file.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <span>
#include <tuple>
#include <unordered_map>
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
    if (header.version == 0 || header.version > version)
        return fail(Status::invalid_value, "the trace has version " + std::to_string(header.version) +
                                               ", this program reads versions up to " + std::to_string(version));
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
        if (event.kind == Kind::repeats)
            count += event.flags;
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

// Version 1 recorded each refusal of an allocator as out_of_memory, and its report as the thread's next text.
void read_refusals_of_version_1(TraceFile& trace) {
    for (TimedEvent& timed : trace.events)
        if (timed.event.kind == Kind::out_of_memory)
            timed.event.kind = Kind::refused;
}

// Turns launches of a chunk that are like earlier ones into events of their own.
class Repeated {
public:
    void note(const Event& event) {
        if (event.kind == Kind::launch && (event.flags & whole_uses) != 0 && event.other_space < Repeat::slots)
            launches_[event.other_space] = event;
    }
    // Calls f(const Event&) for each launch.
    template <class F>
    void visit(const Event& event, F&& f) {
        std::array<Repeat, Repeat::most> repeats{};
        static_assert(sizeof repeats == sizeof(Event) - offsetof(Event, storage));
        std::memcpy(repeats.data(), reinterpret_cast<const std::byte*>(&event) + offsetof(Event, storage),
                    sizeof repeats);
        for (size_t i = 0; i < std::min<size_t>(event.flags, Repeat::most); ++i) {
            Event& launch = launches_[repeats[i].slot];
            if (launch.kind != Kind::launch)
                continue;  // of a damaged file
            launch.ticks = event.ticks + repeats[i].ticks;
            launch.value += repeats[i].value;
            f(launch);
        }
    }

private:
    std::array<Event, Repeat::slots> launches_{};
};

void read_events(const Chunk& chunk, const Clock& clock, TraceFile& trace) {
    Repeated repeated;
    const auto add = [&](const Event& event) {
        const uint64_t ns = clock.ns(event.ticks);
        trace.events.push_back({event, ns - std::min(ns, trace.header.start_ns), chunk.header.thread,
                                static_cast<uint32_t>(trace.events.size())});
    };
    for (size_t at = 0; at + sizeof(Event) <= chunk.events.size(); at += sizeof(Event)) {
        const auto event = take<Event>(chunk.events.subspan(at));
        if (event.kind == Kind::none)
            return;
        if (event.kind == Kind::repeats) {
            repeated.visit(event, add);
            continue;
        }
        if (event.kind != Kind::text) {
            repeated.note(event);
            add(event);
            continue;
        }
        if (trace.header.version == 1 && !trace.events.empty() &&
            trace.events.back().event.kind == Kind::out_of_memory && trace.events.back().thread == chunk.header.thread)
            trace.events.back().event.storage = event.storage;
        const size_t room = chunk.events.size() - at - sizeof(Event);
        const size_t length = std::min<uint64_t>(event.size, room);
        trace.texts[event.storage].assign(reinterpret_cast<const char*>(chunk.events.data()) + at + sizeof(Event),
                                          length);
        at += (length + sizeof(Event) - 1) / sizeof(Event) * sizeof(Event);
    }
}

// Replaces the uses in a launch's event by events of their own, so that programs see one form.
void spread_whole_uses(TraceFile& trace) {
    std::unordered_map<uint64_t, uint64_t> sizes;
    std::vector<TimedEvent> spread;
    spread.reserve(trace.events.size());
    for (TimedEvent& timed : trace.events) {
        Event& event = timed.event;
        if (event.kind == Kind::storage_create)
            sizes[event.storage] = event.size;
        const bool has_uses = event.kind == Kind::launch && (event.flags & whole_uses) != 0;
        const uint64_t uses = has_uses ? std::exchange(event.address, 0) : 0;
        if (has_uses) {
            event.other_space = 0;  // the launch's slot
            event.flags = static_cast<uint8_t>(event.flags & ~whole_uses);
        }
        spread.push_back(timed);
        for (uint32_t use = 0; has_uses && use < std::min<uint64_t>(event.size, WholeUses::most); ++use) {
            TimedEvent& made = spread.emplace_back(timed);
            made.event = {event.ticks, 0, event.space, 0, WholeUses::access_of(uses, use), Kind::use, 0, 0, 0, {}};
            made.event.storage = WholeUses::storage_of(uses, use);
            made.event.size = sizes[made.event.storage];
        }
    }
    trace.events = std::move(spread);
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
    if (trace.header.version == 1)
        read_refusals_of_version_1(trace);
    spread_whole_uses(trace);
    return trace;
}

}  // namespace polder::trace
