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
    // The host never had the bytes, so there is nothing to publish.
    if (map_->has_failed())
        return fail(Status::exec_status_error_for_events_in_wait_list, "the map command failed");
    return queue.context().domain().unmap(execution, *storage_, StorageRect::of(map_->range), map_->access);
}

}  // namespace polder::runtime
