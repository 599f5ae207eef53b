// A launch that repeats an earlier one of the chunk (same kernel, queue and uses) takes four bytes (Repeat). Reading the processor's
// counter costs as much as everything else for such a launch. So, when a thread launches more often than every `fast_ticks`, the counter is
// read only once for the launches of two events.
#include "recorder.h"

#include <memory/launch_trace.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace polder::memory::trace {
namespace {

using polder::trace::Repeat;
using polder::trace::WholeUses;

struct Launch {
    driver::Timepoint done;
    SpaceId space;
    uint32_t text;
};

uint8_t access_bits(const Use& use) {
    return static_cast<uint8_t>((reads(use.access) ? polder::trace::reads : 0) |
                                (writes(use.access) ? polder::trace::writes : 0));
}

// Kernels or storages with consecutive numbers get different slots, so that a loop over as many launches as there are slots replaces none.
uint32_t slot_of(const Launch& launch, std::span<const Use> uses) {
    uint64_t mixed = launch.text + launch.space.value * 31 + (reinterpret_cast<uintptr_t>(launch.done.queue) >> 6);
    if (!uses.empty())
        mixed += uses.front().storage->number_if_given() * 5 + uses.back().storage->number_if_given() * 18;
    return mixed % Repeat::slots;
}

// Whether the launch repeats the one in the slot.
bool repeats(const Launches::Slot& slot, const Launch& launch, std::span<const Use> uses) {
    if (slot.use_count != uses.size() || slot.text != launch.text || slot.queue != launch.done.queue ||
        slot.space != launch.space || launch.done.value - slot.value > Repeat::value_max)
        return false;
    const Launches::Slot::Use* before = slot.uses.data();
    for (const Use& use : uses) {
        if (before->storage != use.storage->number_if_given() || before->begin != use.range.begin ||
            before->end != use.range.end || before->access != use.access)
            return false;
        ++before;
    }
    return true;
}

// The launch as one that repeats the slot's last launch, which it replaces there.
Repeat repeat(Launches::Slot& slot, uint64_t value) noexcept {
    const auto step = static_cast<uint32_t>(value - slot.value);
    slot.value = value;
    return {Repeat::no_time, step, slot.number};
}

// Adds the launch to `event`.
void add(Event& event, const Repeat& launch) noexcept {
    const uint8_t before = event.flags;
    std::memcpy(reinterpret_cast<std::byte*>(&event) + offsetof(Event, storage) + before * sizeof launch, &launch,
                sizeof launch);
    std::atomic_ref<uint8_t>(event.flags).store(static_cast<uint8_t>(before + 1), std::memory_order_release);
}

// A new event for repeated launches.
Event& open_event(uint64_t ticks) noexcept {
    Event& event = *cursor.next++;
    if (cursor.next != cursor.end)
        set_kind(*cursor.next, Kind::none);
    event = Event{};
    event.ticks = ticks;
    cursor.open = &event;
    return event;
}

// Records a repeated launch with its time, in the open event if there is room, otherwise in a new one. The chunk has room for an event.
void add_with_time(Repeat launch) noexcept {
    const uint64_t ticks = cursor.last_ticks = now_ticks();
    const bool is_fast = ticks - cursor.read_ticks < (cursor.unread + 1) * Repeat::fast_ticks;
    cursor.read_ticks = ticks;
    const bool has_room = cursor.open && cursor.open->flags != Repeat::most &&
                          (ticks - cursor.open->ticks) / Repeat::unit < Repeat::no_time;
    Event& event = has_room ? *cursor.open : open_event(ticks);
    launch.time = static_cast<uint32_t>((ticks - event.ticks) / Repeat::unit);
    add(event, launch);
    if (!has_room)
        set_kind(event, Kind::repeats);
    cursor.may_skip = static_cast<uint16_t>(is_fast ? Repeat::most - event.flags : 0);
    cursor.may_open = is_fast ? 1 : 0;
    cursor.unread = cursor.may_skip + cursor.may_open * Repeat::most;
}

// Records a repeated launch in a new event, without reading the counter.
void add_to_another_event(Repeat launch) noexcept {
    Event& event = open_event(cursor.last_ticks);
    add(event, launch);
    set_kind(event, Kind::repeats);
    cursor.may_skip = Repeat::most - 1;
    --cursor.may_open;
}

// All uses in one word, for which the launch's own event has room. `fits` is false when that is not possible.
struct OneWord {
    bool fits = true;
    uint64_t word = 0;

    explicit OneWord(std::span<const Use> uses) : fits(uses.size() <= WholeUses::most) {
        for (size_t i = uses.size(); fits && i-- > 0;) {
            const Storage& storage = *uses[i].storage;
            fits = uses[i].range == ByteRange{0, storage.size().value} && storage.number() < WholeUses::storages_max;
            word = word << 32 | WholeUses::half(storage.number(), access_bits(uses[i]));
        }
    }
};

// Records a launch that repeats none: an event for it and, unless the uses fit into this event, one for each use.
[[gnu::noinline]] void record_anew(const Launch& launch, std::span<const Use> uses) noexcept {
    const OneWord whole(uses);
    const bool has_slot = uses.size() <= Launches::uses_max;
    const uint32_t number = slot_of(launch, uses);
    Fields fields;
    fields.kind = Kind::launch;
    fields.space = launch.space;
    fields.other_space = SpaceId{has_slot ? number : 0};
    fields.flags = whole.fits ? polder::trace::whole_uses : has_slot ? polder::trace::in_slot : 0;
    fields.queue = launch.done.queue;
    fields.storage = launch.text;
    fields.address = whole.fits ? whole.word : 0;
    fields.size = uses.size();
    fields.value = launch.done.value;
    record(fields);
    const uint64_t chunk = cursor.chunk ? cursor.chunk->number : 0;
    for (const Use& use : whole.fits ? std::span<const Use>{} : uses) {
        Fields part;
        part.kind = Kind::use;
        part.space = launch.space;
        part.flags = access_bits(use);
        part.storage = use.storage->number();
        part.address = use.range.begin;
        part.size = use.range.size();
        record_part(part);
    }
    // Repeats may refer to the launch only when all of its events are in this chunk.
    if (!has_slot || !cursor.launches || !cursor.chunk || cursor.chunk->number != chunk)
        return;
    Launches::Slot& slot = cursor.launches->slots[number];
    slot.queue = launch.done.queue;
    slot.text = launch.text;
    slot.space = launch.space;
    slot.use_count = static_cast<uint32_t>(uses.size());
    slot.value = launch.done.value;
    slot.number = number;
    cursor.last = &slot;
    for (size_t i = 0; i < uses.size(); ++i)
        slot.uses[i] = {uses[i].storage->number(), uses[i].range.begin, uses[i].range.end, uses[i].access};
}

// The launch repeats the last one. The parameters of the functions below are those of record_launch, so that each calls the next by a jump.
void repeat_without_time(uint64_t value) noexcept {
    const Repeat launch = repeat(*cursor.last, value);
    --cursor.may_skip;
    add(*cursor.open, launch);
}

[[gnu::noinline]] void repeat_with_time_or_event(std::span<const Use> uses, driver::Timepoint done, SpaceId space,
                                                 uint32_t text) noexcept {
    if (cursor.next == cursor.end)
        return record_anew({done, space, text}, uses);
    const Repeat launch = repeat(*cursor.last, done.value);
    if (cursor.may_open != 0)
        return add_to_another_event(launch);
    add_with_time(launch);
}

// Records a launch that may repeat one before the last.
[[gnu::noinline]] void record_after_another(std::span<const Use> uses, driver::Timepoint done, SpaceId space,
                                            uint32_t text) noexcept {
    const Launch launch{done, space, text};
    if (!cursor.launches)
        return record_anew(launch, uses);
    Launches::Slot& slot = cursor.launches->slots[slot_of(launch, uses)];
    if (!repeats(slot, launch, uses))
        return record_anew(launch, uses);
    cursor.last = &slot;
    if (cursor.may_skip != 0)
        return repeat_without_time(done.value);
    repeat_with_time_or_event(uses, done, space, text);
}

}  // namespace

// Most launches repeat the one before.
void record_launch(std::span<const Use> uses, driver::Timepoint done, SpaceId space, uint32_t text) noexcept {
    if (!repeats(*cursor.last, {done, space, text}, uses))
        return record_after_another(uses, done, space, text);
    if (cursor.may_skip == 0)
        return repeat_with_time_or_event(uses, done, space, text);
    repeat_without_time(done.value);
}

}  // namespace polder::memory::trace
