// The place where the calling thread writes the next event (Cursor). Used to record events (recorder.cpp) and launches (launches.cpp).
//
// Only its own thread uses a cursor. Recording never fails: when there is no disk space, recording ends.
#pragma once

#include <memory/trace.h>

#include <array>
#include <atomic>
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
    struct Slot {
        struct Use {
            uint64_t storage = 0;
            uint64_t begin = 0;
            uint64_t end = 0;
            Access access = Access::none;
        };
        const driver::Queue* queue = nullptr;
        uint64_t key = UINT64_MAX;  // text, number of uses and space; nothing is like an empty slot
        uint64_t value = 0;
        std::array<Use, uses_max> uses;
    };
    std::array<Slot, polder::trace::Repeat::slots> slots;
    Event* open = nullptr;  // the thread's last event, if it is of the kind `repeats`
    uint64_t read_ticks = 0;  // when the counter was read last for a repeated launch
    uint32_t unread = 0;  // how many launches were expected without a time after that
    uint32_t may_skip = 0;  // how many of them are left
};

// Where a thread writes. Plain data; leave_chunk unmaps the chunk when the thread ends.
struct Cursor {
    Event* next = nullptr;
    Event* end = nullptr;
    polder::trace::ChunkHeader* chunk = nullptr;
    Launches* launches = nullptr;  // exists as long as the chunk; null when there was no memory for it
    uint64_t last_ticks = 0;
    uint32_t thread = 0;
    uint32_t recording = 0;  // the number of the recording to which the chunk belongs
    bool has_number = false;
};
[[gnu::tls_model("initial-exec")]] extern constinit thread_local Cursor cursor;

inline void set_kind(Event& event, Kind kind) noexcept {
    std::atomic_ref<Kind>(event.kind).store(kind, std::memory_order_release);
}

// Writes an event. The `parts` events after it are its text.
void put(const Fields& fields, uint64_t ticks, uint32_t parts = 0) noexcept;

}  // namespace polder::memory::trace
