#include <runtime/image_commands.h>
#include <runtime/queue.h>

namespace polder::runtime {
namespace {

// Rows that continue each other become one, and so do slices.
memory::StorageRect merged(memory::StorageRect rect) {
    if (rect.shape.rows == 1 || rect.shape.row_bytes == rect.layout.row_pitch) {
        rect.shape.row_bytes *= rect.shape.rows;
        rect.shape.rows = 1;
        if (rect.shape.slices == 1 || rect.shape.row_bytes == rect.layout.slice_pitch) {
            rect.shape.row_bytes *= rect.shape.slices;
            rect.shape.slices = 1;
        }
    }
    return rect;
}

} // namespace

Result<void> FillImageCommand::reserve(const Queue& queue) const {
    return queue.context().domain().reserve(to_->storage(), rect_.span(), queue.space(), queue.only_driver_queue());
}

memory::Announcement FillImageCommand::announce(const Queue& queue) const {
    return {queue.context().domain(), {{&to_->storage(), rect_.span()}}, queue.space()};
}

// One fill for each row. The queue executes them in order, so the last one's end is the command's.
Result<driver::Timepoint> FillImageCommand::submit(Queue& queue, const memory::Execution& execution) const {
    memory::Domain& domain = queue.context().domain();
    const memory::StorageRect rect = merged(rect_);
    driver::Timepoint done;
    for (uint64_t z = 0; z < rect.shape.slices; ++z)
        for (uint64_t y = 0; y < rect.shape.rows; ++y) {
            const uint64_t begin = rect.offset + y * rect.layout.row_pitch + z * rect.layout.slice_pitch;
            const ByteRange row = ByteRange::at(begin, ByteCount{rect.shape.row_bytes});
            POLDER_ASSIGN(filled, domain.fill(execution, to_->storage(), row, element_.span()));
            done = filled;
        }
    return done;
}

} // namespace polder::runtime
