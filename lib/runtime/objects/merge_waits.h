// How the queue's sources collect what a command waits for. The events of its wait list come first, but for those that have
// succeeded: the command fails when one of them fails. Then what queue order demands: what is not complete.
#pragma once

#include <algorithm>
#include <polder/driver.h>
#include <vector>

namespace polder::runtime {

inline void add_event(std::vector<driver::Timepoint>& waits, driver::Timepoint timepoint) {
    if (timepoint.queue && (!timepoint.is_complete() || timepoint.queue->status(timepoint.value) != Status::success))
        waits.push_back(timepoint);
}

inline void add_wait(std::vector<driver::Timepoint>& waits, driver::Timepoint timepoint) {
    if (timepoint.is_complete())
        return;
    if (std::ranges::none_of(waits, [&](driver::Timepoint known) {
            return known.queue == timepoint.queue && known.value >= timepoint.value;
        }))
        waits.push_back(timepoint);
}

}  // namespace polder::runtime
