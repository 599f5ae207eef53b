// The half of CudaQueue that needs the host: pending operations, copies through pinned chunks, and waiting.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <cuda/copy_pieces.h>
#include <cuda/cuda_queue.h>
#include <cuda/parallel_copy.h>
#include <host/clock.h>
#include <host/parker.h>
#include <sched.h>

namespace polder::cuda {
namespace {

// Chunks that one copy has on their way at once.
constexpr size_t chunks_at_once = 4;
constexpr uint64_t print_ring_bytes = uint64_t{1} << 20;

// Waits longer each time. Awake at first, since most commands take microseconds and a sleep ends about 60 us late (Linux's timer slack is
// 50 us). After some time the thread gives way to others between two looks; only after the last limit does it sleep.
class Backoff {
public:
    void pause() {
        const uint64_t waited_ns = devices::now_ns() - began_ns_;
        if (waited_ns < alone_ns) {
            for (int i = 0; i < 16; ++i)
                devices::spin_pause();
            return;
        }
        if (waited_ns < awake_ns) {
            ::sched_yield();
            return;
        }
        const timespec time{0, static_cast<long>(std::min<uint64_t>(waited_ns / 16, asleep_ns_max))};
        ::nanosleep(&time, nullptr);
        has_slept_ = true;
    }
    [[nodiscard]] bool has_slept() const { return has_slept_; }

private:
    static constexpr uint64_t alone_ns = 50'000;
    static constexpr uint64_t awake_ns = 1'000'000;
    static constexpr uint64_t asleep_ns_max = 200'000;
    const uint64_t began_ns_ = devices::now_ns();
    bool has_slept_ = false;
};

}  // namespace

// --- waiting ---

void CudaQueue::poll(uint64_t value) {
    Backoff backoff;
    while (completed() < value) {
        {
            Lock lock(mutex_);
            if (context_.is_lost())
                return abandon();
            retire();
            // A value that was pushed after flights have begun.
            if (flights_.empty() && written_ < value)
                write_counter();
        }
        if (completed() >= value)
            return;
        // A stream that has failed never writes its counter.
        if (backoff.has_slept()) {
            const CudaContext::Current current(context_);
            const Code code = context_.api.stream_query(stream_);
            if (code != code_success && code != code_not_ready)
                return lose("a command of the queue", code);
        }
        backoff.pause();
    }
}

void CudaQueue::wait_for_event(Event event) {
    Backoff backoff;
    for (;;) {
        {
            const CudaContext::Current current(context_);
            const Code code = context_.is_lost() ? code_success : context_.api.event_query(event);
            if (code == code_success)
                return;
            if (code != code_not_ready)
                return lose("a command of the queue", code);
        }
        backoff.pause();
    }
}

// --- operations that need the host ---

void CudaQueue::execute_on_host(Operation& operation) {
    using Place = driver::CopyOperation::Place;
    for (const Event event : operation.events)
        wait_for_event(event);
    auto* const copy = std::get_if<driver::CopyOperation>(&operation.work);
    const bool is_copy_in = copy && copy->from.place == Place::host && copy->to.place == Place::device;
    {
        // The GPU need not be done with what comes before a copy to it, unless that writes what is copied.
        uint64_t before = operation.value - 1;
        {
            Lock lock(mutex_);
            if (is_copy_in && !operation.times)
                before = host_written_;
            write_counter();
        }
        if (completed() < before)
            poll(before);
    }
    if (context_.is_lost())
        return;
    const CudaContext::Current current(context_);
    if (!is_copy_in)
        started_.store(operation.value, std::memory_order_release);
    if (operation.times)
        operation.times->start(devices::now_ns());
    bool may = false;
    {
        Lock lock(mutex_);
        may = check_waits(operation);
    }
    Code code = code_success;
    if (!may) {
        // Its failure is noted.
    } else if (auto* const host = std::get_if<driver::HostOperation>(&operation.work)) {
        host->function(host->data);
    } else if (auto* const launch = std::get_if<LaunchWork>(&operation.work)) {
        code = execute_printing(*launch);
    } else if (is_copy_in) {
        code = copy_in_staged(*copy);
    } else if (copy->from.place == Place::device) {
        code = copy_out_staged(*copy);
    } else {
        devices::for_each_host_row(*copy, parallel_copy);
    }
    Lock lock(mutex_);
    note(operation.value, code, "a command of the queue");
    if (context_.is_lost())
        return abandon();
    if (is_copy_in) {
        // On its way: the GPU publishes it.
        Operation rest;
        rest.value = operation.value;
        rest.times = operation.times;
        return push(rest);
    }
    if (operation.times)
        operation.times->end(devices::now_ns());
    pushed_ = written_ = operation.value;
    publish(operation.value);
}

// --- staged copies ---

StagingChunk CudaQueue::take_chunk() {
    Backoff backoff;
    for (;;) {
        const StagingChunk chunk = services_.staging.take();
        if (chunk.memory) {
            wait_for_event(chunk.used);
            return chunk;
        }
        if (context_.is_lost())
            return {};
        backoff.pause();
    }
}

Code CudaQueue::copy_in_staged(const driver::CopyOperation& copy) {
    const std::byte* const from = copy.from.address.host();
    return for_each_piece(copy, StagingPool::chunk_bytes, code_success, [&](const CopyPiece& piece) {
        const StagingChunk chunk = take_chunk();
        if (!chunk.memory)
            return code_out_of_memory;
        if (piece.rows == 1)
            parallel_copy(chunk.memory, from + piece.from_offset, piece.row_bytes);
        else
            for (uint64_t y = 0; y < piece.rows; ++y)
                std::memcpy(chunk.memory + y * piece.row_bytes,
                            from + piece.from_offset + y * copy.from.layout.row_pitch, piece.row_bytes);
        driver::CopyOperation part = copy;
        part.from = {driver::CopyOperation::Place::host, DeviceAddress::of(chunk.memory), {piece.row_bytes, 0}};
        part.to.address = copy.to.address.plus(piece.to_offset);
        part.shape = {piece.row_bytes, piece.rows, 1};
        Code code = push_copy(part);
        if (code == code_success)
            code = context_.api.event_record(chunk.used, stream_);
        services_.staging.give_back(chunk);
        return code;
    });
}

// Some chunks are on their way while the oldest one is copied to where it belongs.
Code CudaQueue::copy_out_staged(const driver::CopyOperation& copy) {
    struct Arriving {
        StagingChunk chunk;
        CopyPiece piece;
    };
    std::deque<Arriving> arriving;
    std::byte* const to = copy.to.address.host();
    const auto finish_oldest = [&] {
        const auto [chunk, piece] = arriving.front();
        arriving.pop_front();
        wait_for_event(chunk.used);
        if (!context_.is_lost()) {
            if (piece.rows == 1)
                parallel_copy(to + piece.to_offset, chunk.memory, piece.row_bytes);
            else
                for (uint64_t y = 0; y < piece.rows; ++y)
                    std::memcpy(to + piece.to_offset + y * copy.to.layout.row_pitch, chunk.memory + y * piece.row_bytes,
                                piece.row_bytes);
        }
        services_.staging.give_back(chunk);
    };
    const Code code = for_each_piece(copy, StagingPool::chunk_bytes, code_success, [&](const CopyPiece& piece) {
        if (arriving.size() == chunks_at_once)
            finish_oldest();
        // Nobody waits for a chunk while it has one.
        StagingChunk chunk = services_.staging.take();
        while (!chunk.memory && !arriving.empty()) {
            finish_oldest();
            chunk = services_.staging.take();
        }
        if (!chunk.memory)
            chunk = take_chunk();
        else
            wait_for_event(chunk.used);
        if (!chunk.memory)
            return code_out_of_memory;
        driver::CopyOperation part = copy;
        part.from.address = copy.from.address.plus(piece.from_offset);
        part.to = {driver::CopyOperation::Place::host, DeviceAddress::of(chunk.memory), {piece.row_bytes, 0}};
        part.shape = {piece.row_bytes, piece.rows, 1};
        Code result = push_copy(part);
        if (result == code_success)
            result = context_.api.event_record(chunk.used, stream_);
        arriving.push_back({chunk, piece});
        return result;
    });
    while (!arriving.empty())
        finish_oldest();
    return code;
}

// --- kernels that print ---

Code CudaQueue::execute_printing(LaunchWork& launch) {
    const CudaApi& api = context_.api;
    if (!print_ring_) {
        void* memory = nullptr;
        if (const Code code = api.host_allocate(&memory, print_ring_bytes, host_memory_portable))
            return code;
        print_ring_ = static_cast<std::byte*>(memory);
    }
    DevicePointer address = 0;
    if (const Code code = api.host_device_pointer(&address, print_ring_, 0))
        return code;
    std::memset(print_ring_, 0, print_ring_bytes);
    const PtxPrintRing header{0, print_ring_bytes - sizeof(PtxPrintRing)};
    std::memcpy(print_ring_, &header, sizeof header);
    launch.kernel->set_print_ring(launch.parameter, address);
    if (const Code code = launch.kernel->launch(stream_, launch.parameter, launch.dynamic_bytes))
        return code;
    Backoff backoff;
    Code code = code_not_ready;
    while ((code = api.stream_query(stream_)) == code_not_ready)
        backoff.pause();
    if (code != code_success)
        return code;
    PtxPrintRing after;
    std::memcpy(&after, print_ring_, sizeof after);
    const auto print = [](void*, const char* text, size_t size) { std::fwrite(text, 1, size, stdout); };
    launch.kernel->print()(
        std::span<const std::byte>(print_ring_ + sizeof header, std::min(after.used, after.capacity)), print, nullptr);
    std::fflush(stdout);
    return code_success;
}

// --- the queue's thread ---

void CudaQueue::work() {
    Lock lock(mutex_);
    while (!stopping_) {
        if (has_pending_work()) {
            pump_one();
            if (!has_pending_work())
                write_counter();
        } else if (!flights_.empty() && flights_.front().value <= wanted_) {
            const uint64_t value = flights_.front().value;
            mutex_.unlock();
            poll(value);
            mutex_.lock();
        } else {
            thread_sleeps_ = true;
            wake_.wait(mutex_);
            thread_sleeps_ = false;
        }
    }
}

}  // namespace polder::cuda
