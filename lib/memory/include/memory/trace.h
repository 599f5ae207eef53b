// Records the events of the memory layer in the file POLDER_TRACE. The format is in polder/trace_format.h.
//
// When recording is off, an event costs one predictable branch. When it is on, the event is written to a chunk of the file that
// belongs to the calling thread: no lock, no system call until the chunk is full (1,364 events). The chunk is mapped, so that
// complete events are in the file also when the process is killed. A child of fork() records nothing.
// Any thread may call any function. Recording never fails: without disk space it ends, with one warning.
#pragma once

#include <atomic>
#include <polder/driver.h>
#include <polder/result.h>
#include <polder/trace_format.h>
#include <string>
#include <string_view>

namespace polder::memory::trace {

using polder::trace::Kind;

namespace detail {
extern constinit std::atomic<bool> on;
}
[[nodiscard]] inline bool enabled() { return detail::on.load(std::memory_order_relaxed); }

// Begins recording into `file`, which is made or emptied. Once in a process.
[[nodiscard]] Result<void> begin(const std::string& file);
// Ends recording. What other threads are writing may be lost.
void end();

struct Fields {
    Kind kind = Kind::none;
    SpaceId space;
    SpaceId other_space;
    uint8_t flags = 0;
    const driver::Queue* queue = nullptr;
    uint64_t storage = 0;
    uint64_t address = 0;
    uint64_t size = 0;
    uint64_t value = 0;  // or extra
};
void record(const Fields& fields) noexcept;
// The time of the last event is this one's: for parts of one command.
void record_part(const Fields& fields) noexcept;
// An event of the timeline, if it has moved since the last one.
void record_progress(const driver::Queue* queue) noexcept;
// A command gets no memory (Kind::out_of_memory), or an allocator has no room for a request (Kind::refused).
struct Refusal {
    Kind kind = Kind::out_of_memory;
    SpaceId space;
    ByteCount size{0};
    Alignment alignment{1};
};
// `report` says what was tried.
void record_refusal(const Refusal& refusal, std::string_view report) noexcept;
// An id for a text; a new one each time.
[[nodiscard]] uint32_t record_text(std::string_view text) noexcept;

}  // namespace polder::memory::trace
