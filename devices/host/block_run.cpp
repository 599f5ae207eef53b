// An event is a number: the index of its place, and a generation. So numbers of released events and of other launches are recognized as invalid.
#include <base/sizes.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <host/block_run.h>
#include <host/clock.h>
#include <host/host_kernel.h>
#include <host/launch.h>
#include <new>

namespace polder::devices {
namespace {

constexpr uint64_t memory_alignment = 128;
constexpr uint64_t literal_alignment_max = 4096;
// How much of its queue's size a command takes, in addition to its literal.
constexpr uint64_t command_bytes = 64;
constexpr int32_t submitted = 2;  // CL_SUBMITTED

std::atomic<uint32_t> last_generation{0};

bool is_zero(const uint64_t (&size)[3]) { return size[0] == 0 && size[1] == 0 && size[2] == 0; }

// Chooses a work-group of as many work-items in x as the device allows, but at most 64.
void choose_local_size(BlockRange& range, uint64_t group_size_max) {
    constexpr uint64_t local_size_max = 64;
    range.local_size[0] = std::min({range.global_size[0], group_size_max, local_size_max});
    range.local_size[1] = range.local_size[2] = 1;
}

// Sets the sizes after the last dimension to 1, and chooses the local size if it is 0. False when the range is invalid.
bool normalize(BlockRange& range, uint64_t group_size_max) {
    if (range.work_dim < 1 || range.work_dim > 3)
        return false;
    const bool chooses = is_zero(range.local_size);
    uint64_t items = 1;
    uint64_t group_items = 1;
    for (uint32_t d = 0; d < 3; ++d) {
        if (d >= range.work_dim) {
            range.global_offset[d] = 0;
            range.global_size[d] = range.local_size[d] = 1;
        }
        uint64_t end = 0;
        if (range.global_size[d] == 0 || __builtin_mul_overflow(items, range.global_size[d], &items) ||
            __builtin_add_overflow(range.global_offset[d], range.global_size[d], &end))
            return false;
        if (chooses)
            continue;
        if (range.local_size[d] == 0 || __builtin_mul_overflow(group_items, range.local_size[d], &group_items))
            return false;
    }
    if (chooses)
        choose_local_size(range, group_size_max);
    return group_items <= group_size_max;
}

EnqueueStatus reported(EnqueueStatus status, uint32_t flags) {
    return status == EnqueueStatus::success || (flags & BlockRequest::exact_errors) ? status : EnqueueStatus::failure;
}

}  // namespace

void BlockRun::Free::operator()(std::byte* memory) const { std::free(memory); }

BlockRun::BlockRun(LaunchRecord& launch, WorkerPool& pool, Workspace& workspace)
    : launch_(launch), pool_(pool), workspace_(workspace), root_(*this, nullptr) {
    launch_.context.device_enqueue = &root_;
}

BlockRun::~BlockRun() = default;

const HostKernel* BlockRun::find_block(const char* name) const {
    for (const driver::LoadedKernel* block : launch_.blocks.kernels)
        if (const auto* kernel = static_cast<const HostKernel*>(block); kernel->code.name == name)
            return kernel;
    return nullptr;
}

// --- enqueueing ---

EnqueueStatus BlockRun::enqueue(Command& parent, const BlockRequest& request) {
    try {
        std::list<Command> only;
        Command& command = only.emplace_back(*this, &parent);
        EnqueueStatus status = check(request, command);
        if (status == EnqueueStatus::success && request.block)
            status = fill_arguments(request, command);
        const Lock lock(mutex_);
        if (status == EnqueueStatus::success)
            status = add(request, only);
        return reported(status, request.flags);
    } catch (const std::bad_alloc&) {
        return reported(EnqueueStatus::out_of_resources, request.flags);
    }
}

EnqueueStatus BlockRun::check(const BlockRequest& request, Command& command) const {
    if (size_of_device_queue(request.queue) == 0)
        return EnqueueStatus::invalid_queue;
    if ((request.event_count == 0) != (request.events == nullptr))
        return EnqueueStatus::invalid_event_wait_list;
    command.queue = request.queue;
    command.queue_bytes = command_bytes + request.event_count * sizeof(uint64_t) + request.literal.size +
                          request.local_count * sizeof(uint64_t);
    // Nothing is read of lists that no queue can hold.
    if (command.queue_bytes > size_of_device_queue(command.queue))
        return EnqueueStatus::device_queue_full;
    if (!request.block)
        return EnqueueStatus::success;
    command.kernel = find_block(request.block);
    if (!command.kernel)
        return EnqueueStatus::failure;
    command.range = *request.range;
    if (!normalize(command.range, launch_.blocks.group_size_max))
        return EnqueueStatus::invalid_range;
    return EnqueueStatus::success;
}

// The packed arguments: the address of the literal, then the place of each local argument. The literal's copy is behind them.
EnqueueStatus BlockRun::fill_arguments(const BlockRequest& request, Command& command) const {
    const uint64_t alignment = std::max<uint64_t>(request.literal.alignment, memory_alignment);
    if (!std::has_single_bit(alignment) || alignment > literal_alignment_max)
        return EnqueueStatus::failure;
    command.local_bytes = command.kernel->code.local_bytes;
    const uint64_t packed = (1 + request.local_count) * sizeof(uint64_t);
    const uint64_t literal_offset = rounded_up(packed, alignment);
    const uint64_t bytes = rounded_up(literal_offset + request.literal.size, alignment);
    command.arguments.reset(static_cast<std::byte*>(std::aligned_alloc(alignment, bytes)));
    if (!command.arguments)
        return EnqueueStatus::out_of_resources;
    std::byte* const block = command.arguments.get();
    std::byte* const literal = block + literal_offset;
    std::memcpy(literal, request.literal.bytes, request.literal.size);
    std::memcpy(block, &literal, sizeof literal);
    for (uint32_t i = 0; i < request.local_count; ++i) {
        const uint64_t begin = rounded_up(command.local_bytes, local_memory_alignment);
        if (request.local_bytes[i] > launch_.blocks.local_memory_bytes ||
            begin + request.local_bytes[i] > launch_.blocks.local_memory_bytes)
            return EnqueueStatus::out_of_resources;
        std::memcpy(block + (1 + i) * sizeof begin, &begin, sizeof begin);
        command.local_bytes = begin + request.local_bytes[i];
    }
    return EnqueueStatus::success;
}

// Adds the command to the queue. When it fails, it has changed nothing.
EnqueueStatus BlockRun::add(const BlockRequest& request, std::list<Command>& only) {
    Command& command = only.front();
    for (uint32_t i = 0; i < request.event_count; ++i)
        if (!find(request.events[i]))
            return EnqueueStatus::invalid_event_wait_list;
    command.waits.assign(request.events, request.events + request.event_count);
    uint64_t& used = queue_bytes_[command.queue];
    if (used + command.queue_bytes > size_of_device_queue(command.queue))
        return EnqueueStatus::device_queue_full;
    if (request.event) {
        command.event = new_event(false);
        if (command.event == null_event)
            return EnqueueStatus::event_allocation_failure;
        *request.event = command.event;
    }
    used += command.queue_bytes;
    ++command.parent->unfinished;
    for (const uint64_t event : command.waits)
        ++find(event)->waiting;
    command.place = only.begin();
    waiting_.splice(waiting_.end(), only);
    return EnqueueStatus::success;
}

uint32_t BlockRun::query(BlockQuery what, const char* block, const BlockRange* range) const {
    const HostKernel* const kernel = find_block(block);
    if (!kernel)
        return 0;
    BlockRange given = range ? *range : BlockRange{};
    if (range && !normalize(given, launch_.blocks.group_size_max))
        return 0;
    const uint64_t group_items = given.local_size[0] * given.local_size[1] * given.local_size[2];
    const uint64_t sub_group = launch_.blocks.sub_group_size;
    switch (what) {
    case BlockQuery::group_size_max: return static_cast<uint32_t>(launch_.blocks.group_size_max);
    case BlockQuery::preferred_multiple: return static_cast<uint32_t>(kernel->limits().preferred_multiple);
    case BlockQuery::sub_group_size_max: return static_cast<uint32_t>(std::min(sub_group, group_items));
    case BlockQuery::sub_group_count: return static_cast<uint32_t>((group_items + sub_group - 1) / sub_group);
    case BlockQuery::sub_group_size: return static_cast<uint32_t>(sub_group);
    case BlockQuery::sub_groups_max:
        return static_cast<uint32_t>((launch_.blocks.group_size_max + sub_group - 1) / sub_group);
    }
    return 0;
}

// --- events ---

uint64_t BlockRun::new_event(bool is_user) {
    uint32_t index = 0;
    if (!free_events_.empty()) {
        index = free_events_.back();
        free_events_.pop_back();
    } else {
        if (events_.size() == events_of_blocks_max)
            return null_event;
        index = static_cast<uint32_t>(events_.size());
        events_.emplace_back();
        free_events_.reserve(events_.size());
    }
    Event& event = events_[index];
    event = Event{.generation = ++last_generation,
                  .references = 1,
                  .waiting = is_user ? 0u : 1u,
                  .status = submitted,
                  .is_user = is_user};
    return uint64_t{event.generation} << 32 | (index + 1);
}

BlockRun::Event* BlockRun::find(uint64_t number) {
    const uint64_t index = (number & 0xffffffff) - 1;
    if (index >= events_.size() || events_[index].generation != number >> 32 ||
        (events_[index].references == 0 && events_[index].waiting == 0))
        return nullptr;
    return &events_[index];
}

void BlockRun::drop_unused(Event& event) {
    if (event.references != 0 || event.waiting != 0 || event.generation == 0)
        return;
    event.generation = 0;
    free_events_.push_back(static_cast<uint32_t>(&event - events_.data()));
}

void BlockRun::complete_event(Event& event, int32_t status) {
    event.status = status;
    if (event.capture && status == 0) {
        event.capture[0] = event.execution_ns;
        event.capture[1] = event.completion_ns;
    }
    event.capture = nullptr;
}

uint64_t BlockRun::create_user_event() {
    const Lock lock(mutex_);
    try {
        return new_event(true);
    } catch (const std::bad_alloc&) {
        return null_event;
    }
}

void BlockRun::set_status(uint64_t number, int32_t status) {
    const Lock lock(mutex_);
    Event* const event = find(number);
    if (event && event->is_user && event->status > 0 && status <= 0)
        complete_event(*event, status);
}

void BlockRun::retain(uint64_t number) {
    const Lock lock(mutex_);
    if (Event* const event = find(number))
        ++event->references;
}

void BlockRun::release(uint64_t number) {
    const Lock lock(mutex_);
    Event* const event = find(number);
    if (!event || event->references == 0)
        return;
    --event->references;
    drop_unused(*event);
}

bool BlockRun::is_valid(uint64_t number) {
    const Lock lock(mutex_);
    const Event* const event = find(number);
    return event && event->references != 0;
}

void BlockRun::capture(uint64_t number, uint64_t* value) {
    const Lock lock(mutex_);
    Event* const event = find(number);
    if (!event || event->is_user)
        return;
    event->capture = value;
    if (event->status <= 0)
        complete_event(*event, event->status);
}

// --- execution ---

bool BlockRun::is_ready(const Command& command) {
    for (const uint64_t wait : command.waits)
        if (const Event* const event = find(wait); event && event->status > 0)
            return false;
    return true;
}

bool BlockRun::has_failed_wait(Command& command) {
    bool has_failed = false;
    for (const uint64_t wait : command.waits)
        if (Event* const event = find(wait)) {
            has_failed |= event->status < 0;
            --event->waiting;
            drop_unused(*event);
        }
    command.waits.clear();
    return has_failed;
}

BlockRun::Command* BlockRun::begin_next() {
    for (Command& command : waiting_)
        if (is_ready(command)) {
            begun_.splice(begun_.end(), waiting_, command.place);
            queue_bytes_[command.queue] -= command.queue_bytes;
            return &command;
        }
    return nullptr;
}

Status BlockRun::finish() {
    Status status = Status::success;
    for (;;) {
        Command* command = nullptr;
        bool has_failed = false;
        {
            const Lock lock(mutex_);
            command = begin_next();
            if (!command)
                return waiting_.empty() ? status : Status::exec_status_error_for_events_in_wait_list;
            has_failed = has_failed_wait(*command);
        }
        const Status executed = has_failed ? Status::exec_status_error_for_events_in_wait_list : execute(*command);
        if (!has_failed && executed != Status::success)
            status = executed;
        end(*command, executed);
    }
}

Status BlockRun::execute(Command& command) {
    command.start_ns = now_ns();
    Status status = Status::success;
    if (command.kernel) {
        LaunchRecord record;
        record.kernel = command.kernel;
        record.arguments = command.arguments.get();
        record.context = launch_.context;
        record.context.device_enqueue = &command;
        set_range(record, {command.range.work_dim, command.range.global_offset, command.range.global_size,
                           command.range.local_size});
        set_memory(record, command.local_bytes);
        status = execute_kernel(record, pool_, workspace_);
    }
    command.end_ns = now_ns();
    command.arguments.reset();
    return status;
}

void BlockRun::end(Command& executed, Status status) {
    const Lock lock(mutex_);
    Command* command = &executed;
    if (Event* const event = find(executed.event))
        event->execution_ns = executed.end_ns - executed.start_ns;
    while (command->parent && --command->unfinished == 0) {
        if (Event* const event = find(command->event)) {
            event->completion_ns = now_ns() - command->start_ns;
            complete_event(*event, command == &executed ? static_cast<int32_t>(status) : 0);
            --event->waiting;
            drop_unused(*event);
        }
        Command* const parent = command->parent;
        begun_.erase(command->place);
        command = parent;
    }
}

}  // namespace polder::devices
