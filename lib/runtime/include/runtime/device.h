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

// A driver's device, and those of its driver queues that no command queue uses. Never destroyed, so that timepoints of the queues stay valid.
struct DriverSlot {
    explicit DriverSlot(driver::Device& driver_device) : device(driver_device) {}
    driver::Device& device;
    Mutex mutex;
    // The free queues, each with its newest operation, in the order in which they were given back. Has capacity for all queues.
    std::vector<driver::Timepoint> free_queues POLDER_GUARDED_BY(mutex);
    size_t queue_count POLDER_GUARDED_BY(mutex) = 0;  // all queues, free or not
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

    // True for devices that compute in host memory, and for devices that use parts of host memory in place.
    [[nodiscard]] bool has_svm() const { return space_->id().is_host() || in_place_regions() != nullptr; }
    // Whether host and device may access the same memory without maps: fine-grained buffer and system SVM.
    [[nodiscard]] bool has_fine_grained_svm() const { return space_->id().is_host(); }
    // The HostRegions of a device whose kernels use registered host memory in place; otherwise null.
    [[nodiscard]] driver::HostRegions* in_place_regions() const {
        driver::HostRegions* const regions = space_->id().is_host() ? nullptr : driver().host_regions();
        return regions && regions->are_for_kernels() ? regions : nullptr;
    }
    // Whether kernels access memory by addresses. Drivers that compile the source themselves may use handles instead.
    [[nodiscard]] bool has_addresses() const { return info().code.format != driver::CodeFormat::opencl_c; }
    // Whether kernels can use images: descriptors that Polder's built-in functions read, or objects that a driver makes of them.
    [[nodiscard]] bool has_images() const { return !info().language || info().language->images; }
    // The target that programs are compiled for. Devices that need the same code, such as a device and its sub-devices, return the
    // same object.
    [[nodiscard]] const compiler::Target& target() const { return *target_; }

    // take_queue: a driver queue without work, or a new one. Operations on a busy queue may wait for the application, so commands of a new
    // command queue must not be submitted after them. Only when `busy_queues_max` free queues have work, the one that was given back first
    // is used again, so that a program that creates and releases queues without waiting needs few driver queues.
    // give_queue: `newest` is the newest operation of the driver queue; take_queue returns it. Driver queues are never destroyed.
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
