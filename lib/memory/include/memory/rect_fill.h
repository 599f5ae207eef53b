// Fills a rectangle of bytes by a few operations of a device's queue, however many rows it has.
// Any thread that may submit to the queue. Throws what the queue's functions throw (std::bad_alloc).
#pragma once

#include <polder/driver.h>
#include <span>

namespace polder::memory {

// Fills `shape` at `begin` in the memory of the queue's device with `pattern`. Each row holds a whole number of patterns; rows and slices
// do not overlap. `submitted` becomes the timepoint of the last submitted operation, after which all operations are complete, also when
// a later submission throws.
//
// Queues fill contiguous bytes only. So one row is filled, and the other rows are copied from filled ones: each copy doubles their number,
// until it copies a block that fits into a processor's cache. A slice that is larger than a block is copied as a whole; rows that are larger
// than a block are filled one by one.
void submit_rect_fill(driver::Queue& queue, DeviceAddress begin, const driver::RectShape& shape,
                      const driver::RectLayout& layout, std::span<const std::byte> pattern,
                      const driver::Submission& submission, driver::Timepoint& submitted);

}  // namespace polder::memory
