// CudaQueue: creation and destruction, waits between streams, launches, failures. See also cuda_queue_push.cpp and cuda_queue_host.cpp.
#include <base/log.h>

#include <algorithm>
#include <cuda/cuda_queue.h>
#include <host/clock.h>
#include <typeinfo>

namespace polder::cuda {
namespace {

// How long the operations on a stream before a wait for a lost GPU have time to execute.
constexpr uint64_t stuck_after_ns = 100'000'000;

}  // namespace

Result<std::unique_ptr<driver::Queue>> CudaQueue::create(const QueueServices& services) {
    CudaContext& context = services.context;
    if (context.is_lost())
        return fail(Status::out_of_resources, context.facts.name + " is lost");
    const CudaContext::Current current(context);
    POLDER_ASSIGN(counter, PinnedCounter::create(context));
    Stream stream = nullptr;
    POLDER_CUDA_TRY(context.api, stream_create(&stream, stream_non_blocking, 0), "cuStreamCreate");
    Event tail = nullptr;
    if (const Code code = context.api.event_create(&tail, event_disable_timing)) {
        context.api.stream_destroy(stream);
        return fail(context.api.error(code, "cuEventCreate"));
    }
    try {
        return std::unique_ptr<driver::Queue>(new CudaQueue(services, stream, tail, std::move(counter)));
    } catch (...) {
        context.api.event_destroy(tail);
        context.api.stream_destroy(stream);
        throw;
    }
}

CudaQueue::CudaQueue(const QueueServices& services, Stream stream, Event tail, std::unique_ptr<PinnedCounter> counter)
    : ForeignQueue("polder-cuda", &counter->value()), services_(services), context_(services.context), stream_(stream),
      counter_(std::move(counter)), tail_(tail) {}

CudaQueue::~CudaQueue() {
    finish();
    services_.watch.remove(*this);
    if (context_.is_lost())
        return;
    if (is_stuck_) {
        // The stream may still go on, and write.
        static_cast<void>(counter_.release());
        return;
    }
    const CudaContext::Current current(context_);
    Lock lock(mutex_);
    for (const Event event : events_)
        context_.api.event_destroy(event);
    if (reference_)
        context_.api.event_destroy(reference_);
    context_.api.event_destroy(tail_);
    context_.api.stream_destroy(stream_);
    if (print_ring_)
        context_.api.host_free(print_ring_);
}

// --- waits ---

// True when an event orders this queue's stream after `wait`.
bool CudaQueue::order_after(driver::Timepoint wait, Operation& operation) {
    if (typeid(*wait.queue) != typeid(CudaQueue))
        return false;
    auto& other = *static_cast<CudaQueue*>(wait.queue);
    const std::optional<Event> event = other.event_after(wait.value);
    if (!event)
        return false;
    if (*event) {
        if (&other.context_ != &context_)
            operation.after.push_back(wait);
        operation.events.push_back(*event);
    }
    return true;
}

std::optional<Event> CudaQueue::event_after(uint64_t value) {
    Lock lock(mutex_);
    if (completed() >= value)
        return nullptr;
    if (pushed_ < value || is_lost())
        return std::nullopt;
    // No event while the operation or an earlier one is a flight: the host publishes flights, and an operation of another queue
    // that waits by an event could be seen to be complete before them.
    if (!flights_.empty() && flights_.front().value <= value)
        return std::nullopt;
    if (tail_value_ < value) {
        const CudaContext::Current current(context_);
        write_counter();
        if (const Code code = context_.api.event_record(tail_, stream_)) {
            // The other queue's host waits instead.
            static_cast<void>(survives(code, "cuEventRecord"));
            return std::nullopt;
        }
        tail_value_ = pushed_;
    }
    return tail_;
}

void CudaQueue::wait_for_gpu(const CudaContext& other, uint64_t value) {
    for (AwaitedGpu& gpu : awaited_)
        if (gpu.context == &other) {
            gpu.value = value;
            return;
        }
    awaited_.push_back({&other, value});
}

bool CudaQueue::check_waits(const Operation& operation) {
    if (may_execute(operation))
        return true;
    failures_.note(operation.value, Status::exec_status_error_for_events_in_wait_list);
    return false;
}

// --- launches and the timeline ---

driver::Timepoint CudaQueue::launch(const driver::LaunchOperation& operation, const driver::Submission& submission) {
    const auto& kernel = static_cast<const CudaKernel&>(*operation.kernel);
    return submit_work(LaunchWork{&kernel, kernel.parameter_of(operation), kernel.dynamic_bytes_of(operation)},
                       submission);
}

void CudaQueue::wait(uint64_t value) {
    if (!push_up_to(value))
        return;
    {
        Lock lock(mutex_);
        write_counter();
        unwritten_max_ = unwritten_min;
    }
    poll(value);
}

// --- failures ---

void CudaQueue::note(uint64_t value, Code code, const char* what) {
    if (code != code_success && survives(code, what))
        failures_.note(value, CudaApi::status_of(code));
}

bool CudaQueue::survives(Code code, const char* what) {
    if (!CudaApi::is_fatal(code))
        return true;
    context_.lose(what, code);
    abandon();
    return false;
}

void CudaQueue::lose(const char* what, Code code) {
    context_.lose(what, code);
    Lock lock(mutex_);
    abandon();
}

// True when the stream waits for a lost GPU. CUDA cannot cancel such a wait, so the queue is lost; other queues of this GPU continue.
bool CudaQueue::is_stuck() {
    const auto waits_for_lost = [this](const AwaitedGpu& gpu) {
        return gpu.value > completed() && gpu.context->is_lost();
    };
    const auto awaited = std::ranges::find_if(awaited_, waits_for_lost);
    if (awaited == awaited_.end())
        return false;
    const uint64_t now_ns = devices::now_ns();
    if (lost_gpu_seen_ns_ == 0)
        lost_gpu_seen_ns_ = now_ns;
    if (now_ns - lost_gpu_seen_ns_ < stuck_after_ns)
        return false;
    if (!is_stuck_.exchange(true)) {
        log::line(log::Category::error, "%s: the commands of a queue fail, because they wait for %s, which is lost",
                  context_.facts.name.c_str(), awaited->context->facts.name.c_str());
        services_.staging.discard(stream_);
    }
    return true;
}

void CudaQueue::publish_by_host(uint64_t value) {
    written_ = value;
    ForeignQueue::publish_by_host(value);
}

void CudaQueue::forget_pushed(Where where) {
    if (where == Where::here)
        for (const Flight& flight : flights_)
            devices::set_times(flight.times, devices::now_ns());
    flights_.clear();
    written_ = submitted_;
}

}  // namespace polder::cuda
