// The place where the calling thread writes the next event (Cursor). Used to record events (recorder.cpp) and launches (launches.cpp).
//
// Only its own thread uses a cursor. Recording never fails: when there is no disk space, recording ends.
#pragma once

#include <memory/trace.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <ctime>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace polder::memory::trace {

using polder::trace::Event;

// Takes about 9 ns on x86, half of what clock_gettime takes.
[[nodiscard]] inline uint64_t now_ticks() {
#if defined(__x86_64__)
    return __rdtsc();
#else
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
#endif
}

// The last launches of a thread in this chunk, one for each slot.
struct Launches {
    static constexpr uint32_t uses_max = 16;
    struct alignas(64) Slot {  // a launch with one use reads one cache line
        struct Use {
            uint64_t storage = 0;
            uint64_t begin = 0;
            uint64_t end = 0;
            Access access = Access::none;
        };
        const driver::Queue* queue = nullptr;
        uint64_t value = 0;
        uint32_t use_count = UINT32_MAX;  // nothing is like an empty slot
        uint32_t text = 0;
        SpaceId space;
        uint32_t number = 0;  // of this slot, unless it is empty
        std::array<Use, uses_max> uses;
    };
    static_assert(offsetof(Slot, uses) == 32);
    std::array<Slot, polder::trace::Repeat::slots> slots;
};

extern constinit Launches::Slot no_launch;  // the slot of a thread that has recorded none; no launch is like it

// Where a thread writes. Plain data; leave_chunk unmaps the chunk when the thread ends. What a repeated launch needs comes first, in one cache
// line: a small launch uses most of the processor's first cache, so that each further line costs it a miss elsewhere.
struct alignas(64) Cursor {
    Event* open = nullptr;  // the thread's last event, if it is of the kind `repeats`
    Launches* launches = nullptr;  // exists as long as the chunk; null when there was no memory for it
    Launches::Slot* last = &no_launch;  // of the last launch
    uint64_t read_ticks = 0;  // when the counter was read last for a repeated launch
    uint32_t unread = 0;  // how many launches were expected without a time after that
    uint16_t may_skip = 0;  // how many of them are left in `open`, which exists and has room for them
    uint16_t may_open = 0;  // how many events more they may fill
    Event* next = nullptr;
    Event* end = nullptr;
    uint64_t last_ticks = 0;
    polder::trace::ChunkHeader* chunk = nullptr;
    uint32_t thread = 0;
    uint32_t recording = 0;  // the number of the recording to which the chunk belongs
    bool has_number = false;

    // For a chunk without events.
    void forget_launches() {
        if (launches)
            *launches = {};
        last = &no_launch;
        close_event();
        read_ticks = 0;
        unread = 0;
    }
    // The thread's last event is not one of repeated launches, or is not in its chunk.
    void close_event() {
        open = nullptr;
        may_skip = may_open = 0;
    }
};
[[gnu::tls_model("initial-exec")]] extern constinit thread_local Cursor cursor;

inline void set_kind(Event& event, Kind kind) noexcept {
    std::atomic_ref<Kind>(event.kind).store(kind, std::memory_order_release);
}

// Writes an event. The `parts` events after it are its text.
void put(const Fields& fields, uint64_t ticks, uint32_t parts = 0) noexcept;

}  // namespace polder::memory::trace
