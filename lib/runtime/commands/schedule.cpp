// Divides commands into parts in two passes. The first finds the commands with which a part has to end, because a command of another queue
// waits for them. The second assigns the commands to parts, in the order of recording.
#include <runtime/buffer_commands.h>
#include <runtime/schedule.h>

#include <algorithm>
#include <limits>

namespace polder::runtime {
namespace {

constexpr uint32_t no_part = std::numeric_limits<uint32_t>::max();

using Numbers = std::vector<uint32_t>;

bool contains(const Numbers& numbers, uint32_t number) { return std::ranges::find(numbers, number) != numbers.end(); }

void add_once(Numbers& numbers, uint32_t number) {
    if (!contains(numbers, number))
        numbers.push_back(number);
}

// For each command, whether a command of another queue waits for it, so that its part ends with it.
std::vector<bool> ends_of_parts(std::span<const RecordedCommand> commands, size_t queue_count) {
    constexpr size_t none = std::numeric_limits<size_t>::max();
    std::vector<size_t> newest(queue_count, none);  // for each queue, its newest command
    std::vector<bool> ends(commands.size());
    for (size_t i = 0; i < commands.size(); ++i) {
        const RecordedCommand& command = commands[i];
        for (const uint32_t earlier : command.waits_for)
            ends[earlier] = ends[earlier] || commands[earlier].queue != command.queue;
        for (uint32_t queue = 0; command.waits_for_all && queue < queue_count; ++queue)
            if (queue != command.queue && newest[queue] != none)
                ends[newest[queue]] = true;
        newest[command.queue] = i;
    }
    return ends;
}

// Divides commands into parts, in the order of recording.
class Division {
public:
    explicit Division(size_t queue_count) : newest_(queue_count, no_part) {}

    void add(const RecordedCommand& command, bool ends_part) {
        const Numbers others = other_queues_parts(command);
        if (!can_join(newest_[command.queue], others))
            begin_part(command.queue);
        const uint32_t number = newest_[command.queue];
        for (const uint32_t other : others) {
            add_once(parts[number].waits_for, other);
            parts[other].is_waited_for = true;
        }
        part_of_.push_back(number);
        ++parts[number].command_count;
        is_ended_[number] = ends_part;
        operations[number].push_back(command.operation);
    }

    std::vector<Schedule::Part> parts;
    std::vector<std::vector<Ref<const RecordedOperation>>> operations;  // for each part

private:
    // The parts of other queues that a command waits for.
    [[nodiscard]] Numbers other_queues_parts(const RecordedCommand& command) const {
        Numbers others;
        for (const uint32_t earlier : command.waits_for)
            if (parts[part_of_[earlier]].queue != command.queue)
                add_once(others, part_of_[earlier]);
        for (uint32_t queue = 0; command.waits_for_all && queue < newest_.size(); ++queue)
            if (queue != command.queue && newest_[queue] != no_part)
                add_once(others, newest_[queue]);
        return others;
    }

    [[nodiscard]] bool can_join(uint32_t number, const Numbers& others) const {
        return number != no_part && !is_ended_[number] &&
               std::ranges::all_of(others, [&](uint32_t other) { return contains(parts[number].waits_for, other); });
    }

    void begin_part(uint32_t queue) {
        Schedule::Part part;
        part.queue = queue;
        if (const uint32_t before = newest_[queue]; before != no_part) {
            part.waits_for.push_back(before);
            parts[before].is_waited_for = true;
        }
        newest_[queue] = static_cast<uint32_t>(parts.size());
        parts.push_back(std::move(part));
        is_ended_.push_back(false);
        operations.emplace_back();
    }

    Numbers newest_;  // for each queue, its newest part
    Numbers part_of_;  // for each command, its part
    std::vector<bool> is_ended_;  // for each part, whether no command may join it any more
};

}  // namespace

Schedule::Schedule(std::span<const RecordedCommand> commands, size_t queue_count) {
    Division division{queue_count};
    const std::vector<bool> ends = ends_of_parts(commands, queue_count);
    for (size_t i = 0; i < commands.size(); ++i)
        division.add(commands[i], ends[i]);
    parts_ = std::move(division.parts);
    for (size_t i = 0; i < parts_.size(); ++i)
        parts_[i].recording = make_ref<Recording>(std::move(division.operations[i]));
    if (parts_.empty())
        parts_.push_back({0, {}, 0, make_ref<Recording>(std::vector<Ref<const RecordedOperation>>{}), false});
}

Result<Ref<Event>> Schedule::enqueue(std::span<Queue* const> queues, const EnqueueRequest& request) const {
    if (queues.size() == 1)
        return queues.front()->enqueue(request, ReplayCommand{parts_.front().recording});
    for (const Part& part : parts_)
        POLDER_TRY(queues.front()->context().reported(part.recording->reserve(*queues[part.queue])));
    using Want = EnqueueRequest::WantEvent;
    std::vector<Ref<Event>> events;
    std::vector<Event*> last;
    std::vector<Event*> waits;
    for (const Part& part : parts_) {
        waits.clear();
        for (const uint32_t earlier : part.waits_for)
            waits.push_back(events[earlier].get());
        const std::span<Event* const> list = waits.empty() ? request.wait_list : std::span<Event* const>{waits};
        POLDER_ASSIGN(event,
                      queues[part.queue]->enqueue({request.type, list, Want::yes}, ReplayCommand{part.recording}));
        if (!part.is_waited_for)
            last.push_back(event.get());
        events.push_back(std::move(event));
    }
    POLDER_ASSIGN(event, queues.front()->enqueue({request.type, last, Want::yes}, MarkerCommand{}));
    event->note_several_queues();
    return event;
}

}  // namespace polder::runtime
