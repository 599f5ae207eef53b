// Reads all chunks in the order of their numbers, skips one of two chunks with the same number, converts ticks to time, and sorts the events of
// all threads by time.
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

// Converts ticks to nanoseconds, by the line through two moments.
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

// Sorts the chunks by thread and number, and removes copies.
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

// A launch that repeats the last launch of its slot, with its own time and value.
struct RepeatedLaunch {
    uint64_t ticks;  // since the event's time, or no_ticks
    uint32_t value;
    uint32_t slot;
};
constexpr uint64_t no_ticks = UINT64_MAX;

RepeatedLaunch read_repeat(uint32_t version, std::span<const std::byte> bytes) {
    if (version < 3) {
        const auto repeat = take<Repeat2>(bytes);
        return {repeat.ticks, repeat.value, repeat.slot};
    }
    const auto repeat = take<Repeat>(bytes);
    return {repeat.time == Repeat::no_time ? no_ticks : repeat.time * Repeat::unit, repeat.value, repeat.slot};
}

// The launches of a chunk that later launches may repeat, with their `use` events.
class Repeated {
public:
    // To be called for each event of the chunk except texts.
    void note(const Event& event) {
        if (event.kind == Kind::use && open_ && open_->uses.size() < open_->launch.size)
            return open_->uses.push_back(event);
        open_ = nullptr;
        if (event.kind != Kind::launch || (event.flags & (whole_uses | in_slot)) == 0 ||
            event.other_space >= slots_.size())
            return;
        Slot& slot = slots_[event.other_space];
        slot.launch = event;
        slot.uses.clear();
        if ((event.flags & in_slot) != 0)
            open_ = &slot;
    }
    // Calls f(const Event&) for each launch and each of its uses.
    template <class F>
    void visit(uint32_t version, const Event& event, F&& f) {
        const auto bytes = std::as_bytes(std::span{&event, 1}).subspan(offsetof(Event, storage));
        static_assert(Repeat::most * sizeof(Repeat) == sizeof(Event) - offsetof(Event, storage));
        for (size_t i = 0; i < std::min<size_t>(event.flags, Repeat::most); ++i) {
            const RepeatedLaunch repeat = read_repeat(version, bytes.subspan(i * sizeof(Repeat)));
            Slot& slot = slots_[repeat.slot];
            if (slot.launch.kind != Kind::launch)
                continue;  // the file is damaged
            slot.launch.ticks = repeat.ticks == no_ticks ? no_ticks : event.ticks + repeat.ticks;
            slot.launch.value += repeat.value;
            f(slot.launch);
            for (Event& use : slot.uses) {
                use.ticks = slot.launch.ticks;
                f(use);
            }
        }
    }

private:
    struct Slot {
        Event launch{};
        std::vector<Event> uses;
    };
    std::array<Slot, Repeat::slots> slots_{};
    Slot* open_ = nullptr;  // the slot to whose launch the last event belongs; the next `use` events belong to it, too
};

void read_events(const Chunk& chunk, TraceFile& trace) {
    Repeated repeated;
    const auto add = [&](const Event& event) {
        trace.events.push_back({event, 0, chunk.header.thread, static_cast<uint32_t>(trace.events.size())});
    };
    for (size_t at = 0; at + sizeof(Event) <= chunk.events.size(); at += sizeof(Event)) {
        const auto event = take<Event>(chunk.events.subspan(at));
        if (event.kind == Kind::none)
            return;
        if (event.kind == Kind::repeats) {
            repeated.visit(trace.header.version, event, add);
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

// Launches without a time get times that are evenly spaced between the thread's events before and after them, at most `fast_ticks` apart.
// The events are in the order of the file.
void fill_missing_times(std::span<TimedEvent> events) {
    for (size_t end = 0, begin = 0; begin < events.size(); begin = end) {
        size_t launches = 0;
        const auto is_of_run = [&](size_t i) {
            return i < events.size() && events[i].event.ticks == no_ticks && events[i].thread == events[begin].thread;
        };
        for (end = begin; is_of_run(end); ++end)
            launches += events[end].event.kind == Kind::launch ? 1 : 0;
        if (end == begin) {
            ++end;
            continue;
        }
        const auto is_of_thread = [&](size_t i) {
            return i < events.size() && events[i].thread == events[begin].thread;
        };
        const uint64_t next = is_of_thread(end) ? events[end].event.ticks : no_ticks;
        uint64_t ticks = begin > 0 && is_of_thread(begin - 1) ? events[begin - 1].event.ticks : next;
        const uint64_t room = next != no_ticks && next > ticks ? next - ticks : 0;
        const uint64_t step = std::min(room / (launches + 1), Repeat::fast_ticks);
        for (TimedEvent& timed : events.subspan(begin, end - begin)) {
            ticks += timed.event.kind == Kind::launch ? step : 0;
            timed.event.ticks = ticks;
        }
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
        if (event.kind == Kind::launch && (event.flags & (whole_uses | in_slot)) != 0) {
            event.other_space = 0;  // the launch's slot
            event.flags = static_cast<uint8_t>(event.flags & ~(whole_uses | in_slot));
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
        read_events(chunk, trace);
    fill_missing_times(trace.events);
    for (TimedEvent& timed : trace.events) {
        const uint64_t ns = clock.ns(timed.event.ticks);
        timed.ns = ns - std::min(ns, trace.header.start_ns);
    }
    std::ranges::sort(trace.events, [](const TimedEvent& a, const TimedEvent& b) {
        return a.ns != b.ns ? a.ns < b.ns : a.order < b.order;
    });
    if (trace.header.version == 1)
        read_refusals_of_version_1(trace);
    spread_whole_uses(trace);
    return trace;
}

}  // namespace polder::trace
