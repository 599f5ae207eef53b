// There are three passes. The first makes a step for each command, with the ranges that it uses. The second divides every storage where a use
// begins or ends, so that steps use whole pieces, and lists the uses of each piece. The third executes the steps with the sizes of the memories.
#include "optimum.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <map>
#include <set>

namespace polder::trace {
namespace {

constexpr uint32_t spaces_max = SpaceId::max_spaces;
constexpr uint32_t never = std::numeric_limits<uint32_t>::max();

struct Range {
    uint64_t storage = 0;
    ByteRange bytes;
    uint8_t flags = 0;  // reads, writes
};

// One command: the ranges that it uses at the same time in one memory; or the end of a storage.
struct Command {
    uint32_t space = 0;
    std::vector<Range> uses;
    uint64_t destroyed = 0;  // the number of the storage that ends; 0: a command
    uint64_t arriving_bytes = 0;  // bytes from the application, which cross the link in any case
    bool passes = false;  // the bytes that are read need no memory here
};

struct Recorded {
    std::vector<Command> steps;
    std::map<uint32_t, MovesOfSpace> spaces;
};

bool is_device(uint32_t space) { return space != 0 && space != spaces_max - 1; }

void count_moved(std::map<uint32_t, MovesOfSpace>& spaces, const Event& event) {
    if (event.space == event.other_space)
        return;
    for (const uint32_t space : {uint32_t{event.space}, uint32_t{event.other_space}})
        if (is_device(space))
            spaces[space].moved_bytes += event.size;
}

// A write of the application uses the memory that it writes to. Bytes that the application reads or copies cross a link and need no memory.
Command step_of_copy(const Event& event) {
    Command step;
    step.space = event.other_space;
    const auto access = static_cast<uint8_t>(event.flags & (reads | writes));
    step.uses.push_back({event.storage, ByteRange::at(event.address, ByteCount{event.size}), access});
    step.passes = (access & writes) == 0;
    step.arriving_bytes = !step.passes && event.space != event.other_space ? event.size : 0;
    return step;
}

Recorded steps_of(const TraceFile& trace) {
    Recorded recorded;
    std::map<uint32_t, size_t> launches;  // by thread: the step to which following uses belong
    for (const TimedEvent& timed : trace.events) {
        const Event& event = timed.event;
        switch (event.kind) {
        case Kind::space: recorded.spaces[event.space].memory_bytes = event.size; break;
        case Kind::launch:
            launches[timed.thread] = recorded.steps.size();
            recorded.steps.push_back({event.space, {}, 0, 0, false});
            ++recorded.spaces[event.space].launches;
            break;
        case Kind::use:
            if (const auto of = launches.find(timed.thread); of != launches.end())
                recorded.steps[of->second].uses.push_back(
                    {event.storage, ByteRange::at(event.address, ByteCount{event.size}), event.flags});
            break;
        case Kind::transfer:
            count_moved(recorded.spaces, event);
            if ((event.flags & commanded) != 0)
                recorded.steps.push_back(step_of_copy(event));
            break;
        case Kind::map:
        case Kind::unmap:  // only recorded after a map for writing
            recorded.steps.push_back({event.space, {}, 0, 0, false});
            recorded.steps.back().uses.push_back({event.storage, ByteRange::at(event.address, ByteCount{event.size}),
                                                  event.kind == Kind::map ? reads : writes});
            break;
        case Kind::storage_destroy: recorded.steps.push_back({0, {}, event.storage, 0, false}); break;
        default: break;
        }
    }
    return recorded;
}

struct Piece {
    uint64_t bytes = 0;
    SpaceSet holders;  // the spaces with the newest bytes; empty: never written
    SpaceSet resident;  // the device memories that have memory for the piece
    struct Use {
        uint32_t step;
        uint8_t space;
        uint8_t flags;
    };
    std::vector<Use> uses;
    size_t next = 0;  // the first use that has not begun
};

class BeladyRun {
public:
    BeladyRun(Recorded recorded, std::optional<ByteCount> memory) : recorded_(std::move(recorded)) {
        for (auto& [id, space] : recorded_.spaces) {
            if (memory && is_device(id))
                space.memory_bytes = memory->value;
            room_[id] = space.memory_bytes == 0 ? std::numeric_limits<uint64_t>::max() : space.memory_bytes;
        }
        divide();
        list_uses();
    }

    std::vector<MovesOfSpace> run() {
        for (uint32_t step = 0; step < recorded_.steps.size(); ++step)
            execute(step);
        std::vector<MovesOfSpace> moves;
        for (auto& [id, space] : recorded_.spaces) {
            space.space = id;
            if (is_device(id) && space.launches != 0)
                moves.push_back(space);
        }
        return moves;
    }

private:
    // --- pieces ---
    void divide() {
        for (const Command& step : recorded_.steps)
            for (const Range& use : step.uses) {
                std::map<uint64_t, uint32_t>& cuts = pieces_of_[use.storage];
                cuts[use.bytes.begin] = 0;
                cuts[use.bytes.end] = 0;
            }
        for (auto& [storage, cuts] : pieces_of_)
            for (auto cut = cuts.begin(); cut != cuts.end(); ++cut) {
                cut->second = static_cast<uint32_t>(pieces_.size());
                const auto next = std::next(cut);
                pieces_.push_back({next == cuts.end() ? 0 : next->first - cut->first, {}, {}, {}, 0});
            }
    }
    template <class F>
    void for_each_piece(const Range& range, F&& f) {
        const std::map<uint64_t, uint32_t>& cuts = pieces_of_.at(range.storage);
        for (auto cut = cuts.find(range.bytes.begin); cut != cuts.end() && cut->first < range.bytes.end; ++cut)
            f(cut->second);
    }
    void list_uses() {
        std::vector<uint64_t> known(pieces_.size(), 0);  // for each piece, the set of spaces that have used it
        for (uint32_t step = 0; step < recorded_.steps.size(); ++step)
            for (const Range& use : recorded_.steps[step].uses)
                for_each_piece(use, [&](uint32_t index) {
                    const auto space = static_cast<uint8_t>(recorded_.steps[step].space);
                    pieces_[index].uses.push_back({step, space, use.flags});
                    if (!recorded_.steps[step].passes && ((known[index] >> space) & 1) == 0)
                        recorded_.spaces[space].used_bytes += pieces_[index].bytes;
                    if (!recorded_.steps[step].passes)
                        known[index] |= uint64_t{1} << space;
                });
    }

    // --- steps ---
    void execute(uint32_t number) {
        const Command& step = recorded_.steps[number];
        if (step.destroyed != 0) {
            if (const auto found = pieces_of_.find(step.destroyed); found != pieces_of_.end())
                for (const auto& [cut, index] : found->second)
                    forget(index);
            return;
        }
        std::set<uint32_t> used;
        for (const Range& use : step.uses)
            for_each_piece(use, [&](uint32_t index) { used.insert(index); });
        for (const uint32_t index : used) {
            unlist(index);
            while (pieces_[index].next < pieces_[index].uses.size() &&
                   pieces_[index].uses[pieces_[index].next].step <= number)
                ++pieces_[index].next;
        }
        for (const uint32_t index : used)
            if (!step.passes)
                give_memory(index, step.space);
        for (const Range& use : step.uses)
            for_each_piece(use, [&](uint32_t index) {
                if (step.passes)
                    pass(pieces_[index], step.space);
                else
                    access(index, step.space, use.flags);
            });
        if (is_device(step.space))
            recorded_.spaces[step.space].optimum_bytes += step.arriving_bytes;
        for (const uint32_t index : used)
            list(index);
    }
    void access(uint32_t index, uint32_t space, uint8_t flags) {
        Piece& piece = pieces_[index];
        const SpaceId here{space};
        if ((flags & reads) != 0 && !piece.holders.empty() && !piece.holders.contains(here)) {
            move(piece, source_of(piece), space);
            piece.holders.insert(here);
        }
        if ((flags & writes) != 0)
            piece.holders = SpaceSet{here};
        else if (piece.holders.empty())
            piece.holders = SpaceSet{here};
    }
    void pass(const Piece& piece, uint32_t to) {
        if (!piece.holders.empty() && !piece.holders.contains(SpaceId{to}))
            move(piece, source_of(piece), to);
    }
    [[nodiscard]] static uint32_t source_of(const Piece& piece) {
        return piece.holders.contains(host_space) ? 0 : piece.holders.first().value;
    }
    void move(const Piece& piece, uint32_t from, uint32_t to) {
        for (const uint32_t space : {from, to})
            if (is_device(space))
                recorded_.spaces[space].optimum_bytes += piece.bytes;
    }

    // --- memory of devices ---
    void give_memory(uint32_t index, uint32_t space) {
        Piece& piece = pieces_[index];
        if (!is_device(space) || piece.resident.contains(SpaceId{space}))
            return;
        while (room_[space] < piece.bytes && evict_one(space)) {
        }
        room_[space] -= std::min(room_[space], piece.bytes);
        piece.resident.insert(SpaceId{space});
    }
    // False when the step needs all of the memory itself.
    bool evict_one(uint32_t space) {
        auto& listed = listed_[space];
        if (listed.empty())
            return false;
        const uint32_t index = std::prev(listed.end())->second;
        Piece& piece = pieces_[index];
        if (piece.holders == SpaceSet{SpaceId{space}} && is_read_again(piece)) {
            move(piece, space, 0);
            piece.holders.insert(host_space);
        }
        piece.holders.erase(SpaceId{space});
        unlist(index);
        leave(piece, space);
        list(index);
        return true;
    }
    void leave(Piece& piece, uint32_t space) {
        piece.resident.erase(SpaceId{space});
        room_[space] += piece.bytes;
    }
    [[nodiscard]] static bool is_read_again(const Piece& piece) {
        return piece.next < piece.uses.size() && (piece.uses[piece.next].flags & reads) != 0;
    }
    [[nodiscard]] static uint32_t next_use(const Piece& piece, uint32_t space) {
        for (size_t i = piece.next; i < piece.uses.size(); ++i)
            if (piece.uses[i].space == space)
                return piece.uses[i].step;
        return never;
    }
    // Puts the piece into the lists of the memories that have it, by next use. The last piece of a list is evicted first.
    void list(uint32_t index) {
        for (SpaceSet rest = pieces_[index].resident; !rest.empty(); rest.erase(rest.first())) {
            const uint32_t space = rest.first().value;
            listed_[space].insert({next_use(pieces_[index], space), index});
            keys_[{space, index}] = next_use(pieces_[index], space);
        }
    }
    void unlist(uint32_t index) {
        for (SpaceSet rest = pieces_[index].resident; !rest.empty(); rest.erase(rest.first())) {
            const uint32_t space = rest.first().value;
            if (const auto key = keys_.find({space, index}); key != keys_.end()) {
                listed_[space].erase({key->second, index});
                keys_.erase(key);
            }
        }
    }
    void forget(uint32_t index) {
        unlist(index);
        Piece& piece = pieces_[index];
        for (SpaceSet rest = piece.resident; !rest.empty(); rest.erase(rest.first()))
            leave(piece, rest.first().value);
        piece.holders = {};
    }

    Recorded recorded_;
    std::map<uint64_t, std::map<uint64_t, uint32_t>> pieces_of_;  // by storage and begin; the last one marks the end
    std::vector<Piece> pieces_;
    std::map<uint32_t, uint64_t> room_;
    std::map<uint32_t, std::set<std::pair<uint32_t, uint32_t>>> listed_;  // for each space, pairs (next use, piece)
    std::map<std::pair<uint32_t, uint32_t>, uint32_t> keys_;
};

}  // namespace

std::vector<MovesOfSpace> compare_with_optimum(const TraceFile& trace, std::optional<ByteCount> memory) {
    return BeladyRun(steps_of(trace), memory).run();
}

}  // namespace polder::trace
