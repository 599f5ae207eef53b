// Device: an OpenCL device or sub-device, on top of a driver's device.
//
// Root devices are made by the Platform and live until the process ends; sub-devices are reference-counted.
// Immutable after construction. Any thread.
#pragma once

#include <base/mutex.h>
#include <memory/space.h>
#include <runtime/handle.h>

#include <CL/cl.h>
#include <polder/driver.h>
#include <string>
#include <vector>

namespace polder::compiler {
struct Target;
}

namespace polder::runtime {

// A driver's device with the driver queues that no command queue has. Never destroyed, so that timepoints on its queues stay valid.
struct DriverSlot {
    explicit DriverSlot(driver::Device& driver_device) : device(driver_device) {}
    driver::Device& device;
    Mutex mutex;
    // Each with the newest operation of those who had it; the one that was given back first comes first. Has room for all queues.
    std::vector<driver::Timepoint> free_queues POLDER_GUARDED_BY(mutex);
    size_t queue_count POLDER_GUARDED_BY(mutex) = 0;  // free or not
};

using PartitionList = std::vector<cl_device_partition_property>;

class Device final : public Object {
public:
    static constexpr Kind kind = Kind::device;
    static constexpr Status invalid = Status::invalid_device;

    // A root device. `slot` and `space` are never destroyed.
    Device(DriverSlot& slot, memory::Space& space, std::string driver_name);
    // A sub-device of `parent`, made by the given partition property list (with its terminating zero).
    Device(Ref<Device> parent, DriverSlot& slot, PartitionList partition);
    ~Device() override;

    [[nodiscard]] driver::Device& driver() const { return slot_->device; }
    [[nodiscard]] const driver::DeviceInfo& info() const { return slot_->device.info(); }
    [[nodiscard]] memory::Space& space() const { return *space_; }
    [[nodiscard]] SpaceId space_id() const { return space_->id(); }
    [[nodiscard]] Device* parent() const { return parent_.get(); }
    [[nodiscard]] Device& root() { return parent_ ? parent_->root() : *this; }
    [[nodiscard]] const PartitionList& partition() const { return partition_; }
    [[nodiscard]] const std::string& driver_name() const { return driver_name_; }

    // SVM is offered by devices that compute in host memory, and by those that use a part of it in place.
    [[nodiscard]] bool has_svm() const { return space_->id().is_host() || in_place_regions() != nullptr; }
    // Host memory at any time, without maps: fine-grained SVM, of buffers and of the system.
    [[nodiscard]] bool has_fine_grained_svm() const { return space_->id().is_host(); }
    // Of a device whose kernels use host memory in place that is registered there; otherwise null.
    [[nodiscard]] driver::HostRegions* in_place_regions() const {
        driver::HostRegions* const regions = space_->id().is_host() ? nullptr : driver().host_regions();
        return regions && regions->are_for_kernels() ? regions : nullptr;
    }
    // Kernels see memory by its address. Drivers that compile the source themselves may have handles instead.
    [[nodiscard]] bool has_addresses() const { return info().code.format != driver::CodeFormat::opencl_c; }
    // Images are descriptors that our built-in functions read.
    [[nodiscard]] bool has_images() const { return !info().language; }
    // The target that programs are compiled for. Devices that need the same code, such as a device and its sub-devices, return the
    // same object.
    [[nodiscard]] const compiler::Target& target() const { return *target_; }

    // A driver queue that has nothing to do, or a new one. What was enqueued before a queue was released may wait for the application, so a
    // new queue must not come behind it. Only when `busy_queues_max` of the free queues have work, the one that was given back first is
    // used again as it is: a program that creates and releases queues without waiting needs few driver queues.
    // give_queue: `newest` is the newest operation of all that had the queue; take_queue returns it. Driver queues are never destroyed.
    static constexpr size_t busy_queues_max = 64;
    [[nodiscard]] Result<driver::Timepoint> take_queue();
    void give_queue(driver::Timepoint newest) noexcept;

private:
    Ref<Device> parent_;
    DriverSlot* slot_;
    memory::Space* space_;
    std::string driver_name_;
    PartitionList partition_;
    const compiler::Target* target_;
};

// Limits of programs and kernels, the same on all devices. In bytes.
// CL_DEVICE_MAX_PARAMETER_SIZE, of all arguments of a kernel together: what NVIDIA's devices have, and small enough
// that freezing the arguments of a launch is a short copy.
inline constexpr uint64_t parameter_bytes_max = 4096;
// CL_DEVICE_MAX_GLOBAL_VARIABLE_SIZE, of all program-scope variables together: their initial contents are a part of
// the program, its binary and its cache entry.
inline constexpr uint64_t program_variables_bytes_max = 1u << 20;

// The sub-devices for a partition property list: for each, its compute units and its own
// property list. The errors are those of clCreateSubDevices.
struct SubDevicePlan {
    std::vector<std::vector<uint32_t>> compute_units;
    PartitionList partition;
};
[[nodiscard]] Result<SubDevicePlan> plan_sub_devices(const Device& device,
                                                     const cl_device_partition_property* properties);
[[nodiscard]] Result<std::vector<Ref<Device>>> create_sub_devices(Device& device, const SubDevicePlan& plan);

// The kinds of partition that a device supports now, and the affinity domains.
[[nodiscard]] PartitionList partition_kinds(const Device& device);
[[nodiscard]] cl_device_affinity_domain affinity_domains(const Device& device);

}  // namespace polder::runtime
