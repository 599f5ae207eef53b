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
// Ends recording. Events that other threads are writing may be lost.
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
    uint64_t value = 0;  // the timepoint's value, or the field `extra` of the format
};
void record(const Fields& fields) noexcept;
// Records an event with the time of the thread's last event. For parts of one command.
void record_part(const Fields& fields) noexcept;
// Records the value of the queue's timeline (Kind::completed), if it has changed since the last such event.
void record_progress(const driver::Queue* queue) noexcept;
// Describes that a command got no memory (Kind::out_of_memory), or that an allocator had no room for a request (Kind::refused).
struct Refusal {
    Kind kind = Kind::out_of_memory;
    SpaceId space;
    ByteCount size{0};
    Alignment alignment{1};
};
// `report` lists the steps that were tried.
void record_refusal(const Refusal& refusal, std::string_view report) noexcept;
// Records a text and returns its id, a new one each time. 0 when nothing was recorded.
[[nodiscard]] uint32_t record_text(std::string_view text) noexcept;

}  // namespace polder::memory::trace
