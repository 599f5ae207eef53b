// Each command's `reserve` and `submit` call the domain's function of the same meaning.
#include <base/completion.h>
#include <runtime/buffer_commands.h>
#include <runtime/queue.h>

#include <algorithm>
#include <memory>

namespace polder::runtime {

using driver::Timepoint;
using memory::Execution;

Result<Timepoint> ReadCommand::submit(Queue& queue, const Execution& execution) const {
    return queue.context().domain().read(execution, from_->storage(), rect_, to_, to_layout_);
}

Result<void> WriteCommand::reserve(const Queue& queue) const {
    return queue.context().domain().reserve(to_->storage(), rect_.span(), queue.space(), queue.only_driver_queue());
}

memory::Announcement WriteCommand::announce(const Queue& queue) const {
    return {queue.context().domain(), {{&to_->storage(), rect_.span()}}, queue.space()};
}

Result<Timepoint> WriteCommand::submit(Queue& queue, const Execution& execution) const {
    return queue.context().domain().write(execution, to_->storage(), rect_, from_, from_layout_);
}

Result<void> CopyCommand::reserve(const Queue& queue) const {
    return queue.context().domain().reserve(to_->storage(), to_rect_.span(), queue.space(), queue.only_driver_queue());
}

memory::Announcement CopyCommand::announce(const Queue& queue) const {
    return {queue.context().domain(), {{&to_->storage(), to_rect_.span()}}, queue.space()};
}

Result<Timepoint> CopyCommand::submit(Queue& queue, const Execution& execution) const {
    return queue.context().domain().copy(execution, from_->storage(), from_rect_, to_->storage(), to_rect_);
}

FillPattern::FillPattern(std::span<const std::byte> pattern) : size_(pattern.size()) {
    std::ranges::copy(pattern, bytes_.begin());
}

Result<void> FillCommand::reserve(const Queue& queue) const {
    return queue.context().domain().reserve(to_->storage(), range_, queue.space(), queue.only_driver_queue());
}

memory::Announcement FillCommand::announce(const Queue& queue) const {
    return {queue.context().domain(), {{&to_->storage(), range_}}, queue.space()};
}

Result<Timepoint> FillCommand::submit(Queue& queue, const Execution& execution) const {
    return queue.context().domain().fill(execution, to_->storage(), range_, pattern_.bytes());
}

Result<MapCommand> MapCommand::create(Ref<MemObject> object, const memory::StorageRect& rect,
                                      memory::MapAccess access) {
    memory::Storage& storage = object->storage();
    POLDER_ASSIGN(pin, object->context().reported(object->context().domain().reserve_map(storage, rect.span())));
    POLDER_ASSIGN(record, object->add_map(storage.map_address() + rect.offset, rect, access, std::move(pin)));
    return MapCommand(std::move(object), std::move(record));
}

Result<Timepoint> MapCommand::submit(Queue& queue, const Execution& execution) const {
    return queue.context().domain().map(execution, object_->storage(), record_->rect, record_->access);
}

Result<Timepoint> UnmapCommand::submit(Queue& queue, const Execution& execution) const {
    // The map failed, so the host never wrote the bytes, and there is nothing to publish.
    if (record_->has_failed())
        return fail(Status::exec_status_error_for_events_in_wait_list, "the map command failed");
    return queue.context().domain().unmap(execution, object_->storage(), record_->rect, record_->access);
}

MigrateCommand::MigrateCommand(std::vector<Ref<MemObject>> objects, SpaceId target, memory::Domain::Content content)
    : objects_(std::move(objects)), target_(target), content_(content) {
    if (!target_.is_host())
        return;
    for (const Ref<MemObject>& object : objects_)
        if (object->is_in_application_memory())
            pins_.emplace_back(object->storage());
}

Result<void> MigrateCommand::reserve(const Queue& queue) const {
    return queue.context().domain().reserve_migration(uses(), target_, queue.only_driver_queue());
}

std::vector<memory::Use> MigrateCommand::uses() const {
    std::vector<memory::Use> uses;
    uses.reserve(objects_.size());
    for (const Ref<MemObject>& object : objects_)
        uses.push_back({&object->storage(), object->range(), Access::read});
    return uses;
}

Result<Timepoint> MigrateCommand::submit(Queue& queue, const Execution& execution) const {
    return queue.context().domain().migrate(execution, uses(), target_, content_);
}

Result<Timepoint> MarkerCommand::submit(Queue&, const Execution& execution) const {
    return execution.queue.marker({execution.waits, execution.times});
}

Result<Timepoint> HostCopyCommand::submit(Queue&, const Execution& execution) const {
    if (size_.value == 0)
        return execution.queue.marker({execution.waits, execution.times});
    using Place = driver::CopyOperation::Place;
    const driver::CopyOperation copy{
        {Place::host, DeviceAddress::of(from_), {}}, {Place::host, DeviceAddress::of(to_), {}}, {size_.value, 1, 1}};
    return execution.queue.copy(copy, {execution.waits, execution.times});
}

Result<Timepoint> HostFillCommand::submit(Queue&, const Execution& execution) const {
    if (size_.value == 0)
        return execution.queue.marker({execution.waits, execution.times});
    const driver::FillOperation fill{DeviceAddress::of(to_), size_.value, pattern_.bytes()};
    return execution.queue.fill(fill, {execution.waits, execution.times});
}

namespace {

// One submission of a host call. The driver skips the call when a timepoint that it waits for has failed.
struct HostCall {
    void (*function)(void*);
    void (*discard)(void*);
    void* data;
    bool is_called = false;

    static void run(void* call) {
        auto* const self = static_cast<HostCall*>(call);
        self->is_called = true;
        self->function(self->data);
    }
    static void finish(void* call) {
        const std::unique_ptr<HostCall> self{static_cast<HostCall*>(call)};
        if (!self->is_called)
            self->discard(self->data);
    }
};

} // namespace

// HostCall::finish runs on the callback thread.
Result<void> HostCallCommand::reserve(const Queue&) const { return start_callback_thread(); }

Result<Timepoint> HostCallCommand::submit(Queue&, const Execution& execution) const {
    if (execution.waits.empty())
        return execution.queue.call({function_, data_}, {{}, execution.times});
    auto call = std::make_unique<HostCall>(HostCall{function_, discard_, data_});
    const Timepoint done = execution.queue.call({HostCall::run, call.get()}, {execution.waits, execution.times});
    run_when_complete({&done, 1}, {HostCall::finish, call.release()});
    return done;
}

} // namespace polder::runtime
