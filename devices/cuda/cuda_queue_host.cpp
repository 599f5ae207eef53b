// The half of CudaQueue that needs the host: pending operations, copies through pinned chunks, and waiting.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <cuda/backoff.h>
#include <cuda/copy_threads.h>
#include <cuda/cuda_queue.h>
#include <cuda/staged_copy.h>
#include <host/clock.h>

namespace polder::cuda {
namespace {

constexpr uint64_t print_ring_bytes = uint64_t{1} << 20;

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
    } else if (is_copy_in || copy->from.place == Place::device) {
        code = StagedCopy(context_, services_.staging, stream_, *copy).run();
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
