// The submitting half of HostQueue: turns operations into records of the log.
//
// A record holds a copy of everything that the caller's operation points to, and addresses that the executing thread can
// dereference. `publish` makes it visible to the draining thread and decides whether a worker is woken: for an operation
// that takes long, and for every `backlog_max` small ones that no thread waits for.
#include <base/sizes.h>

#include <algorithm>
#include <cstring>
#include <host/bulk.h>
#include <host/host_queue.h>
#include <host/launch.h>
#include <host/print.h>

namespace polder::devices {
namespace {

// Small operations that may accumulate before a worker is woken for them.
constexpr uint64_t backlog_max = 16;

}  // namespace

template <class Record>
Record& HostQueue::begin_record(OperationKind kind, const driver::Submission& submission, size_t extra_bytes) {
    // Each operation of a command waits for the one before it. That wait takes no time here, so only a flag is set.
    const driver::Timepoint previous{this, submitted_.load(std::memory_order_relaxed)};
    const bool needs_previous = submission.waits.size() == 1 && submission.waits.front() == previous;
    const driver::Waits waits = needs_previous ? driver::Waits{} : submission.waits;
    constexpr size_t record_bytes = rounded_up(sizeof(Record), OperationLog::record_alignment);
    const size_t waits_offset = record_bytes + rounded_up(extra_bytes, alignof(driver::Timepoint));
    const size_t total = waits_offset + waits.size() * sizeof(driver::Timepoint);
    auto* const record = log_.append<Record>(total - sizeof(Record));
    record->kind = kind;
    record->times = submission.times;
    record->queue = this;
    record->needs_previous = needs_previous;
    if (!waits.empty()) {
        record->waits = reinterpret_cast<driver::Timepoint*>(reinterpret_cast<std::byte*>(record) + waits_offset);
        for (const driver::Timepoint wait : waits) {
            if (!wait.is_complete())
                record->waits[record->wait_count++] = wait;
            else if (wait.queue && wait.queue->status(wait.value) != Status::success) [[unlikely]]
                record->has_failed_wait = true;
        }
    }
    return *record;
}

// How many operations may wait for a thread that executes them. Reads the draining thread's counter only when it matters.
uint64_t HostQueue::backlog_at(uint64_t value) {
    if (value - last_promised_ >= backlog_max)
        last_promised_ = std::max(last_promised_, completed_.load(std::memory_order_relaxed));
    return value - last_promised_;
}

driver::Timepoint HostQueue::publish(Weight weight) {
    const uint64_t value = submitted_.load(std::memory_order_relaxed) + 1;
    submitted_.store(value, std::memory_order_release);
    if (weight == Weight::large || backlog_at(value) >= backlog_max) {
        last_promised_ = value;
        // When there is no worker, the queue stays scheduled until a thread flushes or waits: this thread may hold locks.
        if (claim_.promise(value))
            static_cast<void>(pool_.schedule(*this, QueueState::idle));
    }
    return {this, value};
}

driver::Timepoint HostQueue::marker(const driver::Submission& submission) {
    begin_record<Operation>(OperationKind::marker, submission, 0);
    return publish(Weight::small);
}

driver::Timepoint HostQueue::call(const driver::HostOperation& operation, const driver::Submission& submission) {
    begin_record<CallRecord>(OperationKind::call, submission, 0).operation = operation;
    return publish(Weight::large);
}

driver::Timepoint HostQueue::copy(const driver::CopyOperation& operation, const driver::Submission& submission) {
    using Place = driver::CopyOperation::Place;
    const auto resolve = [this](const driver::CopyOperation::End& end) {
        return end.place == Place::device ? options_.window.resolve(end.address) : end.address.host();
    };
    LinkDirection direction = LinkDirection::local;
    if (operation.from.place != operation.to.place)
        direction = operation.to.place == Place::device ? LinkDirection::in : LinkDirection::out;
    return copy_resolved(resolve(operation.from), resolve(operation.to), operation, direction, submission);
}

driver::Timepoint HostQueue::copy_resolved(const std::byte* from, std::byte* to, const driver::CopyOperation& operation,
                                           LinkDirection direction, const driver::Submission& submission) {
    auto& record = begin_record<CopyRecord>(OperationKind::copy, submission, 0);
    record.from = from;
    record.to = to;
    record.shape = operation.shape;
    record.from_layout = operation.from.layout;
    record.to_layout = operation.to.layout;
    record.direction = direction;
    const uint64_t bytes = record.shape.row_bytes * record.shape.rows * record.shape.slices;
    return publish(bytes >= bulk_parallel_bytes ? Weight::large : Weight::small);
}

driver::Timepoint HostQueue::fill(const driver::FillOperation& operation, const driver::Submission& submission) {
    auto& record = begin_record<FillRecord>(OperationKind::fill, submission, 0);
    record.to = options_.window.resolve(operation.address);
    record.size = operation.size;
    record.pattern_bytes = static_cast<uint32_t>(operation.pattern.size());
    std::memcpy(record.pattern, operation.pattern.data(), operation.pattern.size());
    return publish(record.size >= bulk_parallel_bytes ? Weight::large : Weight::small);
}

driver::Timepoint HostQueue::launch(const driver::LaunchOperation& operation, const driver::Submission& submission) {
    const size_t argument_bytes = operation.arguments.size();
    auto& record = begin_record<LaunchRecord>(OperationKind::launch, submission, argument_bytes);
    record.kernel = static_cast<const HostKernel*>(operation.kernel);

    auto* const arguments =
        reinterpret_cast<std::byte*>(&record) + rounded_up(sizeof(LaunchRecord), OperationLog::record_alignment);
    if (argument_bytes != 0)
        std::memcpy(arguments, operation.arguments.data(), argument_bytes);
    record.arguments = arguments;
    if (options_.window.size != 0)
        for (const uint32_t offset : operation.pointer_offsets) {
            uint64_t address;
            std::memcpy(&address, arguments + offset, sizeof address);
            address = options_.window.resolve(address);
            std::memcpy(arguments + offset, &address, sizeof address);
        }

    set_range(record, {operation.work_dim, operation.global_offset, operation.global_size, operation.local_size});
    set_memory(record, record.kernel->code.local_bytes + operation.local_argument_bytes);
    LaunchContext& context = record.context;
    context.program_variables = options_.window.resolve(operation.program_variables);
    context.print = print_text;
    context.print_user = &record.printed;
    context.device_enqueue = nullptr;

    record.blocks = operation.blocks;
    record.stack_bytes = 0;
    for (const driver::LoadedKernel* block : operation.blocks.kernels)
        record.stack_bytes = std::max(record.stack_bytes, static_cast<const HostKernel*>(block)->code.stack_bytes);
    return publish(is_large(record) ? Weight::large : Weight::small);
}

}  // namespace polder::devices
