// Waits between streams, launches, failures, and the queue's life. See cuda_queue_push.cpp and cuda_queue_host.cpp.
#include <cuda/cuda_queue.h>
#include <typeinfo>

namespace polder::cuda {
namespace {

// Failures after which nothing of the context works any more.
bool is_fatal(Code code) {
    switch (static_cast<int>(code)) {
    case 3:    // not initialized: the child of a fork
    case 4:    // deinitialized: the process exits
    case 46:   // device unavailable
    case 214:  // uncorrectable memory error
    case 700:  // illegal address
    case 702:  // launch timeout
    case 709:  // context is destroyed
    case 710:  // assert
    case 714:
    case 715:
    case 716:
    case 717:
    case 718:
    case 719:  // stack, instruction, alignment, address space, pc, launch
    case 999: return true;
    default: return false;
    }
}

} // namespace

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
    return std::unique_ptr<driver::Queue>(new CudaQueue(services, stream, tail, std::move(counter)));
}

CudaQueue::CudaQueue(const QueueServices& services, Stream stream, Event tail, std::unique_ptr<PinnedCounter> counter)
    : ForeignQueue("polder-cuda"), services_(services), context_(services.context), stream_(stream),
      counter_(std::move(counter)), tail_(tail) {
    publish_in(counter_->value());
}

CudaQueue::~CudaQueue() {
    finish();
    if (context_.is_lost())
        return;
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
    const std::optional<Event> event = static_cast<CudaQueue*>(wait.queue)->event_after(wait.value);
    if (event && *event)
        operation.events.push_back(*event);
    return event.has_value();
}

std::optional<Event> CudaQueue::event_after(uint64_t value) {
    Lock lock(mutex_);
    if (completed() >= value)
        return nullptr;
    if (pushed_ < value || context_.is_lost())
        return std::nullopt;
    // What waits for the operation must not be seen to complete before it: flights are published by the host.
    if (!flights_.empty() && flights_.front().value <= value)
        return std::nullopt;
    if (tail_value_ < value) {
        const CudaContext::Current current(context_);
        write_counter();
        if (const Code code = context_.api.event_record(tail_, stream_)) {
            note(value, code, "cuEventRecord");
            return std::nullopt;
        }
        tail_value_ = pushed_;
    }
    return tail_;
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
    if (code == code_success)
        return;
    if (is_fatal(code)) {
        context_.lose(what, code);
        return abandon();
    }
    failures_.note(value, context_.api.error(code, what).status());
}

void CudaQueue::lose(const char* what, Code code) {
    context_.lose(what, code);
    Lock lock(mutex_);
    abandon();
}

void CudaQueue::forget_pushed(Where where) {
    if (where == Where::here)
        for (const Flight& flight : flights_)
            devices::set_times(flight.times, devices::now_ns());
    flights_.clear();
    written_ = submitted_;
}

}  // namespace polder::cuda
