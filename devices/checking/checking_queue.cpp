// CheckedQueue publishes the counter of the wrapped queue, so a value means the same on both timelines. Waits for other
// checked queues are replaced by waits for the queues that they wrap.
#include <bit>
#include <checking/checking_queue.h>
#include <cstdio>
#include <typeinfo>

namespace polder::devices {
namespace {

using Place = driver::CopyOperation::Place;

}  // namespace

// A host operation with a flag that says whether its function was called. Kept until the operation is complete, because an
// operation whose wait has failed is not executed.
struct CheckedQueue::WatchedCall {
    std::atomic<uint64_t>* started;
    uint64_t value;
    driver::HostOperation operation;

    static void run(void* data) {
        const WatchedCall& me = *static_cast<WatchedCall*>(data);
        me.started->store(me.value, std::memory_order_release);
        me.operation.function(me.operation.data);
    }
};

void report_violation(const char* what) {
    std::fprintf(stderr, "polder: error: the driver interface's contract is violated: %s\n", what);
    std::abort();
}

void CheckedMemory::reserved(const driver::Memory& memory, ByteCount asked) {
    must(memory.size >= asked.value, "reserve_memory returned less than was asked for");
    must(memory.address.value % alignment_ == 0, "reserve_memory returned memory that is not aligned");
    Lock lock(mutex_);
    const auto after = regions_.lower_bound(memory.address.value);
    must(after == regions_.end() || memory.address.value + memory.size <= after->first,
         "reserve_memory returned memory twice");
    must(after == regions_.begin() || std::prev(after)->first + std::prev(after)->second <= memory.address.value,
         "reserve_memory returned memory twice");
    regions_[memory.address.value] = memory.size;
}

void CheckedMemory::released(const driver::Memory& memory) {
    Lock lock(mutex_);
    const auto found = regions_.find(memory.address.value);
    must(found != regions_.end() && found->second == memory.size, "release_memory of memory that was not reserved");
    regions_.erase(found);
}

bool CheckedMemory::is_in(const std::map<uint64_t, uint64_t>& ranges, uint64_t address, uint64_t size) {
    const auto after = ranges.upper_bound(address);
    if (after == ranges.begin())
        return false;
    const auto& [begin, bytes] = *std::prev(after);
    return address - begin <= bytes && size <= bytes - (address - begin);
}

bool CheckedMemory::contains(DeviceAddress address, uint64_t size) const {
    if (is_host_)
        return address.value != 0;
    Lock lock(mutex_);
    if (is_in(regions_, address.value, size) || is_in(committed_, address.value, size))
        return true;
    if (is_in(pinned_, address.value, size))
        return host_regions_.load()->are_for_kernels();
    return is_unified_ && address.value != 0 && !is_in(addresses_, address.value, 1);
}

// --- host memory that is used in place ---

driver::HostRegions* CheckedMemory::host_regions(driver::HostRegions* of_device) {
    host_regions_.store(of_device);
    return of_device ? this : nullptr;
}

Result<void> CheckedMemory::add(std::span<std::byte> region) {
    must(!region.empty(), "a region of host memory without bytes");
    POLDER_TRY(host_regions_.load()->add(region));
    Lock lock(mutex_);
    pinned_[DeviceAddress::of(region.data()).value] = region.size();
    return {};
}

void CheckedMemory::remove(std::span<std::byte> region) {
    {
        Lock lock(mutex_);
        const auto found = pinned_.find(DeviceAddress::of(region.data()).value);
        must(found != pinned_.end() && found->second == region.size(), "removal of host memory that was not added");
        pinned_.erase(found);
    }
    host_regions_.load()->remove(region);
}

// --- virtual memory ---

void CheckedMemory::reserved_addresses(DeviceAddress address, uint64_t size, Alignment page) {
    must(page.divides(address.value), "reserve_addresses returned an address that is not aligned to a page");
    Lock lock(mutex_);
    const auto after = addresses_.lower_bound(address.value);
    must((after == addresses_.end() || address.value + size <= after->first) &&
             (after == addresses_.begin() || std::prev(after)->first + std::prev(after)->second <= address.value),
         "reserve_addresses returned addresses twice");
    addresses_[address.value] = size;
}

void CheckedMemory::released_addresses(const driver::Memory& range) {
    Lock lock(mutex_);
    const auto found = addresses_.find(range.address.value);
    must(found != addresses_.end() && found->second == range.size,
         "release_addresses of addresses that were not reserved");
    const auto after = committed_.lower_bound(range.address.value);
    must(after == committed_.end() || after->first >= range.address.value + range.size,
         "release_addresses of committed addresses");
    addresses_.erase(found);
}

void CheckedMemory::committing(const driver::Memory& range, Alignment page) const {
    must(range.size != 0 && page.divides(range.address.value) && page.divides(range.size),
         "commit of a range that is not whole pages");
    Lock lock(mutex_);
    must(is_in(addresses_, range.address.value, range.size), "commit of addresses that were not reserved");
    const auto after = committed_.upper_bound(range.address.value);
    must((after == committed_.end() || after->first >= range.address.value + range.size) &&
             (after == committed_.begin() || std::prev(after)->first + std::prev(after)->second <= range.address.value),
         "commit of addresses that have memory");
}

void CheckedMemory::committed(const driver::Memory& range) {
    Lock lock(mutex_);
    auto here = committed_.emplace(range.address.value, range.size).first;
    if (const auto next = std::next(here); next != committed_.end() && here->first + here->second == next->first) {
        here->second += next->second;
        committed_.erase(next);
    }
    if (here != committed_.begin()) {
        const auto before = std::prev(here);
        if (before->first + before->second == here->first) {
            before->second += here->second;
            committed_.erase(here);
        }
    }
}

void CheckedMemory::decommitting(const driver::Memory& range, Alignment page) {
    must(range.size != 0 && page.divides(range.address.value) && page.divides(range.size),
         "decommit of a range that is not whole pages");
    Lock lock(mutex_);
    must(is_in(committed_, range.address.value, range.size), "decommit of addresses that have no memory");
    const auto part = std::prev(committed_.upper_bound(range.address.value));
    const uint64_t end = part->first + part->second;
    part->second = range.address.value - part->first;
    if (part->second == 0)
        committed_.erase(part);
    if (const uint64_t behind = range.address.value + range.size; behind < end)
        committed_[behind] = end - behind;
}

CheckedQueue::CheckedQueue(std::unique_ptr<driver::Queue> queue, const driver::DeviceInfo& info,
                           std::shared_ptr<const CheckedMemory> memory)
    : queue_(std::move(queue)), info_(info), memory_(std::move(memory)) {
    publish_at(queue_->counter());
    must(completed() == 0 && queue_->started() == 0, "a new queue has a past");
}

CheckedQueue::~CheckedQueue() {
    must(queue_->completed() == submitted_.load(), "a queue is destroyed while it has work");
}

std::vector<driver::Timepoint> CheckedQueue::unwrapped(driver::Waits waits) const {
    std::vector<driver::Timepoint> all(waits.begin(), waits.end());
    for (driver::Timepoint& wait : all)
        if (wait.queue && typeid(*wait.queue) == typeid(CheckedQueue)) {
            auto& queue = static_cast<CheckedQueue&>(*wait.queue);
            must(wait.value <= queue.submitted(), "a wait names an operation that was not submitted before");
            wait.queue = queue.queue_.get();
        }
    return all;
}

driver::Timepoint CheckedQueue::copy(const driver::CopyOperation& operation, const driver::Submission& submission) {
    const driver::RectShape& shape = operation.shape;
    check_rows(operation);
    for (const driver::CopyOperation::End* const end : {&operation.from, &operation.to}) {
        must(end->place == Place::host ? end->address.value != 0
                                       : memory_->contains(end->address, bytes_of(shape, end->layout)),
             "a copy leaves the memory that was reserved");
    }
    if (operation.from.place == operation.to.place && shape.rows == 1 && shape.slices == 1) {
        const uint64_t from = operation.from.address.value;
        const uint64_t to = operation.to.address.value;
        must(from + shape.row_bytes <= to || to + shape.row_bytes <= from, "a copy's ranges overlap");
    }
    return pass_on(submission,
                   [&](driver::Queue& queue, const driver::Submission& inner) { return queue.copy(operation, inner); });
}

driver::Timepoint CheckedQueue::fill(const driver::FillOperation& operation, const driver::Submission& submission) {
    const size_t pattern = operation.pattern.size();
    must(std::has_single_bit(pattern) && pattern <= driver::FillOperation::max_pattern_bytes, "a fill's pattern");
    must(operation.size != 0 && operation.size % pattern == 0, "a fill's size is no multiple of its pattern's");
    must(memory_->contains(operation.address, operation.size), "a fill leaves the memory that was reserved");
    return pass_on(submission,
                   [&](driver::Queue& queue, const driver::Submission& inner) { return queue.fill(operation, inner); });
}

driver::Timepoint CheckedQueue::launch(const driver::LaunchOperation& operation, const driver::Submission& submission) {
    must(operation.kernel != nullptr, "a launch without a kernel");
    must(operation.work_dim >= 1 && operation.work_dim <= 3, "a launch's dimensions");
    uint64_t items = 1;
    for (uint32_t d = 0; d < operation.work_dim; ++d) {
        must(operation.global_size[d] != 0 && operation.local_size[d] != 0, "a launch of nothing");
        must(operation.local_size[d] <= info_.max_work_item_sizes[d], "a work-group exceeds the device's limits");
        items *= operation.local_size[d];
    }
    const uint64_t kernel_max = operation.kernel->limits().max_work_group_size;
    must(items <= info_.max_work_group_size && (kernel_max == 0 || items <= kernel_max),
         "a work-group exceeds the device's limits");
    for (const uint32_t offset : operation.pointer_offsets)
        must(offset + sizeof(uint64_t) <= operation.arguments.size(), "a pointer lies outside of the arguments");
    must(operation.program_variables.value == 0 || memory_->contains(operation.program_variables, 1),
         "program variables lie outside of the memory that was reserved");
    return pass_on(submission, [&](driver::Queue& queue, const driver::Submission& inner) {
        return queue.launch(operation, inner);
    });
}

driver::Timepoint CheckedQueue::call(const driver::HostOperation& operation, const driver::Submission& submission) {
    must(operation.function != nullptr, "a host operation without a function");
    while (!calls_.empty() && calls_.front()->value <= queue_->completed())
        calls_.pop_front();
    return pass_on(submission, [&](driver::Queue& queue, const driver::Submission& inner) {
        calls_.push_back(std::make_unique<WatchedCall>(WatchedCall{&started_, submitted_.load() + 1, operation}));
        try {
            return queue.call({WatchedCall::run, calls_.back().get()}, inner);
        } catch (...) {
            calls_.pop_back();
            throw;
        }
    });
}

driver::Timepoint CheckedQueue::marker(const driver::Submission& submission) {
    return pass_on(submission,
                   [](driver::Queue& queue, const driver::Submission& inner) { return queue.marker(inner); });
}

void CheckedQueue::wait(uint64_t value) {
    must(value <= submitted_.load(), "a wait for an operation that was not submitted");
    follow();
    queue_->wait(value);
    must(queue_->completed() >= value, "a driver's wait returned too early");
}

bool CheckedQueue::notify(driver::FenceWaiter& waiter) {
    must(waiter.reached != nullptr, "a waiter without a function");
    must(waiter.value <= submitted_.load(), "a wait for an operation that was not submitted");
    follow();
    return queue_->fence()->notify(waiter);
}

}  // namespace polder::devices
