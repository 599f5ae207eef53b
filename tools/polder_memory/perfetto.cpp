// Chrome's trace event format: counters of each space's memory, slices for launches and transfers, instants for failures.
//
// The process `memory` has the counters, and a row of instants for each reason why memory was short; the process `queues` has the slices. Instants of
// the whole trace (scope `g`) would be in a row that Perfetto does not name.
//
// A row of slices is a queue. Perfetto drops a slice that overlaps another slice of its row and is not inside it. So a slice begins when its command
// was submitted. It ends when the queue's next command was submitted, or when the queue was seen to have passed it, whichever is earlier.
#include "exports.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

namespace polder::tool {
namespace {

using trace::Event;
using trace::Kind;
using trace::TimedEvent;
using trace::TraceFile;

std::string space_name(uint32_t space) {
    return space == 0    ? "host memory"
           : space == 63 ? "application's memory"
                         : "memory of space " + std::to_string(space);
}

// Rows of instants.
enum class Shortage : uint32_t { failure = 101, refusal, eviction };
constexpr std::pair<Shortage, const char*> shortages[] = {{Shortage::failure, "commands that got no memory"},
                                                          {Shortage::refusal, "an allocator had no room"},
                                                          {Shortage::eviction, "evictions"}};

// The row of copies that the host makes itself, on no queue. Perfetto takes the thread 0 of a process for its main one, which here would be a queue.
constexpr uint32_t host_row = 1'000'000;

// Objects of a JSON array, separated by commas.
class JsonArray {
public:
    explicit JsonArray(std::ostream& out) : out_(out) { out_ << "["; }
    std::ostream& next() {
        out_ << (std::exchange(first_, false) ? "\n" : ",\n");
        return out_;
    }
    void end() { out_ << "]"; }

private:
    std::ostream& out_;
    bool first_ = true;
};

// Trace times are in microseconds; a double keeps single nanoseconds.
double microseconds(uint64_t ns) { return static_cast<double>(ns) / 1000; }

bool is_slice(const Event& event) { return event.kind == Kind::launch || event.kind == Kind::transfer; }

// How long each slice lasts, by event.
std::unordered_map<const TimedEvent*, uint64_t> durations_of(const TraceFile& trace) {
    constexpr uint64_t unknown_ns = 1000;  // of a queue's last command, when its completion was not recorded
    struct Queue {
        std::vector<const TimedEvent*> commands;
        std::vector<const TimedEvent*> progress;
    };
    std::map<uint32_t, Queue> queues;
    for (const TimedEvent& timed : trace.events) {
        if (is_slice(timed.event))
            queues[timed.event.queue].commands.push_back(&timed);
        else if (timed.event.kind == Kind::completed)
            queues[timed.event.queue].progress.push_back(&timed);
    }
    std::unordered_map<const TimedEvent*, uint64_t> durations;
    for (const auto& [number, queue] : queues) {
        size_t seen = 0;
        for (size_t i = 0; i < queue.commands.size(); ++i) {
            const TimedEvent& command = *queue.commands[i];
            while (seen < queue.progress.size() &&
                   (queue.progress[seen]->event.value < command.event.value || queue.progress[seen]->ns < command.ns))
                ++seen;
            uint64_t end = seen < queue.progress.size() ? queue.progress[seen]->ns : command.ns + unknown_ns;
            if (i + 1 < queue.commands.size())
                end = std::min(end, queue.commands[i + 1]->ns);
            durations[&command] = end - command.ns;
        }
    }
    return durations;
}

}  // namespace

void write_json_string(std::string_view text, std::ostream& out) {
    out << '"';
    for (const char letter : text) {
        const auto code = static_cast<unsigned char>(letter);
        if (letter == '"' || letter == '\\') {
            out << '\\' << letter;
        } else if (code < 0x20 || code >= 0x7F || letter == '<') {
            char escaped[8];
            std::snprintf(escaped, sizeof escaped, "\\u%04x", code);
            out << escaped;
        } else {
            out << letter;
        }
    }
    out << '"';
}

void write_perfetto(const TraceFile& trace, std::ostream& out) {
    struct Space {
        std::map<uint64_t, uint64_t> live;  // sizes by address
        uint64_t allocated = 0;
        uint64_t reserved = 0;
    };
    std::map<uint32_t, Space> spaces;
    const auto durations = durations_of(trace);
    std::map<uint32_t, bool> queues;  // whether transfers alone
    out.precision(3);
    out << std::fixed << "{\"displayTimeUnit\":\"ns\",\"traceEvents\":";
    JsonArray events(out);
    const auto counter = [&](const TimedEvent& timed, Space& space) {
        events.next() << R"({"ph":"C","pid":1,"ts":)" << microseconds(timed.ns) << R"(,"name":")"
                      << space_name(timed.event.space) << R"(","args":{"allocated":)" << space.allocated
                      << R"(,"reserved, free":)" << space.reserved - std::min(space.reserved, space.allocated) << "}}";
    };
    const auto instant = [&](const TimedEvent& timed, Shortage row, const std::string& name) {
        events.next() << R"({"ph":"i","s":"t","pid":1,"tid":)" << static_cast<uint32_t>(row) << R"(,"ts":)"
                      << microseconds(timed.ns) << R"(,"name":)";
        write_json_string(name, out);
        out << R"(,"args":{"memory":")" << space_name(timed.event.space) << R"(","bytes":)" << timed.event.size;
        if (timed.event.kind != Kind::evict) {
            out << R"(,"report":)";
            write_json_string(trace.text(timed.event.storage), out);
        }
        out << "}}";
    };
    const auto slice = [&](const TimedEvent& timed, const std::string& name) {
        const Event& event = timed.event;
        bool& has_transfers_alone = queues.try_emplace(event.queue, true).first->second;
        has_transfers_alone = has_transfers_alone && event.kind == Kind::transfer;
        events.next() << R"({"ph":"X","pid":2,"tid":)" << (event.queue == 0 ? host_row : event.queue) << R"(,"ts":)"
                      << microseconds(timed.ns) << R"(,"dur":)" << microseconds(durations.at(&timed)) << R"(,"name":)";
        write_json_string(name, out);
        out << R"(,"args":{"timepoint":)" << event.value;
        if (event.kind == Kind::transfer)
            out << R"(,"storage":)" << event.storage << R"(,"bytes":)" << event.size;
        out << "}}";
    };
    for (const TimedEvent& timed : trace.events) {
        const Event& event = timed.event;
        Space& space = spaces[event.space];
        switch (event.kind) {
        case Kind::region_reserve: space.reserved += event.size; break;
        case Kind::region_release: space.reserved -= std::min(space.reserved, event.size); break;
        case Kind::lease:
            space.live[event.address] = event.extra;
            space.allocated += event.extra;
            break;
        case Kind::free:
            if ((event.flags & trace::more_follow) == 0) {
                space.allocated -= std::min(space.allocated, space.live[event.address]);
                space.live.erase(event.address);
            }
            break;
        case Kind::launch: {
            const std::string& kernel = trace.text(event.storage);  // empty where the trace lacks it
            slice(timed, kernel.empty() ? "kernel" : kernel);
            continue;
        }
        case Kind::transfer:
            slice(timed, "copy from " + space_name(event.space) + " to " + space_name(event.other_space));
            continue;
        case Kind::out_of_memory:
            instant(timed, Shortage::failure, "out of memory: " + std::to_string(event.size) + " bytes");
            continue;
        case Kind::refused:
            instant(timed, Shortage::refusal, "no room for " + std::to_string(event.size) + " bytes");
            continue;
        case Kind::evict:
            instant(timed, Shortage::eviction, "evict storage " + std::to_string(event.storage));
            continue;
        default: continue;
        }
        counter(timed, space);
    }
    events.next() << R"({"ph":"M","pid":1,"name":"process_name","args":{"name":"memory"}})";
    events.next() << R"({"ph":"M","pid":2,"name":"process_name","args":{"name":"queues"}})";
    for (const auto& [row, name] : shortages)
        events.next() << R"({"ph":"M","pid":1,"tid":)" << static_cast<uint32_t>(row)
                      << R"(,"name":"thread_name","args":{"name":")" << name << "\"}}";
    for (const auto& [queue, has_transfers_alone] : queues) {
        std::ostream& row = events.next();
        row << R"({"ph":"M","pid":2,"tid":)" << (queue == 0 ? host_row : queue)
            << R"(,"name":"thread_name","args":{"name":")";
        if (queue == 0)
            row << "copies by the host";
        else
            row << "queue " << queue << (has_transfers_alone ? " (transfers)" : "");
        row << "\"}}";
    }
    events.end();
    out << "}\n";
}

}  // namespace polder::tool
