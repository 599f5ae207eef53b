// One submitted operation of a ForeignQueue, with copies of everything to which the caller's operation points.
#pragma once

#include <base/small_vector.h>

#include <polder/driver.h>
#include <variant>
#include <vector>

namespace polder::devices {

struct MarkerWork {};
struct FillWork {
    DeviceAddress to;
    uint64_t size;
    std::vector<std::byte> pattern;
};

// `Event` is the device's; `Work` are the operations that each driver keeps in its own form.
template <class Event, class... Work>
struct ForeignOperation {
    uint64_t value = 0;
    SmallVector<driver::Timepoint, 2> waits{};  // complete on the host before the operation is pushed
    // Complete on the device before the operation executes.
    SmallVector<Event, 4> events{};
    SmallVector<driver::Timepoint, 2> after{};  // the timepoints to which `events` belong, if the driver needs them
    SmallVector<uint64_t, 4> own_waits{};  // operations of the same queue, which must have succeeded
    bool has_failed_wait = false;
    driver::OperationTimes* times = nullptr;
    std::variant<MarkerWork, driver::CopyOperation, FillWork, driver::HostOperation, Work...> work;
};

// Calls copy(to, from, bytes) for each row of a copy within host memory.
template <class Copy>
void for_each_host_row(const driver::CopyOperation& operation, Copy&& copy) {
    const driver::CopyOperation::End& from = operation.from;
    const driver::CopyOperation::End& to = operation.to;
    for (uint64_t z = 0; z < operation.shape.slices; ++z)
        for (uint64_t y = 0; y < operation.shape.rows; ++y)
            copy(to.address.host() + z * to.layout.slice_pitch + y * to.layout.row_pitch,
                 from.address.host() + z * from.layout.slice_pitch + y * from.layout.row_pitch,
                 operation.shape.row_bytes);
}

}  // namespace polder::devices
