// Each thread writes events to its own chunk of the file, which stays mapped. When the chunk is full, the thread appends a copy of it to
// the file and begins the chunk anew, with the next number: writing a copy costs a fraction of mapping new pages. A reader that
// finds a chunk and its copy takes one of the two. Times are ticks of the processor's counter; each chunk's header relates them to
// nanoseconds.
#include "recorder.h"

#include <base/log.h>
#include <base/mutex.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <new>
#include <optional>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

namespace polder::memory::trace {

namespace detail {
constinit std::atomic<bool> on{false};
}
constinit Launches::Slot no_launch;
[[gnu::tls_model("initial-exec")]] constinit thread_local Cursor cursor;

namespace {

using polder::trace::ChunkHeader;
using polder::trace::Event;
using polder::trace::FileHeader;

constexpr uint32_t chunk_bytes = 64 << 10;
constexpr uint32_t events_per_chunk = (chunk_bytes - sizeof(ChunkHeader)) / sizeof(Event);
constexpr uint32_t queues_max = 4096;

uint64_t now_ns(clockid_t clock) {
    timespec time{};
    clock_gettime(clock, &time);
    return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

// Measures the counter's rate, which takes about a millisecond.
double measure_ns_per_tick() {
    const uint64_t begin_ns = now_ns(CLOCK_MONOTONIC), begin = now_ticks();
    uint64_t end_ns = 0;
    while ((end_ns = now_ns(CLOCK_MONOTONIC)) - begin_ns < 1'000'000) {
    }
    const uint64_t ticks = now_ticks() - begin;
    return ticks == 0 ? 1 : static_cast<double>(end_ns - begin_ns) / static_cast<double>(ticks);
}

// The trace file. Never destroyed, because threads may record until the process ends.
struct File {
    Mutex mutex;
    int descriptor POLDER_GUARDED_BY(mutex) = -1;
    uint64_t bytes POLDER_GUARDED_BY(mutex) = 0;
    std::atomic<double> ns_per_tick{1};
    std::atomic<uint32_t> threads{0};
    std::atomic<uint32_t> texts{0};
    std::atomic<uint32_t> recordings{0};

    // A table of the queues' numbers that is searched without a lock. A queue keeps its number, because queues are never destroyed.
    struct Known {
        std::atomic<const driver::Queue*> queue{nullptr};
        std::atomic<uint64_t> completed{0};
    };
    std::array<Known, queues_max> queues;

    [[nodiscard]] uint32_t number_of(const driver::Queue* queue) noexcept {
        if (!queue)
            return 0;
        const size_t first = (reinterpret_cast<uintptr_t>(queue) >> 6) % queues_max;
        for (size_t step = 0; step < queues_max; ++step) {
            const size_t place = (first + step) % queues_max;
            const driver::Queue* known = queues[place].queue.load(std::memory_order_acquire);
            if (known == queue ||
                (!known && (queues[place].queue.compare_exchange_strong(known, queue) || known == queue)))
                return static_cast<uint32_t>(place + 1);
        }
        return 0;
    }
    // Makes room for events of the calling thread.
    [[nodiscard]] bool next_chunk() noexcept;

private:
    [[nodiscard]] bool map_chunk() noexcept;
    [[nodiscard]] bool append_copy() noexcept;
};
File& file() {
    static File& only = *new File;
    return only;
}

void leave_chunk(void*) noexcept {
    if (cursor.chunk)
        ::munmap(cursor.chunk, chunk_bytes);
    delete std::exchange(cursor.launches, nullptr);
    cursor.forget_launches();
    cursor.chunk = nullptr;
    cursor.next = cursor.end = nullptr;
}

// Makes sure that leave_chunk is called when the calling thread ends.
void leave_at_thread_end() noexcept {
    static const auto key = [] {
        pthread_key_t made{};
        return ::pthread_key_create(&made, leave_chunk) == 0 ? std::optional{made} : std::nullopt;
    }();
    if (key)
        ::pthread_setspecific(*key, &cursor);
}

bool File::map_chunk() noexcept {
    void* memory = MAP_FAILED;
    {
        Lock lock(mutex);
        if (descriptor >= 0 && ::posix_fallocate(descriptor, static_cast<off_t>(bytes), chunk_bytes) == 0)
            memory = ::mmap(nullptr, chunk_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, descriptor,
                            static_cast<off_t>(bytes));
        if (memory != MAP_FAILED)
            bytes += chunk_bytes;
    }
    if (memory == MAP_FAILED)
        return false;
    leave_at_thread_end();
    cursor.launches = new (std::nothrow) Launches;
    if (!cursor.has_number) {
        cursor.thread = threads.fetch_add(1, std::memory_order_relaxed);
        cursor.has_number = true;
    }
    cursor.chunk = new (memory) ChunkHeader{};
    cursor.chunk->thread = cursor.thread;
    cursor.chunk->ns_per_tick = ns_per_tick.load(std::memory_order_relaxed);
    cursor.recording = recordings.load(std::memory_order_relaxed);
    return true;
}

bool File::append_copy() noexcept {
    int to = -1;
    uint64_t offset = 0;
    {
        Lock lock(mutex);
        to = descriptor;
        offset = bytes;
        bytes += chunk_bytes;
    }
    const auto* const from = reinterpret_cast<const std::byte*>(cursor.chunk);
    for (size_t done = 0; done < chunk_bytes;) {
        const ssize_t written = ::pwrite(to, from + done, chunk_bytes - done, static_cast<off_t>(offset + done));
        if (written <= 0 && errno != EINTR)
            return false;
        done += static_cast<size_t>(std::max<ssize_t>(written, 0));
    }
    return true;
}

bool File::next_chunk() noexcept {
    const int saved = errno;
    if (cursor.chunk && cursor.recording != recordings.load(std::memory_order_relaxed))
        leave_chunk(nullptr);
    const bool is_there = cursor.chunk ? append_copy() : map_chunk();
    errno = saved;
    if (!is_there) {
        leave_chunk(nullptr);
        if (detail::on.exchange(false))
            log::line(log::Category::warning, "POLDER_TRACE: the file cannot grow; recording ends");
        return false;
    }
    ChunkHeader& header = *cursor.chunk;
    cursor.next = reinterpret_cast<Event*>(&header + 1);
    cursor.end = cursor.next + events_per_chunk;
    // Until the first event is written, the chunk is empty.
    set_kind(*cursor.next, Kind::none);
    cursor.forget_launches();
    header.number += 1;
    header.ticks = now_ticks();
    header.ns = now_ns(CLOCK_MONOTONIC);
    std::atomic_ref<uint32_t>(header.magic).store(polder::trace::chunk_magic, std::memory_order_release);
    return true;
}

}  // namespace

// The kind is written last, so that an event is either complete or has the kind `none` (0). Old events of the reused chunk follow an event,
// so the next event gets the kind `none` first. The `parts` events after this one are its text.
void put(const Fields& fields, uint64_t ticks, uint32_t parts) noexcept {
    if (cursor.next == cursor.end && !file().next_chunk()) [[unlikely]]
        return;
    cursor.close_event();
    Event* const event = cursor.next;
    cursor.next += 1 + parts;
    if (cursor.next != cursor.end)
        set_kind(*cursor.next, Kind::none);
    event->ticks = ticks;
    event->queue = file().number_of(fields.queue);
    event->space = static_cast<uint8_t>(fields.space.value);
    event->other_space = static_cast<uint8_t>(fields.other_space.value);
    event->flags = fields.flags;
    event->storage = fields.storage;
    event->address = fields.address;
    event->size = fields.size;
    event->value = fields.value;
    set_kind(*event, fields.kind);
}

Result<void> begin(const std::string& path) {
    const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (descriptor < 0)
        return fail(Status::invalid_value, path + ": " + std::strerror(errno));
    FileHeader header{};
    std::memcpy(header.magic, polder::trace::magic, sizeof header.magic);
    header.version = polder::trace::version;
    header.chunk_bytes = chunk_bytes;
    header.start_ns = now_ns(CLOCK_MONOTONIC);
    header.start_unix_ns = now_ns(CLOCK_REALTIME);
    header.process = static_cast<uint32_t>(::getpid());
    if (::pwrite(descriptor, &header, sizeof header, 0) != sizeof header || ::ftruncate(descriptor, chunk_bytes) != 0) {
        const int error = errno;
        ::close(descriptor);
        return fail(Status::invalid_value, path + ": " + std::strerror(error));
    }
    File& only = file();
    only.ns_per_tick = measure_ns_per_tick();
    {
        Lock lock(only.mutex);
        if (only.descriptor >= 0)
            ::close(only.descriptor);
        only.descriptor = descriptor;
        only.bytes = chunk_bytes;
    }
    only.recordings.fetch_add(1);
    static const int once = ::pthread_atfork(nullptr, nullptr, [] { detail::on.store(false); });
    static_cast<void>(once);
    detail::on.store(true);
    return {};
}

void end() {
    detail::on.store(false);
    File& only = file();
    Lock lock(only.mutex);
    if (only.descriptor >= 0)
        ::close(std::exchange(only.descriptor, -1));
    // The calling thread's next event begins a new chunk, when recording begins again.
    cursor.next = cursor.end;
    cursor.close_event();
}

void record(const Fields& fields) noexcept {
    if (!enabled())
        return;
    cursor.last_ticks = now_ticks();
    put(fields, cursor.last_ticks);
}

void record_part(const Fields& fields) noexcept {
    if (enabled())
        put(fields, cursor.last_ticks);
}

void record_progress(const driver::Queue* queue) noexcept {
    const uint32_t number = enabled() ? file().number_of(queue) : 0;
    if (number == 0)
        return;
    std::atomic<uint64_t>& known = file().queues[number - 1].completed;
    const uint64_t value = queue->completed();
    if (known.exchange(value, std::memory_order_relaxed) == value)
        return;
    Fields fields;
    fields.kind = Kind::completed;
    fields.queue = queue;
    fields.value = value;
    record(fields);
}

void record_refusal(const Refusal& refusal, std::string_view report) noexcept {
    Fields fields;
    fields.kind = refusal.kind;
    fields.space = refusal.space;
    fields.storage = record_text(report);
    fields.size = refusal.size.value;
    fields.value = refusal.alignment.value;
    record(fields);
}

uint32_t record_text(std::string_view text) noexcept {
    if (!enabled())
        return 0;
    const uint32_t id = file().texts.fetch_add(1, std::memory_order_relaxed) + 1;
    text = text.substr(0, 32 * sizeof(Event));
    const auto parts = static_cast<uint32_t>((text.size() + sizeof(Event) - 1) / sizeof(Event));
    // The event and its text must be in one chunk, so that a reader finds the characters after the event.
    if (static_cast<size_t>(cursor.end - cursor.next) < parts + 1 && !file().next_chunk())
        return 0;
    Event* const event = cursor.next;
    for (uint32_t part = 0; part < parts; ++part) {
        const std::string_view piece = text.substr(part * sizeof(Event), sizeof(Event));
        std::memcpy(static_cast<void*>(event + 1 + part), piece.data(), piece.size());
    }
    Fields fields;
    fields.kind = Kind::text;
    fields.storage = id;
    fields.size = text.size();
    put(fields, now_ticks(), parts);
    return id;
}

}  // namespace polder::memory::trace
