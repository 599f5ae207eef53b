// DeviceQueue: a command-queue on the device (CL_QUEUE_ON_DEVICE), for the blocks that kernels enqueue. The host enqueues nothing to it.
//
// Kernels refer to it by a number (polder/device_enqueue_abi.h). The driver keeps the blocks of each launch, and counts how much of the
// queue's size they take. Immutable; any thread.
#pragma once

#include <runtime/context.h>

#include <vector>

namespace polder::runtime {

class DeviceQueue final : public Object {
public:
    static constexpr Kind kind = Kind::device_queue;
    static constexpr Status invalid = Status::invalid_command_queue;

    // Enough for one block of each work-item in a launch of 100,000. Memory is only allocated for blocks that are enqueued.
    static constexpr uint32_t preferred_bytes = uint32_t{16} << 20;
    static constexpr uint32_t bytes_max = uint32_t{64} << 20;
    // CL_DEVICE_MAX_ON_DEVICE_QUEUES. More can be created, but programs pass so many to one kernel, whose arguments have room for 512.
    static constexpr uint32_t count_max = 256;

    static Ref<DeviceQueue> create(Ref<Context> context, Ref<Device> device, cl_command_queue_properties properties,
                                   uint32_t bytes, std::vector<cl_queue_properties> property_list);

    [[nodiscard]] Context& context() const { return *context_; }
    [[nodiscard]] Device& device() const { return *device_; }
    [[nodiscard]] cl_command_queue_properties properties() const { return properties_; }
    [[nodiscard]] const std::vector<cl_queue_properties>& property_list() const { return property_list_; }
    [[nodiscard]] uint32_t bytes() const { return bytes_; }
    // The value of a kernel argument of type queue_t.
    [[nodiscard]] uint64_t number() const { return number_; }

private:
    DeviceQueue(Ref<Context> context, Ref<Device> device, cl_command_queue_properties properties, uint32_t bytes,
                std::vector<cl_queue_properties> property_list);

    const Ref<Context> context_;
    const Ref<Device> device_;
    const cl_command_queue_properties properties_;
    const uint32_t bytes_;
    const uint64_t number_;
    const std::vector<cl_queue_properties> property_list_;
};

}  // namespace polder::runtime
