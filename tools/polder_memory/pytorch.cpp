// A snapshot as torch.cuda.memory._dump_snapshot writes it: segments with their blocks as they are at the end, and for each device what happened, in
// order. Devices are memory spaces.
//
// The viewer begins with the segments and undoes the events, from the last to the first. So the block or segment of each event must exist at that time: a block inside a
// segment, a segment with exactly these addresses. A space whose regions are mapped and unmapped in parts, or whose blocks span several regions, has
// segments as with PyTorch's `expandable_segments:True`: neighbours are one segment, and `segment_map` and `segment_unmap` name any part of it.
#include "exports.h"
#include "pickle.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <vector>

namespace polder::tool {
namespace {

using trace::Event;
using trace::Kind;
using trace::TimedEvent;
using trace::TraceFile;

// The address ranges of a space that have memory.
class Segments {
public:
    enum class Neighbours : bool { apart, joined };
    explicit Segments(Neighbours neighbours) : neighbours_(neighbours) {}

    void add(uint64_t begin, uint64_t size) {
        uint64_t end = begin + size;
        if (neighbours_ == Neighbours::joined) {
            if (const auto next = ends_.find(end); next != ends_.end()) {
                end = next->second;
                ends_.erase(next);
            }
            if (const auto before = begin == 0 ? ends_.end() : at(begin - 1); before != ends_.end())
                begin = before->first;
        }
        ends_[begin] = end;
    }
    // False: there is no segment with these addresses, or, where neighbours are joined, none with all of them.
    [[nodiscard]] bool remove(uint64_t begin, uint64_t size) {
        const auto found = at(begin);
        if (found == ends_.end() || begin + size > found->second)
            return false;
        const auto [from, to] = *found;
        if (neighbours_ == Neighbours::apart && (from != begin || to != begin + size))
            return false;
        ends_.erase(found);
        if (from < begin)
            ends_[from] = begin;
        if (begin + size < to)
            ends_[begin + size] = to;
        return true;
    }
    // Whether one segment has all of it.
    [[nodiscard]] bool has(uint64_t begin, uint64_t size) const {
        const auto found = at(begin);
        return found != ends_.end() && begin + size <= found->second;
    }
    [[nodiscard]] const std::map<uint64_t, uint64_t>& ends() const { return ends_; }
    [[nodiscard]] bool are_joined() const { return neighbours_ == Neighbours::joined; }

private:
    // The segment that has the address.
    [[nodiscard]] std::map<uint64_t, uint64_t>::const_iterator at(uint64_t address) const {
        const auto next = ends_.upper_bound(address);
        if (next == ends_.begin() || std::prev(next)->second <= address)
            return ends_.end();
        return std::prev(next);
    }

    Neighbours neighbours_;
    std::map<uint64_t, uint64_t> ends_;  // by begin
};

struct Space {
    uint64_t capacity = 0;
    std::vector<const TimedEvent*> events;  // about regions and blocks
    std::unordered_map<const TimedEvent*, uint64_t> storages;  // of leases
};

struct LiveBlock {
    uint64_t size;
    uint64_t asked;
    uint64_t storage;  // 0: not known
};

std::vector<Space> spaces_of(const TraceFile& trace) {
    std::vector<Space> spaces;
    std::map<std::pair<uint32_t, uint64_t>, const TimedEvent*> leases;
    for (const TimedEvent& timed : trace.events) {
        const Event& event = timed.event;
        const auto space = [&]() -> Space& {
            if (spaces.size() <= event.space)
                spaces.resize(event.space + 1u);
            return spaces[event.space];
        };
        switch (event.kind) {
        case Kind::space: space().capacity = event.size; break;
        case Kind::lease: leases[{event.space, event.address}] = &timed; [[fallthrough]];
        case Kind::region_reserve:
        case Kind::region_release:
        case Kind::free:
        case Kind::out_of_memory:
            if (event.kind != Kind::free || (event.flags & trace::more_follow) == 0)
                space().events.push_back(&timed);
            break;
        case Kind::replica:
            if (const auto lease = leases.find({event.space, event.address}); lease != leases.end())
                space().storages[lease->second] = event.storage;
            break;
        default: break;
        }
    }
    // Memory of the application is in no region.
    while (!spaces.empty() && spaces.back().events.empty())
        spaces.pop_back();
    return spaces;
}

Segments::Neighbours neighbours_of(const Space& space) {
    Segments segments{Segments::Neighbours::apart};
    for (const TimedEvent* timed : space.events) {
        const Event& event = timed->event;
        bool is_exact = true;
        switch (event.kind) {
        case Kind::region_reserve: segments.add(event.address, event.size); break;
        case Kind::region_release: is_exact = segments.remove(event.address, event.size); break;
        case Kind::lease: is_exact = segments.has(event.address, event.size); break;
        default: break;
        }
        if (!is_exact)
            return Segments::Neighbours::joined;
    }
    return Segments::Neighbours::apart;
}

class Snapshot {
public:
    explicit Snapshot(std::ostream& out) : out_(out) {}

    void write(const std::vector<Space>& spaces) {
        out_.begin_dictionary();
        out_.key("device_traces");
        out_.begin_list();
        for (const Space& space : spaces) {
            out_.element();
            write_trace(space);
        }
        out_.end_list();
        out_.key("segments");
        out_.begin_list();
        for (size_t number = 0; number < ends_.size(); ++number)
            write_segments(number, ends_[number]);
        out_.end_list();
        out_.key("allocator_settings");
        out_.begin_dictionary();
        out_.end_dictionary();
        out_.key("external_annotations");
        out_.begin_list();
        out_.end_list();
        out_.end_dictionary();
        out_.end();
    }

private:
    struct End {
        Segments segments;
        std::map<uint64_t, LiveBlock> blocks;
    };

    void write_trace(const Space& space) {
        End& end = ends_.emplace_back(Segments{neighbours_of(space)}, std::map<uint64_t, LiveBlock>{});
        const bool in_parts = end.segments.are_joined();
        uint64_t reserved = 0;
        out_.begin_list();
        for (const TimedEvent* timed : space.events) {
            const Event& event = timed->event;
            switch (event.kind) {
            case Kind::region_reserve:
                end.segments.add(event.address, event.size);
                reserved += event.size;
                write_entry(*timed, in_parts ? "segment_map" : "segment_alloc", event.size);
                break;
            case Kind::region_release:
                if (!end.segments.remove(event.address, event.size))
                    break;
                reserved -= event.size;
                write_entry(*timed, in_parts ? "segment_unmap" : "segment_free", event.size);
                break;
            case Kind::lease: {
                if (!end.segments.has(event.address, 1))
                    break;
                const auto storage = space.storages.find(timed);
                const LiveBlock block{event.extra, event.size, storage == space.storages.end() ? 0 : storage->second};
                end.blocks[event.address] = block;
                write_entry(*timed, "alloc", block.size, block.storage);
                break;
            }
            case Kind::free:
                if (const auto found = end.blocks.find(event.address); found != end.blocks.end()) {
                    write_entry(*timed, "free_requested", found->second.size, found->second.storage);
                    write_entry(*timed, "free_completed", found->second.size, found->second.storage);
                    end.blocks.erase(found);
                }
                break;
            default: write_failure(*timed, space.capacity - std::min(space.capacity, reserved)); break;
            }
        }
        out_.end_list();
    }

    void begin_entry(const TimedEvent& timed, const char* action, uint64_t size, uint64_t storage) {
        out_.element();
        out_.begin_dictionary();
        out_.key("action");
        out_.text(action);
        out_.key("size");
        out_.number(size);
        out_.key("stream");
        out_.number(timed.event.queue);
        out_.key("time_us");
        out_.number(timed.ns / 1000);
        write_frames(storage);
    }
    void write_entry(const TimedEvent& timed, const char* action, uint64_t size, uint64_t storage = 0) {
        begin_entry(timed, action, size, storage);
        out_.key("addr");
        out_.number(timed.event.address);
        out_.end_dictionary();
    }
    void write_failure(const TimedEvent& timed, uint64_t free) {
        begin_entry(timed, "oom", timed.event.size, 0);
        out_.key("device_free");
        out_.number(free);
        out_.end_dictionary();
    }
    // The viewer shows a frame as file:line:function.
    void write_frames(uint64_t storage) {
        out_.key("frames");
        out_.begin_list();
        if (storage != 0) {
            out_.element();
            out_.begin_dictionary();
            out_.key("filename");
            out_.text("storage");
            out_.key("line");
            out_.number(storage);
            out_.key("name");
            out_.text("polder");
            out_.end_dictionary();
        }
        out_.end_list();
    }

    void write_segments(uint64_t device, const End& end) {
        for (const auto& [from, to] : end.segments.ends()) {
            const auto first = end.blocks.lower_bound(from);
            const auto last = end.blocks.lower_bound(to);
            uint64_t allocated = 0, asked = 0;
            for (auto block = first; block != last; ++block) {
                allocated += block->second.size;
                asked += block->second.asked;
            }
            out_.element();
            out_.begin_dictionary();
            write_number("device", device);
            write_number("address", from);
            write_number("total_size", to - from);
            write_number("allocated_size", allocated);
            write_number("active_size", allocated);
            write_number("requested_size", asked);
            write_number("stream", 0);
            out_.key("segment_type");
            out_.text("large");
            out_.key("segment_pool_id");
            out_.begin_list();
            for (int i = 0; i < 2; ++i) {
                out_.element();
                out_.number(0);
            }
            out_.end_list();
            out_.key("is_expandable");
            out_.truth(end.segments.are_joined());
            write_frames(0);
            out_.key("blocks");
            out_.begin_list();
            uint64_t at = from;
            for (auto block = first; block != last; ++block) {
                if (block->first > at)
                    write_block(at, block->first - at, {block->first - at, 0, 0}, "inactive");
                // A block with a larger alignment than its policy's blocks begins later, but ends where its memory ends.
                const auto next = std::next(block);
                const uint64_t most = (next == last ? to : next->first) - block->first;
                write_block(block->first, std::min(block->second.size, most), block->second, "active_allocated");
                at = block->first + std::min(block->second.size, most);
            }
            if (at < to)
                write_block(at, to - at, {to - at, 0, 0}, "inactive");
            out_.end_list();
            out_.end_dictionary();
        }
    }
    void write_block(uint64_t address, uint64_t size, const LiveBlock& block, const char* state) {
        out_.element();
        out_.begin_dictionary();
        write_number("address", address);
        write_number("size", size);
        write_number("requested_size", std::min(size, block.asked));
        out_.key("state");
        out_.text(state);
        write_frames(block.storage);
        out_.end_dictionary();
    }
    void write_number(const char* name, uint64_t value) {
        out_.key(name);
        out_.number(value);
    }

    PickleWriter out_;
    std::vector<End> ends_;
};

}  // namespace

void write_pytorch(const TraceFile& trace, std::ostream& out) { Snapshot(out).write(spaces_of(trace)); }

}  // namespace polder::tool
