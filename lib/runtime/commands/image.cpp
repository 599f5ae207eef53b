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

uint64_t row_count(const memory::StorageRect& rect) { return rect.shape.rows * rect.shape.slices; }

// From the first byte of the rect to the first byte of a row, which is counted through all slices.
uint64_t row_offset(const memory::StorageRect& rect, uint64_t row) {
    return row % rect.shape.rows * rect.layout.row_pitch + row / rect.shape.rows * rect.layout.slice_pitch;
}

class RecordedImageFill final : public RecordedOperation {
public:
    RecordedImageFill(Ref<MemObject> to, const memory::StorageRect& rect, const ImageElement& element)
        : to_(std::move(to)), rect_(merged(rect)), element_(element) {}
    void add_uses(std::vector<memory::Use>& uses) const override {
        // The bytes between rows stay as they are.
        const bool is_contiguous = rect_.shape.rows == 1 && rect_.shape.slices == 1;
        uses.push_back({&to_->storage(), rect_.span(), is_contiguous ? Access::overwrite : Access::read_write});
    }
    driver::Timepoint submit(const memory::Execution& execution, driver::Waits waits,
                             std::span<const DeviceAddress> addresses) const override {
        driver::Timepoint done;
        for (uint64_t row = 0; row < row_count(rect_); ++row) {
            const DeviceAddress begin = addresses[0].plus(row_offset(rect_, row));
            done = execution.queue.fill({begin, rect_.shape.row_bytes, element_.span()}, {waits, execution.times});
            waits = {};  // the queue executes in order
        }
        return done;
    }

private:
    Ref<MemObject> to_;
    memory::StorageRect rect_;
    ImageElement element_;
};

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
    for (uint64_t row = 0; row < row_count(rect); ++row) {
        const ByteRange bytes = ByteRange::at(rect.offset + row_offset(rect, row), ByteCount{rect.shape.row_bytes});
        POLDER_ASSIGN(filled, domain.fill(execution, to_->storage(), bytes, element_.span()));
        done = filled;
    }
    return done;
}

Ref<const RecordedOperation> FillImageCommand::record() const {
    return make_ref<RecordedImageFill>(to_, rect_, element_);
}

} // namespace polder::runtime
