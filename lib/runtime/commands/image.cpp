#include <memory/rect_fill.h>
#include <runtime/image_commands.h>
#include <runtime/queue.h>

namespace polder::runtime {
namespace {

// Joins rows that are contiguous to one row, then slices that are contiguous to one slice.
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
        memory::submit_rect_fill(execution.queue, addresses[0], rect_.shape, rect_.layout, element_.span(),
                                 {waits, execution.times}, done);
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

Result<driver::Timepoint> FillImageCommand::submit(Queue& queue, const memory::Execution& execution) const {
    return queue.context().domain().fill_rect(execution, to_->storage(), merged(rect_), element_.span());
}

Ref<const RecordedOperation> FillImageCommand::record() const {
    return make_ref<RecordedImageFill>(to_, rect_, element_);
}

} // namespace polder::runtime
