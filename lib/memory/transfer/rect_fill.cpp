#include "transfer/rect.h"

#include <memory/rect_fill.h>

#include <algorithm>

namespace polder::memory {
namespace {

constexpr uint64_t block_bytes = uint64_t{64} * 1024;

// Calls copy(at, count) until the items from 1 to `total` - 1 are copies of those from 0 to `count` - 1.
template <class F>
void spread(uint64_t total, uint64_t count_max, F&& copy) {
    for (uint64_t done = 1; done < total;) {
        const uint64_t count = std::min({done, count_max, total - done});
        copy(done, count);
        done += count;
    }
}

class RectFill {
public:
    RectFill(driver::Queue& queue, DeviceAddress begin, const driver::RectLayout& layout,
             const driver::Submission& submission, driver::Timepoint& submitted)
        : queue_(queue), begin_(begin), layout_(layout), submission_(submission), submitted_(submitted) {}

    void fill(uint64_t y, uint64_t z, uint64_t bytes, std::span<const std::byte> pattern) {
        note(queue_.fill({at(y, z), bytes, pattern}, submission_));
    }
    void copy_to(uint64_t y, uint64_t z, const driver::RectShape& shape) {
        using driver::CopyOperation;
        note(queue_.copy(
            {{CopyOperation::Place::device, begin_, layout_}, {CopyOperation::Place::device, at(y, z), layout_}, shape},
            submission_));
    }

private:
    // The next operation waits for this one, so that it fails when this one has failed, and the last one reports it.
    void note(driver::Timepoint point) {
        submitted_ = point;
        submission_.waits = {&submitted_, 1};
    }
    [[nodiscard]] DeviceAddress at(uint64_t y, uint64_t z) const { return begin_.plus(row_offset(layout_, y, z)); }

    driver::Queue& queue_;
    const DeviceAddress begin_;
    const driver::RectLayout& layout_;
    driver::Submission submission_;
    driver::Timepoint& submitted_;
};

}  // namespace

void submit_rect_fill(driver::Queue& queue, DeviceAddress begin, const driver::RectShape& shape,
                      const driver::RectLayout& layout, std::span<const std::byte> pattern,
                      const driver::Submission& submission, driver::Timepoint& submitted) {
    RectFill rect(queue, begin, layout, submission, submitted);
    const uint64_t row_bytes = shape.row_bytes;
    if (row_bytes > block_bytes) {
        for (uint64_t z = 0; z < shape.slices; ++z)
            for (uint64_t y = 0; y < shape.rows; ++y)
                rect.fill(y, z, row_bytes, pattern);
        return;
    }
    rect.fill(0, 0, row_bytes, pattern);
    spread(shape.rows, block_bytes / row_bytes,
           [&](uint64_t y, uint64_t rows) { rect.copy_to(y, 0, {row_bytes, rows, 1}); });
    spread(shape.slices, std::max<uint64_t>(1, block_bytes / (row_bytes * shape.rows)),
           [&](uint64_t z, uint64_t slices) { rect.copy_to(0, z, {row_bytes, shape.rows, slices}); });
}

}  // namespace polder::memory
