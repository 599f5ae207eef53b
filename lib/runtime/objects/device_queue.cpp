#include <runtime/device_queue.h>

#include <atomic>
#include <polder/device_enqueue_abi.h>

namespace polder::runtime {
namespace {

std::atomic<uint32_t> last_id{0};

}  // namespace

DeviceQueue::DeviceQueue(Ref<Context> context, Ref<Device> device, cl_command_queue_properties properties,
                         uint32_t bytes, std::vector<cl_queue_properties> property_list)
    : context_(std::move(context)), device_(std::move(device)), properties_(properties), bytes_(bytes),
      number_(device_queue_number(++last_id, bytes)), property_list_(std::move(property_list)) {}

Ref<DeviceQueue> DeviceQueue::create(Ref<Context> context, Ref<Device> device, cl_command_queue_properties properties,
                                     uint32_t bytes, std::vector<cl_queue_properties> property_list) {
    return Ref<DeviceQueue>::adopt(
        new DeviceQueue(std::move(context), std::move(device), properties, bytes, std::move(property_list)));
}

}  // namespace polder::runtime
