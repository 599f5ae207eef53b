// A launch that repeats an earlier one of the chunk (same kernel, queue and uses) takes four bytes (Repeat). Reading the processor's
// counter costs as much as everything else for such a launch. So, when a thread launches more often than every `fast_ticks`, the counter is
// read only once for the launches that share an event.
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

uint64_t key_of(const Launch& launch, size_t uses) {
    return uint64_t{launch.text} << 32 | uint64_t{uses} << 8 | launch.space.value;
}

// Whether the launch repeats the one in the slot.
bool repeats(const Launches::Slot& slot, const Launch& launch, std::span<const Use> uses) {
    if (slot.key != key_of(launch, uses.size()) || slot.queue != launch.done.queue ||
        launch.done.value - slot.value > Repeat::value_max)
        return false;
    uint64_t difference = 0;
    const Launches::Slot::Use* before = slot.uses.data();
    for (const Use& use : uses) {
        difference |= (before->storage ^ use.storage->number_if_given()) | (before->begin ^ use.range.begin) |
                      (before->end ^ use.range.end);
        difference |= static_cast<uint8_t>(before->access) ^ static_cast<uint8_t>(use.access);
        ++before;
    }
    return difference == 0;
}

Repeat repetition_of(const Launches::Slot& slot, const Launch& launch) {
    return {Repeat::no_time, static_cast<uint32_t>(launch.done.value - slot.value), static_cast<uint32_t>(slot.number)};
}

// Adds the launch to `event`.
void add(Event& event, const Repeat& launch) noexcept {
    const uint8_t before = event.flags;
    std::memcpy(reinterpret_cast<std::byte*>(&event) + offsetof(Event, storage) + before * sizeof launch, &launch,
                sizeof launch);
    std::atomic_ref<uint8_t>(event.flags).store(static_cast<uint8_t>(before + 1), std::memory_order_release);
}

// Records a repeated launch with its time, in the open event if there is room, otherwise in a new one.
[[gnu::noinline]] void repeat_with_time(Repeat launch) noexcept {
    const uint64_t ticks = cursor.last_ticks = now_ticks();
    const uint64_t fast = (cursor.unread + 1) * Repeat::fast_ticks;
    cursor.may_skip = ticks - cursor.read_ticks < fast ? Repeat::most - 1 : 0;
    cursor.unread = cursor.may_skip;
    cursor.read_ticks = ticks;
    Event* event = cursor.open;
    if (event && event->flags != Repeat::most && (ticks - event->ticks) / Repeat::unit < Repeat::no_time) {
        launch.time = static_cast<uint32_t>((ticks - event->ticks) / Repeat::unit);
        return add(*event, launch);
    }
    event = cursor.next++;
    if (cursor.next != cursor.end)
        set_kind(*cursor.next, Kind::none);
    *event = Event{};
    event->ticks = ticks;
    launch.time = 0;
    add(*event, launch);
    set_kind(*event, Kind::repeats);
    cursor.open = event;
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
    slot.key = key_of(launch, uses.size());
    slot.value = launch.done.value;
    slot.number = number;
    cursor.last = &slot;
    for (size_t i = 0; i < uses.size(); ++i)
        slot.uses[i] = {uses[i].storage->number(), uses[i].range.begin, uses[i].range.end, uses[i].access};
}

// Whether the next launch needs no time of its own.
bool may_be_without_time() { return cursor.open && cursor.may_skip > 0 && cursor.open->flags != Repeat::most; }

void repeat_without_time(Launches::Slot& slot, const Launch& launch) noexcept {
    const Repeat made = repetition_of(slot, launch);
    slot.value = launch.done.value;
    --cursor.may_skip;
    add(*cursor.open, made);
}

// Records a launch that may repeat one before the last.
[[gnu::noinline]] void record_after_another(const Launch& launch, std::span<const Use> uses) noexcept {
    if (!cursor.launches)
        return record_anew(launch, uses);
    Launches::Slot& slot = cursor.launches->slots[slot_of(launch, uses)];
    if (!repeats(slot, launch, uses))
        return record_anew(launch, uses);
    cursor.last = &slot;
    if (may_be_without_time())
        return repeat_without_time(slot, launch);
    if (cursor.next == cursor.end)
        return record_anew(launch, uses);
    const Repeat made = repetition_of(slot, launch);
    slot.value = launch.done.value;
    repeat_with_time(made);
}

}  // namespace

// Most launches repeat the one before.
void record_launch(std::span<const Use> uses, driver::Timepoint done, SpaceId space, uint32_t text) noexcept {
    if (may_be_without_time() && repeats(*cursor.last, {done, space, text}, uses)) [[likely]]
        return repeat_without_time(*cursor.last, {done, space, text});
    record_after_another({done, space, text}, uses);
}

}  // namespace polder::memory::trace
