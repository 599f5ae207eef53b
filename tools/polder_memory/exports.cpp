// Formats of other viewers.
#include "exports.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

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

double microseconds(uint64_t ns) { return static_cast<double>(ns) / 1000; }

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

// Counters of each space's memory, slices for launches and transfers (from submission to the moment at which their queue
// was seen to be further), instants for failures.
void write_perfetto(const TraceFile& trace, std::ostream& out) {
    struct Space {
        std::map<uint64_t, uint64_t> live;  // sizes by address
        uint64_t allocated = 0;
        uint64_t reserved = 0;
    };
    std::map<uint32_t, Space> spaces;
    std::set<uint32_t> queues;
    out.precision(3);
    out << std::fixed << "{\"displayTimeUnit\":\"ns\",\"traceEvents\":";
    JsonArray events(out);
    const auto counter = [&](const TimedEvent& timed, Space& space) {
        events.next() << R"({"ph":"C","pid":1,"ts":)" << microseconds(timed.ns) << R"(,"name":")"
                      << space_name(timed.event.space) << R"(","args":{"allocated":)" << space.allocated
                      << R"(,"reserved, not allocated":)" << space.reserved - std::min(space.reserved, space.allocated)
                      << "}}";
    };
    const auto instant = [&](const TimedEvent& timed, const std::string& name) {
        events.next() << R"({"ph":"i","s":"g","pid":1,"tid":)" << timed.thread << R"(,"ts":)" << microseconds(timed.ns)
                      << R"(,"name":)";
        write_json_string(name, out);
        out << "}";
    };
    const auto slice = [&](const TimedEvent& timed, const std::string& name, uint32_t row) {
        queues.insert(row);
        events.next() << R"({"ph":"X","pid":2,"tid":)" << row << R"(,"ts":)" << microseconds(timed.ns)
                      << R"(,"dur":1,"name":)";
        write_json_string(name, out);
        out << R"(,"args":{"storage":)" << timed.event.storage << R"(,"bytes":)" << timed.event.size
            << R"(,"timepoint":)" << timed.event.value << "}}";
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
        case Kind::launch: slice(timed, trace.text(event.storage), event.queue); continue;
        case Kind::transfer:
            slice(timed, "copy from " + space_name(event.space) + " to " + space_name(event.other_space), event.queue);
            continue;
        case Kind::out_of_memory: instant(timed, "out of memory: " + std::to_string(event.size) + " bytes"); continue;
        case Kind::refused: instant(timed, "no room for " + std::to_string(event.size) + " bytes"); continue;
        case Kind::evict: instant(timed, "evict storage " + std::to_string(event.storage)); continue;
        default: continue;
        }
        counter(timed, space);
    }
    events.next() << R"({"ph":"M","pid":1,"name":"process_name","args":{"name":"memory"}})";
    events.next() << R"({"ph":"M","pid":2,"name":"process_name","args":{"name":"queues"}})";
    for (const uint32_t queue : queues)
        events.next() << R"({"ph":"M","pid":2,"tid":)" << queue << R"(,"name":"thread_name","args":{"name":"queue )"
                      << queue << "\"}}";
    events.end();
    out << "}\n";
}

// The structure of torch.cuda.memory._snapshot(): segments with blocks as they are at the end, and for each device what
// happened, in order. Devices are memory spaces. The viewer draws memory over time from `device_traces`.
void write_pytorch(const TraceFile& trace, std::ostream& out) {
    struct Region {
        uint64_t size = 0;
        std::map<uint64_t, std::pair<uint64_t, uint64_t>> blocks;  // by address: bytes, and as asked
    };
    uint32_t devices = 0;
    for (const TimedEvent& timed : trace.events)
        if (timed.event.kind == Kind::lease || timed.event.kind == Kind::region_reserve)
            devices = std::max(devices, timed.event.space + 1u);
    std::vector<std::map<uint64_t, Region>> regions(devices);
    const auto region_of = [&](const Event& event) -> Region* {
        auto& known = regions[event.space];
        const auto next = known.upper_bound(event.address);
        return next == known.begin() ? nullptr : &std::prev(next)->second;
    };
    out << "{\"device_traces\":[";
    for (uint32_t device = 0; device < devices; ++device) {
        out << (device == 0 ? "" : ",");
        JsonArray entries(out);
        const auto entry = [&](const TimedEvent& timed, const char* action, uint64_t size) {
            entries.next() << R"({"action":")" << action << R"(","addr":)" << timed.event.address << R"(,"size":)"
                           << size << R"(,"stream":)" << timed.event.queue << R"(,"time_us":)" << timed.ns / 1000
                           << R"(,"frames":[]})";
        };
        for (const TimedEvent& timed : trace.events) {
            const Event& event = timed.event;
            if (event.space != device)
                continue;
            switch (event.kind) {
            case Kind::region_reserve:
                entry(timed, "segment_alloc", event.size);
                regions[device][event.address].size = event.size;
                break;
            case Kind::region_release:
                entry(timed, "segment_free", event.size);
                regions[device].erase(event.address);
                break;
            case Kind::lease:
                entry(timed, "alloc", event.extra);
                if (Region* const region = region_of(event))
                    region->blocks[event.address] = {event.extra, event.size};
                break;
            case Kind::free:
                if ((event.flags & trace::more_follow) != 0)
                    break;
                entry(timed, "free_requested", event.size);
                entry(timed, "free_completed", event.size);
                if (Region* const region = region_of(event))
                    region->blocks.erase(event.address);
                break;
            case Kind::out_of_memory: entry(timed, "oom", event.size); break;
            default: break;
            }
        }
        entries.end();
    }
    out << "],\"segments\":";
    JsonArray segments(out);
    for (uint32_t device = 0; device < devices; ++device) {
        for (const auto& [address, region] : regions[device]) {
            uint64_t allocated = 0;
            for (const auto& [at, sizes] : region.blocks)
                allocated += sizes.first;
            segments.next() << R"({"device":)" << device << R"(,"address":)" << address << R"(,"total_size":)"
                            << region.size << R"(,"allocated_size":)" << allocated << R"(,"active_size":)" << allocated
                            << R"(,"requested_size":)" << allocated
                            << R"(,"stream":0,"segment_type":"large","segment_pool_id":[0,0],"is_expandable":false,)"
                            << R"("frames":[],"blocks":)";
            JsonArray blocks(out);
            uint64_t end = address;
            const auto block = [&](uint64_t at, uint64_t size, uint64_t asked, const char* state) {
                blocks.next() << R"({"address":)" << at << R"(,"size":)" << size << R"(,"requested_size":)" << asked
                              << R"(,"state":")" << state << R"(","frames":[]})";
            };
            for (const auto& [at, sizes] : region.blocks) {
                if (at > end)
                    block(end, at - end, at - end, "inactive");
                block(at, sizes.first, sizes.second, "active_allocated");
                end = at + sizes.first;
            }
            if (end < address + region.size)
                block(end, address + region.size - end, address + region.size - end, "inactive");
            blocks.end();
            out << "}";
        }
    }
    segments.end();
    out << ",\"allocator_settings\":{},\"external_annotations\":[]}\n";
}

}  // namespace polder::tool
