// Device: an OpenCL device or sub-device, on top of a driver's device.
//
// Root devices are made by the Platform and live until the process ends; sub-devices are reference-counted.
// Immutable after construction but for the pool of idle driver queues. Any thread.
#pragma once

#include <base/mutex.h>
#include <memory/space.h>
#include <polder/driver.h>
#include <runtime/handle.h>
#include <string>
#include <vector>

#include <CL/cl.h>

namespace polder::compiler {
struct Target;
}

namespace polder::runtime {

class Device final : public Object {
public:
    static constexpr Kind kind = Kind::device;
    static constexpr Status invalid = Status::invalid_device;
    static constexpr bool valid_while_alive = true;

    // A root device. `driver_device` and `space` outlive it.
    Device(driver::Device& driver_device, memory::Space& space, std::string driver_name);
    // A sub-device of `parent`, made by the given partition property list (with its terminating zero). The
    // driver's device is never destroyed, so that timepoints on its queues stay valid.
    Device(Ref<Device> parent, std::unique_ptr<driver::Device> driver_device,
           std::vector<cl_device_partition_property> partition);
    ~Device() override;

    [[nodiscard]] driver::Device& driver() const { return *driver_; }
    [[nodiscard]] const driver::DeviceInfo& info() const { return driver_->info(); }
    [[nodiscard]] memory::Space& space() const { return *space_; }
    [[nodiscard]] SpaceId space_id() const { return space_->id(); }
    [[nodiscard]] Device* parent() const { return parent_.get(); }
    [[nodiscard]] Device& root() { return parent_ ? parent_->root() : *this; }
    [[nodiscard]] const std::vector<cl_device_partition_property>& partition() const { return partition_; }
    [[nodiscard]] const std::string& driver_name() const { return driver_name_; }

    // SVM is offered by devices that compute in host memory.
    [[nodiscard]] bool has_svm() const { return space_->id().is_host(); }
    // What programs are compiled for. Sub-devices share their root's.
    [[nodiscard]] const compiler::Target& target() const { return *target_; }

    // An idle driver queue, or a new one. Given back, it is used again; it never goes away, so that
    // timepoints on it stay valid.
    [[nodiscard]] Result<driver::Queue*> take_queue();
    void give_queue(driver::Queue* queue);

private:
    Ref<Device> parent_;
    driver::Device* driver_;
    memory::Space* space_;
    std::string driver_name_;
    std::vector<cl_device_partition_property> partition_;
    std::shared_ptr<const compiler::Target> target_;
    Mutex mutex_;
    std::vector<driver::Queue*> idle_queues_ POLDER_GUARDED_BY(mutex_);
};

} // namespace polder::runtime
