// The half of CudaQueue that needs the host: pending operations, copies through pinned chunks, and waiting.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <cuda/backoff.h>
#include <cuda/copy_threads.h>
#include <cuda/cuda_queue.h>
#include <cuda/refusals.h>
#include <cuda/staged_copy.h>
#include <host/clock.h>
#include <utility>

namespace polder::cuda {
namespace {

// A record has at least 32 bytes, even of one printed character.
constexpr uint64_t print_ring_bytes = uint64_t{8} << 20;

}  // namespace

// --- waiting ---

void CudaQueue::poll(uint64_t value) {
    Backoff backoff;
    Refusals refusals;
    while (completed() < value) {
        {
            Lock lock(mutex_);
            if (is_lost())
                return abandon();
            retire();
            // A value that was pushed after flights have begun.
            if (flights_.empty() && written_ < value)
                write_counter();
            // A stream that has failed never writes its counter, nor does one for which CUDA refuses the write.
            if (backoff.has_slept() && !is_lost()) {
                const Code code = publish_idle_stream();
                if (refusals.are_final_after(code))
                    context_.lose("a command of the queue", code);
                if (code != code_success && is_stuck())
                    return abandon();
            }
        }
        if (completed() >= value)
            return;
        backoff.pause();
    }
}

bool CudaQueue::waits_for_lost_gpu(const Operation& operation) const {
    return std::ranges::any_of(operation.after, [](driver::Timepoint wait) {
        return static_cast<const CudaQueue*>(wait.queue)->context_.is_lost();
    });
}

void CudaQueue::wait_for_event(Event event, const Operation& operation) {
    Backoff backoff;
    Refusals refusals;
    while (!is_lost() && !waits_for_lost_gpu(operation)) {
        {
            const CudaContext::Current current(context_);
            const Code code = context_.api.event_query(event);
            if (code == code_success)
                return;
            if (refusals.are_final_after(code))
                return lose("a command of the queue", code);
        }
        backoff.pause();
    }
}

Code CudaQueue::drain() {
    Backoff backoff;
    Refusals refusals;
    while (!is_over()) {
        {
            const CudaContext::Current current(context_);
            const Code code = context_.api.stream_query(stream_);
            if (code == code_success)
                return code_success;
            if (refusals.are_final_after(code)) {
                lose("a command of the queue", code);
                return code;
            }
        }
        backoff.pause();
    }
    return code_out_of_memory;  // the queue is lost
}

// --- operations that need the host ---

void CudaQueue::execute_on_host(Operation& operation) {
    using Place = driver::CopyOperation::Place;
    for (const Event event : operation.events)
        wait_for_event(event, operation);
    for (const driver::Timepoint wait : operation.after) {
        if (waits_for_lost_gpu(operation))
            wait.queue->wait(wait.value);  // makes the operations on the lost GPU fail
        operation.has_failed_wait |= wait.queue->status(wait.value) != Status::success;
    }
    const auto* const copy = std::get_if<driver::CopyOperation>(&operation.work);
    const bool is_copy_in = copy && copy->from.place == Place::host && copy->to.place == Place::device;
    {
        // A copy to the GPU waits only for earlier operations that write host memory, not for all earlier operations.
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
    if (is_lost())
        return;
    if (!is_copy_in)
        started_.store(operation.value, std::memory_order_release);
    const uint64_t start_ns = devices::now_ns();
    bool may = false;
    {
        Lock lock(mutex_);
        may = check_waits(operation);
    }
    Code code = code_success;
    Status status = Status::success;
    try {
        if (may)
            code = execute_work(operation);
        status = code == code_success ? Status::success : CudaApi::status_of(code);
    } catch (...) {
        status = Status::out_of_host_memory;
    }
    // A part of the failed operation may be on the stream. Waits for it, because the counter does not include it.
    if (status != Status::success && !is_copy_in)
        static_cast<void>(drain());
    Lock lock(mutex_);
    if (code != code_success)
        note(operation.value, code, "a command of the queue");
    else if (status != Status::success)
        failures_.note(operation.value, status);
    // Another thread may have abandoned the operation; then its times may not be there any more.
    if (is_lost())
        return abandon();
    if (operation.times)
        operation.times->start(start_ns);
    if (is_copy_in) {
        // On its way: the GPU publishes it.
        Operation rest;
        rest.value = operation.value;
        rest.times = operation.times;
        return push(rest);
    }
    if (operation.times)
        operation.times->end(devices::now_ns());
    publish_by_host(operation.value);
}

Code CudaQueue::execute_work(Operation& operation) {
    const CudaContext::Current current(context_);
    if (auto* const host = std::get_if<driver::HostOperation>(&operation.work)) {
        host->function(host->data);
        return code_success;
    }
    if (auto* const launch = std::get_if<LaunchWork>(&operation.work))
        return execute_printing(*launch);
    const auto& copy = std::get<driver::CopyOperation>(operation.work);
    if (copy.from.place != copy.to.place)
        return StagedCopy(context_, services_.staging, stream_, copy, [this] { return is_over(); }).run();
    devices::for_each_host_row(copy, parallel_copy);
    return code_success;
}

// --- kernels that print ---

Code CudaQueue::execute_printing(LaunchWork& launch) {
    const CudaApi& api = context_.api;
    if (!print_ring_) {
        void* memory = nullptr;
        if (const Code code = api.host_allocate(&memory, print_ring_bytes, host_memory_portable))
            return code;
        print_ring_ = static_cast<std::byte*>(memory);
        std::memset(print_ring_, 0, print_ring_bytes);
    }
    DevicePointer address = 0;
    if (const Code code = api.host_device_pointer(&address, print_ring_, 0))
        return code;
    // What the last launch wrote.
    PtxPrintRing before;
    std::memcpy(&before, print_ring_, sizeof before);
    std::memset(print_ring_, 0, sizeof before + std::min(before.used, before.capacity));
    const PtxPrintRing header{0, print_ring_bytes - sizeof(PtxPrintRing)};
    std::memcpy(print_ring_, &header, sizeof header);
    launch.kernel->set_print_ring(launch.parameter, address);
    if (const Code code = launch.kernel->launch(stream_, launch.parameter, launch.dynamic_bytes))
        return code;
    if (const Code code = drain())
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

// --- failures that no thread waits for ---

void CudaQueue::begin_to_watch() {
    if (!is_watched_ && completed() < wanted_ && !is_lost())
        is_watched_ = services_.watch.add(*this);
}

bool CudaQueue::look() {
    constexpr uint32_t idle_looks_max = 25;
    const Lock lock(mutex_);
    if (is_lost()) {
        abandon();
        return is_watched_ = false;
    }
    const bool is_idle = completed() >= wanted_;
    idle_looks_ = is_idle ? idle_looks_ + 1 : 0;
    is_watched_ = idle_looks_ < idle_looks_max;
    if (!is_watched_)
        idle_looks_ = 0;
    if (is_idle || std::exchange(seen_, completed()) != completed())
        return is_watched_;
    const Code code = publish_idle_stream();
    if (refusals_.are_final_after(code))
        context_.lose("a command of the queue", code);
    if (is_lost() || (code != code_success && is_stuck()))
        abandon();
    return is_watched_;
}

}  // namespace polder::cuda
