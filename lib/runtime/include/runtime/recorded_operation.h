// RecordedOperation: one operation of a command buffer, as the driver executes it each time the buffer is enqueued.
//
// Made from a Command (`Command::record`). Immutable, so the enqueues of one command buffer may run at the same time. Keeps
// the buffers, arguments and code that it names.
#pragma once

#include <base/ref.h>
#include <memory/domain.h>

#include <polder/driver.h>
#include <span>
#include <vector>

namespace polder::runtime {

class RecordedOperation : public RefCounted {
public:
    // Appends the byte ranges that the operation uses.
    virtual void add_uses(std::vector<memory::Use>& uses) const = 0;
    // Whether it only works on devices that compute in host memory.
    [[nodiscard]] virtual bool needs_svm() const { return false; }
    // Submits the operation once, with `waits`. `addresses[i]` is the address of its i-th use in the device's memory.
    [[nodiscard]] virtual driver::Timepoint submit(const memory::Execution& execution, driver::Waits waits,
                                                   std::span<const DeviceAddress> addresses) const = 0;
};

}  // namespace polder::runtime
