#include <runtime/buffer_commands.h>
#include <runtime/context.h>
#include <runtime/queue.h>
#include <runtime/svm_commands.h>

namespace polder::runtime {

using driver::Timepoint;
using memory::Execution;
using memory::StorageRect;

Result<Timepoint> SvmMapCommand::submit(Queue& queue, const Execution& execution) const {
    return queue.context().domain().map(execution, *storage_, StorageRect::of(map_->range), map_->access);
}

Result<Timepoint> SvmUnmapCommand::submit(Queue& queue, const Execution& execution) const {
    // The map failed, so the host never wrote the bytes, and there is nothing to publish.
    if (map_->has_failed())
        return fail(Status::exec_status_error_for_events_in_wait_list, "the map command failed");
    return queue.context().domain().unmap(execution, *storage_, StorageRect::of(map_->range), map_->access);
}

Result<void> HostEndCopyCommand::reserve(const Queue& queue) const {
    if (!to_.bytes || to_.stays_on_host)
        return {};
    return queue.context().domain().reserve(to_.bytes->storage(), queue.space(), queue.only_driver_queue());
}

// Submits the copy. At least one end is host memory, which the device accesses at the host's address.
Result<Timepoint> HostEndCopyCommand::copy(Queue& queue, const Execution& execution) const {
    memory::Domain& domain = queue.context().domain();
    if (from_.bytes && !from_.stays_on_host)
        return domain.read(execution, from_.bytes->storage(), StorageRect::of(from_.bytes->range()), to_.pointer, {});
    if (to_.bytes && !to_.stays_on_host)
        return domain.write(execution, to_.bytes->storage(), StorageRect::of(to_.bytes->range()), from_.pointer, {});
    return HostCopyCommand(to_.pointer, from_.pointer, size_).submit(queue, execution);
}

// Records the copy as a use of the allocations that stay on the host, so that freeing their memory waits for it.
Result<Timepoint> HostEndCopyCommand::submit(Queue& queue, const Execution& execution) const {
    using memory::MapAccess;
    memory::Domain& domain = queue.context().domain();
    POLDER_ASSIGN(done, copy(queue, execution));
    if (to_.bytes && to_.stays_on_host) {
        const Timepoint copied = done;
        const Execution after{execution.queue, execution.space, {&copied, 1}, nullptr};
        POLDER_ASSIGN(noted,
                      domain.unmap(after, to_.bytes->storage(), StorageRect::of(to_.bytes->range()), MapAccess::write));
        done = noted;
    }
    if (from_.bytes && from_.stays_on_host) {
        const Timepoint copied = done;
        const Execution after{execution.queue, execution.space, {&copied, 1}, nullptr};
        POLDER_ASSIGN(
            noted, domain.map(after, from_.bytes->storage(), StorageRect::of(from_.bytes->range()), MapAccess::read));
        done = noted;
    }
    return done;
}

}  // namespace polder::runtime
