// How the queue's sources collect what a command waits for: at most one timepoint a driver queue, none that is complete.
#pragma once

#include <algorithm>
#include <polder/driver.h>
#include <vector>

namespace polder::runtime {

inline void add_wait(std::vector<driver::Timepoint>& waits, driver::Timepoint timepoint) {
    if (timepoint.is_complete())
        return;
    for (driver::Timepoint& known : waits) {
        if (known.queue == timepoint.queue) {
            known.value = std::max(known.value, timepoint.value);
            return;
        }
    }
    waits.push_back(timepoint);
}

}  // namespace polder::runtime
